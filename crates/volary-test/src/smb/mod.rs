//! SMB shares as volumes for the conformance suite, with the client that `volary torture` uses too.

mod remote;
mod through;

pub use remote::Remote;
pub use through::{shown, through};
pub use volary_smb_client::*;
