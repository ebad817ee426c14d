//! An attached volume: what UNIX asks of it. Uses the rooms up to `change`, and `recover` as it attaches.

pub(crate) mod fs;
pub(crate) mod operations;
pub(crate) mod options;
pub(crate) mod steps;
pub(crate) mod xattrs;
