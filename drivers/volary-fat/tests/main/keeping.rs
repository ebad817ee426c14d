//! A device that says that it keeps what it was given, as a file of the host
//! does: then content is written past the cache.

use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Format, Fs, Geometry, Result};
use volary_fat::FAT;

struct Keeping(Arc<dyn BlockDevice>);

impl BlockDevice for Keeping {
    fn geometry(&self) -> Geometry {
        self.0.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.0.write_at(offset, data)
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.0.write_gather(offset, parts)
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn is_cached(&self) -> bool {
        true
    }
}

/// Attaches a volume; every third device is such a one.
pub(crate) fn attach(seed: u64, dev: Arc<dyn BlockDevice>) -> Fs {
    let dev = match seed % 3 {
        0 => Arc::new(Keeping(dev)),
        _ => dev,
    };
    FAT.attach(dev, &Attach::default()).unwrap()
}
