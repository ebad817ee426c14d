//! The volume below names and files: pages of the name table, room, leaders,
//! and changes that are made whole or not at all.
//!
//! An operation works on a [`Txn`], which nobody else sees. If it succeeds, the
//! txn joins the [`Batch`] of the next commit; if not, it is undone. A batch is
//! what one log record holds: a txn that does not fit makes the batch before it
//! be committed first.

use crate::commit::allocation_map::{AllocationMap, Committed};
use crate::commit::batch::{Batch, Txn};
use crate::commit::leaders::Leaders;
use crate::commit::log_state::LogState;
use crate::disk::leader::Leader;
use crate::disk::runs::{Run, Runs};
use crate::disk::volume::Layout;
use crate::mistakes::{Mistake, made};
use crate::name_table::page::Image;
use crate::name_table::table::Table;
use crate::space::vam::{Vam, Want};
use std::time::Duration;
use volary_block::Cache;
use volary_core::{Error, Kind, Result, Time};

/// Longest time between a change and its commit, unless told otherwise (paper, section 5.4).
pub(crate) const COMMIT_TIME: Duration = Duration::from_millis(500);

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
    pub(crate) map: AllocationMap,
    pub(crate) txn: Txn,
    pub(crate) batch: Batch,
    pub(crate) log: LogState,
    pub(crate) leaders: Leaders,
    pub(crate) takes: Takes,
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
            map: AllocationMap::new(&layout, vam),
            layout,
            cache,
            table,
            txn: Txn::default(),
            batch: Batch::default(),
            log,
            leaders: Leaders::default(),
            takes: Takes::Nothing,
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
        if uid >> UID_BITS != 0 || u64::from(self.log.epoch()) >> (64 - UID_BITS) != 0 {
            return Err(Kind::NoSpace.into());
        }
        self.next_uid += 1;
        Ok(u64::from(self.log.epoch()) << UID_BITS | uid)
    }

    /// Returns the allocation map, and what of the rest it goes home by.
    pub(crate) fn map_at(&mut self) -> (&mut AllocationMap, Committed<'_>) {
        let at = Committed {
            layout: &self.layout,
            cache: &self.cache,
            log: &self.log,
            batch: &self.batch,
            txn: &self.txn,
        };
        (&mut self.map, at)
    }

    // ---- Pages and room ----

    /// Returns a page of the name table, as the operation sees it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn page(&mut self, index: u32) -> Result<Image> {
        if let Some(image) = self.txn.page(index) {
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
        let index = self.map.take_table().ok_or_else(full)?;
        self.txn.took_page(index);
        Ok(index)
    }

    /// Takes pages for a file.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) fn take(&mut self, want: &Want) -> Result<Vec<Run>> {
        let runs = self.map.take(want).ok_or(Kind::NoSpace)?;
        self.txn.took(&runs);
        Ok(runs)
    }

    /// Returns pages that are free, with those that are once the batch is committed.
    pub(crate) fn free_pages(&self) -> u64 {
        u64::from(self.map.vam().free()) + self.batch.freed().pages()
    }

    // ---- Leaders ----

    /// Returns what the leader on a page says now: as changed, as logged, or as on the
    /// disk.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn leader(&mut self, page: u32) -> Result<Option<Leader>> {
        if let Some(leader) = self.batch.leader(page) {
            return Ok(Some(leader.clone()));
        }
        if let Some(image) = self.leaders.get(page) {
            return Ok(Leader::decode(&self.layout, page, image));
        }
        let mut bytes = vec![0; self.layout.page_len()];
        self.cache.read(self.layout.offset(page), &mut bytes)?;
        Ok(Leader::decode(&self.layout, page, &bytes))
    }

    /// Schedules a rewrite of a leader that disagrees with the name table, if there is
    /// room for it in the next record. Returns whether there is.
    pub(crate) fn mend_leader(&mut self, uid: u64, runs: &Runs) -> bool {
        let can_change = self.takes == Takes::Changes && !self.txn.has_leaders();
        let Some(page) = runs.leader().filter(|_| can_change) else {
            return false;
        };
        let leader = Leader::of(uid, runs, &self.layout);
        self.batch.add_leader(&self.layout, page, leader)
    }

    // ---- Changes ----

    /// Returns whether a change for which there was no room may fit after a commit.
    pub(crate) fn commit_gives_room(&self) -> bool {
        !self.too_much && self.batch.frees()
    }

    /// Forgets the txn.
    pub(crate) fn undo(&mut self) {
        let txn = std::mem::take(&mut self.txn);
        for index in txn.table_taken() {
            self.map.give_table(index);
        }
        for run in txn.taken() {
            self.forget(run);
            self.map.give(run);
        }
    }

    /// Forgets what the cache holds of pages.
    fn forget(&self, run: Run) {
        let len = u64::from(run.len) * u64::from(self.layout.page);
        self.cache.drop_range(self.layout.offset(run.start), len);
    }

    /// Forgets what the cache has of pages that are free once this is committed.
    fn give_up(&mut self, runs: &[Run]) {
        for run in runs {
            self.forget(*run);
            if made(Mistake::FreeAtDelete) {
                self.map.give(*run);
            }
            if made(Mistake::LeaderGoesAtDelete) {
                self.leaders.forget(Run { len: 1, ..*run });
            }
        }
    }

    /// Commits half of a change before the other half: what must never be.
    fn split_txn(&mut self, now: Time) -> Result<()> {
        if let Some((index, image)) = self.txn.pop_page() {
            self.table.change(index, image);
            self.batch.add_page(index);
            self.commit(now)?;
        }
        Ok(())
    }

    /// Holds if one record can log the txn as it is.
    ///
    /// # Errors
    /// `NoSpace`, and [`too_much`](Self::too_much) is set.
    pub(crate) fn check_fits(&mut self) -> Result<()> {
        let own = self.txn.logged();
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
        let fits = self.batch.logged_with(&self.txn) <= self.layout.logged_max as usize;
        if !fits || !self.batch.can_tell_with(&self.txn, &self.layout) {
            self.commit(now)?;
        }
        if made(Mistake::EachPageAlone) {
            self.split_txn(now)?;
        }
        let joined = self.batch.join(std::mem::take(&mut self.txn), now);
        for index in joined.table_freed {
            self.table.forget(index);
            self.map.give_table(index);
        }
        for (index, image) in joined.pages {
            self.table.change(index, image);
        }
        self.give_up(&joined.freed);
        Ok(())
    }
}
