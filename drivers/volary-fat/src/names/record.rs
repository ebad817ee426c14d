//! An entry of a directory with all that belongs to it.

use crate::unix::paper;
use crate::volume::ondisk::DirEntry;

/// What long names a directory is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongStyle {
    /// VFAT's, before the short entry.
    Vfat,
    /// The paper's, after it.
    Paper,
}

/// A long name as it stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long<'a> {
    /// None: the short name is the name.
    None,
    /// VFAT's, in UTF-16: 1 to 255 units, otherwise anything.
    Vfat(&'a [u16]),
    /// The paper's: what follows the 11 bytes of the short name.
    Paper([u8; paper::TAIL_LEN]),
}

/// An entry with all that belongs to it. Labels are records as well.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its first slot: that of its first long part, else of its short entry.
    pub first_slot: u32,
    /// The slot of its short entry.
    pub slot: u32,
    /// Its last slot: that of the short entry, or of the paper's tail.
    pub last_slot: u32,
    /// The short entry.
    pub short: DirEntry,
    /// The long name.
    pub long: Long<'a>,
}
