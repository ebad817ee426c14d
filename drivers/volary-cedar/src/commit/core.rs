//! The volume below names and files: pages of the name table, room, leaders,
//! and changes that are made whole or not at all.
//!
//! An operation works on a [`Txn`], which nobody else sees. If it succeeds, the
//! txn joins the [`Batch`] of the next commit; if not, it is undone. A batch is
//! what one log record holds: a txn that does not fit makes the batch before it
//! be committed first.

use crate::disk::leader::Leader;
use crate::disk::runs::{Run, Runs};
use crate::disk::volume::Layout;
use crate::log::Anchor;
use crate::mistakes::{Mistake, made};
use crate::name_table::page::Image;
use crate::name_table::table::Table;
use crate::space::delta::{Delta, RunSet};
use crate::space::map_home::MapHome;
use crate::space::reserve::Reservations;
use crate::space::vam::{Vam, Want};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use volary_block::Cache;
use volary_core::{Error, Kind, Result, Time};

/// Longest time between a change and its commit, unless told otherwise (paper, section 5.4).
pub(crate) const COMMIT_TIME: Duration = Duration::from_millis(500);

/// What an operation has changed so far.
#[derive(Default)]
pub(crate) struct Txn {
    pub(crate) pages: BTreeMap<u32, Image>,
    table_taken: Vec<u32>,
    table_freed: Vec<u32>,
    taken: Vec<Run>,
    freed: Vec<Run>,
    /// A page whose end is no longer the file's.
    cut: Option<u32>,
    /// Leaders that are new or changed, and those that go (None).
    leaders: BTreeMap<u32, Option<Leader>>,
}

/// What is to be committed together.
#[derive(Default)]
pub(crate) struct Batch {
    /// Pages of the name table that changed.
    pub(crate) pages: BTreeSet<u32>,
    /// Leaders that changed, of files that are on the disk already.
    pub(crate) leaders: BTreeMap<u32, Leader>,
    /// Leaders on pages that were free before: they are written like data.
    pub(crate) fresh: BTreeMap<u32, Leader>,
    /// Pages of those that were written through already, as they were then.
    pub(crate) sent: BTreeSet<u32>,
    /// Pages that were free before.
    taken: RunSet,
    /// The shadow map: pages that are free once this is committed.
    pub(crate) freed: RunSet,
    /// Pages of the name table that were taken or freed: whether each was in use
    /// at the last commit, and whether it is now.
    table: BTreeMap<u32, (bool, bool)>,
    /// The shadow map, within pages: those that hold, past the end that a file
    /// has now, bytes that it had when the last commit was made.
    cut: BTreeSet<u32>,
    /// The time of the first change.
    since: Option<Time>,
}

impl Batch {
    /// Runs that the record has to tell of, at most.
    fn told_at_most(&self) -> usize {
        self.taken.len() + self.freed.len() + self.table.len()
    }

    /// Returns what the record has to tell of the allocation map.
    pub(crate) fn delta(&self, layout: &Layout) -> Delta {
        let mut delta = Delta {
            taken: self.taken.clone(),
            freed: self.freed.clone(),
        };
        for (index, (_, now)) in self.table.iter().filter(|(_, (was, now))| was != now) {
            let into = if *now {
                &mut delta.taken
            } else {
                &mut delta.freed
            };
            into.insert(layout.table_page(*index));
        }
        delta
    }
}

/// A leader whose newest image is in the log only.
pub(crate) struct Pending {
    pub(crate) image: Image,
    pub(crate) third: u8,
}

/// Where the log stands.
#[derive(Debug)]
pub(crate) struct LogState {
    pub(crate) epoch: u32,
    /// The number of the next record.
    pub(crate) seq: u64,
    /// Where it begins.
    pub(crate) position: u32,
    /// The third that the last one ended in.
    pub(crate) third: u8,
    /// The checksum of the last one's header.
    pub(crate) before: u32,
    /// The records that are needed for recovery: place, length, number.
    pub(crate) records: VecDeque<(u32, u32, u64)>,
    /// The anchor as it was last written.
    pub(crate) anchor: Anchor,
    /// Which copy of it was written last, or is the good one.
    pub(crate) newer: usize,
}

