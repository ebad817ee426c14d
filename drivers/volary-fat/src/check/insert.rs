//! Putting entries into directories, and giving them other names.

use super::disk::Rank;
use super::findings::{self as code};
use super::mend::Mender;
use super::taken::Taken;
use super::twins::{Clash, Marks};
use super::walk::{Problem, What};
use crate::names::short::checksum;
use crate::volume::judge;
use crate::volume::ondisk::{FREE, LongEntry, Raw};
use volary_core::{Result, escape};
use zerocopy::transmute_mut;

/// Puts entries into directories, and gives them other names.
pub(super) struct Entries<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
    /// The short names of the directory that one was last changed in.
    taken: Option<Taken>,
}

impl<'m, 'a, 'r> Entries<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self {
            mender,
            taken: None,
        }
    }

    /// Returns what the changes are made of.
    pub(super) fn mender(&mut self) -> &mut Mender<'a, 'r> {
        self.mender
    }

    /// Tells of a short name that is none, or that occurs twice, and mends it.
    pub(super) fn name(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender.dir(problem.dir);
        let old = self.mender.vol.entry(&dir, problem.slot)?.DIR_Name;
        let What::Duplicate { with } = problem.what else {
            let new = judge::mended_name(&old);
            let words = "its short name holds characters that none can have".into();
            let repair = format!("makes the short name '{}'", escape(&new));
            if self.mender.tell(code::SHORT_NAME, problem, words, repair)? {
                self.rename(problem, new)?;
            }
            return Ok(());
        };
        // An earlier mend may have parted the two.
        let Some(clash) = Marks::default().clash(self.mender.vol, &dir, with, problem.slot)? else {
            return Ok(());
        };
        let other = self.mender.vol.name(&dir, with)?;
        let words = format!(
            "it has the name of '{}' in the same directory",
            escape(&other)
        );
        if clash == Clash::Long {
            let short = self.mender.short_shown(&dir, problem.slot)?;
            let repair = format!("takes its long name away; it is then '{}'", escape(&short));
            if self.mender.tell(code::DUPLICATE, problem, words, repair)? {
                self.mender.drop_long(problem)?;
            }
            return Ok(());
        }
        let new = self.unused_name(problem.dir, &old)?;
        let repair = format!("makes its short name '{}'", escape(&new));
        if self.mender.tell(code::DUPLICATE, problem, words, repair)? {
            self.rename(problem, new)?;
        }
        Ok(())
    }

    /// Changes a short name, and the checksums of the long one that belongs to
    /// it.
    fn rename(&mut self, problem: &Problem, new: [u8; 11]) -> Result<()> {
        let dir = self.mender.dir(problem.dir);
        if !self.mender.vol.paper {
            for slot in problem.first..problem.slot {
                let mut raw = self.mender.vol.raw(&dir, slot)?;
                let part: &mut LongEntry = transmute_mut!(&mut raw);
                part.LDIR_Chksum = checksum(&new);
                self.mender.vol.put_raw(&dir, slot, &raw, Rank::Late)?;
            }
        }
        if let Some(taken) = self.taken.as_mut().filter(|t| t.dir == problem.dir) {
            taken.insert(new);
        }
        self.mender.change(problem, |e| e.DIR_Name = new)
    }

    /// Returns a short name that nothing in the directory has: the old one's start,
    /// with a number.
    fn unused_name(&mut self, dir: u32, old: &[u8; 11]) -> Result<[u8; 11]> {
        let known = self.taken.take().filter(|t| t.dir == dir);
        let mut taken = match known {
            Some(taken) => taken,
            None => Taken::new(dir, self.mender.short_names(dir)?),
        };
        let unused = taken.unused(judge::mended_name(old));
        self.taken = Some(taken);
        Ok(unused)
    }

    /// Puts slots that follow each other into a directory, from slot `from`
    /// on, lengthening it if need be; the first of them. `None` if there is no
    /// room.
    pub(super) fn insert(
        &mut self,
        number: u32,
        raws: &[Raw],
        from: u32,
        rank: Rank,
    ) -> Result<Option<u32>> {
        let dir = self.mender.dir(number);
        self.taken = None;
        let want = raws.len() as u32;
        let mut run = 0;
        let mut slot = from;
        let first = loop {
            if run == want {
                break slot - run;
            }
            if slot >= self.mender.vol.slot_count(&self.mender.dir(number)) {
                if !self.lengthen(number)? {
                    return Ok(None);
                }
                continue;
            }
            let raw = self.mender.vol.raw(&self.mender.dir(number), slot)?;
            let free = matches!(raw.first(), None | Some(&(0 | FREE)));
            run = if free { run + 1 } else { 0 };
            slot += 1;
        };
        // What comes before the new slots is not the end any more.
        self.mender.free_ends(&dir, from, first)?;
        let dir = self.mender.dir(number);
        for (slot, raw) in (first..).zip(raws) {
            self.mender.vol.put_raw(&dir, slot, raw, rank)?;
        }
        Ok(Some(first))
    }

    /// Adds an empty cluster to a directory.
    fn lengthen(&mut self, number: u32) -> Result<bool> {
        let dir = self.mender.dir(number);
        let most = crate::volume::ondisk::DIR_ENTRIES_MAX / self.mender.vol.slots_per_cluster();
        if dir.cluster == 0 || dir.clusters >= most {
            return Ok(false);
        }
        let last = self
            .mender
            .vol
            .cluster_at(dir.cluster, dir.clusters.saturating_sub(1))?;
        let (Some(last), Some(new)) = (last, self.mender.vol.fat.find_free()?) else {
            return Ok(false);
        };
        let zeros = vec![0; self.mender.vol.layout.cluster_len as usize];
        self.mender
            .vol
            .disk
            .fill(self.mender.vol.layout.cluster_offset(new), &zeros)?;
        self.mender.vol.cut(new)?;
        self.mender.vol.set_link(last, new)?;
        if let Some(node) = self.mender.walk.dirs.get_mut(number as usize) {
            node.clusters += 1;
        }
        Ok(true)
    }
}
