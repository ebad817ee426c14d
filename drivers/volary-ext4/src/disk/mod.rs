//! What a volume is before anything is read of its files: structures as stored, the checked superblock
//! with its replicas, checksums, and the blocks of the device, with the journal's in their places. Uses
//! no other room.

pub(crate) mod blocks;
pub(crate) mod csum;
pub(crate) mod features;
pub(crate) mod group;
pub(crate) mod ondisk;
pub(crate) mod replayed;
pub(crate) mod replica;
pub(crate) mod run;
pub(crate) mod volume;