/// Whether the volume takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// No.
    Nothing,
    /// Yes, but the epoch has not begun: nothing was written as yet.
    Unopened,
    /// Yes.
    Changes,
    /// Not any more: the device failed.
    Failed,
    /// Not any more: a panic cut a change off.
    CutOff,
}

/// The volume below names and files.
pub(crate) struct Core {
    pub(crate) layout: Layout,
    pub(crate) cache: Cache,
    pub(crate) table: Table,
    pub(crate) vam: Vam,
    /// Room that is kept behind open files.
    pub(crate) reserved: Reservations,
    pub(crate) txn: Txn,
    pub(crate) batch: Batch,
    pub(crate) log: LogState,
    pub(crate) leaders: BTreeMap<u32, Pending>,
    pub(crate) takes: Takes,
    /// What of a logged map has yet to go home.
    pub(crate) map_home: MapHome,
    /// Which slot the map was saved in for the last commit, if it was.
    pub(crate) map_saved: bool,
    /// The slot that the map is saved in next.
    pub(crate) map_slot: usize,
    /// Longest time between a change and its commit.
    pub(crate) commit_time: Duration,
    /// Whether data is written as soon as it comes, as in the paper.
    pub(crate) through: bool,
    /// Whether the last change failed as no log record holds it: in steps it may be made.
    pub(crate) too_much: bool,
    /// Changes and commits that are under way.
    pub(crate) at_work: u32,
    next_uid: u64,
}

/// Bits of a uid below the epoch.
const UID_BITS: u32 = 40;

impl Core {
    pub(crate) fn new(layout: Layout, cache: Cache, table: Table, vam: Vam, log: LogState) -> Self {
        Self {
            map_home: MapHome::new(&layout),
            layout,
            cache,
            table,
            vam,
            reserved: Reservations::default(),
            txn: Txn::default(),
            batch: Batch::default(),
            log,
            leaders: BTreeMap::new(),
            takes: Takes::Nothing,
            map_saved: false,
            map_slot: 0,
            commit_time: COMMIT_TIME,
            through: false,
            too_much: false,
            at_work: 0,
            next_uid: 1,
        }
    }

    /// # Errors
    /// `ReadOnly`.
    pub(crate) fn writable(&self) -> Result<()> {
        match self.takes {
            Takes::Changes | Takes::Unopened => Ok(()),
            Takes::Nothing => Err(Kind::ReadOnly.into()),
            Takes::Failed => Err(Error::note(
                Kind::ReadOnly,
                "the device failed: the volume takes no more changes",
            )),
            Takes::CutOff => Err(Error::note(
                Kind::ReadOnly,
                "a change was cut off by a fault: the volume takes no more of them",
            )),
        }
    }

    /// Returns a uid that no node ever had.
    ///
    /// # Errors
    /// `NoSpace` when all are used up.
    pub(crate) fn new_uid(&mut self) -> Result<u64> {
        let uid = self.next_uid;
        if uid >> UID_BITS != 0 || u64::from(self.log.epoch) >> (64 - UID_BITS) != 0 {
            return Err(Kind::NoSpace.into());
        }
        self.next_uid += 1;
        Ok(u64::from(self.log.epoch) << UID_BITS | uid)
    }

    // ---- Pages of the name table ----

