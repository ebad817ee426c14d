//! What a walk looks at in one entry of a directory.

use super::volume::{Dir, Volume, is_dots};
use super::walk::{Chain, Stop, Walk, What};
use crate::names::record::{Long, Record};
use crate::table::halves;
use crate::unix::owner::TABLE_NAME;
use crate::unix::today::UnixData;
use crate::volume::judge;
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN, FREE, LongEntry, attr};
use volary_core::Result;
use zerocopy::transmute_ref;

/// In `DIR_NTRes`: some Linux kernels' mark of a name that is none of 8.3.
/// fsck.fat goes by it.
pub(super) const NT_NO_SHORT: u8 = 0x20;

/// Values of byte 13 from here on are none of a time.
const HUNDREDTHS: u8 = 200;

/// Characters that no long name has.
pub(super) fn is_long_unit(unit: u16) -> bool {
    !matches!(
        unit,
        0..0x20 | 0x22 | 0x2a | 0x2f | 0x3a | 0x3c | 0x3e | 0x3f | 0x5c | 0x7c
    )
}

impl Walk {
    /// Looks at an entry and follows its chain.
    pub(super) fn record(
        &mut self,
        vol: &mut Volume,
        number: u32,
        record: &Record<'_>,
    ) -> Result<()> {
        let entry = &record.short;
        let (first, slot) = (record.first_slot, record.slot);
        let extended = vol.paper && entry.DIR_Attr & crate::unix::paper::EXTENDED != 0;
        if number != 0 && is_dots(record) {
            if self.reset && extended {
                self.note(What::UnixData, number, first, slot);
            }
            return Ok(());
        }
        if self.is_stray_dot(vol, number, entry) {
            self.note(What::StrayDot, number, first, slot);
            return Ok(());
        }
        if entry.is_label() {
            return self.label(vol, number, first, slot, entry);
        }
        self.marks.add(&vol.names, record);
        if !judge::is_short_name(&entry.DIR_Name) && !vol.paper {
            self.note(What::ShortName, number, first, slot);
        }
        if let Long::Vfat(units) = record.long
            && !units.iter().all(|&u| is_long_unit(u))
        {
            self.note(What::LongName, number, first, slot);
        }
        if !extended {
            self.small_fields(number, first, slot, entry);
        }
        if number == 0 && entry.DIR_Name == TABLE_NAME {
            self.owners = Some(slot);
        }
        let tailed = vol.paper && crate::unix::paper::has_tail(entry);
        if self.reset && (extended || tailed || UnixData::read(entry).is_some()) {
            self.note(What::UnixData, number, first, slot);
        }
        if entry.is_dir() {
            self.subdirectory(vol, number, first, slot, entry)
        } else {
            self.files += 1;
            self.file(vol, number, first, slot, entry)
        }
    }

    /// Returns whether an entry is one that belongs into the first two slots.
    fn is_stray_dot(&self, vol: &Volume, number: u32, entry: &DirEntry) -> bool {
        let (dir, above) = self.around(number);
        let start = match entry.DIR_Name {
            DOT => dir,
            DOT_DOT => above,
            _ => return false,
        };
        number != 0 && entry.is_dir() && vol.start(entry) == start
    }

    /// Returns the first cluster of a directory and of the one that it is in; 0 for the root.
    fn around(&self, number: u32) -> (u32, u32) {
        let dir = self.dirs.get(number as usize);
        let parent = dir.filter(|d| d.parent != 0);
        let parent = parent.and_then(|d| self.dirs.get(d.parent as usize));
        (
            dir.map_or(0, |d| d.cluster),
            parent.map_or(0, |p| p.cluster),
        )
    }

    fn small_fields(&mut self, number: u32, first: u32, slot: u32, entry: &DirEntry) {
        if entry.DIR_NTRes & NT_NO_SHORT != 0 && entry.DIR_Attr & crate::unix::paper::EXTENDED == 0
        {
            self.note(What::NtBits, number, first, slot);
        }
        if !is_date(entry.DIR_WrtDate.get(), entry.DIR_WrtTime.get()) {
            self.note(What::BadDate, number, first, slot);
        }
        let birth = entry.DIR_CrtTimeTenth >= HUNDREDTHS || UnixData::is_in_range(entry);
        if birth && UnixData::read(entry).is_none() {
            self.note(What::UnixCheck, number, first, slot);
        }
    }

    fn subdirectory(
        &mut self,
        vol: &mut Volume,
        number: u32,
        first: u32,
        slot: u32,
        entry: &DirEntry,
    ) -> Result<()> {
        if entry.DIR_FileSize.get() != 0 {
            self.note(What::DirSize, number, first, slot);
        }
        let start = vol.start(entry);
        let chain = self.claim(vol, start, u32::MAX)?;
        match half_problem(vol, &chain) {
            Some(what @ What::Half { value, .. }) if !vol.layout.is_cluster(value) => {
                self.note(what, number, first, slot);
            }
            _ => self.chain_problem(vol, start, &chain, number, first, slot)?,
        }
        if chain.clusters > 0 {
            let new = self.dirs.len() as u32;
            self.dirs.push(Dir {
                cluster: start,
                clusters: chain.clusters,
                parent: number,
                first,
                slot,
            });
            self.check_length(vol, new, chain.clusters);
        }
        Ok(())
    }

