//! What the drivers of on-disk formats share.
//!
//! | module | what |
//! |---|---|
//! | [`ahead`] | bounds of reading ahead |
//! | [`dump`] | what a dump is asked for, and where its text goes |
//! | [`findings`] | what a check tells, and what it mends of it: look, preen, mend, ask |
//! | [`inodes`] | inodes in memory: open ones, and changed ones until they are on the disk |
//! | [`map`] | the picture of what lies where |
//! | [`Moves`] | the order of sectors when names are renamed |
//! | [`opens`] | the open table: ids, `Stale`, how many opens each node has |
//! | [`rename`] | the checks of a rename: what would go into itself, kinds, what is replaced |
//! | [`reporter`] | findings and progress of a check that mends nothing |
//! | [`retry`] | changes that wait for a commit and are begun anew |
//! | [`Undo`] | what a change has done, to take it back |
//! | [`wtf8`] | names of UTF-16 units as bytes, and back |
//!
//! The crate knows no format. A driver asks it what a rule says and does the rest itself.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

pub mod ahead;
mod bits;
pub mod dump;
pub mod findings;
pub mod inodes;
pub mod map;
mod moves;
mod numbers;
pub mod opens;
mod ranges;
pub mod rename;
pub mod reporter;
pub mod retry;
mod undo;
pub mod wtf8;

pub use bits::Bits;
pub use findings::Findings;
pub use moves::Moves;
pub use numbers::{NumberMap, Spread};
pub use opens::{Closed, Count, Opens, SharedOpens};
pub use ranges::Ranges;
pub use reporter::Reporter;
pub use undo::Undo;
