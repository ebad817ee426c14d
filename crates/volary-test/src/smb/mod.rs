//! Shares as volumes of the conformance suite, by the client that tests and
//! `volary torture` use.

mod remote;
mod through;

pub use remote::Remote;
pub use through::{shown, through};
pub use volary_smb_client::*;
