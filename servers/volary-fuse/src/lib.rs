//! The FUSE server: a volume, mounted on a directory of this host. `DESIGN.md` says why it is done so.
//!
//! [`serve`] mounts a [`Volume`](volary_session::Volume) and answers the
//! kernel's requests from sessions on it until it is unmounted.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `options` | how to mount |
//! | `kernel` | the kernel's types and the core's, its node ids, what it is told and must forget |
//! | `requests` | who asks, as whom callers act, what requests share, each request, its reply |
//! | `mount` | mount, unmount; what can be wrong with a mount point; a process beside that may |
//!
//! In `requests`, `dispatch` has them one by one; `apart` those that may wait for another client's
//! lease.
//!
//! # What the kernel keeps
//!
//! Where all changes come through the volume's sessions, the kernel remembers
//! names, attributes, listings and data for as long as it likes, and is told to
//! forget what another session changes. Where changes can come from elsewhere,
//! or access or locks are kept elsewhere (`Caps::WATCH`, `SHARED`, `SHARED_LOCKS`,
//! `CHECKS_ACCESS`), it remembers names and attributes for a second and looks
//! at the time of last change before it answers from data that it holds.
//!
//! Where sessions check access (`checks=session`) for several users (`allow_other`), it remembers no
//! names: it would not ask who may search the directories on the way.
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
