//! A device as it will be when the journal has been replayed.

use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{BlockDevice, Geometry, Kind, Result};

/// Where the newest contents of a block stand in the journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    /// In bytes on the device.
    pub(crate) at: u64,
    /// Whether its first four bytes are the journal's magic, for which zeros stand there.
    pub(crate) is_escaped: bool,
}

/// The blocks that the journal holds.
#[derive(Default)]
pub(crate) struct Replayed {
    /// Bytes of a block.
    pub(crate) block: u64,
    pub(crate) copies: BTreeMap<u64, Copy>,
    /// Transactions that were replayed.
    pub(crate) transactions: u64,
}

impl Replayed {
    /// Returns how many of `count` blocks from `number` on stand where the first one does, and where that
    /// is, in bytes on the device; `None` for one whose bytes stand nowhere as they are.
    pub(crate) fn place(&self, number: u64, count: u64) -> (u64, Option<u64>) {
        let mut from = self.copies.range(number..number.saturating_add(count));
        match from.next() {
            Some((at, copy)) if *at == number => (1, (!copy.is_escaped).then_some(copy.at)),
            Some((at, _)) => (at - number, Some(number * self.block)),
            None => (count, Some(number * self.block)),
        }
    }
}

/// The device under a volume, with the journal's blocks in their places.
pub(crate) struct Overlaid {
    dev: Arc<dyn BlockDevice>,
    replayed: Arc<Replayed>,
}

impl Overlaid {
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, replayed: Arc<Replayed>) -> Self {
        Self { dev, replayed }
    }
}

impl BlockDevice for Overlaid {
    fn geometry(&self) -> Geometry {
        Geometry {
            read_only: true,
            ..self.dev.geometry()
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.dev.read_at(offset, buf)?;
        let Some(end) = offset.checked_add(buf.len() as u64) else {
            return Ok(());
        };
        let block = self.replayed.block.max(1);
        let all = offset / block..end.div_ceil(block);
        for (number, copy) in self.replayed.copies.range(all) {
            let start = (number * block).max(offset);
            let stop = (number * block + block).min(end);
            let within = start - number * block;
            let range = (start - offset) as usize..(stop - offset) as usize;
            let part = buf.get_mut(range).unwrap_or_default();
            self.dev.read_at(copy.at + within, part)?;
            if copy.is_escaped {
                let magic = crate::disk::ondisk::JOURNAL_MAGIC.to_be_bytes();
                let rest = magic
                    .iter()
                    .skip(usize::try_from(within).unwrap_or(usize::MAX));
                for (to, from) in part.iter_mut().zip(rest) {
                    *to = *from;
                }
            }
        }
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn is_cached(&self) -> bool {
        self.dev.is_cached()
    }
}
