//! Where the files of a volume lie, and their records in the MFT.

/// First byte and length.
pub(super) type Place = (u64, u64);

/// Bytes of a record of the MFT.
pub(super) const RECORD: u64 = 1 << 10;
/// Bytes of an entry in a directory's index.
const ENTRY: u64 = 96;

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct File {
    pub(super) len: u64,
    /// The number of its record.
    pub(super) record: u64,
    /// Its fragments in order.
    pub(super) places: Vec<Place>,
}

/// A directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dir {
    pub(super) index: Place,
    /// Numbers of its files, as it is enumerated.
    pub(super) files: Vec<u32>,
}

/// A volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) dirs: Vec<Dir>,
    pub(super) files: Vec<File>,
    /// Where the MFT begins, and the records that are looked at: from one number to another.
    pub(super) mft: u64,
    pub(super) records: Vec<(u64, u64)>,
}

/// Returns the bytes of the index of so many files.
pub(super) fn index_len(files: u64) -> u64 {
    (files * ENTRY).next_multiple_of(4096)
}

impl Layout {
    /// Adds a directory of files that lie one behind the other from `at` on, behind its index. Their records begin with
    /// number `record`. Returns where they end.
    pub(super) fn add_dir(&mut self, at: u64, record: u64, lens: &[u64]) -> u64 {
        let index = (at, index_len(lens.len() as u64));
        let mut at = at + index.1;
        let first = self.files.len() as u32;
        for (record, &len) in (record..).zip(lens) {
            self.files.push(File {
                len,
                record,
                places: vec![(at, len)],
            });
            at += len.next_multiple_of(4096);
        }
        self.dirs.push(Dir {
            index,
            files: (first..self.files.len() as u32).collect(),
        });
        at
    }

    /// Returns the files of at most so many bytes.
    pub(super) fn up_to(&self, len: u64) -> impl Iterator<Item = &File> {
        self.files.iter().filter(move |file| file.len <= len)
    }

    /// Returns the fragments of a file of at most so many bytes, on the average.
    pub(super) fn fragments(&self, len: u64) -> f64 {
        let (mut files, mut all) = (0, 0);
        for file in self.up_to(len) {
            files += 1;
            all += file.places.len();
        }
        all as f64 / f64::from(files.max(1))
    }

    /// Returns the memory that files of at most so many bytes take at most at a time, if all are read in the order of
    /// the disk: those of which some fragments were read and some were not (section II.C).
    pub(super) fn memory(&self, len: u64) -> u64 {
        let mut changes: Vec<(u64, i64)> = Vec::new();
        for file in self.up_to(len).filter(|file| file.places.len() > 1) {
            let places = file.places.iter();
            let first = places.clone().map(|place| place.0).min().unwrap_or(0);
            let end = places.map(|place| place.0 + place.1).max().unwrap_or(0);
            changes.push((first, file.len as i64));
            changes.push((end, -(file.len as i64)));
        }
        changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, change) in changes {
            now += change;
            most = most.max(now);
        }
        most as u64
    }
}

/// Directories of the paper's synthetic volume, and files in each.
pub(super) const DIRS: u64 = 1000;
pub(super) const FILES: u64 = 1000;
/// Where the MFT begins: NTFS reserves room for it.
const MFT: u64 = 3_200_000_000;

/// Returns the volume of section III.B with files of this length: a thousand directories of a thousand files, in order.
/// Only so many directories in a row are in it, of each `every`; the others would take as long.
pub(super) fn fresh(len: u64, in_row: u64, every: u64) -> Layout {
    let mut layout = Layout {
        mft: MFT,
        ..Layout::default()
    };
    let each = index_len(FILES) + FILES * len;
    let lens = vec![len; FILES as usize];
    for first in (0..DIRS).step_by(every as usize) {
        for dir in first..first + in_row {
            // The MFT lies among the directories.
            let at = match dir * each {
                at if at + each <= MFT => at,
                at => at + DIRS * FILES * RECORD + each,
            };
            layout.add_dir(at, dir * FILES, &lens);
        }
        let end = first + in_row;
        layout.records.push((first * FILES, end * FILES));
    }
    layout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_in_two_places_of_a_fresh_volume() {
        let layout = fresh(64 << 10, 10, 200);
        assert_eq!((layout.dirs.len(), layout.files.len()), (50, 50_000));
        let mft = (layout.mft, DIRS * FILES * RECORD);
        let dirs = layout.dirs.iter().map(|dir| dir.index);
        let files = layout.files.iter().flat_map(|file| file.places.clone());
        let mut all: Vec<Place> = dirs.chain(files).chain([mft]).collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        assert!(all.last().is_some_and(|(at, _)| *at < 70_000_000_000));
        assert_eq!(layout.memory(u64::MAX), 0);
    }

    #[test]
    fn files_take_memory_from_their_first_fragment_to_their_last() {
        let file = |len, places: &[Place]| File {
            len,
            record: 0,
            places: places.to_vec(),
        };
        let layout = Layout {
            files: vec![
                file(10, &[(0, 5), (50, 5)]),
                file(20, &[(60, 10), (20, 10)]),
                file(40, &[(70, 40)]),
                file(80, &[(90, 40), (200, 40)]),
            ],
            ..Layout::default()
        };
        assert_eq!((layout.memory(100), layout.memory(40)), (80, 30));
        assert!((layout.fragments(20) - 2.0).abs() < 1e-9);
    }
}
