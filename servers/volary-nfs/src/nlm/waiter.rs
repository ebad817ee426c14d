//! [`Waiter`]: one who waits for a lock.

use super::lock_file::LockFile;
use super::wanted::Wanted;
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Cancel, Result};
use volary_session::Party;

/// One who waits.
pub(crate) struct Waiter {
    pub(super) want: Wanted,
    pub(super) number: u64,
    pub(super) file: Arc<LockFile>,
    pub(super) party: Party,
    pub(super) cancel: Cancel,
    /// The client has asked again and been told that it has the lock. Held over
    /// that, and over giving back what nobody claims.
    pub(super) claimed: Mutex<bool>,
}

impl Waiter {
    pub(super) fn cancel(&self) {
        self.cancel.set();
    }

    /// Takes the lock for a client that asks again, by `take`, and waits no more
    /// if it is had.
    pub(super) fn claim(&self, take: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut claimed = self.claimed.lock();
        take()?;
        *claimed = true;
        self.cancel();
        Ok(())
    }
}
