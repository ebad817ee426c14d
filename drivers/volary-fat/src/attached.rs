//! An attached volume: everything that an operation works on.

use crate::births::Births;
use crate::commit::{Order, State, Step, Stop};
use crate::dir::Dir;
use crate::marks;
use crate::names::Names;
use crate::node::{Body, Meta, Node, Nodes, ROOT_INO};
use crate::ondisk::{DIR_ENTRIES_MAX, DirEntry, ENTRY_LEN, attr};
use crate::opens::Opens;
use crate::options::{MountOptions, UnixMode};
use crate::owners::Owners;
use crate::paper::is_used;
use crate::parents::Parents;
use crate::runs::Runs;
use crate::table::Table;
use crate::twofold::Of;
use crate::volume::Layout;
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use volary_block::{Cache, CacheOptions, Stage};
use volary_core::{Attach, BlockDevice, FileKind, Kind, NodeId, Result, Time};
use zerocopy::FromZeros;

/// Which UNIX extension is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unix {
    /// None.
    Off,
    /// Today's.
    Today,
    /// The paper's.
    Paper,
}

/// An attached volume.
pub(crate) struct Attached {
    pub(crate) layout: Layout,
    pub(crate) options: MountOptions,
    pub(crate) names: Names,
    pub(crate) unix: Unix,
    pub(crate) cache: Cache,
    pub(crate) table: Table,
    pub(crate) nodes: Nodes,
    pub(crate) births: Births,
    pub(crate) parents: Parents,
    pub(crate) opens: Opens,
    pub(crate) order: Order,
    pub(crate) owners: Owners,
    pub(crate) root: Arc<Node>,
    /// Held by operations that lock more than one directory.
    pub(crate) tree: Mutex<()>,
    change: AtomicU64,
    index_used: AtomicU64,
    index_max: u64,
}

/// Zeros that are written at a time, in bytes.
const ZEROS: usize = 64 << 10;

/// The smallest cache that a volume can be attached with, in bytes.
const MEMORY_MIN: u64 = 4 << 20;

impl Attached {
    /// Attaches the volume on `dev`. Writes nothing, unless `how` asks for the
    /// UNIX extension on a volume without it.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` for a boot sector or a root
    /// directory that makes no sense; `Unsupported`; `Io`.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        let mut options = MountOptions::new(how)?;
        let layout = Layout::read_at(&*dev, options.boot.unwrap_or(0))?;
        if options.unix == UnixMode::Auto && !layout.is_fat32() && is_used(&*dev, &layout)? {
            options.take_paper(how);
        }
        let memory = how.memory.max(MEMORY_MIN);
        let read_only = how.read_only || dev.geometry().read_only || options.boot.is_some();
        let cache_options = CacheOptions {
            memory: memory / 2,
            io_size: options.io_size,
        };
        let table = Table::new(dev.clone(), &layout, memory / 8);
        let was_dirty = marks::is_dirty(&layout, &table)?;
        let state = if read_only {
            State::ReadOnly
        } else {
            State::Writable
        };
        let paper = options.unix == UnixMode::Dosfs;
        if paper && layout.is_fat32() {
            return Err(volary_core::Error::note(
                Kind::Invalid,
                "unix=dosfs needs FAT12 or FAT16: on FAT32 its bytes hold the cluster number",
            ));
        }
        let names = Names::new(options.names, options.codepage, paper)?;
        let root = root_node(&layout, &table)?;
        let mut fs = Self {
            names,
            unix: if paper { Unix::Paper } else { Unix::Off },
            cache: Cache::new(dev, cache_options),
            table,
            nodes: Nodes::new(memory / 8),
            births: Births::default(),
            parents: Parents::default(),
            opens: Opens::default(),
            order: Order::new(state, was_dirty, memory / 8),
            owners: Owners::default(),
            root,
            tree: Mutex::default(),
            change: AtomicU64::new(1),
            index_used: AtomicU64::new(0),
            index_max: memory / 8,
            layout,
            options,
        };
        fs.nodes.insert_root(fs.root.clone());
        if !was_dirty && let Some(hints) = marks::read_fsinfo(&**fs.device(), &fs.layout)? {
            fs.table.believe(hints.count, hints.next);
        }
        if matches!(fs.options.unix, UnixMode::Auto | UnixMode::On) {
            fs.unix = fs.open_owners(!read_only)?;
        }
        Ok(fs)
    }

    /// A number for [`Attr::change`](volary_core::Attr::change), larger than
    /// all before.
    pub(crate) fn next_change(&self) -> u64 {
        self.change.fetch_add(1, Ordering::Relaxed) + 1
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

    /// Takes clusters for a file or directory, chained.
    ///
    /// # Errors
    /// `Commit` if there are enough once what was given back is free;
    /// `NoSpace`; `Io`.
    pub(crate) fn take_clusters(&self, count: u32, near: Option<u32>) -> Step<Runs> {
        self.or_commit(self.table.allocate(count, near))
    }

    /// What came of taking clusters.
    ///
    /// # Errors
    /// As [`take_clusters`](Self::take_clusters).
    pub(crate) fn or_commit(&self, taken: Result<Runs>) -> Step<Runs> {
        let gives_room = || self.order.pending_clusters() > 0;
        taken.map_err(|e| Stop::from(e).or_commit(gives_room))
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
                    self.order.wrote();
                }
                offset += len;
            }
        }
        Ok(())
    }

    /// Gives clusters back once nothing on the disk leads to them, and forgets
    /// what was to be written there.
    pub(crate) fn give_back(&self, runs: &[crate::runs::Run], cut: Option<u32>) {
        for run in runs {
            let len = u64::from(run.len) * u64::from(self.layout.cluster_len);
            self.cache
                .drop_range(self.layout.cluster_offset(run.first), len);
        }
        self.order.give_back(runs, cut);
    }

    /// The most clusters that a directory can have.
    pub(crate) fn dir_clusters_max(&self) -> u32 {
        (DIR_ENTRIES_MAX * ENTRY_LEN as u32).div_ceil(self.layout.cluster_len)
    }

    /// A directory's content to look at, its clusters known.
    ///
    /// # Errors
    /// `NotDir`, `Io`, `Corrupt`.
    pub(crate) fn read_dir<'a>(&self, node: &'a Node) -> Result<RwLockReadGuard<'a, Body>> {
        loop {
            let body = node.body.read();
            if dir_of(&body)?.is_ready(self.dir_clusters_max()) {
                return Ok(body);
            }
            drop(body);
            dir_of_mut(&mut node.body.write())?
                .runs
                .load(&self.table, self.dir_clusters_max())?;
        }
    }

    /// A directory's content to look at, with its index.
    ///
    /// # Errors
    /// As [`read_dir`](Self::read_dir).
    pub(crate) fn read_index<'a>(&self, node: &'a Node) -> Result<RwLockReadGuard<'a, Body>> {
        loop {
            let body = node.body.read();
            if dir_of(&body)?.index.is_some() {
                return Ok(body);
            }
            drop(body);
            drop(self.write_dir(node)?);
        }
    }

    /// A directory's content to change, with its index.
    ///
    /// # Errors
    /// As [`read_dir`](Self::read_dir).
    pub(crate) fn write_dir<'a>(&self, node: &'a Node) -> Result<RwLockWriteGuard<'a, Body>> {
        let mut body = node.body.write();
        let dir = dir_of_mut(&mut body)?;
        dir.runs.load(&self.table, self.dir_clusters_max())?;
        dir.load(self)?;
        Ok(body)
    }

    /// Notes an index in memory, and drops those of other directories when
    /// all together take too much.
    pub(crate) fn index_loaded(&self, len: u64) {
        let used = self.index_used.fetch_add(len, Ordering::Relaxed) + len;
        if used <= self.index_max {
            return;
        }
        let mut used = len;
        for node in self.nodes.dirs() {
            let Some(mut body) = node.body.try_write() else {
                continue;
            };
            let Ok(dir) = dir_of_mut(&mut body) else {
                continue;
            };
            let Some(index) = &dir.index else {
                continue;
            };
            if used + index.memory() > self.index_max / 2 {
                dir.index = None;
            } else {
                used += index.memory();
            }
        }
        self.index_used.store(used, Ordering::Relaxed);
    }
}

