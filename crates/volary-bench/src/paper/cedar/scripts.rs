//! The scripts: what each operation does to the arm and the platter, by how the driver works.

use volary_cedar::Layout;
use volary_sim::seek::{Drive, Step, predict};

const DRIVE: Drive = Drive::TRIDENT;
/// Sectors of a small file, its leader with it.
const SMALL: u64 = 2;
/// Sectors of a block of the cache, which is read whole before a part of it is written.
const BLOCK: u64 = 8;
/// Small files that are made or deleted for one commit.
const GATHERED: u64 = 8;
/// Sectors of a record of so many creates, and of as many deletes: the pages of the name table
/// with their names and entries, and those that lead there, twice, and what is around.
const RECORD: u64 = 23;
const RECORD_OF_DELETES: u64 = 13;
/// Sectors of the record of one change.
const RECORD_OF_ONE: u64 = 15;
/// Pages of the name table that lie by themselves, among those that change together: the
/// directory's, and those that lead to the others.
const APART: u64 = 4;
/// Sectors that are read at a time of a copy of the name table.
const AHEAD: u64 = 64;

/// Steps, and how often they are done.
type Part<'a> = (f64, &'a [Step]);

fn cost(parts: &[Part<'_>]) -> f64 {
    parts
        .iter()
        .map(|(times, steps)| times * predict(&DRIVE, steps))
        .sum()
}

/// Where things lie on the volume.
pub(super) struct Volume {
    /// Cylinders from the small files to the log, and from there to the large ones.
    to_small: u64,
    to_large: u64,
    /// From one copy of the name table to the other.
    to_copy: u64,
    /// Sectors of the log, and of one copy of the allocation map.
    log: u64,
    map: u64,
    /// Sectors of the name table for each small file.
    per_file: f64,
}

impl Volume {
    pub(super) fn of(layout: &Layout, per_file: f64) -> Self {
        let cylinder = |page: u32| DRIVE.cylinder(u64::from(page));
        let log = cylinder(layout.log);
        Self {
            to_small: log,
            to_large: DRIVE.cylinders - log,
            to_copy: cylinder(layout.table_b) - cylinder(layout.table_a),
            log: u64::from(layout.log_len()),
            map: u64::from(layout.map_len),
            per_file,
        }
    }

    /// Going over a copy of the name table, as far as the entries of so many files reach, and to
    /// so many pages elsewhere.
    fn pass(&self, files: u64, apart: u64) -> f64 {
        let reach = (self.per_file * files as f64) as u64;
        let over = [
            Step::ShortSeek(self.to_copy),
            Step::Latency,
            Step::Transfer(reach),
        ];
        cost(&[
            (1.0, &over),
            (apart as f64, &[Step::Latency, Step::Transfer(1)]),
        ])
    }

    /// Returns what a third of the log costs when it is entered: pages whose newest image it has go home,
    /// to one copy and the other, and are read again; one time in three two pages of the map as well;
    /// then the anchors, the later one first.
    fn third(&self, files: u64, apart: u64) -> f64 {
        let part_of_map = [Step::Latency, Step::Transfer(1)];
        let anchors = [
            Step::Latency,
            Step::Transfer(1),
            Step::Back(3),
            Step::Transfer(1),
        ];
        4.0 * self.pass(files, apart) + cost(&[(8.0 / 3.0, &part_of_map), (1.0, &anchors)])
    }

    /// Returns a commit of changes to so many files, by one record, and the share of the next third.
    fn commit(&self, record: u64, files: u64, apart: u64) -> f64 {
        let written = [Step::Latency, Step::Transfer(record)];
        let records = self.log / 3 / record;
        cost(&[(1.0, &written)]) + self.third(files * records, apart) / records as f64
    }

    /// There and back: the arm comes from the files, and they wait for it.
    fn between(cylinders: u64) -> f64 {
        cost(&[(2.0, &[Step::ShortSeek(cylinders)])])
    }

    pub(super) fn small_create(&self) -> f64 {
        let written = [Step::Latency, Step::Transfer(SMALL)];
        let read = [Step::Transfer(BLOCK), Step::Back(BLOCK)];
        let blocks = (GATHERED * SMALL / BLOCK) as f64;
        let files = cost(&[(GATHERED as f64, &written), (blocks, &read)]);
        let commit = self.commit(RECORD, GATHERED, APART) + Self::between(self.to_small);
        (files + commit) / GATHERED as f64
    }

    /// Most pages with their entries are free then, and go nowhere; the others are passed over.
    pub(super) fn small_delete(&self) -> f64 {
        self.commit(RECORD_OF_DELETES, GATHERED, 0) / GATHERED as f64
    }

    /// Returns a large file that is written bit by bit, with its commit. Its first piece has some 72
    /// sectors; behind what it has, four times as many are kept for it, which is the next piece.
    pub(super) fn large_create(&self, size: u64) -> f64 {
        let sectors = size / 512;
        // The leader is written after the first block, and again with the commit.
        let first = [
            Step::Latency,
            Step::Back(BLOCK + 1),
            Step::Transfer(1 + BLOCK),
        ];
        let data = [Step::Transfer(sectors)];
        let last = [Step::Latency, Step::Transfer(1)];
        // A block lies in both pieces: the arm goes to the new one, back, and there again; the
        // longer ones are not on the same cylinder.
        let kept = std::iter::successors(Some(72), |kept| Some(kept * 5));
        let pieces = kept.take_while(|kept| *kept < sectors).count() as u32 + 1;
        let near = [Step::Latency; 3];
        let far = [Step::ShortSeek(1); 3];
        cost(&[
            (1.0, &first),
            (1.0, &data),
            (1.0, &last),
            (f64::from(pieces), &near),
            (f64::from(pieces - 2), &far),
        ]) + Self::between(self.to_large)
            + self.commit(RECORD_OF_ONE, 1, 0)
    }

    /// With its commit. So few were deleted, and so short are the records, that a log that has just
    /// been begun is not gone round.
    pub(super) fn large_delete() -> f64 {
        cost(&[(1.0, &[Step::Latency, Step::Transfer(RECORD_OF_ONE)])])
    }

    /// Returns the seek from anywhere to anywhere in so many sectors.
    fn anywhere(sectors: u64) -> f64 {
        let cylinders = sectors as f64 / (DRIVE.track * DRIVE.heads) as f64;
        let seek = [Step::ShortSeek((cylinders / 3.0).round().max(1.0) as u64)];
        cost(&[(1.0 - 1.0 / cylinders.max(1.0), &seek)])
    }

    /// Returns a read of one block of `blocks`, the `times` that are done all told.
    fn read(blocks: u64, times: usize, sectors: u64) -> f64 {
        let misses = (0..times).map(|done| (1.0 - 1.0 / blocks as f64).powi(done as i32));
        let missed = misses.sum::<f64>() / times as f64;
        missed * (Self::anywhere(sectors) + cost(&[(1.0, &[Step::Latency, Step::Transfer(BLOCK)])]))
    }

    /// Returns the content of one of so many files, read `times` on the whole.
    pub(super) fn read_small(files: u64, times: usize) -> f64 {
        let sectors = files * SMALL;
        Self::read(sectors / BLOCK, times, sectors)
    }

    /// Returns a page of one of so many large files, which lie in so many sectors.
    pub(super) fn read_page(files: u64, size: u64, times: usize, sectors: u64) -> f64 {
        Self::read(files * size / 512 / BLOCK, times, sectors)
    }

    /// Attaching when the log has so many small files that were made.
    pub(super) fn recovery(&self, files: u64) -> f64 {
        let root = [
            Step::ShortSeek(self.to_small),
            Step::Latency,
            Step::Transfer(1),
            Step::Back(1),
            Step::Transfer(3),
            Step::ShortSeek(self.to_small),
        ];
        let log = [Step::Latency, Step::Transfer(self.log), Step::ShortSeek(1)];
        let anchors = [Step::ShortSeek(1), Step::Latency, Step::Transfer(3)];
        let map = [
            Step::ShortSeek(self.to_copy),
            Step::Latency,
            Step::Transfer(2 * self.map),
        ];
        // Two pages of it that are on one side of the platter.
        let part = [Step::Latency, Step::Transfer(1), Step::Lost];
        let again = [Step::Latency, Step::Transfer(2)];
        let epoch = [
            Step::Latency,
            Step::Transfer(1),
            Step::Back(3),
            Step::Transfer(1),
        ];
        // The directory, what leads there, and a file.
        let table = [
            Step::ShortSeek(self.to_copy),
            Step::Latency,
            Step::Transfer(AHEAD),
        ];
        cost(&[
            (1.0, &root),
            (1.0, &log),
            (1.0, &anchors),
            (1.0, &map),
            (2.0, &part),
            (2.0, &again),
            (1.0, &epoch),
            (6.0, &table),
        ]) + 2.0 * self.pass(files, APART)
    }
}