    /// Returns a page, as the operation sees it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn page(&mut self, index: u32) -> Result<Image> {
        if let Some(image) = self.txn.pages.get(&index) {
            return Ok(image.clone());
        }
        if let Some(image) = self.table.get(index) {
            return Ok(image);
        }
        let mend = matches!(self.takes, Takes::Changes);
        let dev = self.cache.device().clone();
        self.table.read(&*dev, &self.layout, index, mend)
    }

    /// # Errors
    /// `NoSpace`.
    pub(crate) fn take_page(&mut self) -> Result<u32> {
        let full = || Error::note(Kind::NoSpace, "the name table is full");
        let index = self.vam.take_table().ok_or_else(full)?;
        self.txn.table_taken.push(index);
        Ok(index)
    }

    pub(crate) fn free_page(&mut self, index: u32) {
        self.txn.pages.remove(&index);
        self.txn.table_freed.push(index);
    }

    // ---- Room ----

    /// Takes pages for a file.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn take(&mut self, want: &Want) -> Result<Vec<Run>> {
        let taken = self.vam.take(want, &mut self.reserved);
        let runs = taken.ok_or(Kind::NoSpace)?;
        self.txn.taken.extend(&runs);
        Ok(runs)
    }

    /// Gives pages back, once the change is committed.
    pub(crate) fn free(&mut self, runs: Vec<Run>) {
        self.txn.freed.extend(runs);
    }

    /// Gives back the rest of a page past a file's new end, once the change is
    /// committed.
    pub(crate) fn free_rest(&mut self, page: u32) {
        self.txn.cut = Some(page);
    }

    /// Checks that the rest of a page was not given back since the last commit.
    ///
    /// # Errors
    /// `NoSpace`: the next commit makes it free.
    pub(crate) fn check_rest(&self, page: u32) -> Result<()> {
        match self.batch.cut.contains(&page) && !made(Mistake::FreeRestAtCut) {
            true => Err(Kind::NoSpace.into()),
            false => Ok(()),
        }
    }

    /// Sets the leader of a file whose runs were `old`.
    pub(crate) fn set_leader(&mut self, uid: u64, old: Option<u32>, runs: &Runs) {
        if let Some(page) = old.filter(|p| Some(*p) != runs.leader()) {
            self.txn.leaders.insert(page, None);
        }
        if let Some(page) = runs.leader() {
            let leader = Leader::of(uid, runs, &self.layout);
            self.txn.leaders.insert(page, Some(leader));
        }
    }

    /// Returns what the leader on a page says now: as changed, as logged, or as on the
    /// disk.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn leader(&mut self, page: u32) -> Result<Option<Leader>> {
        let changed = self
            .batch
            .leaders
            .get(&page)
            .or_else(|| self.batch.fresh.get(&page));
        if let Some(leader) = changed {
            return Ok(Some(leader.clone()));
        }
        if let Some(pending) = self.leaders.get(&page) {
            return Ok(Leader::decode(&self.layout, page, &pending.image));
        }
        let mut bytes = vec![0; self.layout.page_len()];
        self.cache.read(self.layout.offset(page), &mut bytes)?;
        Ok(Leader::decode(&self.layout, page, &bytes))
    }

    /// Schedules a rewrite of a leader that disagrees with the name table, if there is
    /// room for it in the next record. Returns whether there is.
    pub(crate) fn mend_leader(&mut self, uid: u64, runs: &Runs) -> bool {
        let logged = self.batch.pages.len() + self.batch.leaders.len();
        let room = logged < self.layout.logged_max as usize && self.txn.leaders.is_empty();
        let page = runs.leader().filter(|_| room);
        let Some(page) = page.filter(|_| self.takes == Takes::Changes) else {
            return false;
        };
        let leader = Leader::of(uid, runs, &self.layout);
        self.batch.leaders.insert(page, leader);
        true
    }

    // ---- Changes ----

    /// Returns whether a change for which there was no room may fit after a commit.
    pub(crate) fn commit_gives_room(&self) -> bool {
        let frees_nothing = self.batch.freed.is_empty() && self.batch.cut.is_empty();
        !self.too_much && !frees_nothing
    }

    /// Returns whether the batch has waited long enough.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        let Some(since) = self.batch.since else {
            return false;
        };
        let ms = |t: Time| i128::from(t.secs) * 1000 + i128::from(t.nanos / 1_000_000);
        (ms(now) - ms(since)).unsigned_abs() >= self.commit_time.as_millis()
    }

    /// Forgets the txn.
    pub(crate) fn undo(&mut self) {
        let txn = std::mem::take(&mut self.txn);
        for index in txn.table_taken {
            self.vam.mark_table(index, false);
        }
        for run in txn.taken {
            self.forget(run);
            self.vam.mark(run.start, run.len, false);
        }
    }

    /// Forgets what the cache holds of pages.
    fn forget(&self, run: Run) {
        let len = u64::from(run.len) * u64::from(self.layout.page);
        self.cache.drop_range(self.layout.offset(run.start), len);
    }

    /// Returns whether a page was free when the last commit was made.
    fn is_fresh(&self, page: u32) -> bool {
        let holds = |r: &Run| page >= r.start && page - r.start < r.len;
        self.batch.taken.contains(page) || self.txn.taken.iter().any(holds)
    }

    /// Pages that are in use but were free at the last commit, as far as no page of
    /// the name table was freed in between.
    pub(crate) fn taken_since(&self) -> impl Iterator<Item = Run> + '_ {
        let table = self.txn.table_taken.iter();
        let table = table.map(|index| self.layout.table_page(*index));
        let files = self
            .batch
            .taken
            .iter()
            .chain(self.txn.taken.iter().copied());
        files.chain(table)
    }

    /// Pages of the name table that were taken or freed, and whether each was in use
    /// at the last commit.
    pub(crate) fn table_before(&self) -> impl Iterator<Item = (Run, bool)> + '_ {
        let table = self.batch.table.iter();
        table.map(|(index, (was, _))| (self.layout.table_page(*index), *was))
    }

    /// Returns whether one record can tell of what the batch and the txn change in the
    /// allocation map.
    fn can_be_told(&self) -> bool {
        let txn = &self.txn;
        let table = txn.table_taken.len() + txn.table_freed.len();
        let own = txn.taken.len() + txn.freed.len() + table;
        let most = Delta::most(self.layout.page_len());
        !self.layout.logs_map || self.batch.told_at_most() + own <= most
    }

    /// Forgets what the cache has of pages that are free once this is committed.
    fn give_up(&mut self, runs: &[Run]) {
        for run in runs {
            self.forget(*run);
            if made(Mistake::FreeAtDelete) {
                self.vam.mark(run.start, run.len, false);
            }
            if made(Mistake::LeaderGoesAtDelete) {
                self.leaders.remove(&run.start);
            }
        }
    }

    /// Commits half of a change before the other half: what must never be.
    fn split_txn(&mut self, now: Time) -> Result<()> {
        if let Some((index, image)) = self.txn.pages.pop_first() {
            self.table.change(index, image);
            self.batch.pages.insert(index);
            self.commit(now)?;
        }
        Ok(())
    }

    /// Holds if one record can log the txn as it is.
    ///
    /// # Errors
    /// `NoSpace`, and [`too_much`](Self::too_much) is set.
    pub(crate) fn check_fits(&mut self) -> Result<()> {
        let own = self.txn.pages.len() + self.txn.leaders.len();
        let most = self.layout.logged_max as usize;
        self.too_much = own > most;
        if self.too_much {
            return Err(Error::note(
                Kind::NoSpace,
                format!("a change of {own} pages; a log record of this volume holds {most}"),
            ));
        }
        Ok(())
    }

    /// Makes the txn part of the batch.
    pub(crate) fn install(&mut self, now: Time) -> Result<()> {
        self.check_fits()?;
        let all = self
            .txn
            .pages
            .keys()
            .filter(|p| !self.batch.pages.contains(*p))
            .count()
            + self.txn.leaders.len()
            + self.batch.pages.len()
            + self.batch.leaders.len();
        if all > self.layout.logged_max as usize || !self.can_be_told() {
            self.commit(now)?;
        }
        if made(Mistake::EachPageAlone) && !self.txn.pages.is_empty() {
            self.split_txn(now)?;
        }
        let fresh: Vec<u32> = self
            .txn
            .leaders
            .keys()
            .copied()
            .filter(|p| self.is_fresh(*p))
            .collect();
        let cut = self.txn.cut.filter(|page| !self.is_fresh(*page));
        let txn = std::mem::take(&mut self.txn);
        // What changed nothing waits for no commit.
        if !(txn.pages.is_empty() && txn.leaders.is_empty()) {
            self.batch.since.get_or_insert(now);
        }
        for index in txn.table_taken {
            self.batch.table.entry(index).or_insert((false, true)).1 = true;
        }
        for index in txn.table_freed {
            self.batch.table.entry(index).or_insert((true, false)).1 = false;
            self.table.forget(index);
            self.batch.pages.remove(&index);
            self.vam.mark_table(index, false);
        }
        for (index, image) in txn.pages {
            self.table.change(index, image);
            self.batch.pages.insert(index);
        }
        for (page, leader) in txn.leaders {
            self.batch.leaders.remove(&page);
            self.batch.fresh.remove(&page);
            if let Some(leader) = leader {
                let into = if fresh.contains(&page) {
                    &mut self.batch.fresh
                } else {
                    &mut self.batch.leaders
                };
                into.insert(page, leader);
            }
        }
        self.give_up(&txn.freed);
        self.batch.taken.extend(txn.taken);
        self.batch.freed.extend(txn.freed);
        self.batch.cut.extend(cut);
        Ok(())
    }
}
