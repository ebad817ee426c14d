//! Grace periods: after a server restarts and its clients' locks are lost, only they may lock at
//! first, to reclaim their locks.

use crate::session::Session;
use crate::volume::Volume;
use std::fmt;
use std::sync::Arc;

/// A grace period of a volume; it ends when this is dropped.
///
/// During a grace period, byte-range locks are given only to sessions that
/// [reclaim](Session::claiming) them. All others find every byte of every file locked: they are
/// answered `Locked`, or wait. No lease that would let a client lock by itself (W) is granted.
/// Earlier locks and leases stay. Whole-file locks, opens, reads and writes are unaffected. There
/// may be several grace periods at once.
#[must_use = "the time of grace ends when this is dropped"]
pub struct Grace(Arc<Volume>);

impl Volume {
    /// Begins a grace period.
    pub fn grace(self: &Arc<Self>) -> Grace {
        self.ranges.begin_grace();
        Grace(Arc::clone(self))
    }
}

impl Drop for Grace {
    fn drop(&mut self) {
        self.0.ranges.end_grace();
    }
}

impl fmt::Debug for Grace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Grace").field(&self.0.name()).finish()
    }
}

impl Session {
    /// Lets the caller reclaim locks: a [grace period](Grace) does not refuse them.
    #[must_use]
    pub fn claiming(mut self) -> Self {
        self.claims = true;
        self
    }
}
