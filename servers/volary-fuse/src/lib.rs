//! The FUSE server: a volume, mounted on a directory of this host. `DESIGN.md` has the reasons for
//! the design.
//!
//! [`serve`] mounts a [`Volume`](volary_session::Volume) and answers the
//! kernel's requests from sessions on it until it is unmounted.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `options` | how to mount |
//! | `kernel` | the kernel's types and the core's, its node ids, what it is told and must drop |
//! | `requests` | callers and their sessions, what requests share, each request, its reply |
//! | `mount` | mounting and unmounting; checks of a mount point; a helper process that may mount |
//!
//! In `requests`, `dispatch` has all requests one by one. `apart` has those that may wait for
//! another client's lease.
//!
//! # What the kernel caches
//!
//! If all changes come through the volume's sessions, the kernel caches names, attributes, listings
//! and data for as long as it likes. It is notified of what another session changes.
//!
//! Changes can also come from elsewhere, or access or locks may be managed elsewhere
//! (`Caps::WATCH`, `SHARED`, `SHARED_LOCKS`, `CHECKS_ACCESS`). The kernel then caches names and
//! attributes for a second. It checks the time of last change before it uses cached data.
//!
//! If sessions check access (`checks=session`) for several users (`allow_other`), the kernel caches
//! no names. Otherwise it would not ask whether a user may search the directories on the way.
//!
//! # Lock order
//!
//! A shard of the node table, the list of sessions and the list of waiters are
//! leaves: nothing else is called while one is held.

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod kernel;
mod mount;
mod options;
mod requests;

pub use mount::attend::{Attendant, attend};
pub use mount::mounted::{Mounted, Stop, serve, serve_attended};
pub use mount::point::free;
pub use options::{Checks, Locks, MountOptions};
pub use requests::counts::{Counts, RequestKind};
