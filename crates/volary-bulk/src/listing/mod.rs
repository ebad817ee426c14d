//! The list of a part: files and their fragments, in few bytes, and how they are split into requests
//! and sweeps. May use `interface`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `packed` | listed nodes in packed form |
//! | `list` | files and their fragments, as many as fit |
//! | `plan` | merges fragments into requests, and spreads files over sweeps |

pub(crate) mod list;
pub(crate) mod packed;
pub(crate) mod plan;
