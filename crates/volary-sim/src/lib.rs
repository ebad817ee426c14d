//! Simulated disks, recorded runs, and an explorer that shows what a power cut leaves of them.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | [`rng`] | random numbers from a seed |
//! | `disks` | disks in memory ([`disk`]), recorded runs ([`trace`]), a device that loses what was not flushed ([`Losing`]) |
//! | `models` | disks in virtual time ([`seek`], [`hard`], [`buffered`], [`flash`]), by name ([`preset`]), and what they did ([`Watched`]) |
//! | `explorer` | the states that a power cut leaves ([`cut`], [`lazy`]), bad sectors ([`fault`]); recovers and judges every state ([`explore`]) of a [`subject`] |
//! | `script` | operations ([`op`], [`scripts`]), the resulting trees ([`tree`]), and their promises ([`history`]) |
//! | [`volume`](Volume) | a kind of volume as a subject: one row; also when a real process is killed ([`Progress`]) |
//!
//! Each room uses only those above it in this table. Its `mod.rs` says which, and what is in it.
//!
//! # The assumptions
//!
//! A simulated disk keeps the promise of [`volary_core::BlockDevice`], and no more. Each sector of
//! [`SECTOR`] bytes that is in flight when power fails has been written or not, in any combination.
//! A driver that claims to survive more asks for it: garbage in sectors in flight
//! ([`Bounds::garbage`]), flushes that lie ([`Depth::lies`]).
//!
//! # How to add a driver
//!
//! Add a row: a [`Volume`] says how it is made, how it is recovered after a power cut
//! ([`Recovery`]), and what it then promises ([`Promise`]). Scripts are written in words
//! ([`op::Ops`]). The rows are in `volary::torture`, where `volary torture` finds them.
//!
//! # How to add anything else
//!
//! Implement [`Subject`]: make a disk, play a script on a [`Traced`] device (telling it when each
//! operation begins and has ended), recover, look, judge. Then [`Explorer::explore`] tries every
//! state within the bounds of its [`Depth`], and [`Explorer::explore_lazily`] all that recovery can
//! tell apart. Three properties of the explorer matter for this:
//!
//! - Recovery and look see a disk, and not the script. So a result is reused for all disks with the
//!   same content wherever it was read, and is judged again for each script and moment.
//! - [`Moment`] says how many operations had begun and ended; only an operation that has ended may
//!   have promised something.
//! - If [`Subject::settles`], a second recovery must write nothing.
//!
//! A [`Failure`] prints the command that reproduces the same state.
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

mod disks;
mod explorer;
mod models;
pub mod rng;
mod script;
mod volume;

pub use disks::cow::Cow;
pub use disks::disk::{Disk, SECTOR, Sector};
pub use disks::losing::Losing;
pub use disks::trace::{Event, Moment, Trace, Traced};
pub use disks::{disk, trace};
pub use explorer::cut::{Bounds, Choice, CrashPoint, Fate, choices, crash_points};
pub use explorer::explore::{Cut, Depth, Explorer, Failure, Tally};
pub use explorer::lazy::{Lazy, Odometer};
pub use explorer::subject::{Recovered, Subject};
pub use explorer::{cut, explore, fault, lazy, subject};
pub use models::preset::{PRESETS, Preset};
pub use models::spinning::{Spinning, Timed};
pub use models::watched::{Doings, Log, Served, Watched};
pub use models::{buffered, flash, hard, preset, seek};
pub use script::history::{History, Promise};
pub use script::op::{Op, Ops};
pub use script::{history, op, scripts, tree};
pub use volume::{Aside, Between, Endured, Progress, Recovery, Volume, perform};
