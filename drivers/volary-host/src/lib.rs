//! A directory of the host as a volume, as FSWIN32 is in FIFS.
//!
//! This driver has no format on disk. Each operation becomes one or a few system calls of the host.
//! Time stamps come from the host's own clock, and [`Ctx::now`](volary_core::Ctx::now) is not used.
//!
//! # What it can reach
//!
//! Everything starts at one descriptor, that of the directory. Names are looked up one at a time,
//! relative to the descriptor of a directory found in the same way. This uses `openat2` with
//! `RESOLVE_BENEATH`, `NO_SYMLINKS`, `NO_MAGICLINKS` and `NO_XDEV`, or calls that take a single
//! component and follow nothing. No paths are assembled.
//!
//! A directory on which another file system is mounted is not part of the volume. It is not listed,
//! and looking it up gives `CrossVolume`. The same holds for a Btrfs subvolume.
//!
//! Another process may move a directory that is in use out of the tree. Its contents then stay
//! reachable, but nothing beside it does, because [`parent`](volary_core::FileSystem::parent) is
//! checked up to the root.
//!
//! Only extended attributes whose names begin with `user.` are visible.
//!
//! # Node ids
//!
//! On ext4, F2FS, XFS, Btrfs and tmpfs, an id consists of the host's number and generation of the
//! node, and never means another node. Elsewhere, the time of birth replaces the generation. A
//! number that is reused within a tick of the kernel's clock then cannot be distinguished. How a
//! node is found by its id:
//!
//! - *With the right to open by handle* (root's `CAP_DAC_READ_SEARCH`) on those file systems, by
//!   the id itself. This works wherever the node was moved to, also after a restart:
//!   [`Caps::STABLE_IDS`](volary_core::Caps::STABLE_IDS). An id that is not remembered is first
//!   verified to lie beneath the root, unless the volume is a whole file system. So no id, guessed
//!   or old, opens a node elsewhere. A directory is verified by going up from it. Any other node is
//!   verified by the name under which the kernel remembers it. If the kernel forgot the name (after
//!   a reboot, or for lack of memory) or the node has several, the tree is searched. The search is
//!   bounded by 16,384 directories or a million entries. Beyond these, the node gives `Stale` until
//!   it is looked up again.
//! - *Without that right*, each node that was returned is held by a descriptor. If descriptors are
//!   short, it is found by the directory and name where it was found last. It gives `Stale` if
//!   another process has moved it meanwhile, or its directory was evicted (see
//!   [`HostOptions::nodes_max`]), and after a restart.
//!
//! # Users
//!
//! The session checks permissions by owner and mode. If root runs the driver, new nodes belong to
//! the caller. Otherwise they belong to the user who runs it, and owners cannot be changed.
//!
//! # Limits
//!
//! A write that fails half-way for lack of room leaves the first half written. A reader may see
//! part of a concurrent write, because Linux's page cache takes it page by page.
//!
//! If descriptors run out, an operation gives `TooManyOpen`. Opens leave some of the process's
//! descriptors to others. A server whose clients open many files can thus still be reached.
//!
//! Times of birth cannot be set. A change by another process is seen at once, but it is reported
//! only if the host supports this (`Caps::WATCH`).
//!
//! # Rooms
//!
//! Each room may use those above it. Its `mod.rs` says what is in it.
//!
//! | room | what |
//! |---|---|
//! | `kernel` | errors; `/proc`, system calls that no safe library has, `statx`, `io_uring` |
//! | `held` | the volume's abilities until it is detached; node ids; known opens and nodes |
//! | `reach` | from a node to its descriptor; whether it lies in the tree; changes by others |
//! | `operations` | names, attributes, listings, content, locks, new nodes, whole files in batches |
//! | `volume`, `fs` | the parts of an attachment; the implementation of `FileSystem` |
//!
//! `options` has the options for attaching.
//!
//! An attachment consists of a few parts, each of which knows those above it:
//!
//! ```text
//! Attachment, Root          what may be done; where all begins
//! Ids, Nodes, Opens         ids, and what was given out by them
//! ├─ Content, Dirs          what is read and written of an open: know nothing of the tree
//! ├─ Beneath, Watchers
//! └─ Tree                   every way to a descriptor of a node: has Beneath and Watchers
//!    ├─ Names, Attrs, Xattrs, Ahead
//!    └─ Files               has Locks
//!       ├─ Batches          has rings
//!       └─ Maker            has Attrs
//!          └─ Host          the operations: has all of these
//! ```
//!
//! # Lock order
//!
//! Locks are taken in this order, from the outside in. None of the first four is taken while
//! another of them is held:
//!
//! ```text
//! listing of an open        while the offset of its descriptor is in use
//! failed searches           while the tree is searched for a node
//! locks of files            over system calls on one node
//! watchers                  over system calls on one directory
//! └─ for moments: nodes and births, never both
//! ```
//!
//! All others are leaves: no lock is taken below them.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod fs;
mod held;
mod kernel;
mod operations;
mod options;
mod reach;
#[cfg(test)]
mod tests;
mod volume;

pub use options::HostOptions;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use volary_core::{Fs, Result};

/// Attaches the directory at `path`. It may be renamed afterwards.
///
/// # Errors
/// `NotFound`, `NotDir`, `Access`; `Unsupported` if `/proc` is not mounted.
pub fn attach(path: &Path, options: &HostOptions) -> Result<Fs> {
    Ok(Arc::new(volume::Host::new(path, options)?))
}

/// Returns the block device that holds the files of the directory, if the host can tell their
/// places on it. It can for ext2, ext3, ext4 and XFS with all data on one device.
///
/// With [`HostOptions::places`], the driver reports these places. Bytes read from a place are the
/// file's content under two conditions: the read bypasses the host's page cache, and the file's
/// attributes are the same before and after.
pub fn device(path: &Path) -> Option<PathBuf> {
    operations::places::device(path)
}

/// Raises this process's limit of descriptors as far as the host permits, so that the driver can
/// hold more.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If the limit cannot be raised, it stays as it is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Returns how many opens this driver may have in this process. The other descriptors are left to
/// the rest of the process.
pub fn opens_max() -> usize {
    reach::probe::descriptors_for_opens()
}
