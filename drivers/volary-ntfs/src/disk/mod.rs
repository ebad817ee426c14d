//! What is needed before any file is read: stored structures, the checked boot sector, update
//! sequences, mapping pairs, names, and the clusters of the device. Uses no other room.

pub(crate) mod clusters;
pub(crate) mod fixup;
pub(crate) mod names;
pub(crate) mod ondisk;
pub(crate) mod runs;
pub(crate) mod volume;
