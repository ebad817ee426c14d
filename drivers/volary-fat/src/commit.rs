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
//!    [`joins`](crate::joins));
//! 3. the directories' sectors; flush; where a rename took an entry out of
//!    another sector than it put it in, that sector comes after one more flush;
//! 4. what was given back in the epoch is freed in memory, to be taken again
//!    or written with the next commit.
//!
//! A crash in between leaves clusters that nothing leads to, or a moved entry
//! twice, and nothing else that a check would call damage.

use crate::alloc::Pending;
use crate::attached::Attached;
use crate::marks::{self, Hints};
use crate::node::{NODE_COST, Node};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use volary_block::{Cache, Stage};
use volary_core::{BlockDevice, Error, Kind, Result};
use volary_ondisk::NumberMap;
use volary_ondisk::retry::with_commits;
pub(crate) use volary_ondisk::retry::{Step, Stop};

/// The stage of directory sectors: when all they lead to is on the disk.
pub(crate) const ENTRIES: Stage = Stage(1);
/// The stage of sectors that a rename takes an entry out of.
pub(crate) const REMOVALS: Stage = Stage(2);

/// Whether the volume takes changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// It does.
    Writable,
    /// It was attached without.
    ReadOnly,
    /// Not any more: metadata could not be written.
    Failed,
    /// The attachment has ended.
    Detached,
}

/// What all changes share and a commit has alone.
#[derive(Default)]
pub(crate) struct Epoch {
    /// A directory that is on the disk has grown: its new cluster was zeroed
    /// on the device, and that must be durable before the FAT leads there.
    pub(crate) grew: AtomicBool,
    /// First clusters of directories that were made in this epoch: nothing on
    /// the disk leads there, so that their sectors need no order.
    born: Mutex<NumberMap<()>>,
    /// Sectors that renames of this epoch added to and took from.
    moves: Mutex<Moves>,
}

#[derive(Default)]
struct Moves {
    targets: HashSet<u64>,
    sources: HashSet<u64>,
    /// First clusters of the directories that renames took something out of.
    left: HashSet<u32>,
}

impl Epoch {
    /// Whether the directory that starts at this cluster was made in this epoch.
    pub(crate) fn is_born(&self, first_cluster: u32) -> bool {
        self.born.lock().contains_key(&first_cluster.into())
    }

    /// Notes a directory that is made now.
    pub(crate) fn bear(&self, first_cluster: u32) {
        self.born.lock().insert(first_cluster.into(), ());
    }

    /// Notes that a rename adds to sectors `to` and takes from `from`.
    ///
    /// # Errors
    /// `Commit` if a sector would have to come both before and after another.
    pub(crate) fn note_move(&self, to: &[u64], from: &[u64]) -> Step<()> {
        let mut moves = self.moves.lock();
        let late = |s: &u64| !to.contains(s);
        if to.iter().any(|s| moves.sources.contains(s))
            || from
                .iter()
                .filter(|s| late(s))
                .any(|s| moves.targets.contains(s))
        {
            return Err(Stop::Commit);
        }
        moves.targets.extend(to);
        moves.sources.extend(from.iter().copied().filter(late));
        Ok(())
    }

    /// Notes that a rename takes something out of the directory that starts at cluster `dir`.
    pub(crate) fn note_left(&self, dir: u32) {
        self.moves.lock().left.insert(dir);
    }

    /// Sees to it that the directory that starts at cluster `dir` can go: what was in it until this
    /// epoch has a name elsewhere that is durable.
    ///
    /// # Errors
    /// `Commit` if that is not so yet.
    pub(crate) fn check_left(&self, dir: u32) -> Step<()> {
        match self.moves.lock().left.contains(&dir) {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }
}

/// What decides about writing, of an attached volume.
pub(crate) struct Order {
    epoch: RwLock<Epoch>,
    state: AtomicU8,
    /// The volume was not cleanly left before this attachment.
    was_dirty: bool,
    /// The dirty mark is on the disk.
    marked: AtomicBool,
    marking: Mutex<()>,
    /// FSInfo could not be read when it was to be written: a volume with wrong hints is not
    /// marked as cleanly left, so that a check counts anew.
    hints_stale: AtomicBool,
    /// Something was written since the last flush, past the cache.
    unflushed: AtomicBool,
    /// Given back in this epoch.
    pending: Mutex<Pending>,
    /// How many clusters that is.
    pending_clusters: AtomicU32,
    /// Nodes whose entries are to be written.
    dirty: Mutex<Vec<Arc<Node>>>,
    /// How many that are.
    dirty_nodes: AtomicUsize,
    /// Nodes with which entries are brought into their sectors before the
    /// commit, so that the nodes can go.
    dirty_max: usize,
    /// Held bytes that make a commit.
    held_max: u64,
}

impl Order {
    /// For a volume that is attached now.
    pub(crate) fn new(state: State, was_dirty: bool, held_max: u64) -> Self {
        Self {
            epoch: RwLock::default(),
            state: AtomicU8::new(state as u8),
            was_dirty,
            hints_stale: AtomicBool::new(false),
            marked: AtomicBool::new(false),
            marking: Mutex::default(),
            unflushed: AtomicBool::new(false),
            pending: Mutex::default(),
            pending_clusters: AtomicU32::new(0),
            dirty: Mutex::default(),
            dirty_nodes: AtomicUsize::new(0),
            dirty_max: usize::try_from(held_max / NODE_COST).unwrap_or(usize::MAX),
            held_max,
        }
    }

    fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Writable,
            1 => State::ReadOnly,
            2 => State::Failed,
            _ => State::Detached,
        }
    }

    /// Notes a write past the cache.
    pub(crate) fn wrote(&self) {
        self.unflushed.store(true, Ordering::Release);
    }

    /// Gives clusters back, and ends a chain at `cut`, once the epoch is durable.
    pub(crate) fn give_back(&self, runs: &[crate::runs::Run], cut: Option<u32>) {
        let mut pending = self.pending.lock();
        pending.add(runs, cut);
        self.pending_clusters
            .store(pending.clusters, Ordering::Release);
    }

    /// Clusters that wait to be freed.
    pub(crate) fn pending_clusters(&self) -> u32 {
        self.pending_clusters.load(Ordering::Acquire)
    }

    /// Whether the chain that ends at `cluster` waits to be cut there.
    pub(crate) fn is_cut(&self, cluster: u32) -> bool {
        self.pending.lock().cuts.contains(&cluster)
    }

    /// Puts a node on the list of those whose entries are to be written.
    pub(crate) fn list(&self, node: &Arc<Node>) {
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
}

impl Attached {
    /// Whether the attachment is still there.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn alive(&self) -> Result<()> {
        match self.order.state() {
            State::Detached => Err(Kind::Stale.into()),
            _ => Ok(()),
        }
    }

    /// Whether the volume was attached to take changes.
    pub(crate) fn takes_changes(&self) -> bool {
        self.order.state() != State::ReadOnly
    }

    /// Whether changes are taken.
    ///
    /// # Errors
    /// `Stale`, `ReadOnly`.
    pub(crate) fn writable(&self) -> Result<()> {
        match self.order.state() {
            State::Writable => self.table.check_sound(),
            State::ReadOnly if self.options.boot.is_some() => Err(Error::note(
                Kind::ReadOnly,
                "it goes by a copy of the boot sector: fsck -y first",
            )),
            State::ReadOnly => Err(Kind::ReadOnly.into()),
            State::Failed => Err(Error::note(
                Kind::ReadOnly,
                "the volume takes no changes since a write to it failed; detach and check it",
            )),
            State::Detached => Err(Kind::Stale.into()),
        }
    }

    /// Runs `step` inside of the epoch, after a commit once more if it asks for
    /// that. No lock but those on bodies may be held.
    ///
    /// # Errors
    /// `ReadOnly`, and what `step` answers; `NoSpace` if a commit did not help.
    pub(crate) fn change<R>(&self, mut step: impl FnMut(&Epoch) -> Step<R>) -> Result<R> {
        self.writable()?;
        self.mark_dirty()?;
        self.relieve()?;
        with_commits(
            &mut step,
            |step| step(&*self.share_epoch()?),
            |_| self.commit(),
        )
    }

    fn share_epoch(&self) -> Result<RwLockReadGuard<'_, Epoch>> {
        let epoch = self.order.epoch.read();
        // A commit may have failed while this waited.
        self.writable()?;
        Ok(epoch)
    }

    /// Commits when much is held back.
    fn relieve(&self) -> Result<()> {
        let pending = u64::from(self.order.pending_clusters()) * 4;
        let held = self.cache.held() + self.table.dirty_len();
        // One segment is dirty nearly always and does not mean much.
        if held + pending > self.order.held_max {
            return self.commit();
        }
        let nodes = || self.order.dirty_nodes.load(Ordering::Acquire);
        if nodes() <= self.order.dirty_max {
            return Ok(());
        }
        self.put_entries()?;
        if nodes() > self.order.dirty_max / 2 {
            return self.commit();
        }
        Ok(())
    }

    /// Brings what is known of nodes into their directories' sectors, in
    /// memory: a commit does the same, and only then may most of them reach
    /// the disk. Nodes that were moved stay listed, for the commit to forget
    /// that they were.
    fn put_entries(&self) -> Result<()> {
        let epoch = self.order.epoch.write();
        self.writable()?;
        for node in self.order.take_listed() {
            if node.meta.lock().moved {
                self.order.list(&node);
            } else {
                self.or_fail(self.put_entry(&node, &epoch))?;
            }
        }
        Ok(())
    }

    /// Brings the epoch to the disk and begins a new one.
    ///
    /// # Errors
    /// `Io`; the volume takes no changes from then on.
    pub(crate) fn commit(&self) -> Result<()> {
        let mut epoch = self.order.epoch.write();
        match self.order.state() {
            State::Writable => {}
            State::ReadOnly => return Ok(()),
            State::Failed | State::Detached => return self.writable(),
        }
        let result = self.commit_epoch(&mut epoch);
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// No change is taken from now on.
    pub(crate) fn fail(&self) {
        let writable = State::Writable as u8;
        let failed = State::Failed as u8;
        let order = Ordering::AcqRel;
        let _ = self
            .order
            .state
            .compare_exchange(writable, failed, order, Ordering::Acquire);
    }

    fn commit_epoch(&self, epoch: &mut Epoch) -> Result<()> {
        for node in self.order.take_listed() {
            self.put_entry(&node, epoch)?;
        }
        let data = self.cache.dirty() > 0 || self.order.unflushed.load(Ordering::Acquire);
        let fat = self.table.dirty_len() > 0;
        self.order.unflushed.store(false, Ordering::Release);
        self.cache.write_stage(Stage::DATA)?;
        if epoch.grew.swap(false, Ordering::AcqRel) && fat {
            self.cache.flush()?;
        }
        self.table.write()?;
        if data || fat {
            self.cache.flush()?;
        }
        self.cache.commit()?;
        let pending = std::mem::take(&mut *self.order.pending.lock());
        self.order.pending_clusters.store(0, Ordering::Release);
        if !pending.is_empty() {
            self.table.release(&pending, self.order.held_max)?;
        }
        epoch.born.get_mut().clear();
        *epoch.moves.get_mut() = Moves::default();
        Ok(())
    }

    /// Commits, and brings the FAT and the FSInfo sector up to date with it.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn sync_all(&self) -> Result<()> {
        self.commit()?;
        if !self.order.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        let _alone = self.order.epoch.write();
        if self.order.state() != State::Writable {
            return self.writable();
        }
        let result = self.write_free_space();
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Writes what was freed, and FSInfo. Only after a commit.
    fn write_free_space(&self) -> Result<()> {
        let freed = self.table.dirty_len() > 0;
        self.table.write()?;
        let info = marks::write_fsinfo(&**self.device(), &self.layout, &self.table)?;
        let is_stale = info == Hints::Unreadable;
        self.order.hints_stale.store(is_stale, Ordering::Release);
        if freed || info == Hints::Written {
            self.cache.flush()?;
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
        let result = match self.order.state() {
            State::Writable => {
                // All is made durable whatever comes of the count.
                let counted = self.count_free();
                self.sync_all().and_then(|()| {
                    let _alone = self.order.epoch.write();
                    self.mark_clean(counted.is_ok())
                })
            }
            State::Failed => Err(Error::note(
                Kind::Io,
                "the latest changes may be lost since a write to the volume failed; check it",
            )),
            State::ReadOnly | State::Detached => Ok(()),
        };
        self.order
            .state
            .store(State::Detached as u8, Ordering::Release);
        result
    }

    /// Counts the free clusters of a changed volume whose FSInfo did not say how many there are, so
    /// that it says so from now on.
    ///
    /// # Errors
    /// `Io`.
    fn count_free(&self) -> Result<()> {
        let is_told = self.layout.fsinfo_sector.is_some();
        if is_told && self.order.marked.load(Ordering::Acquire) {
            self.table.free_count()?;
        }
        Ok(())
    }

    /// Puts the dirty mark on the disk before the first change.
    fn mark_dirty(&self) -> Result<()> {
        if self.order.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        let _one = self.order.marking.lock();
        if self.order.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        let result = marks::set_dirty(&**self.device(), &self.layout, &self.table);
        match result {
            Ok(()) => self.order.marked.store(true, Ordering::Release),
            Err(_) => self.fail(),
        }
        result
    }

    /// Brings the copies of the FAT up to date, and marks the volume as cleanly
    /// left unless it was not when it was attached, is damaged, or its free clusters could not
    /// be counted.
    fn mark_clean(&self, is_counted: bool) -> Result<()> {
        if !self.order.marked.load(Ordering::Acquire) {
            return Ok(());
        }
        marks::finish(
            &**self.device(),
            &self.layout,
            &self.table,
            is_counted
                && !self.order.was_dirty
                && !self.order.hints_stale.load(Ordering::Acquire)
                && self.table.check_sound().is_ok(),
        )
    }

    /// The device.
    pub(crate) fn device(&self) -> &Arc<dyn BlockDevice> {
        Cache::device(&self.cache)
    }
}
