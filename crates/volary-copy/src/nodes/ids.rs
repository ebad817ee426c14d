//! Nodes of all sources and targets: [`Id`]. The nodes of a volume that is a directory of the host
//! are the host's, so that one check finds a file whichever way it was named.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use volary_core::NodeId;
use volary_session::Session;

/// Device and inode of a node of the host.
pub type HostId = (u64, u64);

/// A node of a source or a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Id {
    /// A node of the host.
    Host(HostId),
    /// A volume, by the address of its open state, and the node in it.
    Volume(usize, NodeId),
}

impl Id {
    /// Returns whether the node is one of these images.
    pub(crate) fn is_of(self, images: &[HostId]) -> bool {
        matches!(self, Self::Host(id) if images.contains(&id))
    }
}

/// Returns a file's device and inode.
pub fn image_id(path: &Path) -> Option<HostId> {
    stat(path, true).map(|stat| of_stat(&stat))
}

/// Returns device and inode of a node of the volume that is the directory `dir` of the host. Such a
/// volume is all on one device, and its nodes have the host's numbers.
pub fn host_id(dir: &Path, node: NodeId) -> Option<HostId> {
    image_id(dir).map(|(device, _)| (device, node.ino.get()))
}

/// Returns the device and the inode.
pub(crate) const fn of_stat(stat: &Stat) -> HostId {
    (stat.st_dev, stat.st_ino)
}

/// Returns the attributes of a path of the host.
pub(crate) fn stat(path: &Path, follow: bool) -> Option<Stat> {
    let flags = match follow {
        true => AtFlags::empty(),
        false => AtFlags::SYMLINK_NOFOLLOW,
    };
    rustix::fs::statat(CWD, path, flags).ok()
}

/// Returns a directory of the host and those above it, as far as they can be found.
pub(crate) fn host_dirs(path: &Path) -> Vec<Id> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let id = |dir: &OwnedFd| rustix::fs::fstat(dir).map(|stat| Id::Host(of_stat(&stat)));
    let mut found = Vec::new();
    let mut opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
    while let Ok(dir) = opened {
        match id(&dir) {
            Ok(id) if found.last() != Some(&id) => found.push(id),
            // The root is its own parent.
            _ => break,
        }
        opened = rustix::fs::openat(dir.as_fd(), "..", flags, Mode::empty());
    }
    found
}

/// Tells nodes of a volume from all others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    volume: usize,
    /// The device, if the volume is a directory of the host.
    host: Option<u64>,
}

impl Ids {
    /// Returns the ids of nodes of a volume, which may be a directory of the host.
    pub(crate) fn new(session: &Session, host_dir: Option<&Path>) -> Self {
        Self {
            volume: Arc::as_ptr(session.volume()).addr(),
            host: host_dir.and_then(image_id).map(|(device, _)| device),
        }
    }

    /// Returns the id of a node.
    pub(crate) fn of(self, node: NodeId) -> Id {
        match self.host {
            Some(device) => Id::Host((device, node.ino.get())),
            None => Id::Volume(self.volume, node),
        }
    }
}
