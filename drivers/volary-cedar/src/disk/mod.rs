//! Structures as they are stored, and where they lie.
//!
//! Pages and numbers, the checked root, runs of pages, leader pages, checksums of data. Uses nothing of the others.

pub(crate) mod leader;
pub(crate) mod ondisk;
pub(crate) mod runs;
pub(crate) mod sums;
pub(crate) mod volume;
