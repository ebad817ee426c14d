//! The wire format: only here are bytes converted to checked types. Uses no other room.
//!
//! Structures keep the field names of MS-SMB2 and MS-FSCC.

pub(crate) mod body;
pub(crate) mod create;
pub(crate) mod cursor;
pub(crate) mod dialect;
pub(crate) mod file_id;
pub(crate) mod fscc;
pub(crate) mod header;
pub(crate) mod ioctl;
pub(crate) mod negotiate;
pub(crate) mod out;
pub(crate) mod setup;
pub(crate) mod status;

pub(crate) use body::Body;
pub(crate) use cursor::{Cursor, Short};
pub use dialect::Dialect;
pub(crate) use file_id::FileId;
pub(crate) use header::{Command, Header};
pub(crate) use out::{Out, utf16};
pub(crate) use status::Status;
