//! volary for C: volumes accessed by paths, as with [`Vol`](volary::Vol).
//!
//! `include/volary.h` is generated from this crate, and says what each function does. The modules:
//!
//! | module | what |
//! |---|---|
//! | `abi` | structures and constants of the C interface |
//! | `raw` | the only module that dereferences pointers from C |
//! | `fault` | errors as codes and texts; catches panics |
//! | `table` | maps handles that C holds to open volumes, files, walks and servers |
//! | `volumes`, `trees`, `files`, `serving` | the functions |
//!
//! C holds handles, which are numbers, and no pointers into this library. A handle that was closed,
//! or never given out, is refused. Only pointers to the caller's memory are dereferenced, and null
//! ones are refused.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod abi;
mod fault;
mod files;
mod raw;
mod serving;
mod table;
mod trees;
mod volumes;

pub use abi::*;
pub use fault::*;
pub use files::*;
pub use serving::*;
pub use trees::*;
pub use volumes::*;
