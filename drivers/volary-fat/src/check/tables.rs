//! What concerns the FATs as a whole: their copies, their heads, FSInfo.

use super::boot::fat_bits;
use super::disk::Rank;
use super::findings::{self as code, Where};
use super::mend::Mender;
use super::volume::Volume;
use crate::volume::layout::Layout;
use crate::volume::ondisk::{FSI_LEAD, FSI_STRUC, FSI_TRAIL, FsInfo};
use volary_core::{Kind, Result};
use zerocopy::{FromZeros, IntoBytes};

/// Bytes compared at a time.
const PIECE: usize = 64 << 10;
/// "Not known" in FSInfo.
const UNKNOWN: u32 = u32::MAX;

/// Returns whether both reserved entries are what they must be, but for the marks.
///
/// # Errors
/// `Io`.
pub(super) fn is_head(vol: &mut Volume) -> Result<(bool, bool)> {
    let (zero, one) = (vol.fat.get(0)?, vol.fat.get(1)?);
    Ok(is_head_of(&vol.layout, zero, one))
}

/// Checks the values of both reserved entries: see `is_head`.
pub(super) fn is_head_of(layout: &Layout, zero: u32, one: u32) -> (bool, bool) {
    let (clean, whole) = fat_bits(layout.kind);
    (
        zero == head_value(layout),
        one | clean | whole >= layout.kind.end_min(),
    )
}

fn head_value(layout: &Layout) -> u32 {
    layout.kind.mask() & !0xff | u32::from(layout.media)
}

/// How two copies of the FAT differ, in sectors of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Differ {
    /// Of the second, that differ from the first or cannot be read.
    pub(super) sectors: u64,
    /// Of the first, that cannot be read.
    pub(super) lost: u64,
}

/// Compares a copy with the one gone by; with `mend`, it is made like that.
///
/// # Errors
/// `Io`.
pub(super) fn compare(vol: &mut Volume, from: u8, to: u8, mend: bool) -> Result<Differ> {
    let (source, target) = (vol.layout.fat_offset(from), vol.layout.fat_offset(to));
    let len = vol.fat.len();
    let (mut a, mut b) = (vec![0; PIECE], vec![0; PIECE]);
    let mut differ = Differ::default();
    for at in (0..len).step_by(PIECE) {
        let size = (len - at).min(PIECE as u64) as usize;
        a.truncate(size);
        b.truncate(size);
        differ.lost += vol.fat.read_copy(source, at, &mut a)?.len() as u64;
        let whole = vol.disk.read_raw(target + at, &mut b);
        match whole {
            Ok(()) if a == b => continue,
            Err(e) if e.kind() != Kind::Io => return Err(e),
            _ => {}
        }
        for (i, x) in (0..).zip(a.chunks(512)) {
            let mut y = [0; 512];
            let y = y.get_mut(..x.len()).unwrap_or_default();
            let place = target + at + i * 512;
            if vol.disk.read_raw(place, y).is_ok() && x == y {
                continue;
            }
            differ.sectors += 1;
            if mend {
                vol.disk.write(place, x)?;
            }
        }
    }
    Ok(differ)
}

/// Mends the FATs as a whole, and FSInfo.
pub(super) struct Tables<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
}

