//! The volume without its files: structures as stored, the checked superblock with its replicas and
//! check hashes, and the cache. Uses no other room.

pub(crate) mod cache;
pub(crate) mod hash;
pub(crate) mod ondisk;
pub(crate) mod replica;
pub(crate) mod superblock;
pub(crate) mod volume;
