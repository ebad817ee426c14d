//! The conformance kit of volary.
#![forbid(unsafe_code)]

mod cases;
pub mod digest;
pub mod hostfs;
pub mod nfs;
mod remote;
#[cfg(feature = "smb-client")]
pub mod smb;
pub mod suite;
pub mod tree;

pub use volary_sim::rng;

pub use suite::{Case, Fresh, Suite};
