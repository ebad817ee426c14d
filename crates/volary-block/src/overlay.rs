//! A device whose changes go to another one.

use crate::range::check_range;
use parking_lot::RwLock;
use std::collections::HashSet;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Geometry, Result};

/// The unit in which changes are kept above, in bytes.
const PAGE: u64 = 4096;

/// The cause of a write for which there is no room.
const FULL: &str = "the memory for changes is used up; volary sim --memory gives more";

/// A device with the content of one below, which is never written. Changes are written, in pages,
/// to one above. Each changed page takes about 50 bytes of memory.
pub struct Overlay {
    below: Arc<dyn BlockDevice>,
    above: Arc<dyn BlockDevice>,
    /// Pages that are stored above.
    written: RwLock<HashSet<u64>>,
    /// The most pages above.
    most: u64,
}

impl Overlay {
    /// Returns a device with the content of `below`. `above` must be at least as large, and its
    /// content is ignored. If the changes exceed `most` bytes, writes fail with `Io`.
    pub fn new(below: Arc<dyn BlockDevice>, above: Arc<dyn BlockDevice>, most: u64) -> Self {
        Self {
            below,
            above,
            written: RwLock::default(),
            most: most / PAGE,
        }
    }

    /// Copies a page from below to above, before a part of it is overwritten.
    fn lift(&self, page: u64, written: &mut HashSet<u64>) -> Result<()> {
        if written.contains(&page) {
            return Ok(());
        }
        let start = page * PAGE;
        let len = PAGE.min(self.geometry().size - start);
        let mut bytes = [0; PAGE as usize];
        let bytes = bytes
            .get_mut(..usize::try_from(len).unwrap_or(0))
            .unwrap_or_default();
        self.below.read_at(start, bytes)?;
        self.above.write_at(start, bytes)?;
        written.insert(page);
        Ok(())
    }
}

impl BlockDevice for Overlay {
    fn geometry(&self) -> Geometry {
        Geometry {
            read_only: false,
            ..self.below.geometry()
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.geometry().size)?;
        let written = self.written.read();
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let is_above = written.contains(&(at / PAGE));
            let end = at + rest.len() as u64;
            let mut stop = (at / PAGE + 1) * PAGE;
            while stop < end && written.contains(&(stop / PAGE)) == is_above {
                stop += PAGE;
            }
            let len = usize::try_from(stop.min(end) - at).unwrap_or(rest.len());
            let (part, more) = rest.split_at_mut(len);
            match is_above {
                true => self.above.read_at(at, part)?,
                false => self.below.read_at(at, part)?,
            }
            (at, rest) = (at + len as u64, more);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let size = self.geometry().size;
        check_range(offset, data.len(), size)?;
        let end = offset + data.len() as u64;
        let mut written = self.written.write();
        let pages = offset / PAGE..end.div_ceil(PAGE);
        let new = pages.clone().filter(|page| !written.contains(page)).count();
        if (written.len() + new) as u64 > self.most {
            return Err(Error::io("write", offset, data.len() as u64, FULL));
        }
        for edge in [offset, end] {
            let is_ragged = edge % PAGE != 0 && edge < size;
            if is_ragged && !data.is_empty() {
                self.lift(edge / PAGE, &mut written)?;
            }
        }
        self.above.write_at(offset, data)?;
        written.extend(pages);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.above.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDevice;
    use crate::seeded;
    use volary_core::Kind;

    const LEN: usize = 50_000;

    fn on(bytes: &[u8]) -> (Arc<MemDevice>, Overlay) {
        let below = Arc::new(MemDevice::from_vec(bytes.to_vec()));
        let above = Arc::new(MemDevice::new(LEN as u64));
        (below.clone(), Overlay::new(below, above, LEN as u64 + PAGE))
    }

    #[test]
    fn changes_are_read_back_and_leave_what_is_below() {
        let bytes: Vec<u8> = (0..LEN).map(|i| (i / 7) as u8).collect();
        let one = (0..LEN, 0..9000_usize, 0..LEN, 0..20_000_usize);
        seeded::check(60, proptest::collection::vec(one, 1..12), |requests| {
            let (below, over) = on(&bytes);
            let mut expected = bytes.clone();
            for (round, (at, len, from, read)) in (100..).zip(requests) {
                let data = vec![round; len.min(LEN - at)];
                over.write_at(at as u64, &data).unwrap();
                expected[at..at + data.len()].copy_from_slice(&data);
                let mut buf = vec![0; read.min(LEN - from)];
                over.read_at(from as u64, &mut buf).unwrap();
                assert!(buf == expected[from..from + buf.len()], "at {from}");
            }
            let mut kept = vec![0; LEN];
            below.read_at(0, &mut kept).unwrap();
            assert!(kept == bytes, "what is below was written");
        });
    }

    #[test]
    fn nothing_is_past_its_end() {
        let (_, over) = on(&[7; LEN]);
        let past = over.write_at(LEN as u64, &[1]).unwrap_err();
        assert_eq!(past.kind(), Kind::Invalid);
        assert!(over.read_at(LEN as u64 - 1, &mut [0; 2]).is_err());
        over.write_at(0, &[]).unwrap();
        let (_, few) = on(&[7; LEN]);
        let few = Overlay { most: 2, ..few };
        few.write_at(4000, &[1; 200]).unwrap();
        few.write_at(0, &[2; 8192]).unwrap();
        assert!(few.write_at(8192, &[3]).is_err(), "it is full");
        let mut buf = [0; 2];
        few.read_at(8191, &mut buf).unwrap();
        assert_eq!(buf, [2, 7]);
        over.flush().unwrap();
    }
}
