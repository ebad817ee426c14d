//! A client of NFSv3, MOUNT and NLM, written for tests alone: the server's own code
//! is not its judge. What is not as the protocol has it panics.
#![expect(missing_docs, reason = "RFC 1813 and RFC 1832 say what they are")]

pub mod client;
pub mod locks;
mod remote;
mod through;
pub mod wire;

pub use remote::Remote;
pub use through::{shown, through};
