//! volary for C: volumes by paths, as [`Vol`](volary::Vol) has them.
//!
//! `include/volary.h` is made of this crate, and says what each function does. Behind it:
//!
//! | module | what |
//! |---|---|
//! | `abi` | structures and numbers that C sees |
//! | `raw` | the one place where pointers of C are followed |
//! | `fault` | errors as codes and texts; panics caught |
//! | `table` | what numbers stand for that C holds |
//! | `volumes`, `trees`, `files`, `serving` | the functions |
//!
//! C holds numbers, and no pointers to what is here: one that was closed, or never given out, is refused. Only
//! pointers to memory of the caller's own are followed: of null ones that is refused too.
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
