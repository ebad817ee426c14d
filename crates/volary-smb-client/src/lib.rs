//! An SMB 2.1 client for tests and for `volary torture`, so that the server is not tested with its
//! own code. It signs its messages, requests leases, and receives their breaks.
//!
//! | module | what |
//! |---|---|
//! | `conn`, `logon` | one connection: messages, signatures, the receiving thread; NTLM |
//! | `requests` | the requests of a client |
//! | [`wire`] | numbers in messages |
//!
//! Its server was started for the test, so a malformed reply panics.
#![expect(missing_docs, reason = "MS-SMB2 says what they are")]
#![forbid(unsafe_code)]

mod conn;
mod logon;
mod requests;
pub mod wire;

pub use conn::{Fail, LeaseBreak};
pub use requests::{Client, How, Listed, Open, Opened, Watching};

/// Status codes that callers check (MS-ERREF 2.3).
pub mod status {
    pub const PENDING: u32 = 0x0000_0103;
    pub const NO_MORE_FILES: u32 = 0x8000_0006;
    pub const END_OF_FILE: u32 = 0xC000_0011;
    pub const MORE_PROCESSING_REQUIRED: u32 = 0xC000_0016;
    pub const ACCESS_DENIED: u32 = 0xC000_0022;
    pub const OBJECT_NAME_NOT_FOUND: u32 = 0xC000_0034;
    pub const OBJECT_NAME_COLLISION: u32 = 0xC000_0035;
    pub const SHARING_VIOLATION: u32 = 0xC000_0043;
    pub const FILE_LOCK_CONFLICT: u32 = 0xC000_0054;
    pub const LOCK_NOT_GRANTED: u32 = 0xC000_0055;
    pub const DELETE_PENDING: u32 = 0xC000_0056;
    pub const LOGON_FAILURE: u32 = 0xC000_006D;
    pub const MEDIA_WRITE_PROTECTED: u32 = 0xC000_00A2;
    pub const FILE_CLOSED: u32 = 0xC000_0128;
    pub const USER_SESSION_DELETED: u32 = 0xC000_0203;
    pub const RANGE_NOT_LOCKED: u32 = 0xC000_007E;
    pub const DISK_FULL: u32 = 0xC000_007F;
    pub const IO_DEVICE_ERROR: u32 = 0xC000_0185;
}

/// Rights of an open (MS-SMB2 2.2.13.1.1), and of opens that it allows beside it.
pub mod access {
    pub const READ: u32 = 0x1;
    pub const WRITE: u32 = 0x2;
    pub const READ_ATTRIBUTES: u32 = 0x80;
    pub const DELETE: u32 = 0x1_0000;
    pub const SHARE_READ: u32 = 1;
    pub const SHARE_WRITE: u32 = 2;
    pub const SHARE_DELETE: u32 = 4;
    pub const SHARE_ALL: u32 = 7;
}

/// What to do if the file exists, or does not (MS-SMB2 2.2.13).
pub mod disposition {
    pub const OPEN: u32 = 1;
    pub const CREATE: u32 = 2;
    pub const OPEN_IF: u32 = 3;
    pub const OVERWRITE_IF: u32 = 5;
}
