//! Information about the entries of a directory (MS-FSCC 2.4, the `*DirectoryInformation` levels).

use super::file::FileFacts;
use crate::wire::{Out, out::len32};

/// A level of directory information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DirLevel {
    Directory,
    Full,
    Both,
    Names,
    IdBoth,
    IdFull,
    IdExtended,
}

impl DirLevel {
    /// Returns the level with this class number.
    pub(crate) fn from_class(class: u8) -> Option<Self> {
        Some(match class {
            1 => Self::Directory,
            2 => Self::Full,
            3 => Self::Both,
            12 => Self::Names,
            37 => Self::IdBoth,
            38 => Self::IdFull,
            60 => Self::IdExtended,
            _ => return None,
        })
    }

    /// Returns the bytes before the name.
    pub(crate) fn fixed(self) -> usize {
        match self {
            Self::Directory => 64,
            Self::Full => 68,
            Self::Both => 94,
            Self::Names => 12,
            Self::IdBoth => 104,
            Self::IdFull => 80,
            Self::IdExtended => 88,
        }
    }

    /// Returns whether it has more than names.
    pub(crate) fn has_facts(self) -> bool {
        self != Self::Names
    }
}

/// A list of entries with a bounded length.
#[derive(Debug)]
pub(crate) struct DirList {
    level: DirLevel,
    max: usize,
    out: Out,
    /// Where the last entry begins.
    last: Option<usize>,
}

impl DirList {
    /// Returns a list of at most `max` bytes.
    pub(crate) fn new(level: DirLevel, max: usize) -> Self {
        Self {
            level,
            max,
            out: Out::new(),
            last: None,
        }
    }

    /// Adds an entry. Returns false if it does not fit.
    pub(crate) fn push(&mut self, name: &[u8], short: &[u8], facts: &FileFacts) -> bool {
        let start = self.out.len().next_multiple_of(8);
        let end = start
            .saturating_add(self.level.fixed())
            .saturating_add(name.len());
        if end > self.max {
            return false;
        }
        self.out.align(8);
        if let Some(last) = self.last {
            self.out.put_u32(last, len32(start.saturating_sub(last)));
        }
        self.last = Some(start);
        self.put(name, short, facts);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.out.done()
    }

    fn put(&mut self, name: &[u8], short: &[u8], facts: &FileFacts) {
        let out = &mut self.out;
        // There is no index, because entries have no fixed place.
        out.u32(0).u32(0);
        if self.level == DirLevel::Names {
            out.len32(name.len()).bytes(name);
            return;
        }
        out.u64(facts.created).u64(facts.accessed);
        out.u64(facts.written).u64(facts.changed);
        out.u64(facts.size).u64(facts.allocated);
        out.u32(facts.attributes).len32(name.len());
        let ea = match facts.tag {
            0 => facts.ea_size,
            tag => tag,
        };
        match self.level {
            DirLevel::Directory | DirLevel::Names => {}
            DirLevel::Full => {
                out.u32(ea);
            }
            DirLevel::Both => {
                out.u32(ea);
                put_short(out, short);
            }
            DirLevel::IdBoth => {
                out.u32(ea);
                put_short(out, short);
                out.u16(0).u64(facts.id);
            }
            DirLevel::IdFull => {
                out.u32(ea).u32(0).u64(facts.id);
            }
            DirLevel::IdExtended => {
                out.u32(facts.ea_size).u32(facts.tag);
                out.u64(facts.id).u64(0);
            }
        }
        out.bytes(name);
    }
}

/// Appends an 8.3 name, padded to 12 characters.
fn put_short(out: &mut Out, short: &[u8]) {
    let short = short.get(..24).unwrap_or(short);
    out.len8(short.len()).u8(0).bytes(short);
    out.zeros(24_usize.saturating_sub(short.len()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_chained_and_bounded() {
        for class in [1, 2, 3, 12, 37, 38, 60] {
            let level = DirLevel::from_class(class).unwrap();
            let mut list = DirList::new(level, level.fixed() * 2 + 16);
            assert!(list.push(b"a\0b\0", b"", &FileFacts::default()));
            let one = list.out.len();
            assert_eq!(one, level.fixed() + 4);
            assert!(list.push(b"c\0", b"", &FileFacts::default()));
            assert!(!list.push(b"d\0", b"", &FileFacts::default()));
            let bytes = list.into_bytes();
            let next = u32::from_le_bytes(*bytes.first_chunk().unwrap());
            assert_eq!(next as usize, one.next_multiple_of(8));
            assert_eq!(bytes.len(), next as usize + level.fixed() + 2);
        }
    }
}
