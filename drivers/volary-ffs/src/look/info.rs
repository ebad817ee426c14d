//! Describes the superblock in words.

use crate::disk::ondisk::{FS_FLAGS, FSMNT, VOLNAME};
use crate::disk::superblock::Found;
use crate::disk::volume::{Variant, Volume};
use std::ops::Range;
use volary_core::{BlockDevice, Fact, Result};

/// Returns facts about the volume.
///
/// # Errors
/// As [`Volume::new`].
pub(crate) fn info(dev: &dyn BlockDevice) -> Result<Vec<Fact>> {
    let found = Found::choose(dev, None)?;
    let volume = Volume::new(found, dev.geometry().size)?;
    let raw = &volume.found.raw;
    let mut facts = vec![
        Fact::word("format", variant_words(volume.variant)),
        Fact::word("byte order", volume.order.word()),
    ];
    facts.push(Fact::maybe("label", label(&volume.found)));
    if let Some(at) = text(&volume.found, FSMNT) {
        facts.push(Fact::word("last mounted at", at));
    }
    let (free, kept) = volume.free();
    let [dirs, _, free_inodes, _] = volume.total;
    facts.extend([
        Fact::number("superblock at", volume.found.at, "bytes"),
        Fact::number("block size", volume.bsize, "bytes"),
        Fact::number("fragment size", volume.fsize, "bytes"),
        Fact::number("volume size", volume.size * volume.fsize, "bytes"),
        Fact::number("free", free, "bytes"),
        Fact::number("kept for root", kept, "bytes"),
        Fact::number("inodes", volume.inodes(), ""),
        Fact::number("free inodes", free_inodes.min(volume.inodes()), ""),
        Fact::number("directories", dirs, ""),
        Fact::number("cylinder groups", volume.ncg, ""),
        Fact::number("fragments per group", volume.fpg, ""),
        Fact::number("inodes per group", volume.ipg, ""),
        Fact::word(
            "optimised for",
            if raw.fs_optim == 0 { "time" } else { "space" },
        ),
        Fact::word("clean", if raw.fs_clean > 0 { "yes" } else { "no" }),
    ]);
    let flags: Vec<&str> = flags(&volume).collect();
    if !flags.is_empty() {
        facts.push(Fact::word("flags", flags.join(", ")));
    }
    Ok(facts)
}

fn variant_words(variant: Variant) -> &'static str {
    match variant {
        Variant::Bsd43 => "FFS of 4.3BSD",
        Variant::Ufs1 => "UFS1",
        Variant::Ufs2 => "UFS2",
    }
}

/// Returns the names of the known flags that are set.
fn flags(volume: &Volume) -> impl Iterator<Item = &'static str> {
    let set = volume.flags();
    let known = FS_FLAGS.iter().filter(move |(bit, _)| set & bit != 0);
    known.map(|&(_, words)| words)
}

/// Returns the volume's name.
pub(crate) fn label(found: &Found) -> Option<String> {
    if found.is_ufs2 || found.has_new_fields() {
        return text(found, VOLNAME);
    }
    None
}

/// Returns the text up to a NUL, escaped for printing.
fn text(found: &Found, range: Range<usize>) -> Option<String> {
    let bytes = found.bytes.get(range)?;
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let bytes = bytes.get(..end).filter(|bytes| !bytes.is_empty())?;
    Some(volary_core::escape(bytes).to_string())
}
