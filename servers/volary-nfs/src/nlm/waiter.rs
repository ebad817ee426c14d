//! [`Waiter`]: a request that waits for a lock.

use super::lock_file::LockFile;
use super::wanted::Wanted;
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Cancel, Result};
use volary_session::Party;

/// A request that waits for a lock.
pub(crate) struct Waiter {
    pub(super) want: Wanted,
    pub(super) number: u64,
    pub(super) file: Arc<LockFile>,
    pub(super) party: Party,
    pub(super) cancel: Cancel,
    /// Whether the client has sent the request again and got the lock. Locked while that is done,
    /// and while an unclaimed lock is released.
    pub(super) claimed: Mutex<bool>,
}

impl Waiter {
    pub(super) fn cancel(&self) {
        self.cancel.set();
    }

    /// Takes the lock, by `take`, for a client that has sent its request again. Ends the wait if
    /// that succeeds.
    pub(super) fn claim(&self, take: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut claimed = self.claimed.lock();
        take()?;
        *claimed = true;
        self.cancel();
        Ok(())
    }
}
