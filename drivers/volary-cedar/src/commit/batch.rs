//! What has changed since the last commit: an operation's own [`Txn`], and the [`Batch`] that it
//! joins when it succeeds. A batch is what one log record holds.

use crate::disk::leader::Leader;
use crate::disk::ondisk::stamp;
use crate::disk::runs::{Run, Runs};
use crate::disk::volume::Layout;
use crate::mistakes::{Mistake, made};
use crate::name_table::page::Image;
use crate::name_table::table::Table;
use crate::space::delta::{Delta, RunSet};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use volary_core::{Kind, Result, Time};

/// Pages of a record: what belongs where.
pub(crate) type Logged = Vec<(u32, Image)>;

/// What an operation has changed so far.
#[derive(Default)]
pub(crate) struct Txn {
    pages: BTreeMap<u32, Image>,
    table_taken: Vec<u32>,
    table_freed: Vec<u32>,
    taken: Vec<Run>,
    freed: Vec<Run>,
    /// A page whose end is no longer the file's.
    cut: Option<u32>,
    /// Leaders that are new or changed, and those that go (None).
    leaders: BTreeMap<u32, Option<Leader>>,
}

impl Txn {
    /// Returns a page of the name table, if it has changed.
    pub(crate) fn page(&self, index: u32) -> Option<&Image> {
        self.pages.get(&index)
    }

    /// Changes a page of the name table.
    pub(crate) fn put_page(&mut self, index: u32, image: Image) {
        self.pages.insert(index, image);
    }

    /// Notes that a page of the name table was taken.
    pub(crate) fn took_page(&mut self, index: u32) {
        self.table_taken.push(index);
    }

    /// Gives a page of the name table back, once the change is committed.
    pub(crate) fn free_page(&mut self, index: u32) {
        self.pages.remove(&index);
        self.table_freed.push(index);
    }

    /// Notes that pages were taken for a file.
    pub(crate) fn took(&mut self, runs: &[Run]) {
        self.taken.extend(runs);
    }

    /// Gives pages back, once the change is committed.
    pub(crate) fn free(&mut self, runs: Vec<Run>) {
        self.freed.extend(runs);
    }

    /// Gives back the rest of a page past a file's new end, once the change is
    /// committed.
    pub(crate) fn free_rest(&mut self, page: u32) {
        self.cut = Some(page);
    }

    /// Sets the leader of a file whose runs were `old`.
    pub(crate) fn set_leader(&mut self, layout: &Layout, uid: u64, old: Option<u32>, runs: &Runs) {
        if let Some(page) = old.filter(|p| Some(*p) != runs.leader()) {
            self.leaders.insert(page, None);
        }
        if let Some(page) = runs.leader() {
            let leader = Leader::of(uid, runs, layout);
            self.leaders.insert(page, Some(leader));
        }
    }

    /// Returns whether it changes leaders.
    pub(crate) fn has_leaders(&self) -> bool {
        !self.leaders.is_empty()
    }

    /// Returns how many pages a record of this alone logs.
    pub(crate) fn logged(&self) -> usize {
        self.pages.len() + self.leaders.len()
    }

    /// Returns the pages of the name table that were taken.
    pub(crate) fn table_taken(&self) -> impl Iterator<Item = u32> + '_ {
        self.table_taken.iter().copied()
    }

    /// Returns the pages that were taken for files.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Run> + '_ {
        self.taken.iter().copied()
    }

    /// Takes the first page of the name table out of it.
    pub(crate) fn pop_page(&mut self) -> Option<(u32, Image)> {
        self.pages.pop_first()
    }

    /// Runs that the record has to tell of, at most.
    fn told_at_most(&self) -> usize {
        let table = self.table_taken.len() + self.table_freed.len();
        self.taken.len() + self.freed.len() + table
    }
}

