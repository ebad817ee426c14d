//! Describes a volume in words.

use crate::disk::ondisk::vflag;
use crate::disk::volume::Volume;
use crate::files::bitmap::free;
use crate::state::{About, Log};
use crate::store::Store;
use std::sync::Arc;
use volary_core::{BlockDevice, Fact, Result};

/// The memory for inspecting a volume, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 4 << 20;

/// Opens a volume to inspect it.
///
/// # Errors
/// `Corrupt` for the boot sector; those of [`Store::open`].
pub(crate) fn look(dev: &Arc<dyn BlockDevice>) -> Result<Store> {
    Store::open(dev.clone(), Volume::read(&**dev)?, LOOK_MEMORY)
}

/// Returns facts about the volume. Damage behind the boot sector becomes a fact, too.
///
/// # Errors
/// Those of [`Volume::read`].
pub(crate) fn info(dev: &Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
    let volume = Volume::read(&**dev)?;
    let store = Store::open(dev.clone(), volume, LOOK_MEMORY);
    let mut facts = vec![Fact::word("format", "ntfs")];
    match &store {
        Ok(store) => facts.extend(about(store)),
        Err(e) => facts.push(Fact::word("damage", e.to_string())),
    }
    let serial = volume.boot.serial.get();
    facts.push(Fact::word("serial number", format!("{serial:016x}")));
    facts.push(Fact::number("sector size", volume.sector, "bytes"));
    facts.push(Fact::number("cluster size", volume.cluster, "bytes"));
    facts.push(Fact::number("volume size", volume.size(), "bytes"));
    if volume.size() > volume.device {
        let missing = volume.size() - volume.device;
        facts.push(Fact::number("missing at the end", missing, "bytes"));
    }
    facts.push(Fact::number("clusters", volume.clusters, ""));
    facts.push(Fact::number("record size", volume.record as u64, "bytes"));
    facts.push(Fact::number(
        "index block size",
        volume.index as u64,
        "bytes",
    ));
    facts.push(Fact::number("$MFT at cluster", volume.mft, ""));
    facts.push(Fact::number("$MFTMirr at cluster", volume.mirror, ""));
    if let Ok(store) = &store {
        facts.extend(table(store));
    }
    Ok(facts)
}

fn about(store: &Store) -> Vec<Fact> {
    let about = match About::read(store.mft()) {
        Ok(about) => about,
        Err(e) => return vec![Fact::word("damage", e.to_string())],
    };
    let label = volary_core::escape(&about.label).to_string();
    let state = match about.flags & vflag::DIRTY {
        0 => "clean",
        _ => "has to be checked",
    };
    let log = match Log::read(store.mft()) {
        Ok(log) => log.words().to_owned(),
        Err(e) => e.to_string(),
    };
    vec![
        Fact::maybe("label", Some(label).filter(|label| !label.is_empty())),
        Fact::word(
            "version",
            format!("{}.{}", about.version.0, about.version.1),
        ),
        Fact::word("state", state),
        Fact::word("log", log),
    ]
}

fn table(store: &Store) -> Vec<Fact> {
    let (clusters, records) = free(store.mft());
    let bytes = clusters.saturating_mul(store.volume().cluster);
    vec![
        Fact::number("records", store.mft().count(), ""),
        Fact::number(
            "pieces of $MFT",
            store.mft().table().runs().len() as u64,
            "",
        ),
        Fact::number("free", bytes, "bytes"),
        Fact::number("free records", records, ""),
    ]
}
