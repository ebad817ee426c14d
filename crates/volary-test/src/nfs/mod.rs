//! A client of NFSv3, MOUNT and NLM that is written only for tests, so that the server is not
//! tested with its own code. It panics on replies that violate the protocol.
#![expect(missing_docs, reason = "RFC 1813 and RFC 1832 say what they are")]

pub mod client;
pub mod locks;
mod remote;
mod through;
pub mod wire;

pub use remote::Remote;
pub use through::{shown, through};