/// What of a txn that joined a batch concerns others than the batch.
pub(crate) struct Joined {
    /// Pages of the name table, as they are now.
    pub(crate) pages: BTreeMap<u32, Image>,
    /// Pages of the name table that are free now.
    pub(crate) table_freed: Vec<u32>,
    /// Pages that are free once this is committed.
    pub(crate) freed: Vec<Run>,
}

/// What is to be committed together.
#[derive(Default)]
pub(crate) struct Batch {
    /// Pages of the name table that changed.
    pages: BTreeSet<u32>,
    /// Leaders that changed, of files that are on the disk already.
    leaders: BTreeMap<u32, Leader>,
    /// Leaders on pages that were free before: they are written like data.
    fresh: BTreeMap<u32, Leader>,
    /// Pages of those that were written through already, as they were then.
    sent: BTreeSet<u32>,
    /// Pages that were free before.
    taken: RunSet,
    /// The shadow map: pages that are free once this is committed.
    freed: RunSet,
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
    // ---- What joins it ----

    /// Returns how many pages a record logs of this and a txn.
    pub(crate) fn logged_with(&self, txn: &Txn) -> usize {
        let new = txn.pages.keys().filter(|p| !self.pages.contains(*p));
        new.count() + txn.leaders.len() + self.logged()
    }

    /// Returns how many pages a record of this logs.
    fn logged(&self) -> usize {
        self.pages.len() + self.leaders.len()
    }

    /// Returns whether one record can tell of what this and a txn change in the
    /// allocation map.
    pub(crate) fn can_tell_with(&self, txn: &Txn, layout: &Layout) -> bool {
        let own = self.taken.len() + self.freed.len() + self.table.len();
        !layout.logs_map || own + txn.told_at_most() <= Delta::most(layout.page_len())
    }

    /// Returns whether a page was free when the last commit was made.
    fn is_fresh(&self, txn: &Txn, page: u32) -> bool {
        let holds = |r: &Run| page >= r.start && page - r.start < r.len;
        self.taken.contains(page) || txn.taken.iter().any(holds)
    }

    /// Makes a txn part of this.
    pub(crate) fn join(&mut self, txn: Txn, now: Time) -> Joined {
        let fresh = txn.leaders.keys().copied();
        let fresh: Vec<u32> = fresh.filter(|p| self.is_fresh(&txn, *p)).collect();
        let cut = txn.cut.filter(|page| !self.is_fresh(&txn, *page));
        // What changed nothing waits for no commit.
        if txn.logged() > 0 {
            self.since.get_or_insert(now);
        }
        for index in txn.table_taken {
            self.table.entry(index).or_insert((false, true)).1 = true;
        }
        for index in &txn.table_freed {
            self.table.entry(*index).or_insert((true, false)).1 = false;
            self.pages.remove(index);
        }
        self.pages.extend(txn.pages.keys());
        for (page, leader) in txn.leaders {
            self.leaders.remove(&page);
            self.fresh.remove(&page);
            if let Some(leader) = leader {
                let into = if fresh.contains(&page) {
                    &mut self.fresh
                } else {
                    &mut self.leaders
                };
                into.insert(page, leader);
            }
        }
        self.taken.extend(txn.taken);
        self.freed.extend(txn.freed.iter().copied());
        self.cut.extend(cut);
        Joined {
            pages: txn.pages,
            table_freed: txn.table_freed,
            freed: txn.freed,
        }
    }

    /// Adds a page of the name table, alone.
    pub(crate) fn add_page(&mut self, index: u32) {
        self.pages.insert(index);
    }

    /// Adds a leader that disagreed with the name table, if a record has room for it.
    /// Returns whether it has.
    pub(crate) fn add_leader(&mut self, layout: &Layout, page: u32, leader: Leader) -> bool {
        let has_room = self.logged() < layout.logged_max as usize;
        if has_room {
            self.leaders.insert(page, leader);
        }
        has_room
    }

    // ---- What it holds back ----

