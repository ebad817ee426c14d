//! Connections: receiving requests, checking their senders, and the commands that are answered
//! here. May use `client`, and the rooms that handle requests: `files` and `ipc`. Only `server`
//! uses it.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `members` | the sessions of a connection, and their trees |
//! | `setups` | logons in progress |
//! | `proof` | verifies signatures of long messages while they arrive |
//! | `frame` | messages from the socket, within their deadlines |
//! | `state` | all of these for a connection; all connections |
//! | `compound` | splits a message into requests |
//! | `negotiate`, `setup`, `tree` | the commands that are answered here |
//! | `dispatch` | passes requests to their handlers |
//! | `work` | the threads of a connection |

mod compound;
mod dispatch;
mod frame;
#[cfg(feature = "fuzzing")]
mod fuzzed;
mod members;
mod negotiate;
mod proof;
mod setup;
mod setups;
mod state;
mod tree;
mod work;

pub(crate) use state::{Conn, Register};
pub(crate) use work::begin;

/// See [`crate::fuzzing`].
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    pub(crate) use super::compound::take_apart as compound;
    pub(crate) use super::fuzzed::{connections, requests};
}

#[cfg(test)]
mod tests;
