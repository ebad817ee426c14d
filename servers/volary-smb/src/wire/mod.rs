//! What is on the wire: bytes become checked types here, and nowhere else.
//!
//! Structures keep the field names of MS-SMB2 and MS-FSCC.

pub(crate) mod cursor;
pub(crate) mod fscc;
pub(crate) mod header;
pub(crate) mod ioctl;
pub(crate) mod negotiate;
pub(crate) mod out;
pub(crate) mod setup;
pub(crate) mod status;

pub(crate) use cursor::{Cursor, Short};
pub(crate) use header::{Command, Header};
pub(crate) use out::{Out, utf16};
pub(crate) use status::Status;
