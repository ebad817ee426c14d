//! A client, from the view of the code that answers its requests: [`Link`], its [`Logon`]s, and
//! [`Wait`] for a request that is answered later. Nothing here knows of files, pipes or how
//! requests are read. May use `wire`, `clock`, `crypto`, `config`, `budget`, `guesses` and
//! `answer`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `shared` | what all clients of a server share |
//! | `negotiated` | the result of a connection's negotiation |
//! | `window` | credits and the message ids that they allow |
//! | `buffers` | memory of large replies |
//! | `logon` | a user's session and its keys |
//! | `reply` | a reply before it is signed or sealed |
//! | `sending` | replies, signed or sealed, to the socket |
//! | `turn` | which of a connection's threads has the turn |
//! | `waits` | requests that are answered later, for cancellation |
//! | `link` | all of these, for one connection |
//! | `wait` | a request that may be answered later |

mod buffers;
mod link;
mod logon;
mod negotiated;
mod reply;
mod sending;
mod shared;
mod turn;
mod wait;
mod waits;
mod window;

pub(crate) use link::{Link, Links};
pub(crate) use logon::Logon;
pub(crate) use negotiated::Negotiated;
pub(crate) use reply::{Broken, Reply, Security};
pub(crate) use shared::Shared;
pub(crate) use turn::{Turn, Worker};
pub(crate) use wait::Wait;
