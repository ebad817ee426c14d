//! What volary's parts are tested with.
//!
//! | module | what |
//! |---|---|
//! | [`suite`] | one conformance suite for every volume, driver or mount |
//! | [`diff`] | random operations on a volume and on the model, shrunk when they differ |
//! | [`oracle`] | other people's tools that read, write and check the same images |
//! | [`hostfs`] | a mounted directory as a [`FileSystem`](volary_core::FileSystem) |
//! | [`nfs`], [`smb`] | clients of the servers |
//! | [`volumes`] | volumes of a driver: made in memory, attached, checked |
//! | [`turns`] | files that grow in turns, and in how many runs they lie |
//! | [`tree`] | a whole volume as one value that can be compared |
//! | [`view`] | the same with all attributes, as we and as Linux see it |
//! | [`readable`] | how much of what files held can be read, before and after a repair |
//! | [`Telling`] | a volume that tells of changes by others when a test says so |
//! | [`replay`] | random sequences: seeds, shrinking, the command that runs one again |
//! | [`rng`] | random numbers from a seed |
//!
//! Everything here runs in tests, so what goes wrong panics with a sentence.
#![forbid(unsafe_code)]

pub mod diff;
pub mod oracle;
pub mod readable;
pub mod replay;
mod telling;
pub mod turns;
pub mod view;
pub mod volumes;

pub use telling::Telling;
pub use volary_test::{Case, Fresh, Suite};
pub use volary_test::{digest, hostfs, nfs, rng, smb, suite, tree};
