//! Names that occur twice in a directory.

use super::volume::{Dir, Volume};
use crate::names::chars::upper;
use crate::names::record::{Long, LongStyle, Record};
use crate::names::style::Names;
use volary_core::{Result, fold_into};

/// Bits of a mark that are the slot.
const SLOT_BITS: u32 = 17;

/// The names of a directory, each as a number: a hash of its folded form above
/// the slot. Two entries whose hashes are the same are looked at again.
#[derive(Default)]
pub(super) struct Marks {
    marks: Vec<u64>,
    folded: Vec<u8>,
    shown: Vec<u8>,
}

struct Hash(u64);

impl Hash {
    fn add(&mut self, c: u32) {
        self.0 = (self.0 ^ u64::from(c))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(23);
    }

    fn mark(self, slot: u32) -> u64 {
        let hash = self.0.wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash >> SLOT_BITS << SLOT_BITS | u64::from(slot) & ((1 << SLOT_BITS) - 1)
    }
}

impl Marks {
    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }

    /// Takes the names of an entry.
    pub(super) fn add(&mut self, names: &Names, record: &Record<'_>) {
        if names.long == LongStyle::Paper {
            let mut hash = Hash(0);
            paper_name(record).iter().for_each(|&b| hash.add(b.into()));
            return self.marks.push(hash.mark(record.slot));
        }
        match record.long {
            Long::Vfat(units) => {
                let mut hash = Hash(0);
                if units.iter().all(|&u| u < 0x80) {
                    units.iter().for_each(|&u| hash.add(upper_ascii(u).into()));
                    self.marks.push(hash.mark(record.slot));
                } else {
                    self.add_shown(names, record);
                }
            }
            Long::None | Long::Paper(_) => {}
        }
        self.add_short(names, record);
    }

    fn add_short(&mut self, names: &Names, record: &Record<'_>) {
        let name = &record.short.DIR_Name;
        if !name.is_ascii() {
            let plain = Record {
                long: Long::None,
                ..*record
            };
            return self.add_shown(names, &plain);
        }
        let mut hash = Hash(0);
        let (base, ext) = name.split_at(8);
        let (base, ext) = (base.trim_ascii_end(), ext.trim_ascii_end());
        base.iter()
            .for_each(|&b| hash.add(b.to_ascii_uppercase().into()));
        if !ext.is_empty() {
            hash.add(b'.'.into());
            ext.iter()
                .for_each(|&b| hash.add(b.to_ascii_uppercase().into()));
        }
        self.marks.push(hash.mark(record.slot));
    }

    fn add_shown(&mut self, names: &Names, record: &Record<'_>) {
        names.show(record, &mut self.shown);
        let mut hash = Hash(0);
        for c in String::from_utf8_lossy(&self.shown).chars() {
            hash.add(upper(c).into());
        }
        self.marks.push(hash.mark(record.slot));
    }

    /// Pairs of slots, the earlier first, whose entries share a name.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn pairs(&mut self, vol: &mut Volume, dir: &Dir) -> Result<Vec<(u32, u32)>> {
        self.marks.sort_unstable();
        let mut pairs = Vec::new();
        let mut group = 0;
        for i in 1..self.marks.len() {
            let same = |a: u64, b: u64| a >> SLOT_BITS == b >> SLOT_BITS;
            let (Some(&head), Some(&mark)) = (self.marks.get(group), self.marks.get(i)) else {
                break;
            };
            if !same(head, mark) {
                group = i;
                continue;
            }
            let slot = |m: u64| (m & ((1 << SLOT_BITS) - 1)) as u32;
            let (a, b) = (slot(head), slot(mark));
            if a != b {
                pairs.push((a, b));
            }
        }
        pairs.dedup();
        let mut real = Vec::new();
        for (a, b) in pairs {
            if self.clash(vol, dir, a, b)?.is_some() {
                real.push((a, b));
            }
        }
        Ok(real)
    }

    /// Returns which name of the entry in slot `b` the one in slot `a` has as well.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn clash(
        &mut self,
        vol: &mut Volume,
        dir: &Dir,
        a: u32,
        b: u32,
    ) -> Result<Option<Clash>> {
        let first = self.all_names(vol, dir, a)?;
        let second = self.all_names(vol, dir, b)?;
        let (Some((a_short, a_long)), Some((b_short, b_long))) = (first, second) else {
            return Ok(None);
        };
        let taken = |name: &Vec<u8>| *name == a_short || a_long.as_ref() == Some(name);
        Ok(if taken(&b_short) {
            Some(Clash::Short)
        } else if b_long.as_ref().is_some_and(taken) {
            Some(Clash::Long)
        } else {
            None
        })
    }

    /// Returns the folded short name and the folded long one.
    fn all_names(&mut self, vol: &mut Volume, dir: &Dir, slot: u32) -> Result<Option<AllNames>> {
        let shown = &mut self.shown;
        let folded = &mut self.folded;
        vol.record(dir, slot, |names, record| {
            if names.long == LongStyle::Paper {
                return (paper_name(record), None);
            }
            let mut fold = |record: &Record<'_>| {
                names.show(record, shown);
                folded.clear();
                fold_into(shown, folded);
                folded.clone()
            };
            let long = (record.long != Long::None).then(|| fold(record));
            let plain = Record {
                long: Long::None,
                ..*record
            };
            (fold(&plain), long)
        })
    }
}

/// Returns a name in the paper's layout, whose three translations all tell names apart
/// that differ in some byte.
fn paper_name(record: &Record<'_>) -> Vec<u8> {
    let mut name = record.short.DIR_Name.to_vec();
    if let Long::Paper(tail) = record.long {
        name.extend_from_slice(&tail);
    }
    name
}

type AllNames = (Vec<u8>, Option<Vec<u8>>);

/// Which of its names an entry shares with an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clash {
    Short,
    Long,
}

fn upper_ascii(unit: u16) -> u16 {
    if (0x61..=0x7a).contains(&unit) {
        unit - 0x20
    } else {
        unit
    }
}
