//! Sessions: the state that a plug-in keeps for each caller.

use super::hooks::Hooks;
use parking_lot::Mutex;
use std::ffi::c_void;
use std::sync::Arc;
use volary_core::{Cred, Result};

/// The most callers that are remembered. The one that called longest ago is disconnected first.
const SESSIONS_MAX: usize = 64;

/// A connected caller. It is disconnected when its last call ends.
pub(super) struct Session {
    pub(super) at: *mut c_void,
    hooks: Hooks,
}

#[expect(
    unsafe_code,
    reason = "the table says that it can be called from any thread"
)]
// SAFETY: the pointer is the plug-in's, which is told of it by calls of any thread.
unsafe impl Send for Session {}
#[expect(
    unsafe_code,
    reason = "the table says that it can be called from any thread"
)]
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    pub(super) fn new(at: *mut c_void, hooks: Hooks) -> Self {
        Self { at, hooks }
    }
}

impl Drop for Session {
    #[expect(unsafe_code, reason = "calls the plug-in")]
    fn drop(&mut self) {
        if let Some(disconnect) = self.hooks.disconnect {
            // SAFETY: `connect` of this table returned the session, which is ended once.
            unsafe { disconnect(self.hooks.fs, self.at) }
        }
    }
}

/// The connected callers; the one that called last is at the end.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Vec<(Cred, Arc<Session>)>>);

impl Sessions {
    /// Returns a caller's session; `connect` begins one if there is none.
    ///
    /// # Errors
    /// Those of `connect`.
    pub(super) fn of(
        &self,
        cred: &Cred,
        connect: impl FnOnce() -> Result<Session>,
    ) -> Result<Arc<Session>> {
        let mut all = self.0.lock();
        let found = all.iter().position(|(known, _)| known == cred);
        let entry = match found {
            Some(at) => all.remove(at),
            None => (cred.clone(), Arc::new(connect()?)),
        };
        let session = Arc::clone(&entry.1);
        all.push(entry);
        let oldest = (all.len() > SESSIONS_MAX).then(|| all.remove(0));
        drop(all);
        drop(oldest);
        Ok(session)
    }

    /// Ends all sessions, those in a call when it returns.
    pub(super) fn end(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}
