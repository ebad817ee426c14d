//! XDR (RFC 4506) and ONC RPC (RFC 5531): the code that the NFS server and the NFS client share. No
//! I/O: bytes in, bytes out.
//!
//! | module | what |
//! |---|---|
//! | `xdr` | a checked reader of received bytes, and a writer |
//! | [`caller`] | the head of a call, and the meaning of a reply |
//! | [`numbers`] | program numbers, versions, and common constants |
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