impl<'m, 'a, 'r> Tables<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self { mender }
    }

    /// Looks at the two reserved entries.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn head(&mut self, copy: u8) -> Result<()> {
        let (zero, one) = is_head(self.mender.vol)?;
        let at = |n: u64| {
            Where::offset(
                self.mender.vol.layout.fat_offset(copy)
                    + n * u64::from(self.mender.vol.layout.kind.bits()) / 8,
            )
        };
        let (first, second) = (at(0), at(1));
        if !zero {
            let value = head_value(&self.mender.vol.layout);
            let words = format!("the first entry of the FAT is not {value:#x}");
            if self
                .mender
                .reporter
                .tell(code::FAT_HEAD, 0, first, words, "sets it to that")
            {
                self.mender.vol.set_link(0, value)?;
            }
        }
        if !one {
            let (clean, whole) = fat_bits(self.mender.vol.layout.kind);
            let value = self.mender.vol.fat.end() & !(clean | whole)
                | self.mender.vol.fat.get(1)? & (clean | whole);
            let words = "the second entry of the FAT is no end of a chain".into();
            if self.mender.reporter.tell(
                code::FAT_HEAD,
                1,
                second,
                words,
                format!("sets it to {value:#x}"),
            ) {
                self.mender.vol.set_link(1, value)?;
            }
        }
        Ok(())
    }

    /// Compares the copies of the FAT with the one that is gone by; whether
    /// they are to be made alike.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn copies(&mut self, copy: u8) -> Result<bool> {
        let mut alike = true;
        if !self.mender.vol.layout.mirrored {
            return Ok(false);
        }
        for other in (0..self.mender.vol.layout.fat_count).filter(|&o| o != copy) {
            let Differ {
                sectors: differ,
                lost,
            } = compare(self.mender.vol, copy, other, false)?;
            if lost > 0 && !self.mender.vol.fat.to_restore {
                let words = format!("{lost} sectors of FAT {} cannot be read", copy + 1);
                let at = Where::offset(self.mender.vol.layout.fat_offset(copy));
                let repair = "writes them again from another copy";
                self.mender.vol.fat.to_restore |=
                    self.mender
                        .reporter
                        .tell(code::FAT_UNREADABLE, 0, at, words, repair);
            }
            if differ == 0 {
                continue;
            }
            let words = format!(
                "FAT {} differs from FAT {} in {differ} sectors",
                other + 1,
                copy + 1
            );
            let at = Where::offset(self.mender.vol.layout.fat_offset(other));
            let repair = format!("makes it like FAT {}", copy + 1);
            alike &= self
                .mender
                .reporter
                .tell(code::FATS_DIFFER, other.into(), at, words, repair);
        }
        Ok(alike)
    }

    /// Looks at FSInfo, which must say what the FAT says.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn fsinfo(&mut self) -> Result<()> {
        let Mender {
            vol,
            walk,
            reporter,
        } = &mut *self.mender;
        let Some(sector) = vol.layout.fsinfo_sector else {
            return Ok(());
        };
        let offset = u64::from(sector) * u64::from(vol.layout.sector_len);
        let mut info = FsInfo::new_zeroed();
        match vol.disk.read(offset, info.as_mut_bytes()) {
            // As if there were nothing there.
            Err(e) if e == Kind::Io => info = FsInfo::new_zeroed(),
            done => done?,
        }
        let at = || Where::offset(offset);
        let mut changed = false;
        let free = walk.counts.free;
        let signatures = (
            info.FSI_LeadSig.get(),
            info.FSI_StrucSig.get(),
            info.FSI_TrailSig.get(),
        );
        if signatures != (FSI_LEAD, FSI_STRUC, FSI_TRAIL) {
            let words = "the signatures of FSInfo are wrong".into();
            if !reporter.tell(code::FSINFO, 0, at(), words, "writes it anew") {
                return Ok(());
            }
            info.FSI_LeadSig.set(FSI_LEAD);
            info.FSI_StrucSig.set(FSI_STRUC);
            info.FSI_TrailSig.set(FSI_TRAIL);
            info.FSI_Free_Count.set(free);
            info.FSI_Nxt_Free.set(UNKNOWN);
            changed = true;
        }
        let said = info.FSI_Free_Count.get();
        if said != free {
            let words = format!("FSInfo says that {said} clusters are free, but {free} are");
            if reporter.tell(code::FREE_COUNT, 0, at(), words, "sets it right") {
                info.FSI_Free_Count.set(free);
                changed = true;
            }
        }
        let next = info.FSI_Nxt_Free.get();
        if next != UNKNOWN && !vol.layout.is_cluster(next) {
            let words = format!("FSInfo looks for free clusters from {next} on, which is none");
            if reporter.tell(code::NEXT_FREE, 0, at(), words, "sets it to 'not known'") {
                info.FSI_Nxt_Free.set(UNKNOWN);
                changed = true;
            }
        }
        if changed {
            // The marks are taken away last, when this is durable.
            vol.disk.edit(offset, info.as_bytes(), Rank::Late)?;
        }
        Ok(())
    }
}
