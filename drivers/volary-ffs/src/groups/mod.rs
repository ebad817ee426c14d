//! Cylinder groups: their maps and sums, the layout policies and the allocators, and scans of all
//! inodes. May use `disk` and `inodes`.

pub(crate) mod alloc;
pub(crate) mod cg;
pub(crate) mod mistakes;
pub(crate) mod policy;
pub(crate) mod scan;
pub(crate) mod summary;
pub(crate) mod tally;
