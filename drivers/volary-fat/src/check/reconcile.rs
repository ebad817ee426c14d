//! Copies of the FAT that differ: which of them is right, sector by sector, chain by
//! chain and entry by entry.
//!
//! The first copy is gone by where it leads to what a file's size says, or to the
//! end of a directory. Where it does not, the chain that leads to most is put
//! together from all copies. A sector that holds something else than a FAT is taken
//! from another copy as a whole, so that what no path leads to in it does not come
//! back as lost. Nothing is told or written here.

use super::bits::Bits;
use super::fat::Fat;
use super::findings::{self as code, Code, Reporter, Where};
use super::tables;
use super::volume::{Dir, NONE, Volume, is_dots};
use crate::table::copies::{Nonsense, entries_of, nonsense};
use crate::table::fat::{Link, meaning};
use crate::table::recover::{Copies, Goal, Way, best_way};
use crate::table::segments::UNIT;
use crate::volume::judge;
use crate::volume::ondisk::{DIR_ENTRIES_MAX, DirEntry, STATE_DIRTY};
use std::collections::BTreeMap;
use volary_core::{CheckMode, Progress, Result};

/// Bytes compared at a time.
const PIECE: usize = 64 << 10;
/// Steps along chains for each cluster of the volume.
const STEPS: u64 = 64;

/// What another copy of the FAT is right about.
pub(super) struct Decision {
    code: Code,
    at: Where,
    words: String,
    /// Clusters and what their entries are to be.
    entries: Vec<(u32, u32)>,
}

impl Decision {
    /// Tells of it and goes by it; false if it is not to be gone by.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn tell(&self, vol: &mut Volume, reporter: &mut Reporter<'_>) -> Result<bool> {
        let key = self.entries.first().map_or(0, |(n, _)| u64::from(*n));
        let repair = "goes by another copy there";
        let told = reporter.tell(self.code, key, self.at.clone(), self.words.clone(), repair);
        // What only looks, or refuses all, sees the rest as it would be then.
        if !told && reporter.all.mode() == CheckMode::Ask {
            return Ok(false);
        }
        for &(n, value) in &self.entries {
            vol.fat.adopt(n, value)?;
        }
        Ok(true)
    }
}

/// Looks at all chains in all copies, and goes by what is right in memory.
///
/// # Errors
/// `Io`; `Interrupted`.
pub(super) fn decide(vol: &mut Volume, progress: &dyn Progress) -> Result<Vec<Decision>> {
    let mut look = Look::new(vol)?;
    if look.differ.count() == 0 {
        return Ok(Vec::new());
    }
    look.sectors()?;
    look.root()?;
    let mut next = 0;
    while let Some(dir) = look.dirs.get(next).copied() {
        progress.progress("directories", next as u64, 0)?;
        look.directory(next as u32, &dir)?;
        next += 1;
    }
    for file in std::mem::take(&mut look.forked) {
        look.decide(file.start, Some(file.need), file.dir, file.slot)?;
        look.claim(file.start)?;
    }
    look.unreached()?;
    Ok(look.decisions)
}

/// Returns whether the volume was cleanly left: by the boot sector, and by the first copy of
/// the FAT that has a head.
///
/// # Errors
/// `Io`.
pub(super) fn is_clean(vol: &mut Volume) -> Result<bool> {
    let bits = super::boot::fat_bits(vol.layout.kind).0;
    // FAT12 has no bits for it in its FAT, and without the signature none in its boot sector.
    let is_told = bits != 0 || vol.layout.serial.is_some();
    if !is_told || vol.layout.state & STATE_DIRTY != 0 {
        return Ok(false);
    }
    let mut others = others(vol);
    for fat in std::iter::once(&mut vol.fat).chain(&mut others) {
        let (zero, one) = (fat.get(0)?, fat.get(1)?);
        if tables::is_head_of(&vol.layout, zero, one) == (true, true) {
            return Ok(one & bits == bits);
        }
    }
    Ok(true)
}

