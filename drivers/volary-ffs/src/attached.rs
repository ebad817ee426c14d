//! An attached volume: everything that an operation works on.

use crate::blocks::Reader;
use crate::inode::Inode;
use crate::ondisk::UFS_ROOTINO;
use crate::superblock::Found;
use crate::volume::Volume;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use volary_block::{Cache, CacheOptions};
use volary_core::{
    Attach, BlockDevice, Error, Extent, FileKind, Kind, NodeId, OpenId, OptionSpec, Place, Result,
};

/// Options of an attachment.
pub(crate) const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "superblock",
    value: "SECTOR",
    help: "goes by the replica of the superblock at this sector of 512 bytes (default: by the \
           first superblock)",
}];

/// Memory for looking at a volume, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 16 << 20;
/// Directories of which the place of the last look-up is remembered.
const HINTS_MAX: usize = 1024;

pub(crate) struct Attached {
    pub(crate) volume: Volume,
    pub(crate) root: NodeId,
    cache: Cache,
    opens: RwLock<HashMap<OpenId, Arc<Inode>>>,
    last_open: AtomicU64,
    /// Where in a directory the last look-up found its entry.
    hints: Mutex<HashMap<u32, u64>>,
    detached: AtomicBool,
}

impl Attached {
    /// # Errors
    /// `Invalid` for an option; `Corrupt` for a superblock or root that makes no sense; `Io`.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        how.options.check_known(OPTIONS)?;
        let sector = how.options.number("superblock")?;
        let found = Found::choose(&*dev, sector)?;
        let volume = Volume::new(found, dev.geometry().size)?;
        let cache = cache(dev, how.memory);
        let reader = Reader {
            cache: &cache,
            volume: &volume,
        };
        let root = root(&reader)?.id()?;
        Ok(Self {
            root,
            volume,
            cache,
            opens: RwLock::default(),
            last_open: AtomicU64::new(0),
            hints: Mutex::default(),
            detached: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn alive(&self) -> Result<()> {
        if self.detached.load(Ordering::Acquire) {
            return Err(Kind::Stale.into());
        }
        Ok(())
    }

    pub(crate) fn detach(&self) {
        self.detached.store(true, Ordering::Release);
        self.opens.write().clear();
    }

    /// Reads, while it is attached.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn reader(&self) -> Result<Reader<'_>> {
        self.alive()?;
        Ok(Reader {
            cache: &self.cache,
            volume: &self.volume,
        })
    }

    /// A node's inode.
    ///
    /// # Errors
    /// `Stale` if it is gone; `Corrupt`; `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Inode> {
        let inode = self.reader()?.inode(id.ino.get())?;
        if inode.generation != id.generation {
            return Err(Kind::Stale.into());
        }
        Ok(inode)
    }

    /// Where to begin a search in a directory.
    pub(crate) fn hint(&self, dir: u32) -> u64 {
        self.hints.lock().get(&dir).copied().unwrap_or(0)
    }

    pub(crate) fn set_hint(&self, dir: u32, at: u64) {
        let mut hints = self.hints.lock();
        if hints.len() >= HINTS_MAX && !hints.contains_key(&dir) {
            hints.clear();
        }
        hints.insert(dir, at);
    }

    pub(crate) fn open(&self, inode: Inode) -> OpenId {
        let open = OpenId(self.last_open.fetch_add(1, Ordering::Relaxed) + 1);
        self.opens.write().insert(open, Arc::new(inode));
        open
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<Arc<Inode>> {
        self.alive()?;
        let inode = self.opens.read().get(&open).cloned();
        inode.ok_or_else(|| Kind::Stale.into())
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn close(&self, open: OpenId) -> Result<()> {
        self.alive()?;
        let inode = self.opens.write().remove(&open);
        inode.map(drop).ok_or_else(|| Kind::Stale.into())
    }

    /// Where a file's bytes lie.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn extents(
        &self,
        inode: &Inode,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.reader()?.runs(inode, offset, len, &mut |run| {
            out.push(Extent {
                offset: run.offset,
                len: run.len,
                place: run.place.map_or(Place::Hole, Place::Device),
            });
            Ok(())
        })
    }
}

/// The root directory.
///
/// # Errors
/// `Corrupt` if it is none; `Io`.
pub(crate) fn root(reader: &Reader<'_>) -> Result<Inode> {
    let inode = reader.inode_as_it_is(UFS_ROOTINO.into())?;
    if inode.kind() != Some(FileKind::Dir) {
        let found = format!("{:#o} (inode 2, the root)", inode.mode);
        return Err(Error::corrupt("di_mode", inode.at, found, "a directory's"));
    }
    inode.check(reader.volume)
}

/// A cache for reading: requests of up to 1 MiB where memory allows.
pub(crate) fn cache(dev: Arc<dyn BlockDevice>, memory: u64) -> Cache {
    let io_size = (memory / 16).clamp(64 << 10, 1 << 20);
    let io_size = u32::try_from(io_size).map_or(64 << 10, u32::next_power_of_two);
    Cache::new(dev, CacheOptions { memory, io_size })
}
