//! An attached volume: what UNIX asks of it. Uses the rooms up to `change`, and `recover` as it attaches.

pub(crate) mod attrs;
pub(crate) mod fs;
pub(crate) mod leaving;
pub(crate) mod listing;
pub(crate) mod open_files;
pub(crate) mod operations;
pub(crate) mod options;
pub(crate) mod steps;
pub(crate) mod xattrs;