impl Dir {
    fn is_ready(&self, clusters_max: u32) -> bool {
        self.runs.is_whole() || self.runs.clusters() >= clusters_max
    }
}

/// The directory in a body.
///
/// # Errors
/// `NotDir`.
pub(crate) fn dir_of(body: &Body) -> Result<&Dir> {
    match body {
        Body::Dir(dir) => Ok(dir),
        Body::File(_) => Err(Kind::NotDir.into()),
    }
}

/// The directory in a body, to change.
///
/// # Errors
/// `NotDir`.
pub(crate) fn dir_of_mut(body: &mut Body) -> Result<&mut Dir> {
    match body {
        Body::Dir(dir) => Ok(dir),
        Body::File(_) => Err(Kind::NotDir.into()),
    }
}

/// The file in a body.
///
/// # Errors
/// `IsDir`.
pub(crate) fn runs_of_mut(body: &mut Body) -> Result<&mut Runs> {
    match body {
        Body::File(runs) => Ok(runs),
        Body::Dir(_) => Err(Kind::IsDir.into()),
    }
}

fn root_node(layout: &Layout, table: &Table) -> Result<Arc<Node>> {
    let mut runs = Runs::from_first(layout.root_cluster, Of::Dir);
    let most = (DIR_ENTRIES_MAX * ENTRY_LEN as u32).div_ceil(layout.cluster_len);
    runs.load(table, most)?;
    let mut entry = DirEntry::new_zeroed();
    entry.DIR_Attr = attr::DIRECTORY;
    let meta = Meta {
        entry,
        place: None,
        size: 0,
        mtime: Time::EPOCH,
        ctime: Time::EPOCH,
        change: 1,
        rdev: 0,
        dirty: false,
        moved: false,
        gone: false,
    };
    let dir = Dir {
        first: 0,
        runs,
        index: None,
    };
    Ok(Arc::new(Node {
        id: NodeId::new(ROOT_INO, 0).ok_or(Kind::Invalid)?,
        kind: FileKind::Dir,
        opens: AtomicU32::new(0),
        meta: Mutex::new(meta),
        body: RwLock::new(Body::Dir(dir)),
    }))
}
