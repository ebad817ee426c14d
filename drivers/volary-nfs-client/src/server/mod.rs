//! One server: connections, callers that wait for replies, calls that outlive a connection; its
//! ports, exports and capabilities. May use `wire`.

pub(crate) mod conn;
pub(crate) mod info;
pub(crate) mod mount;
pub(crate) mod peer;
pub(crate) mod socket;
