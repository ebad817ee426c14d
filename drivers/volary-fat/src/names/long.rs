//! VFAT's long names: up to 255 UTF-16 units, 13 in each of the entries that
//! stand before the short one, the last part first (specification, page 25).

use crate::names::chars::{ByteSet, byte_set, in_set};
use crate::volume::ondisk::{LAST_LONG_ENTRY, LongEntry, attr};
use volary_core::{Error, Kind, Result};
use volary_ondisk::wtf8::{TooLong, to_utf16};
use zerocopy::little_endian::U16;

/// Units in one entry.
pub(crate) const PART: usize = 13;
/// Most units in a name.
pub(crate) const UNITS_MAX: usize = 255;
/// Most entries for a name.
pub(crate) const PARTS_MAX: usize = 20;

/// What no name may hold (page 29): control characters and a few more.
static FORBIDDEN: ByteSet = byte_set(
    b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\
      \x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\
      \"*/:<>?\\|",
);

/// A long name, in UTF-16.
#[derive(Clone, Copy)]
pub struct LongName {
    units: [u16; PARTS_MAX * PART],
    len: usize,
}

impl LongName {
    /// Of a name in WTF-8 that is to be made.
    ///
    /// # Errors
    /// `Invalid` for bytes that are not WTF-8, a character that VFAT forbids
    /// (control characters and `" * / : < > ? \ |`), or a dot or space at the
    /// end, which other systems would take away; `NameTooLong` for more than
    /// 255 units.
    pub fn new(name: &[u8]) -> Result<Self> {
        if name.iter().any(|&b| in_set(&FORBIDDEN, b)) {
            return Err(Error::note(
                Kind::Invalid,
                "a FAT name cannot hold control characters or any of \" * / : < > ? \\ |",
            ));
        }
        if matches!(name.last(), None | Some(b'.' | b' ')) {
            return Err(Error::note(
                Kind::Invalid,
                "a FAT name cannot be empty or end in a dot or a space",
            ));
        }
        let mut units = [0; PARTS_MAX * PART];
        let room = units.get_mut(..UNITS_MAX).unwrap_or_default();
        match to_utf16(name, room) {
            None => Err(Error::note(Kind::Invalid, "a FAT name must be UTF-8")),
            Some(Err(TooLong)) => Err(Kind::NameTooLong.into()),
            Some(Ok(len)) => Ok(Self { units, len }),
        }
    }

    /// Returns the units.
    pub fn units(&self) -> &[u16] {
        self.units.get(..self.len).unwrap_or(&self.units)
    }

    /// Returns how many entries it takes: 1–20.
    pub fn part_count(&self) -> usize {
        self.len.div_ceil(PART)
    }

    /// Returns its entries in the order in which they are stored.
    pub fn entries(&self, checksum: u8) -> impl Iterator<Item = LongEntry> + '_ {
        let count = self.part_count();
        let parts = self.units().chunks(PART).enumerate().rev();
        parts.map(move |(i, part)| {
            // At most 20.
            let mut order = i as u8 + 1;
            if i + 1 == count {
                order |= LAST_LONG_ENTRY;
            }
            part_entry(order, checksum, part)
        })
    }
}

/// One entry; a part that is not full is ended by 0 and filled with 0xFFFF.
fn part_entry(order: u8, checksum: u8, part: &[u16]) -> LongEntry {
    let mut units = [0xffff; PART];
    if let Some(end) = units.get_mut(part.len()) {
        *end = 0;
    }
    if let Some(room) = units.get_mut(..part.len()) {
        room.copy_from_slice(part);
    }
    let [a, b, c, d, e, f, g, h, i, j, k, l, m] = units.map(U16::new);
    LongEntry {
        LDIR_Ord: order,
        LDIR_Name1: [a, b, c, d, e],
        LDIR_Attr: attr::LONG_NAME,
        LDIR_Type: 0,
        LDIR_Chksum: checksum,
        LDIR_Name2: [f, g, h, i, j, k],
        LDIR_FstClusLO: U16::ZERO,
        LDIR_Name3: [l, m],
    }
}

/// Returns the 13 units of an entry.
pub(crate) fn part_units(entry: &LongEntry) -> [u16; PART] {
    let [a, b, c, d, e] = entry.LDIR_Name1;
    let [f, g, h, i, j, k] = entry.LDIR_Name2;
    let [l, m] = entry.LDIR_Name3;
    [a, b, c, d, e, f, g, h, i, j, k, l, m].map(U16::get)
}

