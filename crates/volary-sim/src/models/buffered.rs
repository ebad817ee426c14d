//! Disks of about 1990 in virtual time. They have an arm, a platter, a bus that is hardly faster,
//! and a buffer into which the disk reads ahead.
//!
//! Tracks and cylinders are skewed. A sequential transfer loses no time at a border between tracks,
//! and only the seek at a border between cylinders.

use crate::disks::disk::SECTOR;
use crate::models::seek::Drive;
use crate::models::spinning::{Timed, rotational_delay};

/// When a disk reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// Never: it has no buffer.
    Never,
    /// After a read that begins where the one before it ended.
    InSequence,
    /// After each read.
    Always,
}

/// A disk's parameters. Times are in microseconds, rates in bytes per microsecond, which are MB/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffered {
    /// The disk's shape and speed.
    pub drive: Drive,
    /// The time that a command takes before the arm moves.
    pub command: f64,
    /// The rate of the bus.
    pub bus: f64,
    /// How many bytes are read ahead.
    pub buffer: u64,
    /// When they are read ahead.
    pub ahead: Ahead,
    /// Whether bytes cross the bus while they pass under the head. Otherwise they cross it before a
    /// write, and after a read that was not read ahead.
    pub overlaps: bool,
}

impl Buffered {
    /// The 400 MB Maxtor of the DosFs paper's Gateway; the paper names no model. Its raw reads of
    /// "in excess of 1.6 MB/sec" match the track rate of the XT-8380S (410 MB, unformatted). By
    /// common descriptions, that has 54 sectors, 8 tracks per cylinder, 1,632 cylinders and 3,600
    /// revolutions per minute. Its seeks take 3 ms to the next cylinder and 14.5 ms on average. The
    /// bus, asynchronous SCSI, reaches 1.5 MB/s with requests of 16 KB, as the paper says. Assumed:
    /// 2 ms per command, a buffer of 48 KiB with read-ahead in sequence only, and no overlap.
    pub const MAXTOR400: Self = Self {
        drive: Drive {
            track: 54,
            heads: 8,
            cylinders: 1632,
            revolution: 60e6 / 3_600.0,
            seek_first: 3_000.0,
            seek_more: 21.2,
        },
        command: 2_000.0,
        bus: 1.84,
        buffer: 48 << 10,
        ahead: Ahead::InSequence,
        overlaps: false,
    };

    /// The HP C2247 of the DosFs paper's DECstation. By common descriptions, it has 1.05 GB
    /// formatted, 5,400 revolutions per minute and 13 tracks per cylinder. Its seeks take 2.5 ms to
    /// the next cylinder and 10 ms on average, and its buffer has 256 KiB. Its zones of 56 to 96
    /// sectors are modelled as one of 80. The bus reaches 2.6 MB/s with requests of 16 KB, as the
    /// paper says. Assumed: 1 ms per command.
    pub const C2247: Self = Self {
        drive: Drive {
            track: 80,
            heads: 13,
            cylinders: 1973,
            revolution: 60e6 / 5_400.0,
            seek_first: 2_500.0,
            seek_more: 11.4,
        },
        command: 1_000.0,
        bus: 3.09,
        buffer: 256 << 10,
        ahead: Ahead::Always,
        overlaps: true,
    };

    /// A drive for 3.5-inch floppies of 1.44 MB. It has 300 revolutions per minute, 3 ms from
    /// cylinder to cylinder and 15 ms to settle, 94 ms on average. Assumed: 1 ms per command.
    pub const FLOPPY: Self = Self {
        drive: Drive {
            track: 18,
            heads: 2,
            cylinders: 80,
            revolution: 200_000.0,
            seek_first: 18_000.0,
            seek_more: 3_000.0,
        },
        command: 1_000.0,
        bus: 1.0,
        buffer: 0,
        ahead: Ahead::Never,
        overlaps: true,
    };
}

/// A disk and its current state.
#[derive(Clone, Debug)]
pub struct BufferedDisk {
    model: Buffered,
    now: f64,
    /// The sector under the head at time `since`; if the disk reads ahead, the head moved on from
    /// there.
    head: u64,
    since: f64,
    /// Sectors that are in the buffer, or will be once the head has read them ahead.
    held: std::ops::Range<u64>,
    /// The sector where the last read ended.
    end: u64,
}

impl BufferedDisk {
    /// Returns a disk at time 0, with its arm at the first cylinder and an empty buffer.
    pub fn new(model: Buffered) -> Self {
        Self {
            model,
            now: 0.0,
            head: 0,
            since: 0.0,
            held: 0..0,
            end: u64::MAX,
        }
    }

