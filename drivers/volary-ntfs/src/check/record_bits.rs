//! The bitmap of records.

use crate::ondisk::{kind, number};
use crate::store::Store;
use crate::stream::Stream;
use volary_core::{Kind, Result};

/// Returns the records that are marked as in use; all of them if the bitmap cannot be read.
pub(super) struct RecordBits<'a> {
    store: &'a Store,
    bits: Option<Stream>,
}

impl<'a> RecordBits<'a> {
    pub(super) fn of(store: &'a Store) -> Self {
        let find = || {
            let node = store.node_of(number::MFT)?;
            let bits = store.stream(&node, kind::BITMAP, &[])?;
            bits.ok_or(Kind::Corrupt.into())
        };
        let bits: Result<Stream> = find();
        Self {
            store,
            bits: bits.ok(),
        }
    }

    pub(super) fn has(&self, number: u64) -> bool {
        let Some(bits) = &self.bits else { return true };
        let mut byte = [0];
        let read = bits.read(self.store, number / 8, &mut byte);
        let [byte] = byte;
        read.is_err() || byte >> (number % 8) & 1 == 1
    }
}