    fn file(
        &mut self,
        vol: &mut Volume,
        number: u32,
        first: u32,
        slot: u32,
        entry: &DirEntry,
    ) -> Result<()> {
        let size = entry.DIR_FileSize.get();
        let start = vol.start(entry);
        // In the paper's layout an empty file owns a cluster.
        let need = vol.need(size).max(u32::from(vol.paper && start != 0));
        if start == 0 {
            if size != 0 {
                self.note(What::NoChain, number, first, slot);
            }
            return Ok(());
        }
        let chain = self.claim(vol, start, need)?;
        let own = match chain.stop {
            Stop::Met(at) => self.is_own(vol, start, &chain, at)?,
            _ => true,
        };
        let half = half_problem(vol, &chain).filter(|_| own && chain.clusters >= need);
        match half.or_else(|| length_problem(need, &chain)) {
            Some(what) => {
                self.note(what, number, first, slot);
                Ok(())
            }
            None => self.chain_problem(vol, start, &chain, number, first, slot),
        }
    }

    fn label(
        &mut self,
        vol: &mut Volume,
        number: u32,
        first: u32,
        slot: u32,
        entry: &DirEntry,
    ) -> Result<()> {
        let start = vol.start(entry);
        let size = entry.DIR_FileSize.get();
        if start != 0 || size != 0 {
            let real = vol.layout.is_cluster(start)
                && vol.fat.get(start)? != 0
                && !self.used.has(start)
                && (size != 0 || entry.DIR_Attr & attr::DIRECTORY != 0);
            let what = if real {
                What::VolumeId
            } else {
                What::LabelData
            };
            self.note(what, number, first, slot);
            return Ok(());
        }
        if number != 0 || self.label.is_some() {
            self.note(What::LabelPlace, number, first, slot);
            return Ok(());
        }
        self.label = Some(slot);
        if !is_label_name(&entry.DIR_Name) {
            self.note(What::LabelName, number, first, slot);
        }
        Ok(())
    }

    /// Looks at the first two slots of a directory that is not the root.
    pub(super) fn dots(&mut self, vol: &Volume, number: u32, dir: &Dir, part: &[u8]) {
        let (slots, _) = part.as_chunks::<ENTRY_LEN>();
        let above = self.around(number).1;
        for (slot, name, start) in [(0, DOT, dir.cluster), (1, DOT_DOT, above)] {
            let Some(raw) = slots.get(slot as usize) else {
                continue;
            };
            let entry: &DirEntry = transmute_ref!(raw);
            if entry.DIR_Name != name || !entry.is_dir() || entry.is_long() {
                self.note(What::Dot, number, slot, slot);
            } else if vol.start(entry) != start {
                let what = if slot == 0 { What::Dot } else { What::DotDot };
                self.note(what, number, slot, slot);
            } else if entry.DIR_FileSize.get() != 0 {
                self.note(What::Dot, number, slot, slot);
            }
        }
    }

    /// Looks at what must be zero in parts of long names.
    pub(super) fn long_fields(&mut self, number: u32, slot: u32, ended: bool, part: &[u8]) {
        if ended {
            return;
        }
        let (slots, _) = part.as_chunks::<ENTRY_LEN>();
        for (i, raw) in slots.iter().enumerate() {
            let part: &LongEntry = transmute_ref!(raw);
            if part.LDIR_Attr & attr::LONG_NAME_MASK != attr::LONG_NAME || part.LDIR_Ord == FREE {
                if part.LDIR_Ord == 0 {
                    return;
                }
                continue;
            }
            if part.LDIR_Ord == 0 {
                return;
            }
            if part.LDIR_Type != 0
                || part.LDIR_FstClusLO.get() != 0
                || part.LDIR_Attr != attr::LONG_NAME
            {
                let slot = slot + i as u32;
                self.note(What::LongField, number, slot, slot);
            }
        }
    }
}

/// Returns whether a chain goes where it cannot since one half of its last link was not
/// written, as far as the link itself says that.
fn half_problem(vol: &Volume, chain: &Chain) -> Option<What> {
    let (last, value) = match chain.stop {
        Stop::Wrong(value) | Stop::Met(value) if chain.last != 0 => (chain.last, value),
        _ => return None,
    };
    let what = What::Half { last, value };
    halves::is_half_an_end(vol.layout.kind, last, value).then_some(what)
}

/// Returns what is wrong between a size and a chain that ends well, or in free clusters
/// after the part that the size needs: so much a crash can leave.
fn length_problem(need: u32, chain: &Chain) -> Option<What> {
    let (clusters, last) = (chain.clusters, chain.needed);
    match chain.stop {
        Stop::End | Stop::Free(_) if need == 0 && clusters > 0 => Some(What::SizeZero),
        Stop::End if clusters > need => Some(What::Excess { last, clean: true }),
        Stop::Free(_) if need > 0 && clusters >= need => Some(What::Excess { last, clean: false }),
        Stop::End if clusters < need => Some(What::SizeLong { clusters }),
        _ => None,
    }
}

/// Returns whether a date and a time are in their ranges; no date at all is as well.
fn is_date(date: u16, time: u16) -> bool {
    let (day, month) = (date & 31, date >> 5 & 15);
    let (half, minute, hour) = (time & 31, time >> 5 & 63, time >> 11);
    date == 0 || day != 0 && (1..=12).contains(&month) && half < 30 && minute < 60 && hour < 24
}

/// Returns whether a label is one that other systems take.
pub(super) fn is_label_name(name: &[u8; 11]) -> bool {
    let first = name.first().copied().unwrap_or(b' ');
    first != b' '
        && name
            .iter()
            .enumerate()
            .all(|(i, &b)| is_label_byte(b) || (i == 0 && b == 5))
}

/// Returns whether a byte can be in a label.
pub(super) fn is_label_byte(b: u8) -> bool {
    !matches!(b, 0..0x20 | 0x22 | 0x2a..=0x2c | 0x2e | 0x2f | 0x3a..=0x3f | 0x5b..=0x5d | 0x7c)
}
