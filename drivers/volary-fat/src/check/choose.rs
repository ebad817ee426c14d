//! Which boot sector to go by, and what of which copy of the FAT.
//!
//! The first boot sector, unless the volume makes more sense with the other: then
//! more files and directories are found, or fewer of them are damaged. After a crash
//! of ours the first FAT is the newest and makes sense; the others are as they were
//! when the volume was last detached, and are not asked.

use super::boot::{self, Boot};
use super::disk::Disk;
use super::fat::Fat;
use super::findings::Reporter;
use super::reconcile::{self, Decision};
use super::tables;
use super::volume::{Volume, is_dots};
use super::walk::{Problem, Walk, What};
use crate::names::style::Names;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Progress, Result, Time};

/// What is gone by.
pub(super) struct Choice {
    pub(super) boot: Boot,
    /// The FAT that counts.
    pub(super) copy: u8,
    /// What other copies of it are right about.
    decisions: Vec<Decision>,
}

/// How much sense a volume makes.
#[derive(Clone, Copy, Debug)]
struct Sense {
    score: i64,
    /// There is damage.
    damage: bool,
    /// Neither of the FAT's two first entries is what it must be.
    headless: bool,
}

impl Choice {
    /// Tells of what was not taken as it is; false if something of it is to be
    /// taken as it is nevertheless.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn tell(&self, vol: &mut Volume, reporter: &mut Reporter<'_>) -> Result<bool> {
        boot::restore(&self.boot, &mut vol.disk, reporter)?;
        let mut all = true;
        for decision in &self.decisions {
            all &= decision.tell(vol, reporter)?;
        }
        Ok(all)
    }
}

/// Chooses; gives the walk with what was chosen as well, if it is still there.
///
/// # Errors
/// `Corrupt` if there is no boot sector, or no FAT where it should be; `Io`;
/// `Interrupted`.
pub(super) fn choose(
    dev: &Arc<dyn BlockDevice>,
    boots: Vec<Boot>,
    names: impl Fn() -> Result<Names>,
    now: Time,
    progress: &dyn Progress,
) -> Result<(Choice, Option<Walk>)> {
    let mut best: Option<(Sense, Choice, Walk)> = None;
    for boot in boots {
        let copy = boot.layout.active_fat;
        let disk = Disk::new(dev.clone());
        let fat = Fat::new(dev.clone(), &boot.layout, copy);
        let mut vol = Volume::new(boot.layout.clone(), disk, fat, names()?, now);
        let (decisions, walk, sense) = look(&mut vol, progress)?;
        let done = !sense.damage;
        if best.as_ref().is_none_or(|b| sense.score > b.0.score) {
            let choice = Choice {
                boot,
                copy,
                decisions,
            };
            best = Some((sense, choice, walk));
        }
        if done {
            break;
        }
    }
    match best {
        Some((sense, choice, _)) if sense.headless && sense.score < 0 => Err(Error::corrupt(
            "FAT",
            choice.boot.layout.fat_offset(0),
            "something else",
            "a FAT, by the boot sector",
        )),
        Some((_, choice, walk)) => Ok((choice, Some(walk))),
        None => Err(Error::corrupt("boot sector", 0, "damage", "a boot sector")),
    }
}

/// Looks at a volume by the FAT that counts, and where that is damaged, or the
/// copies are to be alike and are not, by all of them.
fn look(vol: &mut Volume, progress: &dyn Progress) -> Result<(Vec<Decision>, Walk, Sense)> {
    if !reconcile::is_clean(vol)? {
        let walk = Walk::run(vol, false, progress)?;
        let sense = sense(vol, &walk)?;
        if !sense.damage {
            return Ok((Vec::new(), walk, sense));
        }
        vol.fat.refuel();
    }
    let decisions = reconcile::decide(vol, progress)?;
    let walk = Walk::run(vol, false, progress)?;
    let sense = sense(vol, &walk)?;
    Ok((decisions, walk, sense))
}

fn sense(vol: &mut Volume, walk: &Walk) -> Result<Sense> {
    let (zero, one) = tables::is_head(vol)?;
    let twins = twins(vol, walk)?;
    let is_twin = |what| matches!(what, What::Cross { last: 0, at } if twins.contains(&at));
    let bad = |p: &&Problem| is_damage(p.what) && !is_twin(p.what);
    let damaged = walk.problems.iter().filter(bad).count() as i64;
    let damaged = damaged + i64::from(!zero) + i64::from(!one);
    Ok(Sense {
        score: (walk.files + walk.dirs.len() as u64) as i64 - damaged,
        damage: damaged > 0,
        headless: !zero && !one,
    })
}

/// Clusters with which the chains of two entries begin, among those where chains
/// meet: of both names of a rename, say, which no FAT is to blame for.
fn twins(vol: &mut Volume, walk: &Walk) -> Result<HashSet<u32>> {
    let met = |p: &Problem| match p.what {
        What::Cross { last: 0, at } => Some(at),
        _ => None,
    };
    let mut counts: HashMap<u32, u32> = walk
        .problems
        .iter()
        .filter_map(met)
        .map(|at| (at, 0))
        .collect();
    if counts.is_empty() {
        return Ok(HashSet::new());
    }
    for (number, dir) in walk.dirs.iter().enumerate() {
        let mut starts = Vec::new();
        vol.records(dir, |_, record| {
            let dots = number != 0 && is_dots(record);
            if !dots && !record.short.is_label() {
                starts.push(record.short);
            }
        })?;
        for entry in starts {
            let start = vol.start(&entry);
            counts.entry(start).and_modify(|n| *n += 1);
        }
    }
    Ok(counts
        .into_iter()
        .filter(|&(_, n)| n > 1)
        .map(|(at, _)| at)
        .collect())
}

/// Returns whether a problem is none that a crash of ours can leave.
fn is_damage(what: What) -> bool {
    !matches!(
        what,
        What::Excess { .. }
            | What::SizeZero
            | What::Half { .. }
            | What::DotDot
            | What::AfterEnd { torn: true, .. }
            | What::Orphan { .. }
            | What::BadDate
            | What::UnixCheck
            | What::UnixData
    )
}
