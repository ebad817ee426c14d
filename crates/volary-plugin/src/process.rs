//! A plug-in in a separate process.
//!
//! Three processes take part. The *host* has the volume ([`Remote`]). It starts a *zygote*, which
//! runs no plug-in, but waits for orders and forks *workers*. A worker confines itself, loads the
//! library, attaches the volume and answers requests. If a worker ends, the zygote forks another,
//! even if the host has meanwhile given up the right to start processes.
//!
//! | module | what |
//! |---|---|
//! | `zygote` | starting and ending workers, on both sides |
//! | `spec` | the arguments of a worker |
//! | `worker` | the plug-in's process, which answers requests |
//! | `confine` | the rights that a worker gives up |
//! | `lane` | one connection: a request and its reply, with a time limit |
//! | `running` | one worker, as the host sees it: its lanes, its ids |
//! | `remote` | the volume: starts workers, and limits how often |
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
