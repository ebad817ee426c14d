//! DosFs's own layout on FAT12 and FAT16 (paper, sections 3.1, 3.2 and 3.6).
//!
//! The paper gives the fields and the two attribute bits but not their order;
//! what was chosen here is in `FORMAT.md`. Other systems take these names and
//! bits for damage, which is why this is used only by name (`unix=dosfs`).

use crate::volume::layout::Layout;
use crate::volume::ondisk::{DirEntry, END, ENTRY_LEN, FREE, attr};
use volary_core::{BlockDevice, FileKind, Kind, Result};
use zerocopy::little_endian::U16;
use zerocopy::{transmute, transmute_ref};

/// In `DIR_Attr`: bytes 12–21 hold an [`Extension`].
pub(crate) const EXTENDED: u8 = 0x40;
/// In `DIR_Attr`: the next entry holds the rest of the name.
pub(crate) const LONG: u8 = 0x80;
/// Bytes of a name in its second entry: all but the attribute byte.
pub(crate) const TAIL_LEN: usize = ENTRY_LEN - 1;
/// Longest name: 11 bytes and the tail.
pub(crate) const NAME_MAX: usize = 11 + TAIL_LEN;

/// Place of the attribute byte in an entry.
const ATTR_AT: usize = 11;

/// What the paper keeps in bytes 12–21.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extension {
    /// As FFS's `i_mode`: kind and 12 permission bits.
    pub mode: u16,
    /// Owner.
    pub uid: u16,
    /// Group.
    pub gid: u16,
    /// Major device number.
    pub major: u16,
    /// Minor device number.
    pub minor: u16,
}

impl Extension {
    /// Out of an entry, if it is marked and its kind is one, and fits
    /// the directory bit.
    pub(crate) fn read(entry: &DirEntry) -> Option<Self> {
        if entry.DIR_Attr & EXTENDED == 0 {
            return None;
        }
        let DirEntry {
            DIR_NTRes: a,
            DIR_CrtTimeTenth: b,
            ..
        } = *entry;
        let ext = Self {
            mode: u16::from_le_bytes([a, b]),
            uid: entry.DIR_CrtTime.get(),
            gid: entry.DIR_CrtDate.get(),
            major: entry.DIR_LstAccDate.get(),
            minor: entry.DIR_FstClusHI.get(),
        };
        let kind = FileKind::from_mode(ext.mode.into())?;
        ((kind == FileKind::Dir) == entry.is_dir()).then_some(ext)
    }

    /// Into an entry, and marks it.
    pub(crate) fn write(self, entry: &mut DirEntry) {
        entry.DIR_Attr |= EXTENDED;
        [entry.DIR_NTRes, entry.DIR_CrtTimeTenth] = self.mode.to_le_bytes();
        entry.DIR_CrtTime = U16::new(self.uid);
        entry.DIR_CrtDate = U16::new(self.gid);
        entry.DIR_LstAccDate = U16::new(self.major);
        entry.DIR_FstClusHI = U16::new(self.minor);
    }

    /// Returns the kind that the mode names; a file where it names none.
    pub(crate) fn kind(&self) -> FileKind {
        FileKind::from_mode(self.mode.into()).unwrap_or(FileKind::File)
    }
}

/// Returns whether the root directory of a FAT12 or FAT16 volume is in the paper's layout: most
/// of its files and directories are marked, and all marks stand for an extension. No
/// other system sets these bits.
///
/// # Errors
/// `Invalid`. What cannot be read is in no layout.
pub(crate) fn is_used(dev: &dyn BlockDevice, layout: &Layout) -> Result<bool> {
    let (mut live, mut marked) = (0, 0);
    let mut bytes = vec![0; layout.root_entries as usize * ENTRY_LEN];
    match dev.read_at(layout.root_offset(), &mut bytes) {
        Err(e) if e == Kind::Io => return Ok(false),
        done => done?,
    }
    let slots = bytes.as_chunks::<ENTRY_LEN>().0.iter();
    for raw in slots.take_while(|raw| raw.first() != Some(&END)) {
        let entry: &DirEntry = transmute_ref!(raw);
        if raw.first() == Some(&FREE) || entry.DIR_Attr & attr::VOLUME_ID != 0 {
            continue;
        }
        live += 1;
        match Extension::read(entry) {
            Some(ext) if ext.mode & 0o777 != 0 => marked += 1,
            _ if entry.DIR_Attr & EXTENDED != 0 => return Ok(false),
            _ => {}
        }
    }
    Ok(marked * 2 > live)
}

