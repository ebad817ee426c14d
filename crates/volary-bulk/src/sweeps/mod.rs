//! Phase 2: sweeps over the disk, which assemble files. May use `interface`, `listing`, `state` and
//! `delivering`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `ahead` | reads ahead in the order of the device |
//! | `sweep` | one sweep |
//! | `shuffle` | a loader's order: a sweep for each window |

pub(crate) mod ahead;
pub(crate) mod shuffle;
pub(crate) mod sweep;
