//! A device that records its requests.

use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{BlockDevice, Geometry, Result};

/// A request to a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A read.
    Read {
        /// Byte offset.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
    /// A write.
    Write {
        /// Byte offset.
        offset: u64,
        /// The bytes that were written.
        data: Arc<[u8]>,
    },
    /// A flush: all writes before it are durable.
    Flush,
    /// A discard of a range.
    Discard {
        /// Byte offset.
        offset: u64,
        /// Length in bytes.
        len: u64,
    },
}

/// The numbers of requests, and of bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Counts {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub write_bytes: u64,
    pub flushes: u64,
    pub discards: u64,
}

/// A device that records all successful requests in the order in which they ended, and passes them
/// on to the device below. A gathered write is one request.
pub struct Recorder {
    dev: Arc<dyn BlockDevice>,
    keep: bool,
    log: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    requests: Vec<Request>,
    counts: Counts,
}

impl Recorder {
    /// Records every request to `dev`, with the data of writes.
    pub fn new(dev: Arc<dyn BlockDevice>) -> Self {
        Self {
            dev,
            keep: true,
            log: Mutex::default(),
        }
    }

    /// Only counts requests, so that they take no memory.
    pub fn counting(dev: Arc<dyn BlockDevice>) -> Self {
        Self {
            keep: false,
            ..Self::new(dev)
        }
    }

    /// Returns a copy of the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.log.lock().requests.clone()
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> Counts {
        self.log.lock().counts
    }

    /// Returns the requests so far, and resets them and the counts.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.log.lock()).requests
    }

    fn add(&self, request: impl FnOnce() -> Request, count: impl FnOnce(&mut Counts)) {
        let request = self.keep.then(request);
        let mut log = self.log.lock();
        log.requests.extend(request);
        count(&mut log.counts);
    }

    fn add_write(&self, offset: u64, data: impl FnOnce() -> Arc<[u8]>, len: usize) {
        let request = || Request::Write {
            offset,
            data: data(),
        };
        self.add(request, |c| {
            c.writes += 1;
            c.write_bytes += len as u64;
        });
    }
}

impl BlockDevice for Recorder {
    fn geometry(&self) -> Geometry {
        self.dev.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.dev.read_at(offset, buf)?;
        let len = buf.len() as u64;
        self.add(
            || Request::Read { offset, len },
            |c| {
                c.reads += 1;
                c.read_bytes += len;
            },
        );
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.dev.write_at(offset, data)?;
        self.add_write(offset, || data.into(), data.len());
        Ok(())
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.dev.write_gather(offset, parts)?;
        let len = parts.iter().map(|p| p.len()).sum();
        self.add_write(offset, || parts.concat().into(), len);
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.dev.flush()?;
        self.add(|| Request::Flush, |c| c.flushes += 1);
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.dev.discard(offset, len)?;
        self.add(|| Request::Discard { offset, len }, |c| c.discards += 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDevice;

    #[test]
    fn requests_are_kept_in_order_and_failed_ones_are_not() {
        let rec = Recorder::new(Arc::new(MemDevice::new(4096)));
        rec.write_gather(10, &[&[1, 2], &[3]]).unwrap();
        rec.write_at(4096, &[1]).unwrap_err();
        rec.flush().unwrap();
        rec.read_at(11, &mut [0; 2]).unwrap();
        let data: Arc<[u8]> = Arc::from([1, 2, 3]);
        let expected = [
            Request::Write { offset: 10, data },
            Request::Flush,
            Request::Read { offset: 11, len: 2 },
        ];
        assert_eq!(rec.counts().write_bytes, 3);
        assert_eq!(rec.take(), expected);
        assert_eq!(rec.counts(), Counts::default());
    }

    #[test]
    fn counting_keeps_no_requests() {
        let rec = Recorder::counting(Arc::new(MemDevice::new(4096)));
        rec.discard(0, 512).unwrap();
        assert_eq!(rec.counts().discards, 1);
        assert!(rec.requests().is_empty());
    }
}
