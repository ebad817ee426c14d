//! The kernel: its answers in our words, `/proc`, system calls that no safe library has, `statx`,
//! `io_uring`. Uses nothing of the others.

pub(crate) mod error;
pub(crate) mod proc;
pub(crate) mod ring;
pub(crate) mod stat;
pub(crate) mod sys;
