//! What the drivers of on-disk formats share.
//!
//! | module | what |
//! |---|---|
//! | [`ahead`] | bounds of reading ahead |
//! | [`dump`] | requests of a dump, and the output of its text |
//! | [`findings`] | findings of a check, and which to mend: look, preen, mend, ask |
//! | [`inodes`] | inodes in memory: open ones, and changed ones until they are on the disk |
//! | [`map`] | the map of what lies where |
//! | [`Moves`] | the order of sectors when names are renamed |
//! | [`opens`] | the open table: ids, `Stale`, how many opens each node has |
//! | [`rename`] | the checks of a rename: a directory into itself, kinds, the replaced node |
//! | [`reporter`] | findings and progress of a check that mends nothing |
//! | [`retry`] | changes that have to wait for a commit and are tried again |
//! | [`Undo`] | the steps of a change, to take it back |
//! | [`wtf8`] | UTF-16 names as bytes, and back |
//!
//! The crate knows no format. It decides by a rule; the driver acts on the decision.
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
