//! What all parts of an attached volume stand on: its layout, the cache, the FAT, whether changes
//! are taken, and the clusters that wait to be free.

use crate::base::epoch::{Step, Stop};
use crate::names::record::LongStyle;
use crate::table::alloc::Pending;
use crate::table::fat::Table;
use crate::table::runs::{Run, Runs};
use crate::volume::layout::Layout;
use crate::volume::ondisk::{DIR_ENTRIES_MAX, ENTRY_LEN};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use volary_block::{Cache, Stage};
use volary_core::{BlockDevice, Error, Extent, Kind, Place, Result};

/// Zeros that are written at a time, in bytes.
const ZEROS: usize = 64 << 10;

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

/// The store of an attached volume.
pub(crate) struct Store {
    pub(crate) layout: Layout,
    pub(crate) cache: Cache,
    pub(crate) table: Table,
    /// Where long names stand.
    pub(crate) long: LongStyle,
    /// Whether the volume was found by the replica of its boot sector.
    pub(crate) by_replica: bool,
    state: AtomicU8,
    /// Clusters that were given back in this epoch.
    pending: Mutex<Pending>,
    /// How many clusters `pending` has.
    pending_clusters: AtomicU32,
}

impl Store {
    /// Returns the store of a volume that is attached now.
    pub(crate) fn new(
        layout: Layout,
        cache: Cache,
        table: Table,
        long: LongStyle,
        state: State,
    ) -> Self {
        Self {
            layout,
            cache,
            table,
            long,
            by_replica: false,
            state: AtomicU8::new(state as u8),
            pending: Mutex::default(),
            pending_clusters: AtomicU32::new(0),
        }
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &Arc<dyn BlockDevice> {
        Cache::device(&self.cache)
    }

    /// Returns whether changes are taken, and if not, why.
    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Writable,
            1 => State::ReadOnly,
            2 => State::Failed,
            _ => State::Detached,
        }
    }

    /// Fails if the volume was detached.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn alive(&self) -> Result<()> {
        match self.state() {
            State::Detached => Err(Kind::Stale.into()),
            _ => Ok(()),
        }
    }

    /// Returns whether the volume was attached to take changes.
    pub(crate) fn takes_changes(&self) -> bool {
        self.state() != State::ReadOnly
    }

    /// Fails if no changes are taken.
    ///
    /// # Errors
    /// `Stale`, `ReadOnly`.
    pub(crate) fn writable(&self) -> Result<()> {
        match self.state() {
            State::Writable => self.table.check_sound(),
            State::ReadOnly if self.by_replica => Err(Error::note(
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

    /// Takes no more changes.
    pub(crate) fn fail(&self) {
        let writable = State::Writable as u8;
        let failed = State::Failed as u8;
        let order = Ordering::AcqRel;
        let _ = self
            .state
            .compare_exchange(writable, failed, order, Ordering::Acquire);
    }

    /// Passes a result on, and takes no more changes if it is an error.
    ///
    /// # Errors
    /// The result's.
    pub(crate) fn or_fail<T>(&self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.fail();
        }
        result
    }

    /// Ends the attachment.
    pub(crate) fn detach(&self) {
        self.state.store(State::Detached as u8, Ordering::Release);
    }

    /// Returns how many clusters a length takes.
    pub(crate) fn clusters_for(&self, len: u64) -> u32 {
        // At most 2^32 / 512.
        len.div_ceil(u64::from(self.layout.cluster_len)) as u32
    }

    /// Returns the most clusters that a directory can have.
    pub(crate) fn dir_clusters_max(&self) -> u32 {
        (DIR_ENTRIES_MAX * ENTRY_LEN as u32).div_ceil(self.layout.cluster_len)
    }

    /// Takes clusters for a file or directory, chained.
    ///
    /// # Errors
    /// `Commit` if there are enough once what was given back is free;
    /// `NoSpace`; `Io`.
    pub(crate) fn take_clusters(&self, count: u32, near: Option<u32>) -> Step<Runs> {
        self.or_commit(self.table.allocate(count, near))
    }

    /// Returns what came of taking clusters.
    ///
    /// # Errors
    /// As [`take_clusters`](Self::take_clusters).
    pub(crate) fn or_commit(&self, taken: Result<Runs>) -> Step<Runs> {
        let gives_room = || self.pending_clusters() > 0;
        taken.map_err(|e| Stop::from(e).or_commit(gives_room))
    }

    /// Gives clusters back once nothing on the disk leads to them, and forgets
    /// what was to be written there.
    pub(crate) fn give_back(&self, runs: &[Run], cut: Option<u32>) {
        for run in runs {
            let len = u64::from(run.len) * u64::from(self.layout.cluster_len);
            self.cache
                .drop_range(self.layout.cluster_offset(run.first), len);
        }
        self.free_later(runs, cut);
    }

    /// Frees clusters, and ends a chain at `cut`, once the epoch is durable.
    pub(crate) fn free_later(&self, runs: &[Run], cut: Option<u32>) {
        let mut pending = self.pending.lock();
        pending.add(runs, cut);
        self.pending_clusters
            .store(pending.clusters, Ordering::Release);
    }

    /// Clusters that wait to be freed.
    pub(crate) fn pending_clusters(&self) -> u32 {
        self.pending_clusters.load(Ordering::Acquire)
    }

    /// Returns whether the chain that ends at `cluster` waits to be cut there.
    pub(crate) fn is_cut(&self, cluster: u32) -> bool {
        self.pending.lock().cuts.contains(&cluster)
    }

    /// Takes what waits to be freed.
    pub(crate) fn take_pending(&self) -> Pending {
        let pending = std::mem::take(&mut *self.pending.lock());
        self.pending_clusters.store(0, Ordering::Release);
        pending
    }

    /// Returns where a byte of a chain lies on the device, and how many follow there.
    ///
    /// # Errors
    /// `Corrupt` past the end.
    pub(crate) fn stretch(&self, runs: &Runs, offset: u64) -> Result<(u64, u64)> {
        let cluster_len = u64::from(self.layout.cluster_len);
        let index = (offset / cluster_len) as u32;
        let (first, count) = runs.find(index).ok_or(Kind::Corrupt)?;
        let skip = offset % cluster_len;
        let place = self.layout.cluster_offset(first) + skip;
        Ok((place, u64::from(count) * cluster_len - skip))
    }

    /// Adds to `out` where the bytes of a range of a file of `size` bytes lie.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn extents(
        &self,
        runs: &mut Runs,
        size: u64,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let (mut at, end) = (bytes.start, bytes.end.min(size));
        if at >= end {
            return Ok(());
        }
        let need = self.clusters_for(end);
        runs.load(&self.table, need)?;
        if runs.clusters() < need {
            return Err(short_chain(size));
        }
        while at < end {
            let (place, len) = self.stretch(runs, at)?;
            let len = len.min(end - at);
            out.push(Extent {
                offset: at,
                len,
                place: Place::Device(place),
            });
            at += len;
        }
        Ok(())
    }

    /// Writes data, past the cache if that is as fast.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_data(&self, place: u64, part: &[u8]) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        if part.len() >= self.cache.direct_from() {
            return self.cache.write_direct(place, part);
        }
        self.cache.write(place, part, Stage::DATA)
    }

    /// Fills new clusters of a directory with zeros: on the device if the
    /// directory is on the disk already.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn zero_new_clusters(&self, runs: &Runs, born: bool) -> Result<()> {
        let all = runs.clusters() as usize * self.layout.cluster_len as usize;
        let zeros = vec![0; all.min(ZEROS)];
        for run in runs.as_slice() {
            let mut offset = self.layout.cluster_offset(run.first);
            let end = offset + u64::from(run.len) * u64::from(self.layout.cluster_len);
            while offset < end {
                let len = (end - offset).min(zeros.len() as u64);
                let part = zeros.get(..len as usize).unwrap_or_default();
                if born {
                    self.cache.write(offset, part, Stage::DATA)?;
                } else {
                    self.cache.write_direct(offset, part)?;
                }
                offset += len;
            }
        }
        Ok(())
    }
}

/// Returns the error for a file whose chain ends before its size does.
pub(crate) fn short_chain(size: u64) -> Error {
    Error::corrupt(
        "DIR_FileSize",
        0,
        format!("{size} bytes"),
        "no more than the file's clusters hold",
    )
}
