//! `/proc`: paths of descriptors, by which their nodes are opened and changed, and where the kernel
//! says that nodes are.

use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use volary_core::{Error, Kind, Result};

/// Checks that `/proc` is mounted. Without it, nothing can be opened or changed.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check() -> Result<()> {
    const PROC: i64 = 0x9fa0;
    match rustix::fs::statfs("/proc/self/fd") {
        Ok(stat) if stat.f_type == PROC => Ok(()),
        _ => {
            let words = "a host directory cannot be attached where /proc is not mounted";
            Err(Error::note(Kind::Unsupported, words))
        }
    }
}

/// Returns the path by which the host reopens the node of a descriptor.
pub(crate) fn path_of(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

/// Returns where the kernel says that a descriptor's node is, if it knows.
pub(crate) fn link_of(fd: &OwnedFd) -> Option<Vec<u8>> {
    let link = rustix::fs::readlink(path_of(fd), Vec::new());
    link.map(std::ffi::CString::into_bytes).ok()
}
