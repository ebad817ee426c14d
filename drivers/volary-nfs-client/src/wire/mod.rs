//! The wire format: NFS's structures and numbers, and records. May use no other room.

pub(crate) mod proto;
pub(crate) mod record;
