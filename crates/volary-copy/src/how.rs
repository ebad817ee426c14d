//! How nodes are copied: [`CopyOptions`].

use crate::stream::Meta;
use volary_core::Time;

/// How to copy.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions {
    /// Copy directories, with everything below them.
    pub recursive: bool,
    /// Copy the targets of the host's symlinks.
    pub dereference: bool,
    /// Keep owners and exact modes.
    pub preserve: bool,
    /// Keep hard links and extended attributes.
    pub everything: bool,
    /// Keep existing nodes as they are.
    pub no_clobber: bool,
    /// Replace only older nodes.
    pub update: bool,
    /// The owner of nodes copied into a volume, unless owners are kept.
    pub uid: u32,
    /// The group of these nodes.
    pub gid: u32,
    /// Use this owner and group even if owners are kept.
    pub owner_is_given: bool,
    /// Bits to clear in modes on a volume, if the source has no modes.
    pub umask: u32,
    /// Take modes that a volume without modes shows as real.
    pub shown_modes: bool,
    /// The time stamp of files that are read from an input.
    pub now: Time,
}

impl CopyOptions {
    /// Returns options to copy whole trees, owned by this user. Modes and times are copied as far
    /// as the target can keep them.
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

    /// Returns whether an existing node must be kept.
    pub(crate) fn keeps(&self, there: Time, new: Time) -> bool {
        self.no_clobber || self.update && there >= new
    }

    /// Returns the owner and group of a copied node.
    pub(crate) fn owner(&self, meta: &Meta) -> (u32, u32) {
        let keeps = self.preserve && !self.owner_is_given;
        if keeps {
            (meta.uid, meta.gid)
        } else {
            (self.uid, self.gid)
        }
    }
}
