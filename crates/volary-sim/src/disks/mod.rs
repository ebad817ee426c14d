//! Disks in memory, and what happens on them. May use `rng`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `disk` | disks that share common content; their hashes |
//! | `trace` | a recorded run: writes, flushes, and when operations began and ended |
//! | `cow` | a device over a disk that is shared |
//! | `losing` | a device that loses what was not flushed when its process is killed |

pub mod disk;
pub mod trace;

pub(crate) mod cow;
pub(crate) mod losing;
