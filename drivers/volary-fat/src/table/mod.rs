//! The FAT: its entries in memory and on the way to the disk, free clusters, chains, where its
//! copies differ, and the marks in it. May use `volume`.

pub(crate) mod alloc;
pub(crate) mod copies;
pub(crate) mod fat;
pub(crate) mod halves;
pub(crate) mod joins;
pub(crate) mod links;
pub(crate) mod marks;
pub(crate) mod recover;
pub(crate) mod reserve;
pub(crate) mod runs;
pub(crate) mod segments;
pub(crate) mod twofold;
