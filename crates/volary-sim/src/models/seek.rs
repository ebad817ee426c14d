//! The cost of operations on a rotating disk: the script model of the Cedar paper (Hagmann 1987,
//! section 6), and a simulated disk to compare it with.
//!
//! A *script* adds up the effects of an operation on the arm and the platter. These are seeks,
//! short seeks of a few cylinders, latencies of half a revolution, lost revolutions, waits for
//! sectors that have just passed, and transfers. A [`Turning`] disk replays a recorded run request
//! by request, and tracks the arm and the platter. Its time matches the script's prediction, as far
//! as the author of the script thought of everything.

use crate::disks::disk::SECTOR;
use crate::disks::trace::{Event, Trace};
use crate::models::spinning::Timed;

/// A disk's shape and speed. Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drive {
    /// Sectors per track.
    pub track: u64,
    /// Tracks per cylinder.
    pub heads: u64,
    /// Cylinders of the disk.
    pub cylinders: u64,
    /// The time of one revolution.
    pub revolution: f64,
    /// The time of a seek by one cylinder.
    pub seek_first: f64,
    /// The time that each further cylinder adds.
    pub seek_more: f64,
}

impl Drive {
    /// A Trident T-300, as in the paper's Dorado, in round figures: 3,600 revolutions per minute,
    /// 38 sectors of 512 bytes per track, 19 heads, 815 cylinders, 6 ms to the next cylinder and 55
    /// ms across all.
    pub const TRIDENT: Self = Self {
        track: 38,
        heads: 19,
        cylinders: 815,
        revolution: 16_667.0,
        seek_first: 6_000.0,
        seek_more: 60.0,
    };

    /// The AMPEX Capricorn of the FFS paper: 32 sectors of 512 bytes per track, 983 KB/s, so 3,600
    /// revolutions per minute; 330 MB, unformatted. Assumed: 16 tracks per cylinder, 1024
    /// cylinders, and the seeks.
    pub const CAPRICORN: Self = Self {
        track: 32,
        heads: 16,
        cylinders: 1024,
        revolution: 1e6 / 60.0,
        seek_first: 10_000.0,
        seek_more: 70.0,
    };

    /// Returns its size in bytes.
    pub const fn capacity(&self) -> u64 {
        self.track * self.heads * self.cylinders * SECTOR as u64
    }

    /// Returns the time in which this many sectors pass under the head.
    pub fn transfer(&self, sectors: u64) -> f64 {
        self.revolution * sectors as f64 / self.track as f64
    }

    /// Returns the time of a seek by this many cylinders; 0 for none.
    pub fn seek(&self, cylinders: u64) -> f64 {
        match cylinders {
            0 => 0.0,
            n => self.seek_first + self.seek_more * (n - 1) as f64,
        }
    }

    /// Returns the time of an average seek: over a third of the disk.
    pub fn average_seek(&self) -> f64 {
        self.seek(self.cylinders / 3)
    }

    /// Returns the cylinder that a sector is on.
    pub fn cylinder(&self, sector: u64) -> u64 {
        sector / (self.track * self.heads)
    }

    /// Returns the position in a revolution at which a sector begins, from 0 to 1.
    fn angle(&self, sector: u64) -> f64 {
        (sector % self.track) as f64 / self.track as f64
    }
}

/// A step of a script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A seek of average length.
    Seek,
    /// A seek by this many cylinders.
    ShortSeek(u64),
    /// Half a revolution: the wait for a sector at a random position.
    Latency,
    /// A whole revolution.
    Lost,
    /// A revolution less this many sectors: back to the first of those that have just passed.
    Back(u64),
    /// This many sectors are read, written or passed.
    Transfer(u64),
}

/// Returns the time that a script predicts, in microseconds.
pub fn predict(drive: &Drive, script: &[Step]) -> f64 {
    let time = |step: &Step| match *step {
        Step::Seek => drive.average_seek(),
        Step::ShortSeek(cylinders) => drive.seek(cylinders),
        Step::Latency => drive.revolution / 2.0,
        Step::Lost => drive.revolution,
        Step::Back(sectors) => drive.revolution - drive.transfer(sectors),
        Step::Transfer(sectors) => drive.transfer(sectors),
    };
    script.iter().map(time).sum()
}

/// Returns the mean cost of an operation that finds its data in a cache in `hits` of all cases (0
/// to 1). It has one script for a hit and one for a miss.
pub fn weighted(drive: &Drive, hits: f64, hit: &[Step], miss: &[Step]) -> f64 {
    hits * predict(drive, hit) + (1.0 - hits) * predict(drive, miss)
}

/// A rotating disk and its current position.
#[derive(Clone, Debug)]
pub struct Turning {
    drive: Drive,
    cylinder: u64,
    now: f64,
}

impl Turning {
    /// Returns a disk with its arm at the first cylinder, at the beginning of a
    /// revolution.
    pub fn new(drive: Drive) -> Self {
        Self {
            drive,
            cylinder: 0,
            now: 0.0,
        }
    }

