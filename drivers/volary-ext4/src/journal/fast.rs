//! Fast commits: a list of changes after the log (journal.rst, "Fast commits"), in the little
//! byte order.

use crate::disk::csum;
use crate::disk::ondisk::{INODE_HEAD, fctag, jfeature};
use crate::journal::superblock::Journal;
use crate::store::Store;
use volary_core::{Error, Kind, Result};

/// A change: its tag and its value.
pub(crate) type Change = (u16, Vec<u8>);

/// Longest name of an entry.
const NAME_MAX: usize = 255;

/// Reads the changes of all fast commits that belong after the transaction before `sequence`
/// and are whole.
///
/// # Errors
/// `Unsupported` for features that are not known; `Corrupt`; `Io`.
pub(crate) fn read(store: &Store, journal: &Journal, sequence: u32) -> Result<Vec<Change>> {
    if !journal.has(jfeature::FAST_COMMIT) {
        return Ok(Vec::new());
    }
    let mut reading = Reading {
        store,
        sequence,
        sum: 0,
        done: Vec::new(),
        open: Vec::new(),
    };
    // Linux leaves the first block after the log out.
    for block in journal.log_end + 1..journal.end {
        let bytes = journal.block(store, block)?;
        if !reading.block(&bytes)? {
            break;
        }
    }
    Ok(reading.done)
}

struct Reading<'a> {
    store: &'a Store,
    sequence: u32,
    /// CRC-32C of the commit so far.
    sum: u32,
    /// Of commits that are whole.
    done: Vec<Change>,
    /// Of the one that is being read.
    open: Vec<Change>,
}

impl Reading<'_> {
    /// Reads the tags of a block. False where the commits end.
    fn block(&mut self, bytes: &[u8]) -> Result<bool> {
        let mut rest = bytes;
        while let Some((&[a, b, c, d], after)) = rest.split_first_chunk() {
            let (tag, len) = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
            let value = after.get(..len.into());
            let Some(value) = value.filter(|value| self.fits(tag, value.len())) else {
                return Ok(false);
            };
            let whole = rest.get(..4 + value.len()).unwrap_or_default();
            if !self.tag(tag, value, whole)? {
                return Ok(false);
            }
            rest = after.get(value.len()..).unwrap_or_default();
        }
        Ok(true)
    }

    fn fits(&self, tag: u16, len: usize) -> bool {
        let named = |len: usize| (9..=8 + NAME_MAX).contains(&len);
        match tag {
            fctag::ADD_RANGE => len == 16,
            fctag::DEL_RANGE => len == 12,
            fctag::CREAT | fctag::LINK | fctag::UNLINK => named(len),
            fctag::INODE => (4 + INODE_HEAD..=4 + self.store.volume().inode_size).contains(&len),
            fctag::PAD => true,
            fctag::TAIL => len >= 8,
            fctag::HEAD => len == 8,
            _ => false,
        }
    }

    /// Takes one tag. False where the commits end.
    fn tag(&mut self, tag: u16, value: &[u8], whole: &[u8]) -> Result<bool> {
        let word = |at: usize| {
            let four = value.get(at..).and_then(|rest| rest.first_chunk());
            four.map_or(0, |four| u32::from_le_bytes(*four))
        };
        match tag {
            fctag::HEAD => {
                if word(4) != self.sequence {
                    return Ok(false);
                }
                if word(0) != 0 {
                    let words = format!("fast commits with unknown features {:#x}", word(0));
                    return Err(Error::note(Kind::Unsupported, words));
                }
                self.sum = csum::crc32c(self.sum, whole);
            }
            fctag::TAIL => {
                // All but the checksum, which ends the value.
                let sum = csum::crc32c(self.sum, whole.get(..8).unwrap_or_default());
                self.sum = 0;
                if word(0) != self.sequence || self.store.volume().is_verified && word(4) != sum {
                    return Ok(false);
                }
                self.done.append(&mut self.open);
            }
            _ => {
                self.sum = csum::crc32c(self.sum, whole);
                if tag != fctag::PAD {
                    self.open.push((tag, value.to_vec()));
                }
            }
        }
        Ok(true)
    }
}