    /// Checks that the rest of a page was not given back since the last commit.
    ///
    /// # Errors
    /// `NoSpace`: the next commit makes it free.
    pub(crate) fn check_rest(&self, page: u32) -> Result<()> {
        match self.cut.contains(&page) && !made(Mistake::FreeRestAtCut) {
            true => Err(Kind::NoSpace.into()),
            false => Ok(()),
        }
    }

    /// Returns whether its commit makes room free.
    pub(crate) fn frees(&self) -> bool {
        !(self.freed.is_empty() && self.cut.is_empty())
    }

    /// Returns the pages that are free once it is committed.
    pub(crate) fn freed(&self) -> &RunSet {
        &self.freed
    }

    // ---- Its commit ----

    /// Returns whether it has waited so long.
    pub(crate) fn is_due(&self, now: Time, after: Duration) -> bool {
        let Some(since) = self.since else {
            return false;
        };
        let ms = |t: Time| i128::from(t.secs) * 1000 + i128::from(t.nanos / 1_000_000);
        (ms(now) - ms(since)).unsigned_abs() >= after.as_millis()
    }

    /// Returns whether a page of the name table has changed.
    pub(crate) fn has_page(&self, index: u32) -> bool {
        self.pages.contains(&index)
    }

    /// Returns whether no page of the name table has changed.
    pub(crate) fn has_no_pages(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns whether a record has nothing to log.
    pub(crate) fn logs_nothing(&self) -> bool {
        self.logged() == 0
    }

    /// Returns the leader at `page` as the batch has it; `None` if the batch does not change it.
    pub(crate) fn leader(&self, page: u32) -> Option<&Leader> {
        self.leaders.get(&page).or_else(|| self.fresh.get(&page))
    }

    /// Returns a leader that goes with a file's first data and was not written through yet.
    pub(crate) fn unsent(&self) -> Option<(u32, &Leader)> {
        let mut unsent = self
            .fresh
            .iter()
            .filter(|(page, _)| !self.sent.contains(page));
        unsent.next().map(|(page, leader)| (*page, leader))
    }

    /// Notes that a leader was written through.
    pub(crate) fn sent(&mut self, page: u32) {
        self.fresh.remove(&page);
        self.sent.insert(page);
    }

    /// Takes the leaders that are written like data.
    pub(crate) fn take_fresh(&mut self) -> BTreeMap<u32, Leader> {
        std::mem::take(&mut self.fresh)
    }

    /// Returns the images that the record logs: those of the name table first.
    pub(crate) fn images(&self, table: &Table, layout: &Layout, epoch: u32, seq: u64) -> Logged {
        let tables = self.pages.iter().filter_map(|index| {
            let mut image = table.get(*index)?.to_vec();
            stamp(&mut image, epoch, seq);
            Some((layout.table_a + index, image.into()))
        });
        let leaders = self.leaders.iter().map(|(page, leader)| {
            let image = leader.encode(layout, *page, epoch, seq);
            (*page, image.into())
        });
        match made(Mistake::LeaderNotLogged) {
            true => tables.collect(),
            false => tables.chain(leaders).collect(),
        }
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

    // ---- The last commit ----

    /// Returns pages that are in use but were free at the last commit, as far as no page of
    /// the name table was freed in between.
    pub(crate) fn taken_with<'a>(
        &'a self,
        txn: &'a Txn,
        layout: &'a Layout,
    ) -> impl Iterator<Item = Run> + 'a {
        let table = txn.table_taken().map(|index| layout.table_page(index));
        self.taken.iter().chain(txn.taken()).chain(table)
    }

    /// Returns pages of the name table that were taken or freed, and whether each was in use
    /// at the last commit.
    pub(crate) fn table_before<'a>(
        &'a self,
        layout: &'a Layout,
    ) -> impl Iterator<Item = (Run, bool)> + 'a {
        let table = self.table.iter();
        table.map(|(index, (was, _))| (layout.table_page(*index), *was))
    }
}
