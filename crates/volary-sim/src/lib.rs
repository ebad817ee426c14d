//! Simulated disks, recorded runs, and an explorer that shows what a power cut leaves of them.
//!
//! | module | what |
//! |---|---|
//! | [`disk`] | disks in memory that share common content; their hashes |
//! | [`trace`] | a recorded run: writes, flushes, and when operations began and ended |
//! | [`cut`] | the sectors in flight, their fate, and the choices to try |
//! | [`lazy`] | choices that are made when a sector is read |
//! | [`subject`] | the interface of a thing to be tortured |
//! | [`explore`] | recovers and judges every state, also after cuts of recoveries |
//! | [`Volume`] | a kind of volume as a subject: one row |
//! | [`op`], [`tree`], [`history`] | operations of scripts, the resulting trees, and their promises |
//! | [`Losing`], [`Progress`] | for a real process that is killed: loses what was not flushed |
//! | [`fault`] | sectors that went bad: a kit of faults |
//! | [`seek`] | the cost of operations on a rotating disk: the Cedar paper's script model |
//! | [`hard`] | a model of a hard disk of the years since 2000 |
//! | [`buffered`] | disks of about 1990, with a buffer that reads ahead |
//! | [`flash`] | devices without moving parts |
//! | [`preset`] | modelled disks by name |
//! | [`Watched`] | a modelled disk that logs its requests |
//! | [`Spinning`], [`Timed`] | a device whose requests take the time of a modelled disk |
//! | [`scripts`] | all short scripts, and random long ones |
//! | [`rng`] | random numbers from a seed |
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

pub mod buffered;
mod cow;
pub mod cut;
pub mod disk;
pub mod explore;
pub mod fault;
pub mod flash;
pub mod hard;
pub mod history;
pub mod lazy;
mod losing;
pub mod op;
pub mod preset;
pub mod rng;
pub mod scripts;
pub mod seek;
mod spinning;
pub mod subject;
pub mod trace;
mod traces;
pub mod tree;
mod volume;
mod watched;

pub use cow::Cow;
pub use cut::{Bounds, Choice, CrashPoint, Fate, choices, crash_points};
pub use disk::{Disk, SECTOR, Sector};
pub use explore::{Cut, Depth, Explorer, Failure, Tally};
pub use history::{History, Promise};
pub use lazy::{Lazy, Odometer};
pub use losing::Losing;
pub use op::{Op, Ops};
pub use preset::{PRESETS, Preset};
pub use spinning::{Spinning, Timed};
pub use subject::{Recovered, Subject};
pub use trace::{Event, Moment, Trace, Traced};
pub use volume::{Aside, Between, Endured, Progress, Recovery, Volume, perform};
pub use watched::{Doings, Log, Served, Watched};
