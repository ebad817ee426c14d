//! The directory that is attached.

use crate::kernel::error::from_errno;
use crate::reach::resolve::open_dir;
use rustix::fd::OwnedFd;
use std::sync::Arc;
use volary_core::{NodeId, Result, StatFs};

/// The root of the volume.
#[derive(Clone)]
pub(crate) struct Root {
    pub(crate) node: NodeId,
    /// A descriptor by which nothing is read.
    pub(crate) fd: Arc<OwnedFd>,
}

impl Root {
    /// Returns a descriptor by which the directory can be read.
    pub(crate) fn open(&self) -> Result<OwnedFd> {
        open_dir(&self.fd)
    }

    /// Returns the size and the free space of its file system.
    pub(crate) fn statfs(&self) -> Result<StatFs> {
        let stat = rustix::fs::fstatvfs(&self.fd).map_err(from_errno)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(StatFs {
            block_size: u32::try_from(stat.f_frsize).unwrap_or(u32::MAX),
            size: bytes(stat.f_blocks),
            free: bytes(stat.f_bfree),
            available: bytes(stat.f_bavail),
            nodes: stat.f_files,
            nodes_free: stat.f_ffree,
        })
    }
}
