//! The in-memory driver: a whole file system in a few hundred lines, written
//! for clarity, because it is the model that other drivers are compared with.
//!
//! It has all abilities of a UNIX file system, and [`MemOptions`] take them away one by one. It can
//! thus be made to promise exactly what a FAT volume promises, for example.
//!
//! # Limits
//!
//! One lock protects everything, so operations take effect one after the other, which is what makes
//! the driver a model. Reading does not change the time of last access. Node numbers are never
//! reused while the volume exists.
//!
//! | module | what |
//! |---|---|
//! | [`options`](MemOptions) | what the volume can do |
//! | `content` | the bytes of a file, in pages, with holes |
//! | `dir` | the entries of a directory |
//! | `node` | nodes of all kinds |
//! | `state` | all nodes and opens, and the room they take |
//! | `names` | making, removing and renaming entries |
//! | `fs` | the implementation of `FileSystem` |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod content;
mod dir;
mod fs;
mod names;
mod node;
mod options;
mod state;

pub use fs::Mem;
pub use options::MemOptions;
