//! Volumes that mkntfs makes and ntfs-3g fills, read by us and by ntfs-3g; damage.

mod damage;
mod hostile;
mod images;
mod large;
mod oracle;
mod tools;
mod volume;

use std::path::Path;
use std::sync::Arc;
use volary_block::{FileDevice, MemDevice};
use volary_core::{BlockDevice, Fs, Result};
use volary_ntfs::NTFS;
use volary_testkit::volumes;

pub(crate) fn attach_as(dev: Arc<dyn BlockDevice>, options: &str) -> Result<Fs> {
    volumes::attach_read_only(&NTFS, dev, options)
}

/// Returns an image in a file as a device.
pub(crate) fn file(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, volary_block::OpenOptions::default()).expect("an image"))
}

pub(crate) fn memory(bytes: Vec<u8>) -> Arc<dyn BlockDevice> {
    Arc::new(MemDevice::from_vec(bytes))
}
