//! A device in memory over a disk that is shared.

use crate::disks::disk::Disk;
use crate::disks::trace::{geometry, in_range, sectors};
use parking_lot::Mutex;
use std::ops::Range;
use volary_core::{BlockDevice, Geometry, Result};

/// A device with the content of a [`Disk`], and its own changes. All requests succeed; only reads
/// are recorded.
pub struct Cow {
    state: Mutex<State>,
}

struct State {
    disk: Disk,
    reads: Vec<Range<u64>>,
}

impl Cow {
    /// Returns a device with this content.
    pub fn new(disk: Disk) -> Self {
        Self {
            state: Mutex::new(State {
                disk,
                reads: Vec::new(),
            }),
        }
    }

    /// Returns the disk as it is now.
    pub fn disk(&self) -> Disk {
        self.state.lock().disk.clone()
    }

    /// Returns the sectors that were read, in order.
    pub(crate) fn reads(&self) -> Vec<Range<u64>> {
        self.state.lock().reads.clone()
    }
}

impl BlockDevice for Cow {
    fn geometry(&self) -> Geometry {
        geometry(&self.state.lock().disk)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock();
        in_range(&state.disk, offset, buf.len() as u64)?;
        state.disk.read(offset, buf);
        state.reads.push(sectors(offset, buf.len() as u64));
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        in_range(&state.disk, offset, data.len() as u64)?;
        let written = state.disk.written(offset, &[data]);
        for (number, content) in written {
            state.disk.put(number, content);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}
