//! What a volume says of itself beside its files: "not cleanly left", in the
//! boot sector and in entry 1 of the FAT, and the FSInfo sector.

use crate::table::fat::Table;
use crate::volume::layout::{FatKind, Layout};
use crate::volume::ondisk::{
    CLEAN_SHUT_16, CLEAN_SHUT_32, FSI_LEAD, FSI_STRUC, FSI_TRAIL, FsInfo, NO_HARD_ERR_16,
    NO_HARD_ERR_32, STATE_DIRTY, STATE_ERROR, tail_offset,
};
use volary_core::{BlockDevice, Kind, Result};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// Returns the bits of entry 1 of the FAT that say "cleanly left"; FAT12 has none.
pub(crate) fn clean_bits(kind: FatKind) -> u32 {
    match kind {
        FatKind::Fat12 => 0,
        FatKind::Fat16 => CLEAN_SHUT_16,
        FatKind::Fat32 => CLEAN_SHUT_32,
    }
}

/// Returns whether a mark says that the volume was not cleanly left, or that its disk
/// failed.
///
/// # Errors
/// `Io`.
pub(crate) fn is_dirty(layout: &Layout, table: &Table) -> Result<bool> {
    let bits = match layout.kind {
        FatKind::Fat12 => 0,
        FatKind::Fat16 => CLEAN_SHUT_16 | NO_HARD_ERR_16,
        FatKind::Fat32 => CLEAN_SHUT_32 | NO_HARD_ERR_32,
    };
    Ok(layout.state & (STATE_DIRTY | STATE_ERROR) != 0 || !table.has_marks(bits)?)
}

/// Makes the dirty mark durable.
///
/// # Errors
/// `Io`.
pub(crate) fn set_dirty(dev: &dyn BlockDevice, layout: &Layout, table: &Table) -> Result<()> {
    boot_sector(dev, layout, true)?;
    table.mark(clean_bits(layout.kind), false)?;
    table.write()?;
    dev.flush()
}

/// Brings the copies of the FAT up to date and, if `clean`, makes the clean
/// mark durable. Everything else must be durable.
///
/// The copies get the mark first: while the FAT that counts still says dirty,
/// nobody believes them.
///
/// # Errors
/// `Io`.
pub(crate) fn finish(
    dev: &dyn BlockDevice,
    layout: &Layout,
    table: &Table,
    clean: bool,
) -> Result<()> {
    if clean {
        table.mark(clean_bits(layout.kind), true)?;
    }
    table.write_copies()?;
    dev.flush()?;
    table.write()?;
    if clean {
        boot_sector(dev, layout, false)?;
    }
    dev.flush()
}

/// Sets or clears the dirty bit of the boot sector; no flush. Old boot sectors
/// have no room for it.
///
/// # Errors
/// `Io`.
fn boot_sector(dev: &dyn BlockDevice, layout: &Layout, dirty: bool) -> Result<()> {
    if layout.serial.is_none() {
        return Ok(());
    }
    let mut sector = vec![0; layout.sector_len as usize];
    dev.read_at(0, &mut sector)?;
    let Some(byte) = sector.get_mut(tail_offset(layout.is_fat32()) + 1) else {
        return Ok(());
    };
    let new = if dirty {
        *byte | STATE_DIRTY
    } else {
        *byte & !STATE_DIRTY
    };
    if new == *byte {
        return Ok(());
    }
    *byte = new;
    dev.write_at(0, &sector)
}

/// Returns what the FSInfo sector says: free clusters, and where to look first.
/// `None` if there is no such sector, it does not look like one or cannot be read:
/// these are hints only.
///
/// # Errors
/// `Invalid`.
pub(crate) fn read_fsinfo(dev: &dyn BlockDevice, layout: &Layout) -> Result<Option<FreeHints>> {
    let Some(sector) = layout.fsinfo_sector else {
        return Ok(None);
    };
    let mut info = FsInfo::new_zeroed();
    let at = u64::from(sector) * u64::from(layout.sector_len);
    match dev.read_at(at, info.as_mut_bytes()) {
        Err(e) if e == Kind::Io => return Ok(None),
        done => done?,
    }
    let known = |n: U32| Some(n.get()).filter(|&n| n != u32::MAX);
    Ok(is_fsinfo(&info).then(|| FreeHints {
        count: known(info.FSI_Free_Count),
        next: known(info.FSI_Nxt_Free),
    }))
}

/// What became of an FSInfo sector that was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hints {
    /// It says what the table knows now.
    Written,
    /// It did before, or the volume has none.
    Same,
    /// It cannot be read, and may say what was true once.
    Unreadable,
}

/// Writes what the table knows to the FSInfo sector, if there is one that looks
/// like one and can be read. No flush.
///
/// # Errors
/// `Io`.
pub(crate) fn write_fsinfo(dev: &dyn BlockDevice, layout: &Layout, table: &Table) -> Result<Hints> {
    let Some(sector) = layout.fsinfo_sector else {
        return Ok(Hints::Same);
    };
    let offset = u64::from(sector) * u64::from(layout.sector_len);
    let mut bytes = vec![0; layout.sector_len as usize];
    match dev.read_at(offset, &mut bytes) {
        Err(e) if e == Kind::Io => return Ok(Hints::Unreadable),
        done => done?,
    }
    let Ok((info, _)) = FsInfo::mut_from_prefix(&mut bytes) else {
        return Ok(Hints::Same);
    };
    if !is_fsinfo(info) {
        return Ok(Hints::Same);
    }
    let (free, next) = table.hints();
    let free = free.unwrap_or(u32::MAX);
    if info.FSI_Free_Count.get() == free && info.FSI_Nxt_Free.get() == next {
        return Ok(Hints::Same);
    }
    info.FSI_Free_Count.set(free);
    info.FSI_Nxt_Free.set(next);
    dev.write_at(offset, &bytes)?;
    Ok(Hints::Written)
}

/// What an FSInfo sector says: a hint, not the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeHints {
    /// Free clusters.
    pub(crate) count: Option<u32>,
    /// Where to look first.
    pub(crate) next: Option<u32>,
}

fn is_fsinfo(info: &FsInfo) -> bool {
    info.FSI_LeadSig.get() == FSI_LEAD
        && info.FSI_StrucSig.get() == FSI_STRUC
        && info.FSI_TrailSig.get() == FSI_TRAIL
}