/// Returns the other copies of the FAT.
fn others(vol: &Volume) -> Vec<Fat> {
    let layout = &vol.layout;
    let all = (0..layout.fat_count).filter(|&c| layout.mirrored && c != layout.active_fat);
    all.map(|copy| vol.fat.other(layout, copy)).collect()
}

struct Look<'a> {
    vol: &'a mut Volume,
    others: Vec<Fat>,
    /// Sectors in which any copy differs.
    differ: Bits,
    /// Clusters that chains have.
    used: Bits,
    dirs: Vec<Dir>,
    decisions: Vec<Decision>,
    /// Sectors of the first copy in which another is believed of what no chain has, and which.
    distrusted: BTreeMap<u64, usize>,
    /// Files whose chains come through entries in which the copies differ.
    forked: Vec<File>,
    clean: bool,
    steps: u64,
}

/// What sense a sector of the first copy makes beside that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sense {
    Some,
    /// Nothing but ends: files of one cluster, where paths lead to them.
    Ends,
    /// It holds something else than a FAT.
    Garbage,
}

/// A file that is decided of when it is known what all others have.
#[derive(Clone, Copy)]
struct File {
    start: u32,
    need: u32,
    dir: u32,
    slot: u32,
}

/// The copies as one chain needs them.
struct Chain<'a, 'v> {
    look: &'a mut Look<'v>,
    start: u32,
    dir: bool,
}

impl Copies for Chain<'_, '_> {
    fn words(&mut self, cluster: u32, out: &mut Vec<Link>) -> Result<()> {
        self.look.words(cluster, out)
    }

    fn may_come(&mut self, cluster: u32) -> Result<bool> {
        if self.look.used.has(cluster) {
            return Ok(false);
        }
        if !self.dir || cluster == self.start {
            return Ok(true);
        }
        let vol = &mut *self.look.vol;
        let mut bytes = vec![0; vol.layout.cluster_len as usize];
        let offset = vol.layout.cluster_offset(cluster);
        vol.disk.read_dir(offset, &mut bytes)?;
        Ok(judge::is_part(&bytes, vol.judge()))
    }
}

impl<'a> Look<'a> {
    fn new(vol: &'a mut Volume) -> Result<Self> {
        let clean = is_clean(vol)?;
        let others = others(vol);
        let last = vol.layout.last_cluster();
        let mut look = Self {
            others,
            differ: Bits::new((vol.fat.len() / UNIT as u64) as u32),
            used: Bits::new(last),
            dirs: Vec::new(),
            decisions: Vec::new(),
            distrusted: BTreeMap::new(),
            forked: Vec::new(),
            clean,
            steps: STEPS * (u64::from(last) + 1024),
            vol,
        };
        look.compare()?;
        Ok(look)
    }

    /// Finds the sectors that differ.
    fn compare(&mut self) -> Result<()> {
        let len = self.vol.fat.len();
        let (mut a, mut b) = (vec![0; PIECE], vec![0; PIECE]);
        for at in (0..len).step_by(PIECE) {
            let size = (len - at).min(PIECE as u64) as usize;
            a.resize(size, 0);
            b.resize(size, 0);
            self.vol.fat.read(at, &mut a)?;
            for other in &self.others {
                other.read(at, &mut b)?;
                let pairs = a.chunks(UNIT).zip(b.chunks(UNIT)).enumerate();
                for (i, _) in pairs.filter(|(_, (a, b))| a != b) {
                    self.differ.add((at / UNIT as u64) as u32 + i as u32);
                }
            }
        }
        Ok(())
    }

    fn meaning(&self, value: u32) -> Link {
        meaning(self.vol.layout.kind, self.vol.layout.last_cluster(), value)
    }

