//! A volume that has been in use: files came, grew and went, until they lie as fragmented as the paper's.

use super::layout::{Dir, File, Layout, Place, index_len};
use std::collections::BTreeMap;
use volary_sim::rng::Rng;

/// Files of the volume: the paper tells of 150,000.
pub(super) const FILES: usize = 150_000;
/// Files of a directory.
const IN_DIR: usize = 15;
/// Bytes of the volume for each file: two thirds are taken.
const ROOM: u64 = 400_000;
/// Files that are compared: no more bytes than this.
pub(super) const LIMIT: u64 = 1 << 20;
/// Fragments of such a file, on the average (Table III).
pub(super) const FRAGMENTS: f64 = 1.28;
/// Bytes that are written before the next writer's turn, and files that are written at the same time.
const CHUNK: u64 = 64 << 10;
const WRITERS: usize = 4;
/// For so many files that are made, one that is there is appended to.
const APPENDS: usize = 4;
/// Most bytes that are appended to a file at a time.
const MORE: u64 = 16 << 10;
const CLUSTER: u64 = 4096;
/// The longest file.
const LONGEST: u64 = 64 << 20;

/// Returns a length: below 128 KiB with 88 of a hundred, 512 KiB with 95, 1 MiB with 97, as in Table III.
fn length(rng: &mut Rng) -> u64 {
    let part = (rng.below(1 << 20) as f64 + 0.5) / f64::from(1 << 20);
    let odds = part / (1.0 - part);
    ((11_000.0 * odds * odds.sqrt().sqrt()) as u64).clamp(1, LONGEST)
}

struct Volume {
    /// Free runs: first byte, length.
    free: BTreeMap<u64, u64>,
    /// Where the last file went.
    cursor: u64,
    files: Vec<File>,
    rng: Rng,
}

impl Volume {
    /// Returns an empty volume, and where its MFT begins, for which an eighth of it is kept.
    fn new(seed: u64, files: usize) -> (Self, u64) {
        let size = files as u64 * ROOM / CLUSTER * CLUSTER;
        let mft = size / 20 / CLUSTER * CLUSTER;
        let after = mft + size / 8 / CLUSTER * CLUSTER;
        let volume = Self {
            free: BTreeMap::from([(0, mft), (after, size - after)]),
            cursor: 0,
            files: Vec::new(),
            rng: Rng::new(seed),
        };
        (volume, mft)
    }

    /// Takes `len` bytes, of a free run that begins at `from`.
    fn take_at(&mut self, from: u64, len: u64) {
        let run = self.free.remove(&from).unwrap_or(0);
        if run > len {
            self.free.insert(from + len, run - len);
        }
    }

    /// Returns the first free run of so many bytes from the cursor on, or the longest one.
    fn find(&self, len: u64) -> Option<(u64, u64)> {
        let behind = self.free.range(self.cursor..);
        let mut all = behind.chain(self.free.range(..self.cursor));
        let fits = all.find(|(_, run)| **run >= len);
        let longest = || self.free.iter().max_by_key(|(_, run)| **run);
        fits.or_else(longest).map(|(at, run)| (*at, *run))
    }

    /// Makes a file longer: behind its end if it can be. Returns false when the volume is full.
    fn grow(&mut self, file: usize, len: u64) -> bool {
        let old = &self.files[file];
        let room = old.len.next_multiple_of(CLUSTER);
        let mut left = (old.len + len).next_multiple_of(CLUSTER) - room;
        let mut end = old
            .places
            .last()
            .map(|(at, len)| at + len.next_multiple_of(CLUSTER));
        self.files[file].len += len;
        while left > 0 {
            let behind = end.and_then(|end| self.free.get(&end).map(|run| (end, *run)));
            let Some((at, run)) = behind.or_else(|| self.find(left)) else {
                return false;
            };
            let taken = run.min(left);
            self.take_at(at, taken);
            let places = &mut self.files[file].places;
            match places.last_mut().filter(|_| Some(at) == end) {
                Some(last) => last.1 += taken,
                None => {
                    places.push((at, taken));
                    self.cursor = at + taken;
                }
            }
            left -= taken;
            end = Some(at + taken);
        }
        true
    }

    fn give(&mut self, (at, len): Place) {
        let len = len.next_multiple_of(CLUSTER);
        let (mut at, mut len) = (at, len);
        if let Some(next) = self.free.remove(&(at + len)) {
            len += next;
        }
        if let Some((&before, &run)) = self.free.range(..at).next_back()
            && before + run == at
        {
            at = before;
            len += run;
        }
        self.free.insert(at, len);
    }

