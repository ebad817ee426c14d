//! The order of writes.
//!
//! All changes between two commits are an *epoch*: operations change memory
//! while they share the epoch, a commit has it alone and brings it to the disk:
//!
//! 1. data, and what new directories hold: nothing on the disk leads there yet;
//! 2. the FAT: what was taken and how it is chained; flush. Where a chain that
//!    the disk leads to goes on, or ends, in another sector than the clusters
//!    behind stand in, there is a flush in between: clusters are chained before
//!    a chain joins them, and a chain ends before what was behind is freed (see
//!    [`joins`](crate::table::joins));
//! 3. the directories' sectors; flush; where a rename took an entry out of
//!    another sector than it put it in, that sector comes after one more flush;
//! 4. what was given back in the epoch is freed in memory, to be taken again
//!    or written with the next commit.
//!
//! A crash in between leaves clusters that nothing leads to, or a moved entry
//! twice, and nothing else that a check would call damage.

use crate::attached::node::{Meta, NODE_COST, Node};
use crate::base::epoch::{Epoch, Step};
use crate::base::store::{State, Store};
use crate::table::marks::{self, Hints};
use crate::volume::ondisk::ENTRY_LEN;
use crate::volume::time::Zone;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use volary_block::Stage;
use volary_core::{Error, Kind, Result, Time};
use volary_ondisk::retry::with_commits;
use zerocopy::IntoBytes;

/// Commits of an attached volume, and what they bring to the disk.
pub(crate) struct Commits {
    store: Arc<Store>,
    /// What local time is.
    zone: Zone,
    epoch: RwLock<Epoch>,
    /// The volume was not cleanly left before this attachment.
    was_dirty: bool,
    /// The dirty mark is on the disk.
    marked: AtomicBool,
    marking: Mutex<()>,
    /// FSInfo could not be read when it was to be written: a volume with wrong hints is not
    /// marked as cleanly left, so that a check counts anew.
    hints_stale: AtomicBool,
    /// Nodes whose entries are to be written.
    dirty: Mutex<Vec<Arc<Node>>>,
    /// How many that are.
    dirty_nodes: AtomicUsize,
    /// Nodes with which entries are brought into their sectors before the
    /// commit, so that the nodes can go.
    dirty_max: usize,
    /// Held bytes that make a commit.
    held_max: u64,
    /// The last number that was given for a change.
    last_change: AtomicU64,
}

impl Commits {
    /// Returns the state of a volume that is attached now, which holds about `held_max` bytes back for a commit.
    pub(crate) fn new(store: Arc<Store>, zone: Zone, was_dirty: bool, held_max: u64) -> Self {
        Self {
            store,
            zone,
            epoch: RwLock::default(),
            was_dirty,
            marked: AtomicBool::new(false),
            marking: Mutex::default(),
            hints_stale: AtomicBool::new(false),
            dirty: Mutex::default(),
            dirty_nodes: AtomicUsize::new(0),
            dirty_max: usize::try_from(held_max / NODE_COST).unwrap_or(usize::MAX),
            held_max,
            last_change: AtomicU64::new(1),
        }
    }

    /// Returns what is written to.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns a number for [`Attr::change`](volary_core::Attr::change), larger than
    /// all before.
    pub(crate) fn next_change(&self) -> u64 {
        self.last_change.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes a change of a node that is to be written to its entry. Inside of
    /// an epoch.
    pub(crate) fn changed(&self, node: &Arc<Node>, meta: &mut Meta, now: Time) {
        meta.change = self.next_change();
        meta.ctime = now;
        if !meta.dirty && meta.place.is_some() && !meta.gone {
            meta.dirty = true;
            self.list(node);
        }
    }

    /// Sets the time of modification, and marks the node's entry to be written.
    pub(crate) fn modified(&self, node: &Arc<Node>, now: Time) {
        let mut meta = node.meta.lock();
        meta.mtime = now;
        self.changed(node, &mut meta, now);
    }

    /// Puts a node on the list of those whose entries are to be written.
    fn list(&self, node: &Arc<Node>) {
        let mut dirty = self.dirty.lock();
        dirty.push(node.clone());
        self.dirty_nodes.store(dirty.len(), Ordering::Release);
    }

    /// Takes the list.
    fn take_listed(&self) -> Vec<Arc<Node>> {
        let mut dirty = self.dirty.lock();
        self.dirty_nodes.store(0, Ordering::Release);
        std::mem::take(&mut *dirty)
    }

    /// Runs `step` inside of the epoch, after a commit once more if it asks for
    /// that. No lock but those on bodies may be held.
    ///
    /// # Errors
    /// `ReadOnly`, and what `step` answers; `NoSpace` if a commit did not help.
    pub(crate) fn change<R>(&self, mut step: impl FnMut(&Epoch) -> Step<R>) -> Result<R> {
        self.store.writable()?;
        self.mark_dirty()?;
        self.relieve()?;
        with_commits(
            &mut step,
            |step| step(&*self.share_epoch()?),
            |_| self.commit(),
        )
    }

    fn share_epoch(&self) -> Result<RwLockReadGuard<'_, Epoch>> {
        let epoch = self.epoch.read();
        // A commit may have failed while this waited.
        self.store.writable()?;
        Ok(epoch)
    }

    /// Commits when much is held back.
    fn relieve(&self) -> Result<()> {
        let pending = u64::from(self.store.pending_clusters()) * 4;
        let held = self.store.cache.held() + self.store.table.dirty_len();
        // One segment is dirty nearly always and does not mean much.
        if held + pending > self.held_max {
            return self.commit();
        }
        let nodes = || self.dirty_nodes.load(Ordering::Acquire);
        if nodes() <= self.dirty_max {
            return Ok(());
        }
        self.put_entries()?;
        if nodes() > self.dirty_max / 2 {
            return self.commit();
        }
        Ok(())
    }

