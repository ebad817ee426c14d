//! [`Tree`]: a session's connection to a share that is a volume.

use super::common::Common;
use super::table::{FileTable, Home};
use super::watches::By;
use crate::config::{Config, Limits};
use crate::wire::{FileId, Status};
use std::fmt;
use std::sync::Arc;
use volary_core::Caps;
use volary_session::Session;

/// All rights to files.
pub(crate) const ACCESS_ALL: u32 = 0x001F_01FF;
/// Rights to files that permit no changes: read, execute, read attributes and extended attributes,
/// read control, and synchronize.
pub(crate) const ACCESS_READ: u32 = 0x0012_00A9;

/// A session's connection to a share that is a volume.
pub(crate) struct Tree {
    pub(crate) id: u32,
    /// The share's index in `Config::shares`.
    pub(crate) share: usize,
    pub(crate) config: Arc<Config>,
    /// The user's session on the volume.
    pub(crate) session: Session,
    /// The most rights that an open can have here.
    pub(crate) access: u32,
    /// Whether every message about it must be encrypted.
    pub(crate) sealed: bool,
    pub(crate) files: FileTable,
    /// The shared state of the share's trees.
    pub(crate) common: Arc<Common>,
}

impl Tree {
    /// Returns the share's name.
    pub(crate) fn name(&self) -> &str {
        let share = self.config.shares.get(self.share);
        share.map_or("", |share| &share.name)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// Returns its user as the author of changes.
    pub(crate) fn by(&self) -> By<'_> {
        self.common.by(Some(self.session.cred()))
    }

    /// Returns whether the tree permits no changes.
    pub(crate) fn is_read_only(&self) -> bool {
        self.access == ACCESS_READ
    }

    /// Checks that the volume takes changes. This error takes precedence over other refusals.
    ///
    /// # Errors
    /// `MEDIA_WRITE_PROTECTED` if it does not.
    pub(crate) fn check_volume_writable(&self) -> Result<(), Status> {
        match self.common.caps().has(Caps::WRITE) {
            true => Ok(()),
            false => Err(Status::MEDIA_WRITE_PROTECTED),
        }
    }
}

impl Home for Tree {
    fn session(&self) -> &Session {
        &self.session
    }

    fn lets_go(&self, id: FileId) -> bool {
        self.files.remove(id).is_some()
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("id", &self.id)
            .field("share", &self.name())
            .finish_non_exhaustive()
    }
}