/// Gathers the entries of a long name in the order in which they are stored.
pub(crate) struct Gather {
    units: [u16; PARTS_MAX * PART],
    /// Parts in all.
    count: u8,
    /// Order of the part that must come next; 0 when all are there.
    want: u8,
    checksum: u8,
}

impl Gather {
    pub(crate) const fn new() -> Self {
        Self {
            units: [0; PARTS_MAX * PART],
            count: 0,
            want: 0,
            checksum: 0,
        }
    }

    /// Returns whether no part has been taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Returns whether a part is one that stands first.
    pub(crate) fn begins(entry: &LongEntry) -> bool {
        (LAST_LONG_ENTRY + 1..=LAST_LONG_ENTRY + PARTS_MAX as u8).contains(&entry.LDIR_Ord)
    }

    /// Takes the part that stands first; false if it is none.
    pub(crate) fn begin(&mut self, entry: &LongEntry) -> bool {
        if !Self::begins(entry) {
            return false;
        }
        let count = entry.LDIR_Ord & !LAST_LONG_ENTRY;
        self.count = count;
        self.want = count;
        self.checksum = entry.LDIR_Chksum;
        self.take(count, entry);
        true
    }

    /// Takes a further part; false if it does not follow on.
    pub(crate) fn next(&mut self, entry: &LongEntry) -> bool {
        let follows =
            self.want != 0 && entry.LDIR_Ord == self.want && entry.LDIR_Chksum == self.checksum;
        if follows {
            self.take(entry.LDIR_Ord, entry);
        }
        follows
    }

    fn take(&mut self, order: u8, entry: &LongEntry) {
        let at = usize::from(order.saturating_sub(1)) * PART;
        if let Some(room) = self.units.get_mut(at..at + PART) {
            room.copy_from_slice(&part_units(entry));
        }
        self.want = order.saturating_sub(1);
    }

    /// Returns the name, if all parts are there, belong to a short name with this
    /// checksum, and hold a name of 1 to 255 units.
    pub(crate) fn finish(&self, checksum: u8) -> Option<&[u16]> {
        if self.count == 0 || self.want != 0 || self.checksum != checksum {
            return None;
        }
        let all = self.units.get(..usize::from(self.count) * PART)?;
        let len = all.iter().position(|&u| u == 0).unwrap_or(all.len());
        all.get(..len).filter(|_| (1..=UNITS_MAX).contains(&len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_other_systems_would_not_keep_are_refused() {
        for name in ["a:b", "a\u{1}", "a\\b", "what?", "a.", "a ", "", "a|b"] {
            assert_eq!(
                LongName::new(name.as_bytes()).err(),
                Some(Kind::Invalid.into()),
                "{name}"
            );
        }
        assert!(LongName::new(b"\xff").is_err());
        assert!(LongName::new(&[b'x'; 255]).is_ok());
        assert_eq!(
            LongName::new(&[b'x'; 256]).err(),
            Some(Kind::NameTooLong.into())
        );
        assert_eq!(
            LongName::new("日".repeat(255).as_bytes())
                .unwrap()
                .part_count(),
            20
        );
    }

    #[test]
    fn a_part_that_is_full_has_no_end_mark() {
        let name = LongName::new(b"exactly13char").unwrap();
        let parts: Vec<LongEntry> = name.entries(7).collect();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].LDIR_Ord, 0x41);
        assert!(part_units(&parts[0]).iter().all(|&u| u != 0 && u != 0xffff));
        let two: Vec<LongEntry> = LongName::new(b"fourteen chars")
            .unwrap()
            .entries(7)
            .collect();
        assert_eq!((two[0].LDIR_Ord, two[1].LDIR_Ord), (0x42, 1));
        assert_eq!(part_units(&two[0])[1..], [&[0][..], &[0xffff; 11]].concat());
    }

    proptest! {
        #[test]
        fn names_come_back(name in "[^\\x00-\\x1f\"*/:<>?\\\\|]{0,100}[a-z]") {
            let long = LongName::new(name.as_bytes()).unwrap();
            let mut gather = Gather::new();
            for (i, part) in long.entries(9).enumerate() {
                let taken = if i == 0 { gather.begin(&part) } else { gather.next(&part) };
                prop_assert!(taken);
            }
            prop_assert_eq!(gather.finish(9), Some(long.units()));
            prop_assert_eq!(gather.finish(8), None);
        }
    }
}