    /// Returns whether copies may differ in an entry.
    fn may_differ(&self, n: u32) -> bool {
        let at = self.vol.fat.place(n);
        [at, at + 1]
            .iter()
            .any(|at| self.differ.has((at / UNIT as u64) as u32))
    }

    fn words(&mut self, n: u32, out: &mut Vec<Link>) -> Result<()> {
        out.clear();
        let value = self.vol.fat.get(n)?;
        out.push(self.meaning(value));
        if !self.may_differ(n) {
            return Ok(());
        }
        for i in 0..self.others.len() {
            let value = self.other(i, n)?;
            let word = self.meaning(value);
            if !out.contains(&word) {
                out.push(word);
            }
        }
        Ok(())
    }

    fn other(&mut self, copy: usize, n: u32) -> Result<u32> {
        self.others.get_mut(copy).map_or(Ok(0), |fat| fat.get(n))
    }

    /// Goes by another copy in an entry; whether that changes it.
    fn adopt(&mut self, n: u32, value: u32, entries: &mut Vec<(u32, u32)>) -> Result<()> {
        if self.vol.fat.get(n)? != value {
            self.vol.fat.adopt(n, value)?;
            entries.push((n, value));
        }
        Ok(())
    }

    /// Goes by other copies in sectors that hold something else than a FAT.
    fn sectors(&mut self) -> Result<()> {
        let mut entries = Vec::new();
        self.head(&mut entries)?;
        let count = (self.vol.fat.len() / UNIT as u64) as u32;
        for sector in (0..count)
            .filter(|&s| self.differ.has(s))
            .collect::<Vec<_>>()
        {
            for copy in 0..self.others.len() {
                let sense = self.sense(sector.into(), copy)?;
                if sense == Sense::Garbage {
                    self.take_sector(sector.into(), copy, &mut entries, |_, _| true)?;
                }
                if sense != Sense::Some {
                    self.distrusted.insert(sector.into(), copy);
                    break;
                }
            }
        }
        self.tell_sectors(entries);
        Ok(())
    }

    /// The first two entries, which are no clusters'.
    fn head(&mut self, entries: &mut Vec<(u32, u32)>) -> Result<()> {
        let (zero, one) = (self.vol.fat.get(0)?, self.vol.fat.get(1)?);
        let own = tables::is_head_of(&self.vol.layout, zero, one);
        for copy in 0..self.others.len() {
            let (zero, one) = (self.other(copy, 0)?, self.other(copy, 1)?);
            let other = tables::is_head_of(&self.vol.layout, zero, one);
            if own != (true, true) && other == (true, true) {
                self.adopt(0, zero, entries)?;
                return self.adopt(1, one, entries);
            }
        }
        Ok(())
    }

    /// Returns what sense a sector makes beside that of another copy.
    fn sense(&mut self, sector: u64, copy: usize) -> Result<Sense> {
        let (kind, last) = (self.vol.layout.kind, self.vol.layout.last_cluster());
        let range = entries_of(kind, sector);
        let get = |n| self.vol.fat.get(n).map(Some);
        let own = nonsense(kind, last, range.clone(), get)?;
        if own == Nonsense::default() {
            return Ok(Sense::Some);
        }
        let Some(fat) = self.others.get_mut(copy) else {
            return Ok(Sense::Some);
        };
        let other = nonsense(kind, last, range.clone(), |n| fat.get(n).map(Some))?;
        let mut differ = 0;
        for n in range {
            differ += u32::from(fat.get(n)? != self.vol.fat.get(n)?);
        }
        Ok(match own.is_garbage_beside(other, differ, self.clean) {
            true => Sense::Garbage,
            false if own.ends_alone > 0 && other.entries == 0 => Sense::Ends,
            false => Sense::Some,
        })
    }

