//! The UNIX extension in today's layout: kind, permissions, owner and
//! generation in bytes 13–17 of an entry, where other systems keep the time
//! of birth. The paper's own layout is [`paper`](crate::paper).
//!
//! Byte 13 counts hundredths, 0–199, for everybody else; here it is 200 and
//! more, and checks the other four. So an entry that another system has
//! written reads as one without the extension, never as nonsense.

use crate::ondisk::DirEntry;
use volary_core::FileKind;

/// Largest owner index.
pub const OWNER_MAX: u16 = (1 << 11) - 1;
/// Generations: 0–63.
pub const GENERATIONS: u8 = 64;

/// Least value of byte 13.
const CHECK_MIN: u8 = 200;
/// The check is the rest of a division by this, which no power of two and no
/// swap of bytes leaves as it was; 200 + 54 fits a byte.
const CHECKS: u64 = 55;

/// The kinds by their number in an entry. 7 is none.
const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Dir,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];

/// What the extension keeps of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixData {
    /// Kind.
    pub kind: FileKind,
    /// Permission bits: 12.
    pub mode: u16,
    /// Index into the table of owners; 0 is the mount's. At most [`OWNER_MAX`].
    pub owner: u16,
    /// Tells apart nodes that have had the same slot. Below [`GENERATIONS`].
    pub generation: u8,
}

impl UnixData {
    /// Out of an entry, if it is there: the check is right, the kind is one
    /// and fits the directory bit.
    pub fn read(entry: &DirEntry) -> Option<Self> {
        let check = entry.DIR_CrtTimeTenth.checked_sub(CHECK_MIN)?;
        let bits = bits_of(entry);
        if check != check_of(bits) {
            return None;
        }
        let kind = *KINDS.get((bits & 7) as usize)?;
        let data = Self {
            kind,
            mode: (bits >> 3 & 0o7777) as u16,
            owner: (bits >> 15 & u32::from(OWNER_MAX)) as u16,
            generation: (bits >> 26) as u8,
        };
        ((kind == FileKind::Dir) == entry.is_dir()).then_some(data)
    }

    /// Into an entry. Numbers past their range are cut to it.
    pub fn write(self, entry: &mut DirEntry) {
        let kind = KINDS.iter().position(|&k| k == self.kind).unwrap_or(0);
        let bits = kind as u32
            | u32::from(self.mode & 0o7777) << 3
            | u32::from(self.owner & OWNER_MAX) << 15
            | u32::from(self.generation % GENERATIONS) << 26;
        entry.DIR_CrtTimeTenth = CHECK_MIN + check_of(bits);
        let [a, b, c, d] = bits.to_le_bytes();
        entry.DIR_CrtTime.set(u16::from_le_bytes([a, b]));
        entry.DIR_CrtDate.set(u16::from_le_bytes([c, d]));
    }
}

/// Takes the extension away; birth is then not known.
pub fn reset(entry: &mut DirEntry) {
    entry.DIR_CrtTimeTenth = 0;
    entry.DIR_CrtTime.set(0);
    entry.DIR_CrtDate.set(0);
}

fn bits_of(entry: &DirEntry) -> u32 {
    u32::from(entry.DIR_CrtDate.get()) << 16 | u32::from(entry.DIR_CrtTime.get())
}

/// Of no bits at all it is not 0, so that "200 and zeros" is no extension.
fn check_of(bits: u32) -> u8 {
    // Below 55.
    ((u64::from(bits) + 17) % CHECKS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ondisk::attr;
    use proptest::prelude::*;
    use zerocopy::{FromZeros, IntoBytes};

    fn any_data() -> impl Strategy<Value = UnixData> {
        (0..7_usize, 0..0o10000_u16, 0..=OWNER_MAX, 0..GENERATIONS).prop_map(
            |(kind, mode, owner, generation)| UnixData {
                kind: KINDS[kind],
                mode,
                owner,
                generation,
            },
        )
    }

    fn entry_with(data: UnixData) -> DirEntry {
        let mut entry = DirEntry::new_zeroed();
        if data.kind == FileKind::Dir {
            entry.DIR_Attr = attr::DIRECTORY;
        }
        data.write(&mut entry);
        entry
    }

    #[test]
    fn an_entry_of_another_system_has_no_extension() {
        assert_eq!(UnixData::read(&DirEntry::new_zeroed()), None);
    }

    #[test]
    fn a_kind_that_contradicts_the_directory_bit_is_none() {
        let mut entry = entry_with(UnixData {
            kind: FileKind::Symlink,
            mode: 0o777,
            owner: 1,
            generation: 0,
        });
        entry.DIR_Attr = attr::DIRECTORY;
        assert_eq!(UnixData::read(&entry), None);
    }

    proptest! {
        #[test]
        fn data_come_back(data in any_data()) {
            let entry = entry_with(data);
            prop_assert_eq!(UnixData::read(&entry), Some(data));
            prop_assert!(entry.as_bytes()[18..].iter().all(|&b| b == 0));
            prop_assert_eq!(entry.DIR_NTRes, 0);
        }

        #[test]
        fn times_of_other_systems_are_never_taken_for_data(time: u16, date: u16, hundredths in 0..200_u8) {
            let mut entry = DirEntry::new_zeroed();
            entry.DIR_CrtTimeTenth = hundredths;
            entry.DIR_CrtTime.set(time);
            entry.DIR_CrtDate.set(date);
            prop_assert_eq!(UnixData::read(&entry), None);
        }

        #[test]
        fn one_changed_bit_is_seen(data in any_data(), bit in 0..32_u32) {
            let mut entry = entry_with(data);
            let bits = bits_of(&entry) ^ 1 << bit;
            let [a, b, c, d] = bits.to_le_bytes();
            entry.DIR_CrtTime.set(u16::from_le_bytes([a, b]));
            entry.DIR_CrtDate.set(u16::from_le_bytes([c, d]));
            prop_assert_eq!(UnixData::read(&entry), None);
        }
    }
}