    fn clear(&mut self, file: usize) {
        self.files[file].len = 0;
        for place in std::mem::take(&mut self.files[file].places) {
            self.give(place);
        }
    }
}

/// What was done until the volume was as fragmented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Use {
    /// Files that were removed, and others made in their place.
    pub(super) replaced: usize,
    pub(super) appended: usize,
}

/// Returns a volume after use. First all directories are filled, one after the other, as programs are installed. Then files
/// anywhere are replaced by new ones, some of which are written at the same time, and files anywhere are appended to.
pub(super) fn aged(seed: u64, files: usize) -> (Layout, Use) {
    let (mut volume, mft) = Volume::new(seed, files);
    let mut layout = Layout {
        mft,
        records: vec![(0, files as u64)],
        ..Layout::default()
    };
    for first in (0..files).step_by(IN_DIR) {
        let count = IN_DIR.min(files - first);
        let index = index_len(count as u64);
        let at = volume.find(index).map_or(0, |(at, _)| at);
        volume.take_at(at, index);
        for number in first..first + count {
            volume.files.push(File::default());
            let len = length(&mut volume.rng);
            volume.grow(number, len);
        }
        layout.dirs.push(Dir {
            index: (at, index),
            files: (first as u32..(first + count) as u32).collect(),
        });
    }
    let done = wear(&mut volume);
    layout.files = volume.files;
    for (record, file) in (0..).zip(&mut layout.files) {
        file.record = record;
        // Fragments have the file's bytes; the last cluster has room behind them.
        let mut left = file.len;
        for place in &mut file.places {
            place.1 = place.1.min(left);
            left -= place.1;
        }
        file.places.retain(|place| place.1 > 0);
    }
    (layout, done)
}

fn wear(volume: &mut Volume) -> Use {
    let mut done = Use::default();
    let mut growing: Vec<(usize, u64)> = Vec::new();
    let files = volume.files.len();
    for step in 0..20 * files {
        if step % 128 == 0 && is_worn(volume) {
            break;
        }
        if growing.len() < WRITERS {
            let file = volume.rng.index(files);
            if growing.iter().all(|(other, _)| *other != file) {
                volume.clear(file);
                growing.push((file, length(&mut volume.rng)));
                done.replaced += 1;
            }
        }
        let i = volume.rng.index(growing.len());
        let (file, left) = growing[i];
        let part = left.min(CHUNK);
        volume.grow(file, part);
        growing[i].1 -= part;
        if growing[i].1 == 0 {
            growing.swap_remove(i);
            if !done.replaced.is_multiple_of(APPENDS) {
                continue;
            }
            let file = volume.rng.index(files);
            let more = 1 + volume.rng.below(MORE);
            volume.grow(file, more);
            done.appended += 1;
        }
    }
    for (file, left) in growing {
        volume.grow(file, left);
    }
    done
}

fn is_worn(volume: &Volume) -> bool {
    let (mut files, mut fragments) = (0, 0);
    for file in volume.files.iter().filter(|file| file.len <= LIMIT) {
        files += 1;
        fragments += file.places.len();
    }
    fragments as f64 >= FRAGMENTS * f64::from(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_volume_is_as_fragmented_as_the_papers_and_nothing_lies_in_two_places() {
        let (layout, done) = aged(1, 3000);
        assert!(done.replaced > 1000 && done.appended > 200, "{done:?}");
        let found = layout.fragments(LIMIT);
        assert!((found / FRAGMENTS - 1.0).abs() < 0.02, "{found}");
        let dirs = layout.dirs.iter().map(|dir| dir.index);
        let files = layout.files.iter().flat_map(|file| file.places.clone());
        let mut all: Vec<Place> = dirs.chain(files).collect();
        all.sort_unstable();
        for pair in all.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        for file in &layout.files {
            let bytes: u64 = file.places.iter().map(|place| place.1).sum();
            assert_eq!(bytes, file.len);
        }
    }

    #[test]
    fn lengths_are_those_of_table_3() {
        let mut rng = Rng::new(1);
        let lens: Vec<u64> = (0..100_000).map(|_| length(&mut rng)).collect();
        for (limit, percent) in [(128, 87.9), (512, 95.1), (1024, 97.3)] {
            let below = lens.iter().filter(|len| **len <= limit << 10).count();
            let found = below as f64 / 1000.0;
            assert!((found - percent).abs() < 1.0, "{found} of {percent}");
        }
    }
}
