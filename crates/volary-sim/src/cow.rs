//! A device of memory over a disk that others share.

use crate::disk::Disk;
use crate::tape::{geometry, in_range};
use parking_lot::Mutex;
use volary_core::{BlockDevice, Geometry, Result};

/// A device with the content of a [`Disk`], and its own changes. All requests
/// succeed; nothing is recorded but whether anything was written.
pub struct Cow {
    state: Mutex<(Disk, bool)>,
}

impl Cow {
    /// A device with this content.
    pub fn new(disk: Disk) -> Self {
        Self {
            state: Mutex::new((disk, false)),
        }
    }

    /// The disk as it is now.
    pub fn disk(&self) -> Disk {
        self.state.lock().0.clone()
    }

    /// Whether anything was written.
    pub fn was_written(&self) -> bool {
        self.state.lock().1
    }
}

impl BlockDevice for Cow {
    fn geometry(&self) -> Geometry {
        geometry(&self.state.lock().0)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let state = self.state.lock();
        in_range(&state.0, offset, buf.len() as u64)?;
        state.0.read(offset, buf);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        in_range(&state.0, offset, data.len() as u64)?;
        let written = state.0.written(offset, &[data]);
        for (number, content) in written {
            state.0.put(number, content);
        }
        state.1 = true;
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}
