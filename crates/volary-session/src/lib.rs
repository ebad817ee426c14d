//! Sessions: what stands between servers and a volume.
//!
//! A [`Volume`] is one attached file system with all that its users share: the
//! open table, the lock table and the hub of change events. A [`Session`] is a
//! volume with the credentials of one caller. Servers call sessions only, so
//! that a FUSE client, an NFS client and a command on the same volume see each
//! other's opens, locks and changes.
//!
//! | module | what |
//! |---|---|
//! | [`volume`](Volume) | what sessions share; attach and detach |
//! | [`session`](Session) | one caller; the operations are in `names`, `nodes`, `io`, `walk`, `locking` |
//! | `rules` | who may do what, as pure functions of attributes and credentials |
//! | `opens` | the open table |
//! | `locks` | byte-range locks: pure range arithmetic and the table that waits |
//! | `events` | who changed what |
//!
//! # Lock order
//!
//! The locks of this crate (a shard of the open table, the lock table, the hub's
//! list, the mutex of extended attributes) are leaves, but for the last: no call into the file
//! system, into a sink or into another of them is made while one is held. The
//! mutex of extended attributes is held over calls into the file system and
//! taken before any other lock.
#![forbid(unsafe_code)]

mod events;
mod io;
mod locking;
mod locks;
mod names;
mod nodes;
mod opens;
mod rules;
mod session;
mod volume;
mod walk;
mod xattrs;

pub use events::{ClientId, Event, EventQueue, EventSink, News, Subscription};
pub use io::OpenHow;
pub use locking::{LockKind, Wait};
pub use locks::{HeldLock, LockOwner, Range};
pub use session::Session;
pub use volume::{Volume, VolumeOptions};
pub use walk::{Follow, PATH_MAX, SYMLINKS_MAX};
pub use xattrs::SetXattr;
