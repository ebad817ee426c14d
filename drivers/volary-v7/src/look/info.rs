//! The superblock in words.

use crate::disk::ondisk::Variant;
use crate::disk::volume::Volume;
use volary_core::{BlockDevice, Fact, Result};

/// Returns what the volume is.
///
/// # Errors
/// As [`Volume::new`].
pub(crate) fn info(dev: &dyn BlockDevice) -> Result<Vec<Fact>> {
    let volume = Volume::new(dev, None)?;
    let fields = volume.variant.fields();
    let (free, inodes) = volume.totals();
    let data = volume.data();
    let words = match volume.variant {
        Variant::V7 => "UNIX of the Seventh Edition",
        Variant::SysV => "System V, Release 4",
    };
    let blocks = data.end - data.start;
    Ok(vec![
        Fact::word("format", words),
        Fact::word("byte order", volume.order.words()),
        Fact::maybe("label", volume.text(fields.fname)),
        Fact::maybe("pack", volume.text(fields.fpack)),
        Fact::number("block size", volume.bsize, "bytes"),
        Fact::number("volume size", volume.blocks * volume.bsize, "bytes"),
        Fact::number("first block of data", data.start, ""),
        Fact::number("free", u64::from(free).min(blocks) * volume.bsize, "bytes"),
        Fact::number("inodes", volume.inodes.into(), ""),
        Fact::number("free inodes", inodes.into(), ""),
        Fact::word("clean", if volume.is_clean() { "yes" } else { "no" }),
    ])
}
