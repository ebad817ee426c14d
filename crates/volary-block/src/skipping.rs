//! A device that is read as far as possible.

use parking_lot::Mutex;
use volary_core::{BlockDevice, Error, Geometry, Kind, Result};

/// The most failed requests before it gives up. On a failing disk, each takes seconds.
const FAILURES_MAX: u32 = 256;
/// The shortest part that is read by itself, in bytes.
const PART: usize = 512;

/// Reads a device, with zeros for unreadable sectors, to find what is left of a volume. It takes no
/// changes.
///
/// After 256 failures, further failing reads return the device's error.
pub struct Skipping<'a> {
    dev: &'a dyn BlockDevice,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    first: Option<Error>,
}

impl<'a> Skipping<'a> {
    /// Returns a device that reads `dev`.
    pub fn new(dev: &'a dyn BlockDevice) -> Self {
        Self {
            dev,
            state: Mutex::default(),
        }
    }

    /// Returns the device itself.
    pub(crate) fn device(&self) -> &'a dyn BlockDevice {
        self.dev
    }

    /// Takes the error of the first failed read.
    pub fn take_failure(&self) -> Option<Error> {
        self.state.lock().first.take()
    }

    /// Returns whether reading may go on after this failure. If not, returns it as an error.
    fn skips(&self, e: Error) -> Result<()> {
        let mut state = self.state.lock();
        if e != Kind::Io || state.failures >= FAILURES_MAX {
            return Err(e);
        }
        state.failures += 1;
        state.first.get_or_insert(e);
        Ok(())
    }
}

impl BlockDevice for Skipping<'_> {
    fn geometry(&self) -> Geometry {
        Geometry {
            read_only: true,
            ..self.dev.geometry()
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let Err(e) = self.dev.read_at(offset, buf) else {
            return Ok(());
        };
        self.skips(e)?;
        if buf.len() <= PART {
            buf.fill(0);
            return Ok(());
        }
        // Halving finds the readable parts with few requests.
        let middle = (buf.len() / 2).next_multiple_of(PART);
        let (one, other) = buf.split_at_mut(middle.min(buf.len() - 1));
        let at = offset + one.len() as u64;
        self.read_at(offset, one)?;
        self.read_at(at, other)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        Err(Kind::ReadOnly.into())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn is_cached(&self) -> bool {
        self.dev.is_cached()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Faulty, MemDevice, On};
    use std::sync::Arc;

    fn faulty(len: usize) -> Faulty {
        let dev = MemDevice::new(len as u64);
        dev.write_at(0, &vec![7; len]).unwrap();
        Faulty::new(Arc::new(dev))
    }

    #[test]
    fn what_cannot_be_read_is_zeros_and_all_else_is_there() {
        let dev = faulty(64 << 10);
        dev.bad_reads(5 * 512..6 * 512);
        dev.bad_reads(100..101);
        let skipping = Skipping::new(&dev);
        for (from, to) in [
            (0, 64 << 10),
            (0, 512),
            (512, 4096),
            (2560, 3072),
            (17, 60_001),
        ] {
            let mut buf = vec![1; to - from];
            skipping.read_at(from as u64, &mut buf).unwrap();
            for (at, byte) in (from..to).zip(&buf) {
                let is_far = !(0..1024).contains(&at) && !(2048..3584).contains(&at);
                assert!(
                    *byte == 7 || *byte == 0 && !is_far,
                    "{at} of {from} to {to}"
                );
            }
        }
        let mut bad = [1; 512];
        skipping.read_at(5 * 512, &mut bad).unwrap();
        assert_eq!(bad, [0; 512]);
        assert_eq!(skipping.take_failure().unwrap(), Kind::Io);
        assert!(skipping.take_failure().is_none());
    }

    #[test]
    fn a_device_of_which_nothing_can_be_read_is_given_up() {
        let dev = faulty(64 << 20);
        dev.bad_reads(0..64 << 20);
        let mut buf = vec![0; 64 << 20];
        let skipping = Skipping::new(&dev);
        assert_eq!(skipping.read_at(0, &mut buf).unwrap_err(), Kind::Io);
        assert!(dev.seen(On::Read) <= u64::from(FAILURES_MAX) + 1);
        // Reads past the end are not failures of the device.
        assert_eq!(
            skipping.read_at(64 << 20, &mut [0]).unwrap_err(),
            Kind::Invalid
        );
    }
}
