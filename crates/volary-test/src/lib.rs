//! The conformance kit of volary.
#![forbid(unsafe_code)]

mod cases;
pub mod digest;
pub mod hostfs;
pub mod manifest;
pub mod nfs;
pub mod reference;
mod remote;
#[cfg(feature = "smb-client")]
pub mod smb;
pub mod suite;
pub mod tree;
mod within;

pub use volary_sim::rng;

pub use manifest::{Lack, Manifest};
pub use suite::{Case, Failure, Fresh, Report, Suite};
pub use within::Within;
