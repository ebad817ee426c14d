//! From a name, a place or an id to a node.

use crate::attached::attrs::Attrs;
use crate::attached::entries::{Entries, Located};
use crate::attached::node::{Body, Meta, Natural, Node, Nodes, ROOT_INO, key_of};
use crate::attached::parents::Parents;
use crate::base::store::Store;
use crate::directory::dir::Dir;
use crate::directory::index::span_of;
use crate::directory::slots::Event;
use crate::table::runs::Runs;
use crate::table::twofold::Of;
use crate::unix::devices::{TEXT_MAX, parse_text};
use crate::unix::paper::Extension;
use crate::unix::which::Unix;
use crate::volume::ondisk::{DirEntry, attr, is_dots};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use volary_core::{Error, FileKind, Kind, Name, NodeId, Result, Time};
use zerocopy::FromZeros;

/// Most directories on the way from the root that an id found cold is
/// believed with.
const DEPTH_MAX: usize = 4096;

/// The directories and files of an attached volume.
pub(crate) struct Tree {
    pub(crate) store: Arc<Store>,
    pub(crate) attrs: Attrs,
    pub(crate) entries: Entries,
    pub(crate) nodes: Nodes,
    pub(crate) parents: Parents,
    pub(crate) root: Arc<Node>,
    /// Bytes that the indexes of directories take, about.
    index_used: AtomicU64,
    index_max: u64,
}

impl Tree {
    /// Returns the tree of a volume that is attached now. Nodes and the indexes of directories take
    /// about `memory` bytes each.
    ///
    /// # Errors
    /// `Corrupt` for a root directory that makes no sense; `Io`.
    pub(crate) fn new(
        store: Arc<Store>,
        attrs: Attrs,
        entries: Entries,
        memory: u64,
    ) -> Result<Self> {
        let root = root_node(&store)?;
        let nodes = Nodes::new(memory);
        nodes.insert_root(root.clone());
        Ok(Self {
            nodes,
            parents: Parents::new(store.clone(), attrs.unix == Unix::Paper),
            root,
            index_used: AtomicU64::new(0),
            index_max: memory,
            store,
            attrs,
            entries,
        })
    }