    /// Returns the time at which a head reaches a sector if it reads on without a pause from sector 0 at time 0.
    fn passed(&self, sector: u64) -> f64 {
        let drive = &self.model.drive;
        drive.transfer(sector) + drive.seek_first * drive.cylinder(sector) as f64
    }

    /// Returns the time from the start of sector `from` to the end of the one before `to`, read without a pause.
    fn span(&self, from: u64, to: u64) -> f64 {
        match to > from {
            true => self.passed(to - 1) + self.model.drive.transfer(1) - self.passed(from),
            false => 0.0,
        }
    }

    /// Returns the rotational delay at `time` until a sector comes under the head.
    fn turn(&self, time: f64, sector: u64) -> f64 {
        rotational_delay(time, self.passed(sector), self.model.drive.revolution)
    }

    /// Returns the sector under the head.
    fn head_at(&self, time: f64) -> u64 {
        let sectors = (time - self.since).max(0.0) / self.model.drive.transfer(1);
        (self.head + sectors as u64)
            .min(self.held.end)
            .max(self.head)
    }

    /// Moves the arm, and lets sectors pass under the head. Returns the time when they have passed.
    fn pass(&mut self, time: f64, first: u64, end: u64) -> f64 {
        let drive = self.model.drive;
        let from = drive.cylinder(self.head_at(time));
        let there = time + drive.seek(from.abs_diff(drive.cylinder(first)));
        let passed = there + self.turn(there, first) + self.span(first, end);
        (self.head, self.since, self.held) = (end, passed, 0..0);
        passed
    }

    /// Performs a read whose first sector is in the buffer, or comes next. Returns the time when
    /// the last one has been read.
    fn hit(&mut self, time: f64, end: u64) -> f64 {
        let stop = self.held.end;
        if self.since + self.span(self.head, stop) < time {
            // The buffer was full: the head continues where it stopped, once that place comes
            // round.
            let resumed = time + self.turn(time, stop);
            (self.head, self.since) = (stop, resumed);
        }
        let came = match end > self.head {
            true => self.since + self.span(self.head, end),
            false => self.since.min(time),
        };
        self.read_ahead(end);
        came
    }

    /// Lets the disk read ahead from `end` on; earlier sectors leave the buffer.
    fn read_ahead(&mut self, end: u64) {
        let drive = &self.model.drive;
        let all = drive.capacity() / SECTOR as u64;
        self.held = end..(end + self.model.buffer / SECTOR as u64).min(all).max(end);
    }
}

/// Returns the sectors of a range of bytes.
fn sectors(offset: u64, len: u64) -> (u64, u64) {
    let unit = SECTOR as u64;
    (offset / unit, (offset + len).div_ceil(unit))
}

impl Timed for BufferedDisk {
    fn now(&self) -> f64 {
        self.now
    }

    fn wait(&mut self, time: f64) {
        self.now += time;
    }

    fn read(&mut self, offset: u64, len: u64) {
        let (first, end) = sectors(offset, len);
        let time = self.now + self.model.command;
        let sent = len as f64 / self.model.bus;
        let is_next = first == self.end;
        self.now = if self.held.contains(&first) {
            self.hit(time, end).max(time + sent)
        } else {
            let passed = self.pass(time, first, end);
            match self.model.ahead {
                Ahead::Always => self.read_ahead(end),
                Ahead::InSequence if is_next => self.read_ahead(end),
                _ => {}
            }
            match self.model.overlaps {
                true => passed.max(time + sent),
                false => passed + sent,
            }
        };
        self.end = end;
    }

