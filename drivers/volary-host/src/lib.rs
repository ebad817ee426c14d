//! A directory of the host as a volume: what FIFS has as FSWIN32.
//!
//! A driver without a format on disk. Each operation becomes the host's system
//! call, a few at most. The time stamps are the host's: it has a clock of its
//! own, and [`Ctx::now`](volary_core::Ctx::now) is not asked.
//!
//! # What it may touch
//!
//! Everything starts at one descriptor, that of the directory. Names are looked
//! up one at a time, relative to the descriptor of a directory that was found
//! so before, by `openat2` with `RESOLVE_BENEATH`, `NO_SYMLINKS`,
//! `NO_MAGICLINKS` and `NO_XDEV`, or by calls that take a single component and
//! follow nothing. No path is put together. What another file system is mounted
//! on is not part of the volume: it is not listed, and to look it up answers
//! `CrossVolume`. So does a Btrfs subvolume. Whoever may move a directory that
//! is in use out of the tree takes with it what is in it; nothing beside it can
//! be reached by that ([`parent`](volary_core::FileSystem::parent) is checked up
//! to the root). Of extended attributes there are only those that begin with
//! `user.`.
//!
//! # Node ids
//!
//! On ext4, F2FS, XFS, Btrfs and tmpfs, an id is the host's number and generation
//! of the node, and never means another. Elsewhere the time of birth stands for
//! the generation: a number that is used again within a tick of the kernel's
//! clock is not told apart. How an id is found again:
//!
//! - *With the right to open by handle* (root's `CAP_DAC_READ_SEARCH`) on those file
//!   systems, by the id itself, wherever the node was moved to, before a restart or
//!   after it: [`Caps::STABLE_IDS`](volary_core::Caps::STABLE_IDS). The first time
//!   that an id is not among those remembered, the node is sought beneath the root,
//!   unless the volume is a whole file system: no id, guessed or old, opens what
//!   lies elsewhere. A directory is sought by going up from it; anything else by the
//!   name under which the kernel remembers it, and where it forgot that (a reboot,
//!   short memory) or there are several, by going through the tree: 16,384
//!   directories or a million entries. Beyond them the node answers `Stale` until it
//!   is looked up once more.
//! - *Without it*, each node given out is held by a descriptor, and where those
//!   are short, by the directory and name where it was found last. It answers
//!   `Stale` if by then another process moved it, if its directory made room for
//!   others (beyond [`HostOptions::nodes_max`]), and after a restart.
//!
//! # Users
//!
//! The session checks rights by owner and mode. Run by root, what is made belongs
//! to the caller; by anybody else, to who runs it, and owners cannot be changed.
//!
//! # Limits
//!
//! A write that fails half-way, for lack of room, has written that half; who reads
//! while another writes may see a part of it, as Linux's page cache takes it page
//! by page. Without room for descriptors an operation answers `TooManyOpen`; opens leave some of the
//! process's descriptors to others, so that a server that opens what its clients ask for can
//! still be reached. Times of
//! birth cannot be set. What is changed by a process that is not ours is seen at
//! once, but not told of where the host has no news (`Caps::WATCH`).
//!
//! # Rooms
//!
//! Each may use those above it, and says at its head what is in it.
//!
//! | room | what |
//! |---|---|
//! | `kernel` | errors; `/proc`, system calls that no safe library has, `statx`, `io_uring` |
//! | `held` | what may be done until the volume is detached; node ids; opens and nodes that were given out |
//! | `reach` | from a node to a descriptor, and whether it lies in the tree; news of other processes |
//! | `operations` | names, attributes, listings, content, locks, new nodes, whole files in batches |
//! | `volume`, `fs` | what an attachment has; the `FileSystem` impl |
//!
//! `options` is what is chosen.
//!
//! An attachment is a few parts, each of which knows those above it:
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
//! In this order, from the outside in; none of the first four is taken with another of them held:
//!
//! ```text
//! listing of an open        while the offset of its descriptor is in use
//! what was sought in vain   while a node is sought by going through the tree
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

/// Attaches the directory at `path`. What it is called later does not matter.
///
/// # Errors
/// `NotFound`, `NotDir`, `Access`; `Unsupported` if `/proc` is not there.
pub fn attach(path: &Path, options: &HostOptions) -> Result<Fs> {
    Ok(Arc::new(volume::Host::new(path, options)?))
}

/// Returns the block device that holds the files of the directory, if the host tells places on it: for ext2, ext3,
/// ext4 and XFS with all data on one device.
///
/// [`HostOptions::places`] has the driver tell places there. A read of a place is the file's content if it bypasses
/// the host's page cache, and if the file's attributes are the same before and after.
pub fn device(path: &Path) -> Option<PathBuf> {
    operations::places::device(path)
}

/// Lets this process have as many descriptors as the host allows it, for the
/// driver to hold.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What cannot be raised stays what it is.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Returns how many opens of this driver there can be in this process: the others of its
/// descriptors are left to the rest of it.
pub fn opens_max() -> usize {
    reach::probe::descriptors_for_opens()
}
