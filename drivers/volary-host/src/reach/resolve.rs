//! Opens what is one step away from a descriptor, so that no step leads out of the tree.

use crate::held::nodes::Nodes;
use crate::kernel::error::from_errno_on_node;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode as HostMode, OFlags, ResolveFlags};
use rustix::io::Errno;
use volary_core::Result;

/// How often a name is resolved again when the tree changed meanwhile.
pub(crate) const TRIES_MAX: u32 = 16;

/// A descriptor that nothing is read or written through.
pub(crate) const PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What nothing but files is opened with: nobody waits for the other end of a
/// fifo, and no terminal becomes ours.
pub(crate) const SAFE: OFlags = OFlags::CLOEXEC
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Opens the entry `name` of a directory, whatever may be done to the tree
/// meanwhile. Without room for descriptors, nodes let go of some.
///
/// # Errors
/// The host's; `XDEV` for a mount point.
pub(crate) fn open_in(
    nodes: &Nodes,
    dir: impl AsFd,
    name: &[u8],
    flags: OFlags,
    mode: HostMode,
) -> rustix::io::Result<OwnedFd> {
    let beneath = ResolveFlags::BENEATH
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_XDEV;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(&dir, name, flags, mode, beneath) {
            Err(Errno::AGAIN) if tries < TRIES_MAX => tries += 1,
            Err(Errno::MFILE) if tries == 0 => {
                tries += 1;
                nodes.release();
            }
            opened => return opened,
        }
    }
}

/// Returns the directory that holds the one that `fd` is open for.
pub(crate) fn open_up(fd: &OwnedFd) -> Result<OwnedFd> {
    let flags = PATH | OFlags::DIRECTORY;
    rustix::fs::openat(fd, "..", flags, HostMode::empty()).map_err(from_errno_on_node)
}

/// Returns a descriptor by which the directory can be listed.
pub(crate) fn open_dir(dir: &OwnedFd) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, HostMode::empty()).map_err(from_errno_on_node)
}
