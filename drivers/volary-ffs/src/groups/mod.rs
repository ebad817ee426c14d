//! Cylinder groups: their maps and sums, where things are wished to go and where there is room, and
//! all inodes in order. May use `disk` and `inodes`.

pub(crate) mod alloc;
pub(crate) mod cg;
pub(crate) mod mistakes;
pub(crate) mod policy;
pub(crate) mod scan;
pub(crate) mod summary;
pub(crate) mod tally;
