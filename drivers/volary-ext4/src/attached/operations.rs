//! An attached volume: everything that an operation works on.

use crate::attached::open::{How, open};
use crate::disk::ondisk::{ROOT_INO, iflag};
use crate::disk::run::{Run, Spot};
use crate::inodes::inode::Inode;
use crate::store::Store;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use volary_core::{Attach, BlockDevice, FileKind, Kind, NodeId, OpenId, Result, StatFs};
use volary_ondisk::SharedOpens;

/// The smallest cache that a volume can be attached with, in bytes.
const MEMORY_MIN: u64 = 1 << 20;

/// Most groups whose descriptors are read to tell how full the volume is.
const GROUPS_MAX: u32 = 1 << 20;

/// One open.
pub(crate) struct Open {
    pub(crate) inode: Inode,
    /// The run that was read last: most reads go on in it.
    last: Mutex<Option<Run>>,
}

pub(crate) struct Attached {
    pub(crate) store: Store,
    pub(crate) root: NodeId,
    opens: SharedOpens<Arc<Open>>,
    free: OnceLock<(u64, u64)>,
    detached: AtomicBool,
}

impl Attached {
    /// # Errors
    /// `Invalid` for an option; as [`open`]; of the root.
    pub(crate) fn new(dev: &Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        let memory = how.memory.max(MEMORY_MIN) / 2;
        let store = open(dev, How::of(&how.options)?, memory)?;
        let root = store
            .inodes()
            .node_of(ROOT_INO)
            .map_err(|e| match e.kind() {
                Kind::Stale => {
                    let at = store.groups().inode_at(ROOT_INO).unwrap_or(0);
                    volary_core::Error::corrupt(
                        "root directory",
                        at,
                        "an unused inode",
                        "a directory",
                    )
                }
                _ => e,
            })?;
        root.check_dir()?;
        Ok(Self {
            root: root.id(),
            store,
            opens: SharedOpens::default(),
            free: OnceLock::new(),
            detached: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn alive(&self) -> Result<()> {
        match self.detached.load(Ordering::Acquire) {
            true => Err(Kind::Stale.into()),
            false => Ok(()),
        }
    }

    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
        self.opens.clear();
    }

    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Inode> {
        self.alive()?;
        self.store.inodes().node(id)
    }

    /// Returns a directory that can be listed.
    ///
    /// # Errors
    /// `NotDir`; `Unsupported`; as [`load`](Self::load).
    pub(crate) fn dir(&self, id: NodeId) -> Result<Inode> {
        let inode = self.load(id)?;
        inode.check_dir()?;
        Ok(inode)
    }

    pub(crate) fn open(&self, inode: Inode) -> OpenId {
        let number = inode.ino.into();
        let last = Mutex::default();
        self.opens.add(number, Arc::new(Open { inode, last }))
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<Arc<Open>> {
        self.alive()?;
        self.opens.get(open)
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn close(&self, open: OpenId) -> Result<()> {
        self.alive()?;
        self.opens.remove(open).map(drop)
    }

    /// Reads from an open file.
    ///
    /// # Errors
    /// `IsDir`; `Corrupt`; `Io`.
    pub(crate) fn read(&self, open: &Open, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let inode = &open.inode;
        if inode.kind() == Some(FileKind::Dir) {
            return Err(Kind::IsDir.into());
        }
        if let Some(len) = self.read_on(open, offset, buf)? {
            return Ok(len);
        }
        let len = self.store.content(inode).read(offset, buf)?;
        let is_mapped = !inode.has(iflag::INLINE_DATA) && len > 0;
        if is_mapped {
            let next = offset.saturating_add(len as u64) / self.store.volume().block;
            // What is damaged there is told when it is read.
            *open.last.lock() = self.store.map(inode).run(next).ok();
        }
        Ok(len)
    }

    /// Reads out of the run that was read last, if all that is asked for is in it.
    fn read_on(&self, open: &Open, offset: u64, buf: &mut [u8]) -> Result<Option<usize>> {
        let Some(run) = *open.last.lock() else {
            return Ok(None);
        };
        let left = open.inode.size.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let block = self.store.volume().block;
        let start = run.first.saturating_mul(block);
        let end = offset.saturating_add(len as u64);
        let (Spot::Data(at), true) = (run.spot, covers(run, block, start, offset, end)) else {
            return Ok(None);
        };
        let part = buf.get_mut(..len).unwrap_or_default();
        self.store
            .blocks()
            .read_once(at * block + (offset - start), part)?;
        Ok(Some(len))
    }

    /// Returns how full the volume is.
    pub(crate) fn statfs(&self) -> StatFs {
        let volume = self.store.volume();
        let raw = &volume.raw;
        let two = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let (clusters, nodes_free) = *self.free.get_or_init(|| self.count_free());
        let free = clusters.saturating_mul(volume.cluster);
        let reserved = two(raw.s_r_blocks_count_lo.get(), raw.s_r_blocks_count_hi.get());
        let overhead = u64::from(raw.s_overhead_blocks.get()).saturating_mul(volume.cluster);
        let size = volume.blocks.saturating_sub(overhead);
        let bytes = |blocks: u64| blocks.min(size).saturating_mul(volume.block);
        StatFs {
            block_size: volume.block as u32,
            size: bytes(size),
            free: bytes(free),
            available: bytes(free.saturating_sub(reserved)),
            nodes: volume.inodes.into(),
            nodes_free: nodes_free.min(volume.inodes.into()),
        }
    }

    /// Free clusters and inodes: as the groups count them, or, where one is damaged, as the
    /// superblock does.
    fn count_free(&self) -> (u64, u64) {
        let volume = self.store.volume();
        let raw = &volume.raw;
        let by_groups = (volume.groups <= GROUPS_MAX).then(|| self.store.groups().free());
        by_groups.and_then(Result::ok).unwrap_or_else(|| {
            let high = u64::from(raw.s_free_blocks_count_hi.get()) << 32;
            let blocks = high | u64::from(raw.s_free_blocks_count_lo.get());
            (
                blocks / volume.cluster,
                raw.s_free_inodes_count.get().into(),
            )
        })
    }
}

fn covers(run: Run, block: u64, start: u64, offset: u64, end: u64) -> bool {
    start <= offset && end <= run.end().saturating_mul(block) && offset < end
}
