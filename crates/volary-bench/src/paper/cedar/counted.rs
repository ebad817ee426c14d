//! A disk that keeps a record of its requests.

use parking_lot::Mutex;
use std::sync::Arc;
use volary_sim::{Preset, SECTOR, Timed};

/// A request: sectors, and whether they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) first: u64,
    pub(super) sectors: u64,
    pub(super) is_write: bool,
}

/// All requests, in order.
pub(super) type Log = Arc<Mutex<Vec<Request>>>;

/// The disk.
pub(super) struct Counted {
    disk: Box<dyn Timed>,
    log: Log,
}

impl Counted {
    /// Returns a disk that adds its requests to `log`.
    pub(super) fn new(disk: &Preset, log: &Log) -> Self {
        Self {
            disk: disk.disk(),
            log: log.clone(),
        }
    }

    fn add(&self, offset: u64, len: u64, is_write: bool) {
        let first = offset / SECTOR as u64;
        let end = (offset + len).div_ceil(SECTOR as u64);
        self.log.lock().push(Request {
            first,
            sectors: end - first,
            is_write,
        });
    }
}

impl Timed for Counted {
    fn now(&self) -> f64 {
        self.disk.now()
    }

    fn wait(&mut self, time: f64) {
        self.disk.wait(time);
    }

    fn read(&mut self, offset: u64, len: u64) {
        self.disk.read(offset, len);
        self.add(offset, len, false);
    }

    fn write(&mut self, offset: u64, len: u64) {
        self.disk.write(offset, len);
        self.add(offset, len, true);
    }

    /// Reads that are asked for together and lie in a row are one request.
    fn read_all(&mut self, reads: &[(u64, u64)]) {
        let mut row: Option<(u64, u64)> = None;
        for &(offset, len) in reads {
            row = match row {
                Some((from, before)) if from + before == offset => Some((from, before + len)),
                Some((from, before)) => {
                    self.read(from, before);
                    Some((offset, len))
                }
                None => Some((offset, len)),
            };
        }
        if let Some((offset, len)) = row {
            self.read(offset, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_a_row_are_one_request_if_they_are_asked_for_together() {
        let log = Log::default();
        let mut disk = Counted::new(&Preset::T300, &log);
        disk.read(0, 512);
        disk.read(512, 512);
        disk.read_all(&[(1024, 512), (1536, 1024), (4096, 512)]);
        disk.write(700, 10);
        let request = |first, sectors, is_write| Request {
            first,
            sectors,
            is_write,
        };
        let reads = [(0, 1), (1, 1), (2, 3), (8, 1)].map(|(at, n)| request(at, n, false));
        assert_eq!(log.lock()[..4], reads);
        assert_eq!(log.lock()[4..], [request(1, 1, true)]);
        assert!(disk.now() > 0.0);
    }
}
