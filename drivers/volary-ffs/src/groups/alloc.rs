//! The allocators of section 3.3 of the paper. They take a wish from the policies, and try in this
//! order:
//!
//! - the rotationally closest block;
//! - another block of the group;
//! - a block of a group found by quadratic rehash;
//! - a block of any group.
//!
//! Clusters of blocks are allocated as in 4.4BSD. Blocks reserved for growing files are skipped as
//! long as others are free.

mod cluster;
mod field;
mod reserve;

pub(crate) use reserve::Grower;

use crate::disk::volume::{Variant, Volume};
use crate::groups::cg::Group;
use crate::groups::policy::{Policy, Wish};
use crate::groups::summary::{Summary, Sums};
use crate::groups::tally::{Delta, Tally};
use crate::inodes::blocks::Reader;
use std::collections::{HashMap, HashSet};
use volary_block::{Reservations, Stage};
use volary_core::{Kind, Result};

/// Most reservations on a volume for files that grow.
const RESERVATIONS_MAX: usize = 1024;

/// Most reservations of one file. There can be several because its blocks may come in any order.
const EACH: usize = 4;

/// Consecutive fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// The allocator: what is free.
pub(crate) struct Alloc {
    /// Groups in memory.
    groups: HashMap<u64, Tally>,
    groups_max: usize,
    pub(crate) summary: Summary,
    /// The length of the longest free run of blocks in each group is at most this
    /// (`fs_maxcluster`).
    maxcluster: Vec<u8>,
    pub(crate) policy: Policy,
    /// The reservations for files that grow.
    kept: Reservations,
    /// How many more times no long run is searched for.
    rest: u32,
    /// What was freed in this epoch, while the disk still points to it.
    pending: Vec<Run>,
    pending_inodes: Vec<(u32, bool)>,
    pending_fragments: u64,
    /// What was allocated in this epoch: the first fragment of each piece, and inodes. Nothing on
    /// the disk points to it.
    fresh: HashSet<u64>,
    fresh_inodes: HashSet<u32>,
}

