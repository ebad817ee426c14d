//! Opens an entry that is a single step away from a descriptor, so that no step leads out of the
//! tree.

use crate::held::nodes::Nodes;
use crate::kernel::error::from_errno_on_node;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode as HostMode, OFlags, ResolveFlags};
use rustix::io::Errno;
use volary_core::Result;

/// How often a name is resolved again if the tree changes meanwhile.
pub(crate) const TRIES_MAX: u32 = 16;

/// Flags for a descriptor by which nothing is read or written.
pub(crate) const PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Flags for opening files only. With these, opening a fifo does not wait, and a terminal does not
/// become the controlling one.
pub(crate) const SAFE: OFlags = OFlags::CLOEXEC
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Opens the entry `name` of a directory, whatever happens to the tree meanwhile. If descriptors
/// run out, some held ones are closed.
///
/// # Errors
/// Those of the host; `XDEV` for a mount point.
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
    let (mut tries, mut released) = (0, false);
    loop {
        match rustix::fs::openat2(&dir, name, flags, mode, beneath) {
            Err(Errno::AGAIN) if tries < TRIES_MAX => tries += 1,
            Err(Errno::MFILE) if !released => {
                released = true;
                nodes.release();
            }
            opened => return opened,
        }
    }
}

/// Returns the parent of the directory that `fd` is open for.
pub(crate) fn open_up(fd: &OwnedFd) -> Result<OwnedFd> {
    let flags = PATH | OFlags::DIRECTORY;
    rustix::fs::openat(fd, "..", flags, HostMode::empty()).map_err(from_errno_on_node)
}

/// Returns a descriptor by which the directory can be listed.
pub(crate) fn open_dir(dir: &OwnedFd) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, ".", flags, HostMode::empty()).map_err(from_errno_on_node)
}
