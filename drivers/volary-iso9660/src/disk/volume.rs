//! A checked volume, as one of its descriptors describes it.

use crate::disk::ondisk::{DESCRIPTORS, SECTOR, VolumeDescriptor};
use crate::disk::record::Record;
use volary_block::Cache;
use volary_core::{Error, Result};

/// How the tree's names are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// `skip`: bytes before the first field of each system use area (`SP`).
    RockRidge {
        skip: usize,
    },
    Joliet,
    Plain,
    Iso,
}

/// Where a directory or a section of a file lies, in bytes on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) len: u64,
}

impl Stretch {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// A volume. Its fields were checked once, and are trusted afterwards.
#[derive(Clone, Debug)]
pub(crate) struct Volume {
    /// Bytes of a logical block.
    pub(crate) block: u64,
    /// The volume's size in bytes, as the descriptor states it.
    pub(crate) space: u64,
    /// Where the root directory begins, in bytes on the device.
    pub(crate) root: u64,
    /// The root directory's length, as the descriptor states it.
    pub(crate) root_len: u64,
    /// Where the little-endian path table lies.
    pub(crate) path_table: Stretch,
    pub(crate) tree: Tree,
}

impl Volume {
    /// Checks a primary or supplementary descriptor. The names are plain.
    ///
    /// # Errors
    /// `Corrupt` naming the first field out of its range.
    pub(crate) fn of(cache: &Cache, descriptor: &VolumeDescriptor) -> Result<Self> {
        let at = DESCRIPTORS * SECTOR;
        let block = u64::from(descriptor.logical_block_size.get());
        if !matches!(block, 512 | 1024 | 2048) {
            let expected = "512, 1024 or 2048";
            return Err(Error::corrupt(
                "logical block size",
                at + 128,
                block.to_string(),
                expected,
            ));
        }
        let root = Record::parse(at + 156, &descriptor.root_directory_record)?;
        let no_root = || Error::corrupt("root directory record", at + 156, "none", "a directory's");
        let root = root.filter(Record::is_dir).ok_or_else(no_root)?;
        let mut volume = Self {
            block,
            space: u64::from(descriptor.volume_space_size.get()) * block,
            root: 0,
            root_len: root.size(),
            path_table: Stretch {
                start: u64::from(descriptor.type_l_path_table.get()) * block,
                len: descriptor.path_table_size.get().into(),
            },
            tree: Tree::Plain,
        };
        volume.root = volume.start(&root);
        let room = cache.size().saturating_sub(volume.root);
        if volume.root < at || room < volume.root_len || volume.root_len == 0 {
            let found = format!("{} bytes at {}", volume.root_len, volume.root);
            let expected = format!("inside of the device's {} bytes", cache.size());
            return Err(Error::corrupt("root directory", at + 156, found, expected));
        }
        Ok(volume)
    }
    /// Returns where the data of a record begin on the device, in bytes. They come after the
    /// extended attribute record.
    pub(crate) fn start(&self, record: &Record) -> u64 {
        let block = u64::from(record.raw.extent_location.get())
            + u64::from(record.raw.extended_attribute_length);
        block * self.block
    }
}