    /// Goes by a copy in the entries of a sector that `which` names.
    fn take_sector(
        &mut self,
        sector: u64,
        copy: usize,
        entries: &mut Vec<(u32, u32)>,
        which: impl Fn(&Self, u32) -> bool,
    ) -> Result<()> {
        let range = entries_of(self.vol.layout.kind, sector);
        // The end of one of FAT12 may be all that is in this sector.
        let before = range.start.saturating_sub(1);
        let split = crate::table::halves::is_split(self.vol.layout.kind, before);
        let from = if split { before } else { range.start };
        for n in from.max(2)..range.end.min(self.vol.layout.last_cluster() + 1) {
            if which(self, n) {
                let value = self.other(copy, n)?;
                self.adopt(n, value, entries)?;
            }
        }
        Ok(())
    }

    fn tell_sectors(&mut self, entries: Vec<(u32, u32)>) {
        let Some(&(first, _)) = entries.first() else {
            return;
        };
        let place = self.vol.fat.place(first);
        self.decisions.push(Decision {
            code: code::FAT_CHOICE,
            at: Where::offset(self.vol.layout.fat_offset(self.vol.layout.active_fat) + place),
            words: format!(
                "{} entries of the first FAT make less sense than those of another",
                entries.len()
            ),
            entries,
        });
    }

    fn root(&mut self) -> Result<()> {
        let cluster = self.vol.layout.root_cluster;
        let clusters = match cluster {
            0 => 0,
            _ => self.dir_chain(cluster, 0, NONE)?,
        };
        self.dirs.push(Dir {
            cluster,
            clusters,
            parent: 0,
            first: NONE,
            slot: NONE,
        });
        Ok(())
    }

    fn directory(&mut self, number: u32, dir: &Dir) -> Result<()> {
        let mut entries: Vec<(u32, u32, DirEntry)> = Vec::new();
        self.vol.records(dir, |_, r| {
            let dots = number != 0 && is_dots(r);
            if !dots && !r.short.is_label() {
                entries.push((r.first_slot, r.slot, r.short));
            }
        })?;
        for (first, slot, entry) in entries {
            let start = self.vol.start(&entry);
            if !self.vol.layout.is_cluster(start) || self.used.has(start) {
                continue;
            }
            if !entry.is_dir() {
                let need = self.vol.need(entry.DIR_FileSize.get());
                let need = need.max(u32::from(self.vol.paper));
                self.file(File {
                    start,
                    need,
                    dir: number,
                    slot,
                })?;
            } else if self.is_dir(start)? {
                let clusters = self.dir_chain(start, number, slot)?;
                self.dirs.push(Dir {
                    cluster: start,
                    clusters,
                    parent: number,
                    first,
                    slot,
                });
            }
        }
        Ok(())
    }

    /// Returns whether a directory can begin at a cluster.
    fn is_dir(&mut self, start: u32) -> Result<bool> {
        let mut bytes = vec![0; self.vol.layout.cluster_len as usize];
        let offset = self.vol.layout.cluster_offset(start);
        self.vol.disk.read_dir(offset, &mut bytes)?;
        let own = judge::has_dot(&bytes, start, &self.vol.layout);
        Ok(own || !judge::tally(&bytes, self.vol.judge()).is_garbage())
    }

    /// Decides of a directory's chain and takes its clusters: how many there are.
    fn dir_chain(&mut self, start: u32, dir: u32, slot: u32) -> Result<u32> {
        if self.is_forked(start, None)? {
            self.decide(start, None, dir, slot)?;
        }
        self.claim(start)
    }

    /// Takes a file's clusters, or leaves it for later.
    fn file(&mut self, file: File) -> Result<()> {
        if file.need > 0 && self.is_forked(file.start, Some(file.need))? {
            self.forked.push(file);
            return Ok(());
        }
        self.claim(file.start).map(|_| ())
    }

    /// Decides of one chain.
    fn decide(&mut self, start: u32, need: Option<u32>, dir: u32, slot: u32) -> Result<()> {
        let goal = Goal {
            need,
            last: self.vol.layout.last_cluster(),
            clean: self.clean,
        };
        let mut copies = Chain {
            look: self,
            start,
            dir: need.is_none(),
        };
        let way = best_way(&mut copies, start, goal)?;
        if !way.first {
            self.take_way(&way, need, dir, slot)?;
        }
        Ok(())
    }

