//! Times of grace: after a restart of a server whose clients lost their locks with it,
//! those claim them again before anybody else is given any.

use crate::session::Session;
use crate::volume::Volume;
use std::fmt;
use std::sync::Arc;

/// A time of grace on a volume; it ends when this is dropped.
///
/// Until then byte-range locks are given to [who claims](Session::claiming) alone. All
/// others find every byte of every file locked: they are answered `Locked`, or wait. Nor is
/// a lease granted under which a client could lock by itself (W). What was locked or leased
/// before stays. Whole-file locks, opens, reads and writes go on as ever. There may be
/// several at once.
#[must_use = "the time of grace ends when this is dropped"]
pub struct Grace(Arc<Volume>);

impl Volume {
    /// Begins a time of grace.
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
    /// Lets the caller claim locks again: a [time of grace](Grace) does not keep them out.
    #[must_use]
    pub fn claiming(mut self) -> Self {
        self.claims = true;
        self
    }
}
