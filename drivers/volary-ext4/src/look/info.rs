//! The superblock and the journal in words.

use crate::attached::open::{How, open};
use crate::disk::features;
use crate::disk::ondisk::{compat, incompat, ro_compat, state};
use crate::disk::volume::{Volume, kind_of};
use crate::journal::superblock::Journal;
use crate::store::Store;
use std::sync::Arc;
use volary_core::{BlockDevice, Fact, Result};

/// Memory for looking at a volume, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 4 << 20;

/// How a volume is looked at: with what its journal holds.
pub(crate) const LOOK: How = How {
    replays: true,
    is_verified: true,
};

/// Returns a field of characters up to its first NUL, safe to print.
pub(crate) fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    volary_core::escape(text).to_string()
}

/// Returns a UUID as it is written.
pub(crate) fn uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default().to_owned();
    [
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    ]
    .join("-")
}

/// Returns what the volume is.
///
/// # Errors
/// As [`Volume::read`].
pub(crate) fn info(dev: &Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
    let volume = Volume::read(&**dev, false)?;
    let raw = &volume.raw;
    let mut facts = vec![Fact::word("format", kind_of(raw))];
    let label = text(&raw.s_volume_name);
    facts.push(Fact::maybe(
        "label",
        Some(label).filter(|label| !label.is_empty()),
    ));
    facts.push(Fact::word("UUID", uuid(&raw.s_uuid)));
    facts.push(Fact::word("features", features_of(&volume)));
    facts.push(Fact::number("block size", volume.block, "bytes"));
    if volume.has_ro(ro_compat::BIGALLOC) {
        let size = volume.cluster.saturating_mul(volume.block);
        facts.push(Fact::number("cluster size", size, "bytes"));
    }
    let size = volume.blocks.saturating_mul(volume.block);
    facts.push(Fact::number("volume size", size, "bytes"));
    if size > volume.device {
        let missing = size - volume.device;
        facts.push(Fact::number("missing at the end", missing, "bytes"));
    }
    facts.push(Fact::number("groups", volume.groups.into(), ""));
    facts.push(Fact::number("inodes", volume.inodes.into(), ""));
    facts.push(Fact::number(
        "inode size",
        volume.inode_size as u64,
        "bytes",
    ));
    facts.push(Fact::word("checksums", checksums(&volume)));
    facts.push(Fact::word("state", state_of(&volume)));
    facts.push(Fact::word("encryption", told(&volume, incompat::ENCRYPT)));
    facts.push(Fact::word("casefold", told(&volume, incompat::CASEFOLD)));
    facts.push(Fact::word("journal", journal(dev, &volume)));
    match open(dev, LOOK, LOOK_MEMORY) {
        Ok(store) => facts.extend(free(&store)),
        Err(e) => facts.push(Fact::word("damage", e.to_string())),
    }
    let last = text(&raw.s_last_mounted);
    facts.push(Fact::maybe(
        "last mounted at",
        Some(last).filter(|last| !last.is_empty()),
    ));
    facts.push(Fact::number("mounts", raw.s_mnt_count.get().into(), ""));
    facts.push(Fact::number(
        "errors told",
        raw.s_error_count.get().into(),
        "",
    ));
    Ok(facts)
}

fn features_of(volume: &Volume) -> String {
    let raw = &volume.raw;
    let all = [
        features::compat(raw.s_feature_compat.get()),
        features::incompat(raw.s_feature_incompat.get()),
        features::ro_compat(raw.s_feature_ro_compat.get()),
    ];
    let all: Vec<_> = all.into_iter().filter(|names| !names.is_empty()).collect();
    all.join(" ")
}

fn checksums(volume: &Volume) -> &'static str {
    if volume.has_sums() {
        "metadata (crc32c)"
    } else if volume.has_ro(ro_compat::GDT_CSUM) {
        "group descriptors (crc16)"
    } else {
        "none"
    }
}

fn state_of(volume: &Volume) -> String {
    let bits = volume.raw.s_state.get();
    let mut words = vec![match bits & state::CLEAN {
        0 => "not cleanly left",
        _ => "clean",
    }];
    if bits & state::ERRORS != 0 {
        words.push("with errors");
    }
    if volume.has_incompat(incompat::RECOVER) {
        words.push("the journal has to be replayed");
    }
    words.join(", ")
}

fn told(volume: &Volume, flag: u32) -> &'static str {
    match volume.has_incompat(flag) {
        true => "yes",
        false => "no",
    }
}

fn journal(dev: &Arc<dyn BlockDevice>, volume: &Volume) -> String {
    if !volume.has_compat(compat::HAS_JOURNAL) {
        return "none".into();
    }
    if volume.raw.s_journal_inum.get() == 0 {
        return format!("on another device, {}", uuid(&volume.raw.s_journal_uuid));
    }
    let store = Store::plain(dev.clone(), volume.clone(), LOOK_MEMORY);
    match Journal::read(&store) {
        Err(e) => e.to_string(),
        Ok(journal) => {
            let fast = journal.end - journal.log_end;
            let state = if journal.is_empty() {
                "empty"
            } else {
                "in use"
            };
            let sums = match (journal.has_sums(), journal.has_old_sums()) {
                (true, _) => "crc32c",
                (_, true) => "crc32",
                _ => "no checksums",
            };
            format!(
                "{} blocks, {fast} of them for fast commits, {sums}, {state}",
                journal.end
            )
        }
    }
}

fn free(store: &Store) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(replayed) = store.blocks().replayed() {
        let words = format!(
            "{} transactions, {} blocks{}",
            replayed.transactions,
            replayed.copies.len(),
            if store.fast().is_empty() {
                ""
            } else {
                ", fast commits"
            }
        );
        facts.push(Fact::word("replayed in memory", words));
    }
    if let Ok((clusters, inodes)) = store.groups().free() {
        let bytes = clusters
            .saturating_mul(store.volume().cluster)
            .saturating_mul(store.volume().block);
        facts.push(Fact::number("free", bytes, "bytes"));
        facts.push(Fact::number("free inodes", inodes, ""));
    }
    facts
}
