//! What is to be served, and where.

use super::address::Listen;
use super::key::Kept;
use super::smb::Smb;
use crate::stack::Report;
use std::path::PathBuf;
use std::sync::Arc;
use volary::fuse::Attendant;
use volary::layers::Alarm;
use volary::nfs::{Database, ExportOptions, LockState};
use volary::{Source, Volume};

/// Where to serve what, and to whom.
pub(super) struct Plan {
    pub(super) nfs: Option<Nfs>,
    pub(super) smb: Option<Smb>,
}

/// Where to serve NFS, and with what.
pub(super) struct Nfs {
    pub(super) listen: Listen,
    pub(super) key: Kept,
    pub(super) locks: Option<Arc<LockState>>,
    pub(super) database: Database,
}

/// A volume that is open, and how it is exported.
pub(super) struct Served {
    pub(super) source: Source,
    pub(super) volume: Arc<Volume>,
    pub(super) export: ExportOptions,
    pub(super) mount: Option<PathBuf>,
    /// Who mounts it, if not this process.
    pub(super) attendant: Option<Arc<Attendant>>,
    pub(super) encrypt: bool,
    /// Who may use it by SMB, if not all.
    pub(super) users: Option<Vec<String>>,
    pub(super) alarm: Arc<Alarm>,
    pub(super) reports: Vec<Report>,
}
