//! One server: connections, who waits for which reply, calls that outlive a connection; what it says of
//! its ports, of an export and of what it can do. May use `wire`.

pub(crate) mod conn;
pub(crate) mod info;
pub(crate) mod mount;
pub(crate) mod peer;
pub(crate) mod socket;