    fn write(&mut self, offset: u64, len: u64) {
        let (first, end) = sectors(offset, len);
        let time = self.now + self.model.command;
        let sent = len as f64 / self.model.bus;
        self.now = match self.model.overlaps {
            true => self.pass(time, first, end).max(time + sent),
            false => self.pass(time + sent, first, end),
        };
        self.end = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn near(found: f64, stated: f64, percent: f64) {
        let off = (found / stated - 1.0).abs() * 100.0;
        assert!(off < percent, "{found} is {off:.2} % off {stated}");
    }

    /// Returns the rate in MB/s of 4 MB that are read or written in requests of this length. Each
    /// request follows the one before at once; the first two are not measured.
    fn rate(model: Buffered, len: u64, does: fn(&mut BufferedDisk, u64, u64)) -> f64 {
        let mut disk = BufferedDisk::new(model);
        let all = (4 << 20).min(model.drive.capacity());
        does(&mut disk, 0, len);
        does(&mut disk, len, len);
        let begun = disk.now();
        let places: Vec<u64> = (2 * len..all).step_by(len as usize).collect();
        places.iter().for_each(|at| does(&mut disk, *at, len));
        (places.len() as u64 * len) as f64 / (disk.now() - begun)
    }

    fn read(disk: &mut BufferedDisk, at: u64, len: u64) {
        disk.read(at, len);
    }

    #[test]
    fn random_accesses_take_what_is_stated() {
        for (model, seek) in [
            (Buffered::MAXTOR400, 14_500.0),
            (Buffered::C2247, 10_000.0),
            (Buffered::FLOPPY, 94_000.0),
        ] {
            near(model.drive.average_seek(), seek, 2.0);
            let mut rng = Rng::new(1);
            let mut disk = BufferedDisk::new(model);
            for _ in 0..20_000 {
                let at = rng.below(model.drive.capacity() / 512) * 512;
                disk.read(at, 512);
            }
            let sector = model.drive.transfer(1).max(512.0 / model.bus);
            let whole = model.command + seek + model.drive.revolution / 2.0 + sector;
            near(disk.now() / 20_000.0, whole, 3.0);
        }
        let capacity = |model: Buffered| model.drive.capacity() as f64;
        near(capacity(Buffered::MAXTOR400), 361e6, 1.0);
        near(capacity(Buffered::C2247), 1.05e9, 1.0);
        assert_eq!(Buffered::FLOPPY.drive.capacity(), 1_474_560);
    }

    #[test]
    fn raw_reads_are_as_fast_as_the_paper_says() {
        near(rate(Buffered::MAXTOR400, 16 << 10, read), 1.5, 1.0);
        let long = rate(Buffered::MAXTOR400, 64 << 10, read);
        assert!((1.6..1.67).contains(&long), "{long}");
        near(rate(Buffered::C2247, 16 << 10, read), 2.6, 1.0);
        // Five tracks of 9 KiB pass per second; the end of a cylinder costs a seek.
        let mut floppy = BufferedDisk::new(Buffered::FLOPPY);
        floppy.read(0, 1_474_560);
        near(floppy.now(), 160.0 * 200_000.0 + 79.0 * 18_000.0, 1.0);
    }

    #[test]
    fn what_was_read_ahead_costs_no_turn_and_what_was_not_does() {
        let drive = Buffered::MAXTOR400.drive;
        let time = |apart: u64| {
            let mut disk = BufferedDisk::new(Buffered::MAXTOR400);
            (0..60).for_each(|i| disk.read(i * apart * 4096, 4096));
            disk.now() / 60.0
        };
        let block = drive.transfer(8);
        // In sequence: the command and the bus. With a gap of two blocks: the request is too late
        // by 2 ms and the bus.
        near(time(1), 2_000.0 + 4096.0 / 1.84, 15.0);
        near(time(2), drive.revolution + 2.0 * block, 5.0);
        assert!(time(3) < 4.0 * block, "{}", time(3));
        // The same place again costs a turn, since the buffer does not keep what was sent.
        near(time(0), drive.revolution, 5.0);
    }

    #[test]
    fn a_write_misses_the_place_behind_the_one_before() {
        let write = |disk: &mut BufferedDisk, at, len| disk.write(at, len);
        for model in [Buffered::MAXTOR400, Buffered::C2247] {
            let each = model.drive.revolution + model.drive.transfer(32);
            near(rate(model, 16 << 10, write), 16_384.0 / each, 4.0);
        }
    }

    #[test]
    fn a_full_buffer_goes_on_where_it_stopped() {
        let model = Buffered::C2247;
        let mut disk = BufferedDisk::new(model);
        disk.read(0, 4096);
        disk.wait(1e6);
        let begun = disk.now();
        disk.read(4096, 256 << 10);
        near(disk.now() - begun, 1_000.0 + (256 << 10) as f64 / 3.09, 0.1);
        let begun = disk.now();
        disk.read(4096 + (256 << 10), 4096);
        let took = disk.now() - begun;
        assert!(took < model.drive.revolution + 5_000.0, "{took}");
        disk.write(0, 512);
        let begun = disk.now();
        disk.read(8192 + (256 << 10), 4096);
        assert!(disk.now() - begun > 3_000.0, "it forgot what it held");
    }
}
