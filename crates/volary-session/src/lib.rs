//! Sessions: the layer between servers and a volume.
//!
//! A [`Volume`] is one attached file system with all that its users share: the open table, the lock
//! table and the hub of change events. A [`Session`] is a volume with the credentials of one
//! caller. Servers call sessions only, so that a FUSE client, an NFS client and a command on the
//! same volume see each other's opens, locks and changes. `DESIGN.md` says why this is done here,
//! and not in drivers or servers.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `options`, `caller` | how a volume is to be used; callers who never lose interest |
//! | `rules` | who may do what, as pure functions of attributes and credentials |
//! | `shared` | events, leases, share modes, byte-range locks, who uses which node, the open table |
//! | `timer` | commits changes that nobody has asked to make durable |
//! | [`volume`](Volume) | what sessions share; attach and detach |
//! | [`session`](Session) | one caller |
//! | `operations` | what a session can do: names, nodes, content, locks, leases, attributes, walks |
//! | `serving` | for servers: clients, users, pools, and which connection is closed if there is no room |
//!
//! # Lock order
//!
//! Three locks are held over calls into the file system, and taken before all others.
//! `Volume::xattr_sets` is held, alone, while an extended attribute is read and set.
//! `Volume::moving` guards the entries that opens came through. `Volume::sticky`, taken after it,
//! is held while an entry of a sticky directory is looked up and removed.
//!
//! The other locks (a shard of the open table or of the uses, a lock table, the hub's list) are
//! leaves. A holder of one calls neither the file system nor a sink, and takes no other of them.
//! Sinks are called, and threads wait, with no lock held. The commit timer holds none while it
//! commits.
#![forbid(unsafe_code)]

mod caller;
mod operations;
mod options;
mod rules;
mod serving;
mod session;
mod shared;
mod timer;
mod volume;

pub use operations::ahead::Ahead;
pub use operations::grace::Grace;
pub use operations::listing::{Listing, Row};
pub use operations::locking::{LockKind, Wait};
pub use operations::nodes::Listed;
pub use operations::set_xattr::SetXattr;
pub use operations::walk::{Follow, PATH_MAX, SYMLINKS_MAX};
pub use options::{Commit, Limits, VolumeOptions};
#[cfg(unix)]
pub use serving::accepting::{AfterAccept, Guest, Seat, Seats, longest_silent};
pub use serving::clients::{Clients, is_this_host};
#[cfg(unix)]
pub use serving::linger::Linger;
pub use serving::party::{Party, network_of};
pub use serving::pool::{Pool, Pooled};
#[cfg(target_os = "linux")]
pub use serving::sock_diag::socket_owner;
pub use serving::users::{User, Users, all_squashed, root_squashed};
pub use session::Session;
pub use shared::events::{ClientId, Event, EventQueue, EventSink, News, Subscription};
pub use shared::how::{Beside, OpenHow};
pub use shared::leases::{Lease, LeaseBits, LeaseBreak, LeaseKey, LeaseSink};
pub use shared::locks::{HeldLock, LockOwner, Range};
pub use shared::sharing::{Rights, Share};
pub use volume::{Hearing, Volume};

/// Fails: only Linux tells the owner of a TCP socket.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn socket_owner(
    _peer: std::net::SocketAddr,
    _local: std::net::SocketAddr,
) -> std::io::Result<Option<u32>> {
    Err(std::io::ErrorKind::Unsupported.into())
}
