//! A device that measures requests in the time of a modelled disk.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{BlockDevice, Geometry, Read, Result};

/// A modelled disk: it tells how long requests take. Times are in microseconds.
pub trait Timed: Send {
    /// Returns the time since the beginning.
    fn now(&self) -> f64;

    /// Lets time pass without a request.
    fn wait(&mut self, time: f64);

    /// Reads `len` bytes, not 0, from byte `offset` on.
    fn read(&mut self, offset: u64, len: u64);

    /// Writes `len` bytes, not 0, from byte `offset` on.
    fn write(&mut self, offset: u64, len: u64);

    /// Performs reads that are queued together. Default: one by one.
    fn read_all(&mut self, reads: &[(u64, u64)]) {
        for (offset, len) in reads {
            self.read(*offset, *len);
        }
    }
}

impl Timed for Box<dyn Timed> {
    fn now(&self) -> f64 {
        (**self).now()
    }

    fn wait(&mut self, time: f64) {
        (**self).wait(time);
    }

    fn read(&mut self, offset: u64, len: u64) {
        (**self).read(offset, len);
    }

    fn write(&mut self, offset: u64, len: u64) {
        (**self).write(offset, len);
    }

    fn read_all(&mut self, reads: &[(u64, u64)]) {
        (**self).read_all(reads);
    }
}

/// Returns the rotational delay at `time` until a place comes under the head. The place passes the
/// head at `passed`, and once per `revolution` before and after that.
pub(crate) fn rotational_delay(time: f64, passed: f64, revolution: f64) -> f64 {
    let turns = (passed - time) / revolution;
    let wait = turns - turns.floor();
    // A whole turn that is only due to rounding counts as none.
    let wait = if wait > 1.0 - 1e-6 { 0.0 } else { wait };
    wait * revolution
}

/// A device over another whose requests advance the time of a [`Timed`] disk.
pub struct Spinning {
    below: Arc<dyn BlockDevice>,
    disk: Mutex<Box<dyn Timed>>,
}

impl Spinning {
    /// Returns a device over `below` with the timing of `disk`.
    pub fn new(below: Arc<dyn BlockDevice>, disk: impl Timed + 'static) -> Self {
        Self {
            below,
            disk: Mutex::new(Box::new(disk)),
        }
    }

    /// Lets time pass without a request, in microseconds.
    pub fn wait(&self, time: f64) {
        self.disk.lock().wait(time);
    }

    /// Returns microseconds since the beginning.
    pub fn now(&self) -> f64 {
        self.disk.lock().now()
    }

    /// Returns [`now`](Self::now) as a `Duration`.
    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos((self.now() * 1e3) as u64)
    }

    fn write(&self, offset: u64, len: u64) {
        if len > 0 {
            self.disk.lock().write(offset, len);
        }
    }
}

impl BlockDevice for Spinning {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        if !buf.is_empty() {
            self.disk.lock().read(offset, buf.len() as u64);
        }
        self.below.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write(offset, data.len() as u64);
        self.below.write_at(offset, data)
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        self.write(offset, len as u64);
        self.below.write_gather(offset, parts)
    }

    fn flush(&self) -> Result<()> {
        self.below.flush()
    }

    fn read_batch(&self, reads: &mut [Read<'_>]) {
        let some = reads.iter().filter(|read| !read.buf.is_empty());
        let some: Vec<_> = some.map(|r| (r.offset, r.buf.len() as u64)).collect();
        self.disk.lock().read_all(&some);
        self.below.read_batch(reads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::cow::Cow;
    use crate::disks::disk::{Disk, SECTOR};
    use crate::models::hard::{HardDisk, Model};
    use crate::models::seek::{Drive, Turning};

    fn below() -> Arc<Cow> {
        Arc::new(Cow::new(Disk::new(vec![7; 40 * SECTOR])))
    }

    #[test]
    fn a_request_takes_the_disks_time_and_reads_what_is_below() {
        let drive = Drive::TRIDENT;
        let dev = Spinning::new(below(), Turning::new(drive));
        let mut buf = [0; 600];
        dev.read_at(300, &mut buf).unwrap();
        assert_eq!(buf, [7; 600]);
        // Sectors 0 and 1; then a wait, and half a revolution to sector 19.
        assert!((dev.now() - drive.transfer(2)).abs() < 1e-6);
        dev.write_gather(19 * 512, &[&[1; 512], &[2; 512]]).unwrap();
        assert!((dev.now() - drive.transfer(21)).abs() < 1e-6);
        dev.wait(5.0);
        dev.flush().unwrap();
        assert!((dev.now() - drive.transfer(21) - 5.0).abs() < 1e-6);
        assert!(dev.write_at(40 * 512, &[1]).is_err());
    }

    #[test]
    fn a_batch_takes_the_time_of_its_best_order() {
        let dev = Spinning::new(below(), HardDisk::new(Model::TODAY));
        let mut bufs = [[0; 512]; 3];
        let mut places = [30, 20, 10].into_iter();
        let mut reads: Vec<Read<'_>> = bufs
            .iter_mut()
            .map(|buf| Read {
                offset: places.next().unwrap_or(0) * 512,
                buf,
                result: Ok(()),
            })
            .collect();
        dev.read_batch(&mut reads);
        assert!(reads.iter().all(|read| read.result.is_ok()));
        assert_eq!(bufs, [[7; 512]; 3]);
        // All in one turn: they are on one track.
        assert!(dev.now() < Model::TODAY.command + Model::TODAY.revolution);
        assert!(dev.elapsed().as_micros() as f64 <= dev.now());
    }
}
