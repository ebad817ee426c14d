//! What both sinks want to know.

use super::stream::Meta;
use volary::Time;

/// How nodes are copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    /// Keep owners and exact modes.
    pub(super) preserve: bool,
    pub(super) no_clobber: bool,
    pub(super) update: bool,
    /// Who owns what is copied, unless owners are kept.
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) owner_is_given: bool,
    /// What modes lack in a volume, where the source has none.
    pub(super) umask: u32,
}

impl How {
    /// Returns whether what is there is to be left.
    pub(super) fn keeps(&self, there: Time, new: Time) -> bool {
        self.no_clobber || self.update && there >= new
    }

    /// Returns who owns what is copied.
    pub(super) fn owner(&self, meta: &Meta) -> (u32, u32) {
        let keeps = self.preserve && !self.owner_is_given;
        if keeps {
            (meta.uid, meta.gid)
        } else {
            (self.uid, self.gid)
        }
    }
}
