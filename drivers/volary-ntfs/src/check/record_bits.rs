//! The bitmap of records.

use crate::files::bitmap::Bitmap;
use crate::mft::records::Mft;

/// The bitmap of the records in use. If it cannot be read, all records count as in use.
pub(super) struct RecordBits<'a> {
    bits: Option<Bitmap<'a>>,
}

impl<'a> RecordBits<'a> {
    pub(super) fn of(mft: &'a Mft) -> Self {
        let bits = Bitmap::of_records(mft);
        Self {
            bits: bits.ok().flatten(),
        }
    }

    pub(super) fn has(&self, number: u64) -> bool {
        let Some(bits) = &self.bits else { return true };
        bits.has(number).unwrap_or(true)
    }
}
