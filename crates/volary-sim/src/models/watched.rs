//! A modelled disk that logs its requests.

use crate::models::preset::Preset;
use crate::models::spinning::Timed;
use parking_lot::Mutex;
use std::sync::Arc;

/// A request, or several that were queued together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served {
    /// When it began and ended, in microseconds.
    pub time: (f64, f64),
    /// The range of bytes on the disk.
    pub bytes: (u64, u64),
    /// Whether the bytes were written.
    pub is_write: bool,
}

/// The work that a disk has done.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Doings {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    /// Requests that did not begin where the one before them ended.
    pub seeks: u64,
    /// The time since the beginning, in microseconds.
    pub time: f64,
    /// Requests in order: all, or every `thinned`-th.
    pub path: Vec<Served>,
    pub thinned: u64,
}

/// The most requests that [`Doings::path`] keeps.
const PATH_MAX: usize = 1 << 16;

impl Doings {
    fn add(&mut self, served: Served) {
        let (from, to) = served.bytes;
        match served.is_write {
            true => {
                self.writes += 1;
                self.write_bytes += to - from;
            }
            false => (self.reads, self.read_bytes) = (self.reads + 1, self.read_bytes + to - from),
        }
        self.time = served.time.1;
        self.thinned = self.thinned.max(1);
        if (self.reads + self.writes).is_multiple_of(self.thinned) {
            self.path.push(served);
        }
        if self.path.len() >= PATH_MAX {
            let mut number = 0;
            self.path.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.thinned *= 2;
        }
    }
}

/// The work of a [`Watched`] disk, for others to read.
#[derive(Clone, Debug)]
pub struct Log(Arc<Mutex<Doings>>);

impl Log {
    /// Returns all work so far.
    pub fn doings(&self) -> Doings {
        self.0.lock().clone()
    }

    /// Returns the time that the work took, in microseconds.
    pub fn time(&self) -> f64 {
        self.0.lock().time
    }
}

/// A modelled disk that logs its requests.
pub struct Watched {
    disk: Box<dyn Timed>,
    doings: Arc<Mutex<Doings>>,
    /// Where the last request ended.
    end: u64,
}

impl Watched {
    /// Returns a new disk, and its log.
    pub fn new(preset: &Preset) -> (Self, Log) {
        let doings = Arc::new(Mutex::new(Doings::default()));
        let watched = Self {
            disk: preset.disk(),
            doings: doings.clone(),
            end: 0,
        };
        (watched, Log(doings))
    }

    fn done(&mut self, begin: f64, offset: u64, len: u64, is_write: bool) {
        let mut doings = self.doings.lock();
        doings.seeks += u64::from(offset != self.end);
        self.end = offset + len;
        doings.add(Served {
            time: (begin, self.disk.now()),
            bytes: (offset, self.end),
            is_write,
        });
    }
}

impl Timed for Watched {
    fn now(&self) -> f64 {
        self.disk.now()
    }

    fn wait(&mut self, time: f64) {
        self.disk.wait(time);
    }

    fn read(&mut self, offset: u64, len: u64) {
        let begin = self.disk.now();
        self.disk.read(offset, len);
        self.done(begin, offset, len, false);
    }

    fn write(&mut self, offset: u64, len: u64) {
        let begin = self.disk.now();
        self.disk.write(offset, len);
        self.done(begin, offset, len, true);
    }

    /// Logs the reads in order of their offsets, as the disk may have served them.
    fn read_all(&mut self, reads: &[(u64, u64)]) {
        let begin = self.disk.now();
        self.disk.read_all(reads);
        let mut reads = reads.to_vec();
        reads.sort_unstable();
        for (offset, len) in reads {
            self.done(begin, offset, len, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::preset::PRESETS;

    #[test]
    fn each_disk_takes_its_time_and_tells_what_it_did() {
        for preset in PRESETS {
            let (mut disk, doings) = Watched::new(preset);
            disk.read(0, 4096);
            disk.read(4096, 4096);
            disk.write(1 << 20, 512);
            disk.read_all(&[(1 << 21, 512), ((1 << 20) + 512, 512)]);
            let doings = doings.doings();
            assert_eq!(
                (doings.reads, doings.read_bytes),
                (4, 9216),
                "{}",
                preset.name
            );
            assert_eq!(
                (doings.writes, doings.write_bytes, doings.seeks),
                (1, 512, 2)
            );
            assert_eq!(doings.path.len(), 5);
            assert!(doings.time > 0.0 && doings.time == disk.now());
        }
    }

    #[test]
    fn a_long_path_is_thinned_and_counts_stay() {
        let (mut disk, doings) = Watched::new(Preset::named("nvme").unwrap());
        for i in 0..3 * PATH_MAX as u64 {
            disk.read(i * 8192, 512);
        }
        let doings = doings.doings();
        assert_eq!(doings.reads, 3 * PATH_MAX as u64);
        assert_eq!(doings.seeks, doings.reads - 1);
        assert!(
            doings.path.len() < PATH_MAX && doings.thinned == 4,
            "{}",
            doings.thinned
        );
    }
}