    /// Returns whether a chain, by the first copy, comes through an entry in which the
    /// copies differ.
    fn is_forked(&mut self, start: u32, need: Option<u32>) -> Result<bool> {
        let most = DIR_ENTRIES_MAX.div_ceil(self.vol.slots_per_cluster());
        let mut words = Vec::new();
        let mut at = start;
        for _ in 0..=need.unwrap_or(most) {
            let Some(steps) = self.steps.checked_sub(1) else {
                return Ok(false);
            };
            self.steps = steps;
            self.words(at, &mut words)?;
            match words.as_slice() {
                [Link::Next(next)] => at = *next,
                [_] => return Ok(false),
                _ => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Goes by a chain of several copies.
    fn take_way(&mut self, way: &Way, need: Option<u32>, dir: u32, slot: u32) -> Result<()> {
        let end = way.whole.then_some(self.vol.fat.end());
        let next = way.clusters.iter().skip(1).copied().map(Some).chain([end]);
        let mut entries = Vec::new();
        for (&n, next) in way.clusters.iter().zip(next) {
            let Some(value) = next else {
                break;
            };
            let own = self.vol.fat.get(n)?;
            if self.meaning(own) == self.meaning(value) {
                continue;
            }
            let copy = self.copy_with(n, value)?;
            self.adopt(n, value, &mut entries)?;
            let sector = self.vol.fat.place(n) / UNIT as u64;
            self.distrusted.entry(sector).or_insert(copy);
        }
        let Some(&(first, _)) = entries.first() else {
            return Ok(());
        };
        let count = way.clusters.len();
        let words = match need {
            Some(need) => format!(
                "the first FAT leads to {} of its {need} clusters, another copy to {}",
                way.by_first.min(need),
                count.min(need as usize)
            ),
            None => format!(
                "the first FAT leads to {} of its clusters, another copy to {count}",
                way.by_first
            ),
        };
        let place = self.vol.fat.place(first);
        let fat = self.vol.layout.fat_offset(self.vol.layout.active_fat);
        self.decisions.push(Decision {
            code: code::CHAIN_COPY,
            at: Where {
                path: Some(self.vol.path(&self.dirs, dir, slot)?),
                offset: Some(fat + place),
            },
            words,
            entries,
        });
        Ok(())
    }

    /// Returns the copy that says this of a cluster.
    fn copy_with(&mut self, n: u32, value: u32) -> Result<usize> {
        for copy in 0..self.others.len() {
            let other = self.other(copy, n)?;
            if self.meaning(other) == self.meaning(value) {
                return Ok(copy);
            }
        }
        Ok(0)
    }

    /// Takes the clusters of a chain, as far as it is sound and nobody else's.
    fn claim(&mut self, start: u32) -> Result<u32> {
        let (mut at, mut count) = (start, 0);
        loop {
            let value = self.vol.fat.get(at)?;
            let link = self.meaning(value);
            if matches!(link, Link::Free | Link::Bad) || !self.used.add(at) {
                return Ok(count);
            }
            count += 1;
            match link {
                Link::Next(next) => at = next,
                _ => return Ok(count),
            }
        }
    }

    /// Goes by other copies in what no chain has, in sectors in which they were
    /// right about another entry, or the first copy has nothing but ends.
    fn unreached(&mut self) -> Result<()> {
        if !self.clean {
            return Ok(());
        }
        let mut entries = Vec::new();
        for (sector, copy) in std::mem::take(&mut self.distrusted) {
            self.take_sector(sector, copy, &mut entries, |look, n| !look.used.has(n))?;
        }
        self.tell_sectors(entries);
        Ok(())
    }
}
