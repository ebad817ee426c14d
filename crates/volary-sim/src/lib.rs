//! Simulated disks, recorded runs, and the explorer that shows what a power cut
//! leaves of them.
//!
//! | module | what |
//! |---|---|
//! | [`disk`] | disks of memory that share what they have in common; their hashes |
//! | [`trace`] | a recorded run: writes, flushes, and when operations began and ended |
//! | [`cut`] | what was in flight, what became of it, and the choices to look at |
//! | [`lazy`] | choices made when a sector is read |
//! | [`subject`] | the border: what is tortured |
//! | [`explore`] | every state recovered and judged, cuts of recoveries too |
//! | [`Volume`] | a kind of volume as a subject: one row |
//! | [`op`], [`tree`], [`history`] | what scripts do to volumes, what these hold then, what they promised |
//! | [`Losing`], [`Progress`] | for a real process that is killed: it loses what it did not flush |
//! | [`fault`] | sectors that went bad: the kit |
//! | [`seek`] | what operations cost on a disk that turns: the Cedar paper's script model |
//! | [`hard`] | a hard disk of the years since 2000 as a model: what requests take |
//! | [`buffered`] | disks of about 1990, with a buffer that reads ahead |
//! | [`flash`] | devices that move nothing |
//! | [`preset`] | modelled disks by name |
//! | [`Watched`] | a modelled disk that tells what it did |
//! | [`Spinning`], [`Timed`] | a device whose requests take the time of a disk that turns |
//! | [`scripts`] | all short scripts, and random long ones |
//! | [`rng`] | random numbers from a seed |
//!
//! # The assumptions
//!
//! A simulated disk gives what [`volary_core::BlockDevice`] promises, and no
//! more: each sector of [`SECTOR`] bytes that is in flight when power fails has
//! been written or not, in any combination. A driver that wants to stand more
//! asks for it: garbage in sectors in flight ([`Bounds::garbage`]), flushes that
//! lie ([`Depth::lies`]).
//!
//! # How a driver joins
//!
//! With a row: a [`Volume`] says how it is made, what makes good what a power cut
//! left ([`Recovery`]), and what is promised then ([`Promise`]). Scripts are in words
//! ([`op::Ops`]). Rows stand in `volary::torture`, where `volary torture` finds them.
//!
//! # How anything else joins
//!
//! Implement [`Subject`]: make a disk, play a script on a [`Traced`] device
//! (telling it when each operation begins and has ended), recover, look, judge.
//! Then [`Explorer::explore`] looks at every state within the bounds of its
//! [`Depth`], and [`Explorer::explore_lazily`] at all that recovery can tell
//! apart. Three choices of the explorer matter to the one who joins:
//!
//! * Recovery and look see a disk, and not the script: what came of a disk is
//!   known for all disks that hold the same wherever it read, and judged again
//!   for each script and moment.
//! * [`Moment`] says how many operations had begun and ended; only an operation
//!   that has ended may have promised something.
//! * Where [`Subject::settles`], a second recovery must write nothing.
//!
//! A [`Failure`] prints the command that looks at the same state again.
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