    /// Brings what is known of nodes into their directories' sectors, in
    /// memory: a commit does the same, and only then may most of them reach
    /// the disk. Nodes that were moved stay listed, for the commit to forget
    /// that they were.
    fn put_entries(&self) -> Result<()> {
        let epoch = self.epoch.write();
        self.store.writable()?;
        for node in self.take_listed() {
            if node.meta.lock().moved {
                self.list(&node);
            } else {
                self.store.or_fail(self.put_entry(&node, &epoch))?;
            }
        }
        Ok(())
    }

    /// Brings the epoch to the disk and begins a new one.
    ///
    /// # Errors
    /// `Io`; the volume takes no changes from then on.
    pub(crate) fn commit(&self) -> Result<()> {
        let mut epoch = self.epoch.write();
        match self.store.state() {
            State::Writable => {}
            State::ReadOnly => return Ok(()),
            State::Failed | State::Detached => return self.store.writable(),
        }
        let result = self.commit_epoch(&mut epoch);
        if result.is_err() {
            self.store.fail();
        }
        result
    }

    /// Brings a node's entry into its directory's sector. In a commit.
    fn put_entry(&self, node: &Node, epoch: &Epoch) -> Result<()> {
        let mut meta = node.meta.lock();
        meta.moved = false;
        if !std::mem::take(&mut meta.dirty) || meta.gone {
            return Ok(());
        }
        let Some(place) = meta.place else {
            return Ok(());
        };
        let entry = meta.stored(self.zone);
        let stage = epoch.stage(place.dir);
        self.store
            .cache
            .update(place.offset, ENTRY_LEN, stage, |b| {
                b.copy_from_slice(entry.as_bytes());
            })
    }

    fn commit_epoch(&self, epoch: &mut Epoch) -> Result<()> {
        for node in self.take_listed() {
            self.put_entry(&node, epoch)?;
        }
        let store = &*self.store;
        let fat = store.table.dirty_len() > 0;
        store.cache.write_stage(Stage::DATA)?;
        if epoch.take_grown() && fat {
            store.cache.flush()?;
        }
        store.table.write()?;
        // The FAT is written past the cache, which knows of all else that is not durable yet.
        match fat {
            true => store.cache.flush()?,
            false => store.cache.flush_written()?,
        }
        store.cache.commit()?;
        let pending = store.take_pending();
        if !pending.is_empty() {
            store.table.release(&pending, self.held_max)?;
        }
        epoch.end();
        Ok(())
    }

    /// Commits, and brings the FAT and the FSInfo sector up to date with it.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn sync_all(&self) -> Result<()> {
        self.commit()?;
        if !self.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        let _alone = self.epoch.write();
        if self.store.state() != State::Writable {
            return self.store.writable();
        }
        let result = self.write_free_space();
        if result.is_err() {
            self.store.fail();
        }
        result
    }

    /// Writes what was freed, and FSInfo. Only after a commit.
    fn write_free_space(&self) -> Result<()> {
        let freed = self.store.table.dirty_len() > 0;
        self.store.table.write()?;
        let info = marks::write_fsinfo(
            &**self.store.device(),
            &self.store.layout,
            &self.store.table,
        )?;
        let is_stale = info == Hints::Unreadable;
        self.hints_stale.store(is_stale, Ordering::Release);
        if freed || info == Hints::Written {
            self.store.cache.flush()?;
        }
        Ok(())
    }

    /// Ends the attachment: all is made durable, the other copies of the FAT
    /// are written, and the volume is marked as cleanly left unless it was
    /// dirty before.
    ///
    /// # Errors
    /// `Io`, also if a write failed earlier, whoever was told of it then:
    /// others' changes may have been in the same commit.
    pub(crate) fn finish(&self) -> Result<()> {
        let result = match self.store.state() {
            State::Writable => {
                // All is made durable whatever comes of the count.
                let counted = self.count_free();
                self.sync_all().and_then(|()| {
                    let _alone = self.epoch.write();
                    self.mark_clean(counted.is_ok())
                })
            }
            State::Failed => Err(Error::note(
                Kind::Io,
                "the latest changes may be lost since a write to the volume failed; check it",
            )),
            State::ReadOnly | State::Detached => Ok(()),
        };
        self.store.detach();
        result
    }

    /// Counts the free clusters of a changed volume whose FSInfo did not say how many there are, so
    /// that it says so from now on.
    ///
    /// # Errors
    /// `Io`.
    fn count_free(&self) -> Result<()> {
        let is_told = self.store.layout.fsinfo_sector.is_some();
        if is_told && self.marked.load(Ordering::Acquire) {
            self.store.table.free_count()?;
        }
        Ok(())
    }

    /// Puts the dirty mark on the disk before the first change.
    fn mark_dirty(&self) -> Result<()> {
        if self.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.marking.lock();
        if self.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        let result = marks::set_dirty(
            &**self.store.device(),
            &self.store.layout,
            &self.store.table,
        );
        match result {
            Ok(()) => self.marked.store(true, Ordering::Release),
            Err(_) => self.store.fail(),
        }
        result
    }

    /// Brings the copies of the FAT up to date, and marks the volume as cleanly
    /// left unless it was not when it was attached, is damaged, or its free clusters could not
    /// be counted.
    fn mark_clean(&self, is_counted: bool) -> Result<()> {
        if !self.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        marks::finish(
            &**self.store.device(),
            &self.store.layout,
            &self.store.table,
            is_counted
                && !self.was_dirty
                && !self.hints_stale.load(Ordering::Acquire)
                && self.store.table.check_sound().is_ok(),
        )
    }
}
