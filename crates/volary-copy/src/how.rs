//! How nodes are copied: [`CopyOptions`].

use crate::stream::Meta;
use volary_core::Time;

/// How to copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions {
    /// Copy directories, with all that is below.
    pub recursive: bool,
    /// Copy what symlinks of the host lead to.
    pub dereference: bool,
    /// Keep owners and exact modes.
    pub preserve: bool,
    /// Keep hard links and extended attributes.
    pub everything: bool,
    /// Leave what is there.
    pub no_clobber: bool,
    /// Replace only what is older.
    pub update: bool,
    /// Who owns what is copied into a volume, unless owners are kept.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// They own it even where owners are kept.
    pub owner_is_given: bool,
    /// What modes lack in a volume, where the source has none.
    pub umask: u32,
    /// Modes of volumes without modes are taken as they are shown.
    pub shown_modes: bool,
    /// The time of files that are read from an input.
    pub now: Time,
}

impl CopyOptions {
    /// Returns options by which trees are copied whole, with modes and times as far as the target can keep them,
    /// and belong to this user.
    pub fn new(uid: u32, gid: u32, now: Time) -> Self {
        Self {
            recursive: true,
            dereference: false,
            preserve: false,
            everything: false,
            no_clobber: false,
            update: false,
            uid,
            gid,
            owner_is_given: false,
            umask: 0o022,
            shown_modes: false,
            now,
        }
    }

    /// Returns whether what is there is to be left.
    pub(crate) fn keeps(&self, there: Time, new: Time) -> bool {
        self.no_clobber || self.update && there >= new
    }

    /// Returns who owns what is copied.
    pub(crate) fn owner(&self, meta: &Meta) -> (u32, u32) {
        let keeps = self.preserve && !self.owner_is_given;
        if keeps {
            (meta.uid, meta.gid)
        } else {
            (self.uid, self.gid)
        }
    }
}
