//! State that even a stateless server must keep from one call to the next. Uses no other room.
//! `DESIGN.md` says why each is kept, and how long.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `recent` | a bounded memory of recent calls |
//! | `dupes`, `exclusive` | replies to calls that must not be executed twice; verifiers of exclusive creation |
//! | `opens` | opens that the next READ or WRITE of a file uses |
//! | `order` | attributes before and after a change of a node |
//! | `stable` | syncs that many changes share |
//! | `mounts` | which clients have mounted what |

pub(crate) mod dupes;
pub(crate) mod exclusive;
pub(crate) mod mounts;
pub(crate) mod opens;
pub(crate) mod order;
pub(crate) mod stable;

mod recent;