impl Alloc {
    /// Reads the summaries.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(reader: &Reader<'_>, memory: u64) -> Result<Self> {
        let volume = reader.volume;
        let summary = Summary::read(reader)?;
        let room = memory / 4 / volume.cgsize.max(1);
        Ok(Self {
            groups: HashMap::new(),
            groups_max: usize::try_from(room).unwrap_or(4).clamp(4, 256),
            maxcluster: vec![u8::MAX; usize::try_from(volume.ncg).unwrap_or(0)],
            summary,
            policy: Policy::new(volume, &volume.found.raw),
            kept: Reservations::new(RESERVATIONS_MAX, EACH),
            rest: 0,
            pending: Vec::new(),
            pending_inodes: Vec::new(),
            pending_fragments: 0,
            fresh: HashSet::new(),
            fresh_inodes: HashSet::new(),
        })
    }

    /// Returns the memory that the allocator needs for a volume, before any change.
    pub(crate) fn cost(volume: &Volume) -> u64 {
        volume.ncg.saturating_mul(size_of::<Sums>() as u64 + 1)
    }

    /// Returns the place that the policy prefers for block `lbn` of a file. `before` is where the
    /// block before it lies, if it exists.
    pub(crate) fn wish(&self, volume: &Volume, ino: u32, lbn: u64, before: Option<u64>) -> Wish {
        self.policy.block(volume, &self.summary, ino, lbn, before)
    }

    /// Returns whether the fragments at `first` were allocated since the last commit, so that
    /// nothing on the disk points to them.
    pub(crate) fn is_fresh(&self, first: u64) -> bool {
        self.fresh.contains(&first)
    }

    /// Returns how much is remembered for the commit.
    pub(crate) fn held(&self) -> usize {
        let raised = self.groups.len().saturating_sub(self.groups_max);
        self.fresh.len() + self.pending.len() + raised * 256
    }

    /// Returns whether a commit would free anything.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty() || !self.pending_inodes.is_empty()
    }

    /// Returns the free fragments, including those that a commit frees.
    pub(crate) fn free_fragments(&self, volume: &Volume) -> u64 {
        let [_, blocks, _, fragments] = self.summary.total().map(|n| u64::try_from(n).unwrap_or(0));
        let free = blocks.saturating_mul(volume.frag).saturating_add(fragments);
        free.saturating_add(self.pending_fragments).min(volume.size)
    }

    /// Returns the free inodes, including those that a commit frees.
    pub(crate) fn free_inodes(&self) -> u64 {
        let free = u64::try_from(self.summary.total()[2]).unwrap_or(0);
        free + self.pending_inodes.len() as u64
    }

    /// Returns a group, and reads it into memory if necessary.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    fn tally(&mut self, reader: &Reader<'_>, number: u64) -> Result<&mut Tally> {
        if !self.groups.contains_key(&number) {
            self.make_room(reader)?;
            let group = Group::read(reader, number)?;
            let tally = Tally::new(reader.volume, number, group);
            self.groups.insert(number, tally);
        }
        self.groups.get_mut(&number).ok_or_else(|| Kind::Io.into())
    }

    /// Drops a group from memory. Its maps may reach the disk at any time, because `fsck -p` can
    /// rebuild them.
    fn make_room(&mut self, reader: &Reader<'_>) -> Result<()> {
        if self.groups.len() < self.groups_max {
            return Ok(());
        }
        let can_go = self.groups.iter().filter(|(_, tally)| !tally.is_raised);
        let Some(number) = can_go.map(|(&number, _)| number).min() else {
            return Ok(());
        };
        if let Some(mut tally) = self.groups.remove(&number)
            && tally.is_dirty
        {
            let at = tally.group.at;
            reader
                .cache
                .write(at, tally.stored(reader.volume), Stage::DATA)?;
        }
        Ok(())
    }

    fn note(&mut self, group: u64, delta: &Delta) {
        self.summary.add(group, delta);
        let at = usize::try_from(group).unwrap_or(usize::MAX);
        if delta[1] > 0
            && let Some(most) = self.maxcluster.get_mut(at)
        {
            *most = u8::MAX;
        }
    }

    /// Returns the groups in the order of a search: the wanted one, then others by quadratic
    /// rehash, then all.
    fn order(volume: &Volume, wanted: u64) -> impl Iterator<Item = u64> + use<> {
        let ncg = volume.ncg;
        let steps = std::iter::successors(Some(1_u64), move |i| Some(i * 2).filter(|&i| i < ncg));
        let mut at = wanted % ncg;
        let hashed = steps.take_while(move |&i| i < ncg).map(move |i| {
            at = (at + i) % ncg;
            at
        });
        let all = (0..ncg).map(move |i| (wanted + i) % ncg);
        std::iter::once(wanted % ncg).chain(hashed).chain(all)
    }

    /// Allocates `count` fragments in one block where `room` are free. They lie at the wished place
    /// if that is free, otherwise as near as possible.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take(
        &mut self,
        reader: &Reader<'_>,
        count: u64,
        room: u64,
        wish: Wish,
    ) -> Result<Run> {
        loop {
            if let Some(run) = self.take_outside(reader, count, room, wish)? {
                return Ok(run);
            }
            if self.kept.give_all_back().is_none() {
                return Err(Kind::NoSpace.into());
            }
        }
    }

    /// Allocates fragments outside of the reservations of other files, if there is room.
    fn take_outside(
        &mut self,
        reader: &Reader<'_>,
        count: u64,
        room: u64,
        wish: Wish,
    ) -> Result<Option<Run>> {
        let volume = reader.volume;
        for number in Self::order(volume, wish.group) {
            let [_, blocks, _, fragments] = self.summary.of(number);
            let enough = i64::try_from(room).unwrap_or(i64::MAX);
            if blocks <= 0 && (room == volume.frag || fragments < enough) {
                continue;
            }
            if let Some(index) = self.take_in(reader, number, count, room, wish)? {
                let first = volume.base(number) + index;
                self.fresh.insert(first);
                return Ok(Some(Run { first, count }));
            }
        }
        Ok(None)
    }

    /// Allocates fragments in one group. Returns the first one, counted within the group.
    fn take_in(
        &mut self,
        reader: &Reader<'_>,
        number: u64,
        count: u64,
        room: u64,
        wish: Wish,
    ) -> Result<Option<u64>> {
        let volume = reader.volume;
        self.tally(reader, number)?;
        let near = Some(wish.near).filter(|_| number == wish.group);
        let near = near.map(|near| near.saturating_sub(volume.base(number)));
        let found = self
            .field(volume, number, wish.owner())
            .and_then(|field| field.find(room, near));
        let Some(index) = found else {
            return Ok(None);
        };
        let tally = self.tally(reader, number)?;
        let (block, within) = (index / volume.frag, index % volume.frag);
        let free = tally.free_of(volume, block) & !mask(within, count);
        let delta = tally.set_free_of(volume, block, free);
        let raw = &mut tally.group.raw;
        let rotor = u32::try_from(index).unwrap_or(0);
        match count == volume.frag {
            true => raw.cg_rotor = rotor,
            false => raw.cg_frotor = rotor,
        }
        self.note(number, &delta);
        Ok(Some(index))
    }

    /// Allocates the fragments behind a piece, if they are free and in the same block. This is the
    /// paper's third case of growth, which copies nothing.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn extend(&mut self, reader: &Reader<'_>, piece: Run, count: u64) -> Result<bool> {
        let volume = reader.volume;
        if piece.first % volume.frag + count > volume.frag {
            return Ok(false);
        }
        let more = Run {
            first: piece.first + piece.count,
            count: count - piece.count,
        };
        self.take_free(reader, more)
    }

    /// Allocates exactly these fragments of one block as a piece, if they are free. Returns whether
    /// they were.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn take_exactly(&mut self, reader: &Reader<'_>, run: Run) -> Result<bool> {
        let taken = self.take_free(reader, run)?;
        if taken {
            self.fresh.insert(run.first);
        }
        Ok(taken)
    }

    fn take_free(&mut self, reader: &Reader<'_>, run: Run) -> Result<bool> {
        let volume = reader.volume;
        let number = volume.group_of(run.first);
        let index = run.first - volume.base(number);
        let (block, within) = (index / volume.frag, index % volume.frag);
        let tally = self.tally(reader, number)?;
        let free = tally.free_of(volume, block);
        let wanted = mask(within, run.count);
        if free & wanted != wanted {
            return Ok(false);
        }
        let delta = tally.set_free_of(volume, block, free & !wanted);
        self.note(number, &delta);
        Ok(true)
    }

    /// Marks fragments as free.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn put_back(&mut self, reader: &Reader<'_>, run: Run) -> Result<()> {
        let volume = reader.volume;
        let (first, end) = (run.first, run.first + run.count);
        if end > volume.size {
            return Ok(());
        }
        let mut at = first;
        while at < end {
            let number = volume.group_of(at);
            let index = at - volume.base(number);
            let (block, within) = (index / volume.frag, index % volume.frag);
            let count = (volume.frag - within).min(end - at);
            let tally = self.tally(reader, number)?;
            let free = tally.free_of(volume, block) | mask(within, count);
            let delta = tally.set_free_of(volume, block, free);
            self.note(number, &delta);
            at += count;
        }
        Ok(())
    }

    /// Frees fragments: at once if they are fresh, otherwise with the commit.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn give_back(&mut self, reader: &Reader<'_>, run: Run) -> Result<()> {
        if self.fresh.remove(&run.first) {
            let fsize = reader.volume.fsize;
            reader
                .cache
                .drop_range(run.first * fsize, run.count * fsize);
            return self.put_back(reader, run);
        }
        self.pending_fragments += run.count;
        self.pending.push(run);
        Ok(())
    }

    /// Allocates a free inode, preferably in `group`, from its inode `near` on.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take_inode(
        &mut self,
        reader: &Reader<'_>,
        group: u64,
        near: Option<u64>,
        is_dir: bool,
    ) -> Result<u32> {
        let volume = reader.volume;
        for number in Self::order(volume, group) {
            if self.summary.of(number)[2] <= 0 {
                continue;
            }
            let tally = self.tally(reader, number)?;
            let rotor = u64::from(tally.group.raw.cg_irotor);
            let start = near.filter(|_| number == group).unwrap_or(rotor) % volume.ipg;
            let there = |index: &u64| volume.inode_at(number * volume.ipg + index).is_some();
            let free = tally.group.free_inodes(start..volume.ipg);
            let free = free.chain(tally.group.free_inodes(0..start)).find(there);
            let Some(index) = free else {
                continue;
            };
            initialise(reader, number, tally, index)?;
            tally.group.raw.cg_irotor = u32::try_from(index).unwrap_or(0);
            let delta = tally.set_used(index, true, is_dir);
            self.note(number, &delta);
            let ino = u32::try_from(number * volume.ipg + index).unwrap_or(0);
            self.fresh_inodes.insert(ino);
            return Ok(ino);
        }
        Err(Kind::NoSpace.into())
    }

    /// Marks an inode as free.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn put_back_inode(
        &mut self,
        reader: &Reader<'_>,
        ino: u32,
        is_dir: bool,
    ) -> Result<()> {
        let volume = reader.volume;
        let (number, index) = (u64::from(ino) / volume.ipg, u64::from(ino) % volume.ipg);
        let delta = self.tally(reader, number)?.set_used(index, false, is_dir);
        self.note(number, &delta);
        Ok(())
    }

    /// Frees an inode: at once if it is fresh, otherwise with the commit.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn give_back_inode(
        &mut self,
        reader: &Reader<'_>,
        ino: u32,
        is_dir: bool,
    ) -> Result<()> {
        if self.fresh_inodes.remove(&ino) {
            return self.put_back_inode(reader, ino, is_dir);
        }
        self.pending_inodes.push((ino, is_dir));
        Ok(())
    }

    /// Writes the heads of groups in which more inodes count as initialised now.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_raised(&mut self, reader: &Reader<'_>) -> Result<()> {
        for tally in self.groups.values_mut().filter(|tally| tally.is_raised) {
            let at = tally.group.at;
            let bytes = tally.stored(reader.volume);
            reader.cache.write(at, bytes, Stage::DATA)?;
            tally.is_raised = false;
        }
        Ok(())
    }

    /// Ends the epoch: frees what was given back, and writes all maps and sums.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn settle(&mut self, reader: &Reader<'_>) -> Result<()> {
        let volume = reader.volume;
        for run in std::mem::take(&mut self.pending) {
            self.put_back(reader, run)?;
        }
        for (ino, is_dir) in std::mem::take(&mut self.pending_inodes) {
            self.put_back_inode(reader, ino, is_dir)?;
        }
        self.pending_fragments = 0;
        self.fresh.clear();
        self.fresh_inodes.clear();
        for tally in self.groups.values_mut().filter(|tally| tally.is_dirty) {
            let at = tally.group.at;
            let bytes = tally.stored(volume);
            reader.cache.write(at, bytes, Stage::DATA)?;
            tally.is_dirty = false;
        }
        self.summary.write(reader)
    }
}

