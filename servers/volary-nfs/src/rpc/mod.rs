//! A call as it arrives: records, the heads of calls and replies, and who calls. The wire itself is
//! `volary-rpc`'s. Uses no other room.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `record` | records on a connection |
//! | `message` | the heads of calls, their credentials, the heads of replies |
//! | `owner` | the owner of a local client's socket, and whom that client may speak for |
//! | `call` | a call's caller, and where it came from |

pub(crate) mod call;
pub(crate) mod message;
pub(crate) mod owner;
pub(crate) mod record;