    /// Finds an entry as [`locate`](Entries::locate) does, but not the table of owners, which is hidden.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    pub(crate) fn locate_shown(&self, dir: &Dir, folded: &[u8]) -> Result<Located> {
        let found = self.entries.locate(dir, folded)?.ok_or(Kind::NotFound)?;
        if self.is_owner_table(dir.first, found.span.slot) {
            return Err(Kind::NotFound.into());
        }
        Ok(found)
    }

    /// Returns whether the table of owners, which is not shown, is in a slot of the directory that starts
    /// at a cluster.
    pub(crate) fn is_owner_table(&self, dir: u32, slot: u32) -> bool {
        self.attrs.owners.is_table(dir, slot)
    }

    /// Returns the directory of an id, which must have a name still.
    ///
    /// # Errors
    /// `NotDir`; as [`resolve`](Self::resolve).
    pub(crate) fn dir(&self, id: NodeId) -> Result<Arc<Node>> {
        let node = self.resolve(id)?;
        if !node.is_dir() {
            return Err(Kind::NotDir.into());
        }
        Ok(node)
    }

    /// Returns the node that a name in a directory leads to.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`, `Stale`, `Io`, `Corrupt`.
    pub(crate) fn lookup(&self, dir: NodeId, name: Name<'_>) -> Result<Arc<Node>> {
        let node = self.dir(dir)?;
        let body = self.read_index(&node)?;
        let found = self.locate_shown(body.dir()?, &self.entries.folded(name))?;
        self.node_of(&found)
    }

    /// Returns a directory's content to look at, its clusters known.
    ///
    /// # Errors
    /// `NotDir`, `Io`, `Corrupt`.
    pub(crate) fn read_dir<'a>(&self, node: &'a Node) -> Result<RwLockReadGuard<'a, Body>> {
        loop {
            let body = node.body.read();
            if body.dir()?.is_ready(self.store.dir_clusters_max()) {
                return Ok(body);
            }
            drop(body);
            node.body
                .write()
                .dir_mut()?
                .runs
                .load(&self.store.table, self.store.dir_clusters_max())?;
        }
    }

    /// Returns a directory's content to look at, with its index.
    ///
    /// # Errors
    /// As [`read_dir`](Self::read_dir).
    pub(crate) fn read_index<'a>(&self, node: &'a Node) -> Result<RwLockReadGuard<'a, Body>> {
        loop {
            let body = node.body.read();
            if body.dir()?.index.is_some() {
                return Ok(body);
            }
            drop(body);
            drop(self.write_dir(node)?);
        }
    }

    /// Returns a directory's content to change, with its index.
    ///
    /// # Errors
    /// As [`read_dir`](Self::read_dir).
    pub(crate) fn write_dir<'a>(&self, node: &'a Node) -> Result<RwLockWriteGuard<'a, Body>> {
        let mut body = node.body.write();
        let dir = body.dir_mut()?;
        dir.runs
            .load(&self.store.table, self.store.dir_clusters_max())?;
        if let Some(memory) = self.entries.load(dir)? {
            self.index_loaded(memory);
        }
        Ok(body)
    }

    /// Notes a new index in memory, of a directory that is locked, and drops those of others when
    /// all together take too much.
    fn index_loaded(&self, len: u64) {
        let used = self.index_used.fetch_add(len, Ordering::Relaxed) + len;
        if used <= self.index_max {
            return;
        }
        let mut used = len;
        for node in self.nodes.dirs() {
            let Some(mut body) = node.body.try_write() else {
                continue;
            };
            let Ok(dir) = body.dir_mut() else {
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

    /// Returns the node of an entry. The directory that holds it must be locked.
    ///
    /// # Errors
    /// `Corrupt` for a directory that begins nowhere, at the root, or where
    /// one with another entry begins; `Io`.
    pub(crate) fn node_of(&self, at: &Located) -> Result<Arc<Node>> {
        let key = at.place.key();
        let generation = self.attrs.stamp(&at.entry, key);
        if at.entry.is_dir() {
            let first = self.dir_cluster(at)?;
            let node = self.nodes.dir_or(first, generation, |id, change| {
                self.make_node(id, at, change, 0)
            });
            let node = node.ok_or(Kind::Corrupt)?;
            if node.meta.lock().place.map(|p| p.key()) != Some(key) {
                return Err(self.bad_dir(at, "the start of another directory"));
            }
            return Ok(node);
        }
        if self.attrs.unix != Unix::Off
            && let Some(node) = self.nodes.at(key)
        {
            return Ok(node);
        }
        let rdev = self.rdev_of(&at.entry)?;
        let make = |id, change| self.make_node(id, at, change, rdev);
        self.nodes
            .at_or(key, generation, make)
            .ok_or_else(|| Kind::Corrupt.into())
    }

    /// Returns the device that an entry stands for; 0 if it is none, or says it wrongly.
    fn rdev_of(&self, entry: &DirEntry) -> Result<u64> {
        let is_device = |k| matches!(k, FileKind::CharDevice | FileKind::BlockDevice);
        let layout = &self.store.layout;
        if self.attrs.unix == Unix::Off || !is_device(self.attrs.kind_of(entry)) {
            return Ok(0);
        }
        if self.attrs.unix == Unix::Paper {
            let ext = Extension::read(entry);
            return Ok(ext.map_or(0, |e| u64::from(e.major) << 32 | u64::from(e.minor)));
        }
        let first = entry.first_cluster(layout.is_fat32());
        let len = (entry.DIR_FileSize.get() as usize).min(TEXT_MAX);
        if len == 0 || !layout.is_cluster(first) {
            return Ok(0);
        }
        let mut text = [0; TEXT_MAX];
        let text = text.get_mut(..len).unwrap_or_default();
        self.store.cache.read(layout.cluster_offset(first), text)?;
        Ok(parse_text(text).unwrap_or(0))
    }

    fn dir_cluster(&self, at: &Located) -> Result<u32> {
        let first = at.entry.first_cluster(self.store.layout.is_fat32());
        if !self.store.layout.is_cluster(first) || first == self.store.layout.root_cluster {
            return Err(self.bad_dir(at, &first.to_string()));
        }
        Ok(first)
    }

    fn bad_dir(&self, at: &Located, found: &str) -> Error {
        Error::corrupt(
            "DIR_FstClus of a directory",
            at.place.offset,
            found,
            "a cluster of its own",
        )
    }

    fn make_node(&self, id: NodeId, at: &Located, change: u64, rdev: u64) -> Node {
        let kind = self.attrs.kind_of(&at.entry);
        let first = at.entry.first_cluster(self.store.layout.is_fat32());
        let of = match at.entry.is_dir() {
            true => Of::Dir,
            false => Of::File(self.store.clusters_for(at.entry.DIR_FileSize.get().into())),
        };
        let runs = Runs::from_first(first, of);
        let body = if at.entry.is_dir() {
            Body::Dir(Dir {
                first,
                runs,
                index: None,
            })
        } else {
            Body::File(runs)
        };
        let meta = Meta {
            place: Some(at.place),
            rdev,
            ..self.attrs.cold_meta(&at.entry, change)
        };
        Node {
            id,
            kind,
            opens: AtomicU32::new(0),
            meta: Mutex::new(meta),
            body: RwLock::new(body),
        }
    }

    /// Returns the directory that starts at a cluster; 0 for the root.
    ///
    /// # Errors
    /// `Stale` if no directory that a path leads to starts there; `Io`,
    /// `Corrupt`.
    pub(crate) fn dir_node(&self, first: u32) -> Result<Arc<Node>> {
        match self.nodes.dir(first) {
            Some(node) => Ok(node),
            None => self.find_dir(first),
        }
    }

    /// Finds a directory by its way from the root.
    fn find_dir(&self, first: u32) -> Result<Arc<Node>> {
        let mut way = vec![first];
        let mut node = loop {
            let at = *way.last().ok_or(Kind::Stale)?;
            if at == 0 {
                way.pop();
                break self.root.clone();
            }
            if let Some(node) = self.nodes.dir(at) {
                way.pop();
                break node;
            }
            if way.len() > DEPTH_MAX {
                return Err(Kind::Stale.into());
            }
            way.push(self.parents.of(at)?);
        };
        for &first in way.iter().rev() {
            node = self.child_dir(&node, first)?;
        }
        Ok(node)
    }

    /// Returns the directory in `parent` that starts at a cluster.
    fn child_dir(&self, parent: &Node, first: u32) -> Result<Arc<Node>> {
        let body = self.read_dir(parent)?;
        let dir = body.dir()?;
        let fat32 = self.store.layout.is_fat32();
        let mut found = None;
        dir.scan(&self.store, 0, |event| match event {
            Event::Record(r)
                if r.short.is_dir()
                    && !is_dots(&r.short)
                    && r.short.first_cluster(fat32) == first =>
            {
                found = Some((r.short, span_of(&r)));
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })?;
        let (entry, span) = found.ok_or(Kind::Stale)?;
        self.node_of(&Located::new(&self.store, dir, entry, span)?)
    }

    /// Returns the node of an id.
    ///
    /// # Errors
    /// `Stale`; `Io`, `Corrupt`.
    pub(crate) fn resolve(&self, id: NodeId) -> Result<Arc<Node>> {
        self.store.alive()?;
        if let Some(node) = self.nodes.get(id) {
            return Ok(node);
        }
        let node = match Natural::of(id.ino.get()) {
            Natural::Root => self.root.clone(),
            Natural::Dir(first) => self.dir_node(first)?,
            Natural::Slot(dir, slot) => self.node_in_slot(dir, slot)?,
            Natural::Odd => return Err(Kind::Stale.into()),
        };
        if node.id != id {
            return Err(Kind::Stale.into());
        }
        Ok(node)
    }

    fn node_in_slot(&self, first: u32, slot: u32) -> Result<Arc<Node>> {
        let parent = self.dir_node(first)?;
        let body = self.read_dir(&parent)?;
        let dir = body.dir()?;
        if let Some(node) = self.nodes.at(key_of(first, slot)) {
            return Ok(node);
        }
        if slot >= dir.capacity(&self.store) {
            return Err(Kind::Stale.into());
        }
        let found = dir.record_at(&self.store, slot, |r| {
            let shown = !r.short.is_label() && !r.short.is_dir();
            shown.then(|| (r.short, span_of(r)))
        })?;
        let (entry, span) = found.flatten().ok_or(Kind::Stale)?;
        if self.is_owner_table(first, slot) {
            return Err(Kind::Stale.into());
        }
        self.node_of(&Located::new(&self.store, dir, entry, span)?)
    }

    /// Notes that a node is not at its place any more.
    pub(crate) fn left(&self, node: &Arc<Node>, from: &Located) {
        let key = from.place.key();
        if !node.is_dir() {
            self.nodes.moved(node, key, None);
        }
        if self.attrs.unix == Unix::Paper {
            self.attrs.births.leave(key);
        }
    }

    /// Notes that a node has moved from one place to another.
    pub(crate) fn moved(&self, node: &Arc<Node>, from: &Located, to: &Located) {
        let (old, new) = (from.place.key(), to.place.key());
        if !node.is_dir() {
            self.nodes.moved(node, old, Some(new));
        }
        if self.attrs.unix == Unix::Paper && old != new {
            self.attrs.births.leave(old);
        }
    }
}

fn root_node(store: &Store) -> Result<Arc<Node>> {
    let mut runs = Runs::from_first(store.layout.root_cluster, Of::Dir);
    runs.load(&store.table, store.dir_clusters_max())?;
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
