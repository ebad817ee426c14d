//! Connections: how requests come, who may ask, and the commands that are answered here.
//! May use `client`, and whom it hands requests to: `files` and `ipc`. Only `server` uses it.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `members` | who has logged on by a connection, and their trees |
//! | `setups` | logons on their way |
//! | `proof` | signatures of long messages, while they come |
//! | `frame` | messages from the socket, within their deadlines |
//! | `state` | all of these of one connection; all connections |
//! | `compound` | a message taken apart into requests |
//! | `negotiate`, `setup`, `tree` | the commands that are answered here |
//! | `dispatch` | from a request to the one who answers |
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
