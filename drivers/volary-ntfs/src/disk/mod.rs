//! What a volume is before anything is read of its files: structures as stored, the checked boot sector,
//! update sequences, mapping pairs, names, and the clusters of the device. Uses no other room.

pub(crate) mod clusters;
pub(crate) mod fixup;
pub(crate) mod names;
pub(crate) mod ondisk;
pub(crate) mod runs;
pub(crate) mod volume;
