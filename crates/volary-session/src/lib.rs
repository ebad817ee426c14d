//! Sessions: what stands between servers and a volume.
//!
//! A [`Volume`] is one attached file system with all that its users share: the
//! open table, the lock table and the hub of change events. A [`Session`] is a
//! volume with the credentials of one caller. Servers call sessions only, so
//! that a FUSE client, an NFS client and a command on the same volume see each
//! other's opens, locks and changes. `DESIGN.md` says why this stands here, and not in drivers or servers.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `options`, `caller`, `sharing` | how a volume is to be used; callers who never lose interest; share modes |
//! | `rules` | who may do what, as pure functions of attributes and credentials |
//! | `events` | who changed what |
//! | `leases`, `how` | what clients may keep to themselves; how something is opened |
//! | `locks` | byte-range locks: pure range arithmetic and the table that waits |
//! | `uses`, `opens` | share modes, places and leases of what is open; the open table |
//! | `timer` | commits what nobody has asked to be made durable |
//! | [`volume`](Volume) | what sessions share; attach and detach |
//! | [`session`](Session) | one caller |
//! | `leasing`, `deletion`, `grace` | what takes leases away; entries that go with their last open; claims go first, after a restart |
//! | `names`, `removal`, `replacing`, `nodes`, `xattrs` (`set_xattr`), `acls`, `io`, `walk`, `locking` | what a session can do |
//! | `listing` | a directory, listed whole |
//! | `users` | who may log in as whom |
//! | `clients`, `party`, `pool` | for servers: which addresses are let in; whom a connection counts for; how many of one thing each may have |
//! | `sock_diag` | for servers: the user at the other end of a connection from this host, where the system is Linux |
//! | `accepting` | for servers: what to do when no client could be accepted, and who gives way |
//! | `linger` | for servers: staying awake for the next request |
//!
//! # Lock order
//!
//! Three locks are held over calls into the file system, and taken before all
//! others: `Volume::xattr_sets` (an extended attribute looked at and set),
//! alone; `Volume::moving` (entries that opens came through), and after it
//! `Volume::sticky` (an entry of a sticky directory looked at and removed). The
//! others (a shard of the open table or of the uses, a lock table, the hub's
//! list) are leaves: no call into the file system, into a sink or into another
//! of them is made while one is held. Sinks are told, and waits are waited, with
//! no lock held. The commit timer holds none while it commits.
#![forbid(unsafe_code)]

#[cfg(unix)]
mod accepting;
mod acls;
mod caller;
mod clients;
mod deletion;
mod events;
mod grace;
mod how;
mod io;
mod leases;
mod leasing;
#[cfg(unix)]
mod linger;
mod listing;
mod locking;
mod locks;
mod names;
mod nodes;
mod opens;
mod options;
mod party;
mod pool;
mod removal;
mod replacing;
mod rules;
mod session;
mod set_xattr;
mod sharing;
#[cfg(target_os = "linux")]
mod sock_diag;
mod timer;
mod users;
mod uses;
mod volume;
mod walk;
mod xattrs;

#[cfg(unix)]
pub use accepting::{AfterAccept, Guest, Seat, Seats, longest_silent};
pub use clients::{Clients, is_this_host};
pub use events::{ClientId, Event, EventQueue, EventSink, News, Subscription};
pub use grace::Grace;
pub use how::{Beside, OpenHow};
pub use leases::{Lease, LeaseBits, LeaseBreak, LeaseKey, LeaseSink};
#[cfg(unix)]
pub use linger::Linger;
pub use listing::{Listing, Row};
pub use locking::{LockKind, Wait};
pub use locks::{HeldLock, LockOwner, Range};
pub use nodes::Listed;
pub use options::{Commit, Limits, VolumeOptions};
pub use party::{Party, network_of};
pub use pool::{Pool, Pooled};
pub use session::Session;
pub use set_xattr::SetXattr;
pub use sharing::{Rights, Share};
#[cfg(target_os = "linux")]
pub use sock_diag::socket_owner;
pub use users::{User, Users, all_squashed, root_squashed};
pub use volume::{Hearing, Volume};
pub use walk::{Follow, PATH_MAX, SYMLINKS_MAX};

/// Returns the owner of the TCP socket at `peer`: only Linux tells it.
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
