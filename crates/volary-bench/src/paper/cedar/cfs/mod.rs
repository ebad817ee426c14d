//! CFS, the file system that FSD replaced, as the paper tells of it (sections 2, 4, 5.3 and 6): a rival for the
//! tables, with no format that others read.
//!
//! Each sector has a label, which the disk checks with each transfer: uid, page number, type. A file has two
//! header sectors with its properties and its run table. A B-tree written in place, the file name table, leads
//! from a name to the first header. The map of free pages is a hint: labels are looked at before pages are taken.
//! After a crash a scavenger reads all labels and headers and makes the name table anew.

mod disk;
mod header;
mod scavenge;
mod table;
mod volume;

pub(super) use disk::Done;
pub(super) use volume::Volume;
