//! A device that knows how long a disk that turns would have taken.

use crate::disk::SECTOR;
use crate::seek::{Drive, Turning};
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{BlockDevice, Geometry, Result};

/// A device over another, of which each request takes its time on a [`Turning`] disk.
pub struct Spinning {
    below: Arc<dyn BlockDevice>,
    disk: Mutex<Turning>,
}

impl Spinning {
    /// Over a device, as a disk of this kind.
    pub fn new(below: Arc<dyn BlockDevice>, drive: Drive) -> Self {
        Self {
            below,
            disk: Mutex::new(Turning::new(drive)),
        }
    }

    /// Lets time pass without a request, in microseconds.
    pub fn wait(&self, time: f64) {
        self.disk.lock().wait(time);
    }

    /// Microseconds since the beginning.
    pub fn now(&self) -> f64 {
        self.disk.lock().now()
    }

    fn request(&self, offset: u64, len: u64) {
        let sector = SECTOR as u64;
        let (first, end) = (offset / sector, (offset + len).div_ceil(sector));
        if first < end {
            self.disk.lock().request(first, end - first);
        }
    }
}

impl BlockDevice for Spinning {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.request(offset, buf.len() as u64);
        self.below.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.request(offset, data.len() as u64);
        self.below.write_at(offset, data)
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        self.request(offset, len as u64);
        self.below.write_gather(offset, parts)
    }

    fn flush(&self) -> Result<()> {
        self.below.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cow::Cow;
    use crate::disk::Disk;

    #[test]
    fn a_request_takes_the_disks_time_and_reads_what_is_below() {
        let drive = Drive::TRIDENT;
        let below = Arc::new(Cow::new(Disk::new(vec![7; 40 * SECTOR])));
        let dev = Spinning::new(below, drive);
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
}
