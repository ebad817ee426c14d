//! Checksums of the first bytes of a file, and how they are stored.

use crate::disk::ondisk::{get_u32, get_u64};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of the parts before the checksums.
pub(crate) const FIXED: usize = 16;
/// Bytes of a checksum.
pub(crate) const SUM: usize = 4;

/// The checksums of the first bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    /// How many bytes they are of.
    len: u64,
    /// Bytes of each but the last: a power of two, a page at least.
    unit: u64,
    sums: Vec<u32>,
}

impl Sums {
    /// Returns those of no bytes.
    pub(crate) fn new(page: u32) -> Self {
        Self {
            len: 0,
            unit: page.into(),
            sums: Vec::new(),
        }
    }

    /// Returns how many bytes they are of.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Adds the bytes that follow. There are at most `most` checksums, two at least; of
    /// more bytes, each is of twice as many.
    pub(crate) fn extend(&mut self, mut data: &[u8], most: usize) {
        while !data.is_empty() {
            if self.len.is_multiple_of(self.unit) {
                self.make_room(most);
            }
            // A unit may be twice as long now, and the last one half full.
            let within = self.len % self.unit;
            if within == 0 {
                self.sums.push(0);
            }
            let left = self.unit - within;
            let (now, later) = data.split_at(data.len().min(left as usize));
            if let Some(last) = self.sums.last_mut() {
                *last = crc32c::crc32c_append(*last, now);
            }
            self.len += now.len() as u64;
            data = later;
        }
    }

    /// Joins the checksums in pairs if there are `most`. All are of whole units.
    fn make_room(&mut self, most: usize) {
        if self.sums.len() < most {
            return;
        }
        let unit = self.unit as usize;
        let pairs = self.sums.chunks(2).map(|pair| match *pair {
            [a, b] => crc32c::crc32c_combine(a, b, unit),
            _ => pair.first().copied().unwrap_or_default(),
        });
        self.sums = pairs.collect();
        self.unit *= 2;
    }

    /// Forgets those of units with bytes from `offset` on.
    pub(crate) fn keep_before(&mut self, offset: u64) {
        if offset < self.len {
            let units = offset / self.unit;
            self.sums.truncate(units as usize);
            self.len = units * self.unit;
        }
    }

    /// Returns the bytes of the unit that holds byte `at`, and their checksum; none past the end.
    pub(crate) fn unit_at(&self, at: u64) -> Option<(Range<u64>, u32)> {
        let index = Some(at / self.unit).filter(|_| at < self.len)?;
        let sum = *self.sums.get(usize::try_from(index).ok()?)?;
        let start = index * self.unit;
        Some((start..start.saturating_add(self.unit).min(self.len), sum))
    }

    /// As stored.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.len.to_le_bytes().to_vec();
        out.extend(self.unit.to_le_bytes());
        out.extend(self.sums.iter().flat_map(|sum| sum.to_le_bytes()));
        out
    }

    /// From what is stored; `None` for what contradicts itself.
    pub(crate) fn decode(bytes: &[u8], page: u32) -> Option<Self> {
        let (len, unit) = (get_u64(bytes, 0), get_u64(bytes, 8));
        let sums = bytes.get(FIXED..)?.chunks_exact(SUM);
        let fits = unit.is_power_of_two() && unit >= page.into() && unit <= 1 << 62;
        let whole = fits && sums.remainder().is_empty() && len > 0;
        (whole && sums.len() as u64 == len.div_ceil(unit)).then(|| Self {
            len,
            unit,
            sums: sums.map(|sum| get_u32(sum, 0)).collect(),
        })
    }
}

/// The checksums of the file that was read last.
pub(crate) struct Known {
    pub(crate) uid: u64,
    pub(crate) sums: Sums,
    /// Where the unit begins that was held to its checksum last: one of which a piece is read
    /// is not read whole again for the next piece.
    pub(crate) last: Option<u64>,
}

/// What is known of checksums beside what is stored.
pub(crate) struct Seals {
    /// Whether what is read is held to checksums, where there are any.
    pub(crate) looks: bool,
    /// The checksums of the file that was read last.
    pub(crate) known: Option<Known>,
    /// Files that were written since they were sealed, with the checksums of as much of them as is known.
    pub(crate) waiting: BTreeMap<u64, Sums>,
}

impl Default for Seals {
    fn default() -> Self {
        Self {
            looks: true,
            known: None,
            waiting: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(len: usize) -> Vec<u8> {
        (0..len).map(|i| (i * 7 / 3) as u8).collect()
    }

    fn of(data: &[u8], most: usize) -> Sums {
        let mut sums = Sums::new(512);
        sums.extend(data, most);
        sums
    }

    #[test]
    fn units_grow_so_that_there_are_not_too_many() {
        let data = bytes(100_000);
        for (len, unit) in [(1, 512), (4096, 512), (4097, 1024), (100_000, 16_384)] {
            let data = data.get(..len).unwrap();
            let sums = of(data, 8);
            assert_eq!((sums.len, sums.unit), (len as u64, unit));
            for (at, part) in data.chunks(unit as usize).enumerate() {
                let start = at as u64 * unit;
                let whole = start..start + part.len() as u64;
                assert_eq!(sums.unit_at(start), Some((whole, crc32c::crc32c(part))));
            }
            assert_eq!(sums.unit_at(len as u64), None);
        }
    }

    #[test]
    fn it_is_the_same_in_pieces() {
        let data = bytes(9000);
        for most in [3, 5, 8] {
            let whole = of(&data, most);
            let mut pieces = Sums::new(512);
            for part in data.chunks(301) {
                pieces.extend(part, most);
            }
            assert!(pieces.sums.len() <= most);
            assert_eq!(pieces.len, whole.len, "{most}");
            assert_eq!(pieces, whole, "{most}");
        }
    }

    #[test]
    fn what_changed_is_forgotten_by_units() {
        let data = bytes(3000);
        let mut sums = of(&data, 8);
        sums.keep_before(3000);
        assert_eq!(sums.len, 3000);
        sums.keep_before(2999);
        assert_eq!(sums.len, 2560);
        sums.keep_before(1100);
        assert_eq!(sums.len, 1024);
        sums.extend(data.get(1024..).unwrap(), 8);
        assert_eq!(sums, of(&data, 8));
        sums.keep_before(0);
        assert_eq!(sums.sums, Vec::<u32>::new());
    }

    #[test]
    fn what_was_stored_comes_back_and_what_contradicts_itself_does_not() {
        let sums = of(&bytes(5000), 8);
        let stored = sums.encode();
        assert_eq!(Sums::decode(&stored, 512), Some(sums.clone()));
        assert_eq!(Sums::decode(&stored, 4096), None);
        for len in 0..stored.len() {
            assert_eq!(Sums::decode(stored.get(..len).unwrap(), 512), None, "{len}");
        }
        for (at, byte) in [(1, 0xff), (7, 0xff), (8, 3), (15, 0x80)] {
            let mut wrong = stored.clone();
            *wrong.get_mut(at).unwrap() = byte;
            assert_eq!(Sums::decode(&wrong, 512), None, "{at}");
        }
    }
}
