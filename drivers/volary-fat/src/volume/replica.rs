//! Finds a FAT32 volume by the copy of its boot sector, where the first one makes no sense.

use crate::volume::layout::Layout;
use volary_core::{BlockDevice, Kind, Replica, Result};

/// The sector of the copy, as the specification has it (page 12). Where the first boot sector
/// has gone, nothing says that it is in another.
const BACKUP: u32 = 6;

/// Returns a copy to go by: `None` where the first boot sector makes sense, or there is none.
///
/// # Errors
/// `Io`.
pub(crate) fn find(dev: &dyn BlockDevice) -> Result<Option<Replica>> {
    match Layout::read(dev) {
        Err(e) if e == Kind::Corrupt => {}
        Err(e) if e == Kind::Io => return Err(e),
        _ => return Ok(None),
    }
    for sector_len in [512, 1024, 2048, 4096] {
        if let Some(replica) = with(dev, sector_len)? {
            return Ok(Some(replica));
        }
    }
    Ok(None)
}

/// Returns the copy in sectors of this length, if it says that it is one and a FAT is where it says.
fn with(dev: &dyn BlockDevice, sector_len: u32) -> Result<Option<Replica>> {
    let (at, size) = (u64::from(BACKUP * sector_len), dev.geometry().size);
    let mut sector = [0; 512];
    if at + 512 > size {
        return Ok(None);
    }
    dev.read_at(at, &mut sector)?;
    let Ok(layout) = Layout::parse(&sector, size) else {
        return Ok(None);
    };
    let is_copy = layout.is_fat32()
        && layout.sector_len == sector_len
        && layout.backup_sector == Some(BACKUP);
    if !is_copy || !has_fat(dev, &layout)? {
        return Ok(None);
    }
    Ok(Some(Replica {
        kind: layout.kind.name(),
        what: "boot sector",
        at,
        home: 0,
        bytes: sector.to_vec(),
        is_confirmed: true,
    }))
}

/// Returns whether one of the FATs begins as each does: with the media descriptor, and ones.
fn has_fat(dev: &dyn BlockDevice, layout: &Layout) -> Result<bool> {
    for copy in 0..layout.fat_count {
        let mut entry = [0; 4];
        dev.read_at(layout.fat_offset(copy), &mut entry)?;
        if u32::from_le_bytes(entry) & 0x0fff_ffff == 0x0fff_ff00 | u32::from(layout.media) {
            return Ok(true);
        }
    }
    Ok(false)
}