    /// Reads or writes sectors in one request: seeks, waits for the first sector, and lets all
    /// pass. Tracks and cylinders are skewed so that going on to the next cylinder costs only the
    /// time of a seek.
    pub fn request(&mut self, first: u64, count: u64) {
        let drive = self.drive;
        let cylinder = drive.cylinder(first);
        self.now += drive.seek(cylinder.abs_diff(self.cylinder));
        let here = (self.now / drive.revolution).fract();
        let wait = (drive.angle(first) - here).rem_euclid(1.0);
        // If the head is at the sector apart from rounding, there is no wait.
        let wait = if wait > 1.0 - 1e-9 { 0.0 } else { wait };
        self.now += wait * drive.revolution + drive.transfer(count);
        self.cylinder = drive.cylinder(first + count.saturating_sub(1));
        self.now += drive.seek(self.cylinder - cylinder);
    }

    /// Replays a recorded run: reads and writes, in order.
    pub fn play(&mut self, trace: &Trace) {
        for event in &trace.events {
            match event {
                Event::Read(offset, len) => self.read(*offset, *len),
                Event::Write(sectors) => {
                    if let Some((first, _)) = sectors.first() {
                        self.request(*first, sectors.len() as u64);
                    }
                }
                Event::Flush | Event::Began(_) | Event::Ended(_) => {}
            }
        }
    }
}

impl Timed for Turning {
    fn now(&self) -> f64 {
        self.now
    }

    fn wait(&mut self, time: f64) {
        self.now += time;
    }

    fn read(&mut self, offset: u64, len: u64) {
        let first = offset / SECTOR as u64;
        let end = (offset + len).div_ceil(SECTOR as u64);
        self.request(first, end - first);
    }

    fn write(&mut self, offset: u64, len: u64) {
        self.read(offset, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::disk::Disk;
    use crate::disks::trace::Traced;
    use crate::rng::Rng;
    use volary_core::BlockDevice;

    const DRIVE: Drive = Drive::TRIDENT;

    /// Returns the mean time of `work` on disks with a random position of arm and platter.
    fn mean(work: impl Fn(&mut Turning, &mut Rng)) -> f64 {
        let mut rng = Rng::new(1);
        let rounds = 4000;
        let total: f64 = (0..rounds)
            .map(|_| {
                let mut disk = Turning::new(DRIVE);
                let all = DRIVE.track * DRIVE.heads * DRIVE.cylinders;
                disk.request(rng.below(all), 1);
                disk.wait(rng.below(100_000) as f64);
                let begun = disk.now();
                work(&mut disk, &mut rng);
                disk.now() - begun
            })
            .sum();
        total / f64::from(rounds)
    }

    fn within_5_percent(predicted: f64, measured: f64) {
        let ratio = predicted / measured;
        assert!((0.95..1.05).contains(&ratio), "{predicted} and {measured}");
    }

    /// The paper's example: making a file of one page in CFS, with labels.
    #[test]
    fn the_papers_script_of_a_create_holds_on_the_disk() {
        let script = [
            Step::Seek,
            Step::Latency,
            Step::Transfer(3),
            Step::Back(3),
            Step::Transfer(2),
            Step::Lost,
            Step::Transfer(1),
        ];
        // The sector after the two has already begun to pass when it is to be written.
        let measured = mean(|disk, rng| {
            let first = rng.below(DRIVE.cylinders) * DRIVE.track * DRIVE.heads;
            disk.request(first, 3);
            disk.request(first, 2);
            disk.wait(1.0);
            disk.request(first + 2, 1);
        });
        within_5_percent(predict(&DRIVE, &script), measured);
    }

    #[test]
    fn a_short_seek_and_a_latency_hold_on_the_disk() {
        // The time for processing the first sector before the others are requested.
        const PAUSE: u64 = 10_000;
        let script = [Step::Seek, Step::Latency, Step::Transfer(1)];
        let there = [Step::ShortSeek(4), Step::Latency, Step::Transfer(8)];
        let whole = [&script[..], &there[..]].concat();
        let measured = mean(|disk, rng| {
            let cylinder = DRIVE.track * DRIVE.heads;
            let first = rng.below(DRIVE.cylinders - 5) * cylinder + rng.below(DRIVE.track);
            disk.request(first, 1);
            disk.wait(rng.below(2 * PAUSE) as f64);
            disk.request(
                first / cylinder * cylinder + 4 * cylinder + rng.below(30),
                8,
            );
        });
        within_5_percent(predict(&DRIVE, &whole) + PAUSE as f64, measured);
    }

    #[test]
    fn a_cache_is_weighed_by_its_hits() {
        let (hit, miss) = ([Step::Transfer(1)], [Step::Lost, Step::Transfer(1)]);
        let both = weighted(&DRIVE, 0.75, &hit, &miss);
        assert!((both - DRIVE.transfer(1) - DRIVE.revolution / 4.0).abs() < 1e-6);
    }

    #[test]
    fn a_recorded_run_takes_as_long_as_its_requests() {
        let dev = Traced::new(Disk::new(vec![0; 100 * SECTOR])).with_reads();
        dev.read_at(700, &mut [0; 400]).unwrap();
        dev.write_at(40 * 512, &[1; 1024]).unwrap();
        dev.flush().unwrap();
        let (mut played, mut asked) = (Turning::new(DRIVE), Turning::new(DRIVE));
        played.play(&dev.take());
        asked.request(1, 2);
        asked.request(40, 2);
        assert!((played.now() - asked.now()).abs() < 1e-6);
        // From the end of one sector to the start of another takes less than a turn.
        assert!(played.now() < 2.0 * DRIVE.revolution);
    }
}
