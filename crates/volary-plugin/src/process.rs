//! A plug-in in a process of its own.
//!
//! Three processes are at work. The *host* has the volume ([`Remote`]). It starts a *zygote*,
//! which runs no plug-in: it waits for orders, and forks. What it forks is a *worker*, which
//! confines itself, loads the library, attaches the volume and answers requests. A host that has
//! given up starting processes has its zygote from before; so a worker that ended is followed by
//! another.
//!
//! | module | what |
//! |---|---|
//! | `zygote` | starting and ending workers, on both sides |
//! | `spec` | what a worker is started with |
//! | `worker` | the process of the plug-in, and its answers |
//! | `confine` | what a worker gives up |
//! | `lane` | one connection: a request and its reply, with a limit of time |
//! | `running` | one worker, as the host sees it: its lanes, its ids |
//! | `remote` | the volume: starts workers, counts how often |
//! | `fs` | the operations |

mod confine;
mod fs;
mod lane;
mod remote;
mod running;
mod spec;
mod worker;
mod zygote;

pub use remote::Remote;
pub(crate) use remote::Terms;
pub(crate) use spec::Spec;
#[cfg(feature = "fuzzing")]
pub(crate) use worker::answer;
pub(crate) use zygote::Zygote;
pub use zygote::{Helper, run_zygote};
