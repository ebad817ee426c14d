//! The UNIX extension in today's layout: kind, permissions, owner and
//! generation in bytes 13–17 of an entry, where other systems keep the time
//! of birth. The paper's own layout is [`paper`](crate::unix::paper).
//!
//! What is stored is a time of birth that nobody can have: one of the years
//! 2060 to 2107, to 10 ms. As it is a time like others, systems that bring
//! times into their own form and write them back (Linux) keep it; as it is
//! none of the present, an entry that another system has made or rewritten
//! reads as one without the extension, never as nonsense.

use crate::volume::ondisk::DirEntry;
use crate::volume::time::{Stamp, Zone, set_create};
use volary_core::{FileKind, Time};

/// Largest owner index.
pub(crate) const OWNER_MAX: u16 = (1 << 11) - 1;
/// Generations: 0–63.
pub(crate) const GENERATIONS: u8 = 64;

/// 2060-01-01 in seconds since 1970.
const FIRST: i64 = 2_840_140_800;
/// The end of 2107.
const END: i64 = 4_354_819_200;
/// How many times of birth each 32 bits could have, of which one counts: as
/// many as there are in those years.
const CHECKS: u64 = 35;

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
pub(crate) struct UnixData {
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
    /// Out of an entry, if it is there: the time of birth is one of those
    /// that are used, the kind is one and fits the directory bit.
    pub(crate) fn read(entry: &DirEntry) -> Option<Self> {
        // Most entries of other systems end here.
        if !Self::is_in_range(entry) {
            return None;
        }
        let bits = unpack(entry)?;
        let kind = *KINDS.get((bits & 7) as usize)?;
        let data = Self {
            kind,
            mode: (bits >> 3 & 0o7777) as u16,
            owner: (bits >> 15 & u32::from(OWNER_MAX)) as u16,
            generation: (bits >> 26) as u8,
        };
        ((kind == FileKind::Dir) == entry.is_dir()).then_some(data)
    }

    /// Returns whether the time of birth is of a year that only the extension uses:
    /// then it should be one.
    pub(crate) fn is_in_range(entry: &DirEntry) -> bool {
        entry.DIR_CrtDate.get() >> 9 >= 2060 - 1980
    }

    /// Into an entry. Numbers past their range are cut to it.
    pub(crate) fn write(self, entry: &mut DirEntry) {
        let kind = KINDS.iter().position(|&k| k == self.kind).unwrap_or(0);
        let bits = kind as u32
            | u32::from(self.mode & 0o7777) << 3
            | u32::from(self.owner & OWNER_MAX) << 15
            | u32::from(self.generation % GENERATIONS) << 26;
        pack(bits, entry);
    }
}

/// Takes the extension away; birth is then not known.
pub(crate) fn reset(entry: &mut DirEntry) {
    entry.DIR_CrtTimeTenth = 0;
    entry.DIR_CrtTime.set(0);
    entry.DIR_CrtDate.set(0);
}

/// Returns the 32 bits that a time of birth stands for.
fn unpack(entry: &DirEntry) -> Option<u32> {
    let stamp = Stamp {
        date: entry.DIR_CrtDate.get(),
        time: entry.DIR_CrtTime.get(),
        hundredths: entry.DIR_CrtTimeTenth,
    };
    let time = stamp.to_time(Zone(0));
    let second = u64::try_from(time.secs.checked_sub(FIRST)?).ok()?;
    let number = second * 100 + u64::from(time.nanos / 10_000_000);
    let bits = u32::try_from(number / CHECKS).ok()?;
    // A 30th of February would be read as another day.
    let real = Stamp::new(time, Zone(0)) == stamp;
    (real && number % CHECKS == check_of(bits)).then_some(bits)
}

fn pack(bits: u32, entry: &mut DirEntry) {
    let number = u64::from(bits) * CHECKS + check_of(bits);
    // Below 2^32 seconds and 100.
    let (second, hundredth) = ((number / 100) as i64, (number % 100) as u32);
    let time = Time::new(FIRST + second, hundredth * 10_000_000);
    set_create(entry, time, Zone(0));
}

/// Returns a check on 32 bits: below [`CHECKS`], and another for nearby numbers.
fn check_of(bits: u32) -> u64 {
    // 2^64 divided by the golden ratio spreads what is near.
    (u64::from(bits).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % CHECKS
}

const _: () = assert!((u32::MAX as u64 + 1) * CHECKS <= (END - FIRST) as u64 * 100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::ondisk::attr;
    use crate::volume::time::create_time;
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
        fn times_of_other_systems_are_never_taken_for_data(secs in 0..FIRST, nanos in 0..1_000_000_000_u32) {
            let mut entry = DirEntry::new_zeroed();
            set_create(&mut entry, Time::new(secs, nanos), Zone(0));
            prop_assert_eq!(UnixData::read(&entry), None);
        }

        #[test]
        fn what_is_stored_is_a_time_like_others(data in any_data(), zone in -840..=840_i16) {
            // A system that reads it and writes it back leaves it as it is.
            let entry = entry_with(data);
            let mut again = entry;
            let time = create_time(&entry, Zone(zone)).unwrap();
            set_create(&mut again, time, Zone(zone));
            prop_assert_eq!(again, entry);
        }

        #[test]
        fn any_bytes_are_data_that_come_back_or_none(date in 0xa000..=u16::MAX, time: u16, hundredths: u8) {
            let mut entry = DirEntry::new_zeroed();
            (entry.DIR_CrtTimeTenth, entry.DIR_CrtTime, entry.DIR_CrtDate) = (hundredths, time.into(), date.into());
            if let Some(data) = UnixData::read(&entry) {
                prop_assert_eq!(entry_with(data), entry);
            }
        }
    }

    #[test]
    fn few_of_the_times_that_could_be_data_are() {
        let mut entry = DirEntry::new_zeroed();
        let taken = (0..10_000).filter(|i| {
            set_create(&mut entry, Time::new(FIRST + i * 86_413, 0), Zone(0));
            UnixData::read(&entry).is_some()
        });
        assert!(taken.count() < 600);
    }
}
