//! Putting a plan on the device.

use super::boot::{self, FSINFO_SECTOR, ROOT_CLUSTER};
use super::plan::Plan;
use crate::unix::owner::{HEAD_LEN, OwnerTable, TABLE_NAME};
use crate::volume::layout::{FatKind, Layout};
use crate::volume::ondisk::{DirEntry, FSI_LEAD, FSI_STRUC, FSI_TRAIL, FsInfo, Short, attr};
use volary_core::{BlockDevice, Result};
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromZeros, IntoBytes};

/// Writes the volume and flushes it.
///
/// # Errors
/// `Io` and what else the device answers.
pub(super) fn write(dev: &dyn BlockDevice, plan: &Plan<'_>, layout: &Layout) -> Result<()> {
    let sector = u64::from(plan.sector_len);
    // Without its boot sector an old volume is gone: nothing mixed can be
    // taken for one.
    dev.write_at(0, &vec![0; plan.sector_len as usize])?;
    dev.flush()?;
    dev.zero(sector, layout.cluster_offset(2) - sector)?;
    let head = fat_head(plan);
    for copy in 0..plan.fat_count {
        dev.write_at(layout.fat_offset(copy), &head)?;
    }
    write_root(dev, plan, layout)?;
    if plan.kind == FatKind::Fat32 {
        let fsinfo = fsinfo(plan);
        dev.write_at(u64::from(FSINFO_SECTOR) * sector, fsinfo.as_bytes())?;
        if plan.backup != 0 {
            let backup = u64::from(plan.backup) * sector;
            dev.write_at(backup, &boot::sector(plan))?;
            dev.write_at(backup + sector, fsinfo.as_bytes())?;
        }
    }
    dev.flush()?;
    dev.write_at(0, &boot::sector(plan))?;
    dev.flush()
}

/// Returns the start of each FAT: the two entries that are no clusters, then the
/// clusters in use from the start, each a chain by itself.
fn fat_head(plan: &Plan<'_>) -> Vec<u8> {
    let end = plan.kind.mask();
    let first = (end & !0xff) | u32::from(plan.media);
    let entries = [first, end].into_iter();
    let entries = entries.chain(std::iter::repeat_n(end, plan.used_clusters() as usize));
    let mut out = Vec::new();
    let mut half = None;
    for entry in entries {
        match (plan.kind, half.take()) {
            (FatKind::Fat32, _) => out.extend_from_slice(&entry.to_le_bytes()),
            (FatKind::Fat16, _) => out.extend_from_slice(&(entry as u16).to_le_bytes()),
            (FatKind::Fat12, None) => half = Some(entry),
            (FatKind::Fat12, Some(low)) => push_pair(&mut out, low, entry),
        }
    }
    if let Some(low) = half {
        push_pair(&mut out, low, 0);
    }
    out
}

/// Two entries of FAT12 in three bytes.
fn push_pair(out: &mut Vec<u8>, low: u32, high: u32) {
    let [a, b, c, _] = (low | high << 12).to_le_bytes();
    out.extend_from_slice(&[a, b, c]);
}

/// The entries that a new root directory has, and the table of owners.
fn write_root(dev: &dyn BlockDevice, plan: &Plan<'_>, layout: &Layout) -> Result<()> {
    let cluster_len = u64::from(layout.cluster_len);
    let fat32 = layout.is_fat32();
    let mut entries = Vec::new();
    if let Some(label) = plan.request.label {
        entries.extend_from_slice(entry(plan, label, attr::VOLUME_ID).as_bytes());
    }
    if plan.request.unix {
        let owners = ROOT_CLUSTER + u32::from(fat32);
        let bits = attr::HIDDEN | attr::SYSTEM | attr::READ_ONLY;
        let mut file = entry(plan, TABLE_NAME, bits);
        file.set_first_cluster(owners, fat32);
        file.DIR_FileSize = U32::new(HEAD_LEN as u32);
        entries.extend_from_slice(file.as_bytes());
        let at = layout.cluster_offset(owners);
        dev.zero(at, cluster_len)?;
        dev.write_at(at, &OwnerTable::head())?;
    }
    let root = if fat32 {
        let at = layout.cluster_offset(ROOT_CLUSTER);
        dev.zero(at, cluster_len)?;
        at
    } else {
        layout.root_offset()
    };
    dev.write_at(root, &entries)
}

fn entry(plan: &Plan<'_>, name: Short, attr: u8) -> DirEntry {
    let stamp = plan.request.stamp;
    let mut entry = DirEntry::new_zeroed();
    entry.DIR_Name = name;
    entry.DIR_Attr = attr;
    entry.DIR_WrtDate = U16::new(stamp.date);
    entry.DIR_WrtTime = U16::new(stamp.time);
    entry
}

fn fsinfo(plan: &Plan<'_>) -> FsInfo {
    let used = plan.used_clusters();
    FsInfo {
        FSI_LeadSig: U32::new(FSI_LEAD),
        FSI_Reserved1: [0; 480],
        FSI_StrucSig: U32::new(FSI_STRUC),
        FSI_Free_Count: U32::new(plan.clusters.saturating_sub(used)),
        FSI_Nxt_Free: U32::new(1 + used),
        FSI_Reserved2: [0; 12],
        FSI_TrailSig: U32::new(FSI_TRAIL),
    }
}
