//! Reads a volume by its replica.

use std::sync::Arc;
use volary_core::{BlockDevice, Error, Geometry, Kind, Read, Replica, Result};

/// A device that reads as if a replica stood in the place of the original. It takes no changes.
pub struct ByReplica {
    below: Arc<dyn BlockDevice>,
    home: u64,
    bytes: Vec<u8>,
}

impl ByReplica {
    /// Returns a device with the content of `below`, and of `replica` in the original's place.
    pub fn new(below: Arc<dyn BlockDevice>, replica: &Replica) -> Self {
        Self {
            below,
            home: replica.home,
            bytes: replica.bytes.clone(),
        }
    }

    /// Returns a device like [`new`](Self::new), or `below` itself if there is no replica.
    pub fn laid(below: Arc<dyn BlockDevice>, replica: Option<&Replica>) -> Arc<dyn BlockDevice> {
        match replica {
            Some(replica) => Arc::new(Self::new(below, replica)),
            None => below,
        }
    }

    /// Reads what lies before and after the replica's place, because the original there cannot be
    /// read.
    fn read_around(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let within = |at: u64| {
            let at = usize::try_from(at.saturating_sub(offset)).unwrap_or(usize::MAX);
            at.min(buf.len())
        };
        let end = self.home.saturating_add(self.bytes.len() as u64);
        let (before, after) = (within(self.home), within(end));
        let (head, tail) = buf.split_at_mut(after);
        let head = head.get_mut(..before).unwrap_or_default();
        for (at, part) in [(0, head), (after, tail)] {
            if !part.is_empty() {
                self.below.read_at(offset + at as u64, part)?;
            }
        }
        Ok(())
    }

    /// Copies the replica's bytes into `buf`, which was read at `offset`.
    fn lay(&self, offset: u64, buf: &mut [u8]) {
        let end = offset.saturating_add(buf.len() as u64);
        let from = offset.max(self.home);
        let to = end.min(self.home.saturating_add(self.bytes.len() as u64));
        if from >= to {
            return;
        }
        // Both fit into `usize`, because they are within the lengths of slices.
        let part = |start: u64| (from - start) as usize..(to - start) as usize;
        let (into, of) = (part(offset), part(self.home));
        if let (Some(into), Some(of)) = (buf.get_mut(into), self.bytes.get(of)) {
            into.copy_from_slice(of);
        }
    }
}

fn refused<T>() -> Result<T> {
    let words = "the volume is read by a replica: volary fsck -y first";
    Err(Error::note(Kind::ReadOnly, words))
}

impl BlockDevice for ByReplica {
    fn geometry(&self) -> Geometry {
        Geometry {
            read_only: true,
            ..self.below.geometry()
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.below.read_at(offset, buf) {
            Err(e) if e == Kind::Io => self.read_around(offset, buf)?,
            read => read?,
        }
        self.lay(offset, buf);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> Result<()> {
        refused()
    }

    fn flush(&self) -> Result<()> {
        self.below.flush()
    }

    fn zero(&self, _: u64, _: u64) -> Result<()> {
        refused()
    }

    fn is_cached(&self) -> bool {
        self.below.is_cached()
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.below.will_read(offset, len);
    }

    fn read_batch(&self, reads: &mut [Read<'_>]) {
        self.below.read_batch(reads);
        for read in reads {
            match &read.result {
                Ok(()) => self.lay(read.offset, read.buf),
                Err(e) if *e == Kind::Io => read.result = self.read_at(read.offset, read.buf),
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDevice;

    #[test]
    fn a_replica_is_laid_over_whatever_part_of_it_is_read() {
        let below = Arc::new(MemDevice::new(4096));
        below.write_at(0, &[7; 4096]).unwrap();
        let laid = ByReplica {
            below,
            home: 1000,
            bytes: (0..100).collect(),
        };
        let expected = |at: u64| match at.checked_sub(1000) {
            Some(within @ 0..100) => within as u8,
            _ => 7,
        };
        for (from, to) in [
            (0, 4096),
            (0, 1000),
            (0, 1001),
            (990, 1110),
            (1050, 1060),
            (1099, 1200),
            (1100, 4096),
        ] {
            let mut buf = vec![0; (to - from) as usize];
            laid.read_at(from, &mut buf).unwrap();
            assert!((from..to).map(expected).eq(buf), "{from} to {to}");
        }
        assert_eq!(laid.write_at(0, &[1]).unwrap_err(), Kind::ReadOnly);
        assert!(laid.geometry().read_only);
    }
}
