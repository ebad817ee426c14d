//! XDR (RFC 4506) and ONC RPC (RFC 5531): what the NFS server and the NFS client
//! share. No I/O: bytes in, bytes out.
//!
//! | module | what |
//! |---|---|
//! | `xdr` | a checked cursor over what came, and a writer for what goes |
//! | [`caller`] | the head of a call, and what a reply says of it |
//! | [`numbers`] | programs, versions and what they share |
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

pub mod caller;
pub mod numbers;
mod xdr;

pub use xdr::{Decoded, Garbage, Input, Output, count, padding};
