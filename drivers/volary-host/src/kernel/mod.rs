//! The kernel interface: errors, `/proc`, system calls that no safe library has, `statx`, and
//! `io_uring`. Uses no other room.

pub(crate) mod error;
pub(crate) mod proc;
pub(crate) mod ring;
pub(crate) mod stat;
pub(crate) mod sys;
