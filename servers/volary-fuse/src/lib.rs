//! The FUSE server: a volume, mounted on a directory of this host. `DESIGN.md` says why it is done so.
//!
//! [`serve`] mounts a [`Volume`](volary_session::Volume) and answers the
//! kernel's requests from sessions on it until it is unmounted.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `kernel`, `errno` | the kernel's types and the core's |
//! | `caller`, `counts`, `options` | who asks; how much was asked; how to mount |
//! | `waiters`, `signals`, `passing` | threads beside: waiting for locks; descriptors over a socket |
//! | `nodes`, `events` | the kernel's node ids; tells the kernel what others have changed |
//! | `sessions`, `told` | as whom callers act; what the kernel is told of nodes, and for how long |
//! | `locks` | requests about locks |
//! | `reply` | what becomes of an answer on its way to the kernel |
//! | `server` | what requests share |
//! | `names`, `attrs`, `dirs`, `data` | requests, by what they are about |
//! | `apart` | requests that may wait for another client's lease |
//! | `dispatch` | the kernel's requests, one by one |
//! | `mounted`, `mounting`, `point`, `held`, `mountinfo` | mount, unmount; what can be wrong with a mount point |
//! | `attend` | a process beside, which mounts and unmounts for one that may not |
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
mod caller;
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
mod sessions;
mod signals;
mod told;
mod waiters;

pub use attend::{Attendant, attend};
pub use counts::{Counts, RequestKind};
pub use mounted::{Mounted, Stop, serve, serve_attended};
pub use options::{Checks, Locks, MountOptions};
pub use point::free;
