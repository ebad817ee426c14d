//! The state of a run and of a part of it: memory, the list, how the device is read. May use
//! `interface` and `listing`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `budget` | accounts for memory |
//! | `part` | the state of a run, and of a part |
//! | `probe` | measures devices |

pub(crate) mod budget;
pub(crate) mod part;
pub(crate) mod probe;
