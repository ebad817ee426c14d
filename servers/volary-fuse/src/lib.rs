//! The FUSE server: a volume, mounted on a directory of this host.
//!
//! [`serve`] mounts a [`Volume`](volary_session::Volume) and answers the
//! kernel's requests from sessions on it until it is unmounted.
//!
//! | module | what |
//! |---|---|
//! | `mounted`, `mounting`, `point`, `held`, `mountinfo` | mount, unmount, signals; what can be wrong with a mount point |
//! | `passing` | descriptors over a socket |
//! | `attend` | a process beside, which mounts and unmounts for one that may not |
//! | `options` | how to mount |
//! | `dispatch` | the kernel's requests, one by one |
//! | `apart` | those that may wait for another client's lease |
//! | `names`, `attrs`, `dirs`, `data`, `locks` | their answers, by what they are about |
//! | `reply` | what becomes of an answer on its way to the kernel |
//! | `server`, `nodes` | what they share: sessions, the kernel's node ids, how long it may remember |
//! | `kernel`, `errno` | the kernel's types and the core's |
//! | `events` | tells the kernel what others have changed |
//! | `waiters`, `signals` | threads beside: waiting for locks |
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

mod apart;
mod attend;
mod attrs;
mod counts;
mod data;
mod dirs;
mod dispatch;
mod errno;
mod events;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod held;
mod kernel;
mod locks;
mod mounted;
mod mountinfo;
mod mounting;
mod names;
mod nodes;
mod options;
mod passing;
mod point;
mod reply;
mod server;
mod signals;
mod waiters;

pub use attend::{Attendant, attend};
pub use counts::{Counts, RequestKind};
pub use mounted::{Mounted, Stop, serve, serve_attended};
pub use options::{Checks, Locks, MountOptions};
pub use point::free;