/// Takes the extension away from an entry, as the paper's `dosfsck` did to
/// make a volume wholly MS-DOS's again, and the mark that a second entry has the rest
/// of its name.
pub(crate) fn reset(entry: &mut DirEntry) {
    entry.DIR_Attr &= !(EXTENDED | LONG);
    entry.DIR_NTRes = 0;
    entry.DIR_CrtTimeTenth = 0;
    entry.DIR_CrtTime = U16::ZERO;
    entry.DIR_CrtDate = U16::ZERO;
    entry.DIR_LstAccDate = U16::ZERO;
    entry.DIR_FstClusHI = U16::ZERO;
}

/// Returns whether an entry says that the next one holds the rest of its name.
pub(crate) fn has_tail(entry: &DirEntry) -> bool {
    entry.DIR_Attr & LONG != 0 && entry.DIR_Attr & attr::VOLUME_ID == 0
}

/// Returns whether an entry can be the rest of a name: one marked as a label.
pub(crate) fn is_tail(raw: &[u8; ENTRY_LEN]) -> bool {
    raw.get(ATTR_AT)
        .is_some_and(|a| a & attr::LONG_NAME_MASK == attr::VOLUME_ID)
}

/// Returns the rest of a name out of its entry.
pub(crate) fn tail_bytes(raw: &[u8; ENTRY_LEN]) -> [u8; TAIL_LEN] {
    let mut out = [b' '; TAIL_LEN];
    let bytes = raw.iter().enumerate().filter(|(i, _)| *i != ATTR_AT);
    for (to, (_, from)) in out.iter_mut().zip(bytes) {
        *to = *from;
    }
    crate::names::short::unhide_first(&mut out);
    out
}

/// Returns the entry that holds the rest of a name.
pub(crate) fn tail_entry(tail: &[u8; TAIL_LEN]) -> DirEntry {
    let mut bytes = *tail;
    crate::names::short::hide_first(&mut bytes);
    let mut from = bytes.into_iter();
    let mut raw = [0; ENTRY_LEN];
    for (i, to) in raw.iter_mut().enumerate() {
        *to = if i == ATTR_AT {
            attr::VOLUME_ID
        } else {
            from.next().unwrap_or(b' ')
        };
    }
    transmute!(raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::{FromZeros, IntoBytes};

    #[test]
    fn all_ten_bytes_are_used_and_no_others() {
        let mut entry = DirEntry::new_zeroed();
        let ext = Extension {
            mode: 0o020_644,
            uid: 0x1111,
            gid: 0x2222,
            major: 0x3333,
            minor: 0x4444,
        };
        ext.write(&mut entry);
        assert_eq!(entry.as_bytes()[11], EXTENDED);
        assert_eq!(
            entry.as_bytes()[12..22],
            [0xa4, 0x21, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0x44, 0x44]
        );
        assert!(entry.as_bytes()[22..].iter().all(|&b| b == 0));
        assert_eq!(Extension::read(&entry), Some(ext));
        assert_eq!(ext.kind(), FileKind::CharDevice);
        reset(&mut entry);
        assert_eq!(entry, DirEntry::new_zeroed());
        assert_eq!(Extension::read(&entry), None);
    }

    #[test]
    fn a_mode_that_contradicts_the_directory_bit_is_none() {
        let mut entry = DirEntry::new_zeroed();
        let dir = Extension {
            mode: 0o040_755,
            uid: 0,
            gid: 0,
            major: 0,
            minor: 0,
        };
        dir.write(&mut entry);
        assert_eq!(Extension::read(&entry), None);
        entry.DIR_Attr |= attr::DIRECTORY;
        assert_eq!(Extension::read(&entry), Some(dir));
        entry.DIR_NTRes = 0;
        entry.DIR_CrtTimeTenth = 0;
        assert_eq!(Extension::read(&entry), None);
    }

    #[test]
    fn tails_come_back_whatever_their_first_byte() {
        for first in [b'x', 0xe5, b' '] {
            let mut tail = [b'y'; TAIL_LEN];
            tail[0] = first;
            let entry = tail_entry(&tail);
            let raw: [u8; ENTRY_LEN] = transmute!(entry);
            assert!(is_tail(&raw) && raw[0] != 0xe5);
            assert_eq!(tail_bytes(&raw), tail);
        }
    }
}
