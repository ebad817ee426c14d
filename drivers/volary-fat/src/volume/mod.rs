//! What a volume is before anything is read of its files: structures as stored, the checked boot
//! sector and its copy, times, and whether bytes can be a directory's at all. Uses no other room.

pub(crate) mod judge;
pub(crate) mod layout;
pub(crate) mod ondisk;
pub(crate) mod replica;
pub(crate) mod time;

pub use layout::{FatKind, Layout};
