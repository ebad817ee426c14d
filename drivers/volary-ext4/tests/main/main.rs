//! Volumes that mke2fs makes and Linux fills, read by us and by Linux; journals that were not
//! replayed; damage.

mod damage;
mod hostile;
mod images;
mod journal;
mod oracle;
mod replica;
mod tools;
mod volume;

use std::path::Path;
use std::sync::Arc;
use volary_block::{FileDevice, MemDevice};
use volary_core::{BlockDevice, Fs, Result};
use volary_ext4::EXT4;
use volary_testkit::volumes;

pub(crate) fn attach_as(dev: Arc<dyn BlockDevice>, options: &str) -> Result<Fs> {
    volumes::attach_read_only(&EXT4, dev, options)
}

/// Returns an image in a file as a device.
pub(crate) fn file(image: &Path) -> Arc<dyn BlockDevice> {
    Arc::new(FileDevice::open(image, volary_block::OpenOptions::default()).expect("an image"))
}

pub(crate) fn memory(bytes: Vec<u8>) -> Arc<dyn BlockDevice> {
    Arc::new(MemDevice::from_vec(bytes))
}