/// Returns a mask of `count` bits from bit `first` on.
fn mask(first: u64, count: u64) -> u8 {
    let bits = (1_u32 << count.min(8)) - 1;
    (bits << first.min(8)) as u8
}

/// Initialises the inodes up to `index`. UFS2 writes zeros into inodes when they are first needed,
/// a block of them at a time.
fn initialise(reader: &Reader<'_>, number: u64, tally: &mut Tally, index: u64) -> Result<()> {
    let volume = reader.volume;
    if volume.variant != Variant::Ufs2 {
        return Ok(());
    }
    let zeros = vec![0; usize::try_from(volume.bsize).unwrap_or(0)];
    while tally.group.initialised <= index {
        let first = number * volume.ipg + tally.group.initialised;
        let at = volume.inode_at(first).ok_or(Kind::NoSpace)?;
        let rest = volume.inopb() - tally.group.initialised % volume.inopb();
        let len = usize::try_from(rest * volume.inode_size()).unwrap_or(0);
        let zeros = zeros.get(..len).unwrap_or_default();
        reader.cache.write(at, zeros, Stage::DATA)?;
        tally.group.initialised += rest;
        tally.group.raw.cg_initediblk = u32::try_from(tally.group.initialised).unwrap_or(0);
        (tally.is_dirty, tally.is_raised) = (true, true);
    }
    Ok(())
}
