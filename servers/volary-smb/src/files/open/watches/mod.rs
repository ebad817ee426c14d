//! [`Watches`]: reports changes on a share to watches. May use `watch`, `table` and rights.
//!
//! Changes through this server are reported with their paths. For changes made elsewhere, only the
//! directory is known. For a watch of a whole tree, the directory's path is found by climbing up.
//! Changes in a directory below the watched one are reported only to users who may list that
//! directory ([`sight`]).

mod climb;
mod index;
mod sight;

use super::table::File;
use super::watch::{Watch, filter};
use crate::files::names::Path;
use crate::wire::fscc::notify::Action;
use index::{Index, PathKey};
use parking_lot::RwLock;
pub(crate) use sight::By;
use sight::Sight;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use volary_core::{FileKind, NodeId};
use volary_session::News;

type FileWatch = Watch<File>;

/// The watches of a share.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    index: RwLock<Index>,
    /// The number of watches, so that a change without any watches costs only one load.
    count: AtomicUsize,
    /// Bytes of stored changes.
    pub(crate) bytes: Arc<AtomicUsize>,
}

impl Watches {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    pub(crate) fn add(&self, watch: &Arc<FileWatch>, file: &File) {
        let key = self.key_of(file);
        let mut index = self.index.write();
        index.add(watch, key);
        self.count.store(index.len(), Ordering::Release);
        drop(index);
        // The directory may have been renamed before the watch was added.
        self.follow(watch);
    }

    /// Removes the watch of a file that was closed.
    pub(crate) fn remove(&self, watch: &Arc<FileWatch>) {
        let mut index = self.index.write();
        index.remove(watch);
        self.count.store(index.len(), Ordering::Release);
    }

    fn key_of(&self, file: &File) -> PathKey {
        let path = file.path.lock().components();
        self.index.read().key_of(&path)
    }

    /// Updates the path of a watch's directory.
    fn follow(&self, watch: &Arc<FileWatch>) {
        if let Some(file) = watch.file.upgrade() {
            let key = self.key_of(&file);
            self.index.write().put(watch, key);
        }
    }

    /// Updates the paths of watches after a directory was renamed, because all paths below it
    /// change.
    pub(crate) fn moved(&self) {
        if !self.is_empty() {
            self.all().iter().for_each(|watch| self.follow(watch));
        }
    }

    fn all(&self) -> Vec<Arc<FileWatch>> {
        self.index.read().all()
    }

    fn near(&self, path: &[Vec<u8>]) -> Vec<Arc<FileWatch>> {
        self.index.read().near(path)
    }

    /// Reports that an entry was created.
    pub(crate) fn made(&self, by: By<'_>, path: &[Vec<u8>], kind: FileKind) {
        self.tell(by, Action::Added, path, name_filter(Some(kind)));
    }

    /// Reports that an entry was removed.
    pub(crate) fn removed(&self, by: By<'_>, path: &[Vec<u8>], kind: Option<FileKind>) {
        self.tell(by, Action::Removed, path, name_filter(kind));
    }

    /// Reports that an entry's node was changed in one of these ways.
    pub(crate) fn changed(&self, by: By<'_>, path: &[Vec<u8>], ways: u32) {
        self.tell(by, Action::Modified, path, ways);
    }

    /// Reports that an entry was renamed. To watches that see only one of the names, it was added
    /// or removed.
    pub(crate) fn renamed(&self, by: By<'_>, from: &[Vec<u8>], to: &[Vec<u8>], kind: FileKind) {
        if self.is_empty() {
            return;
        }
        let names = name_filter(Some(kind));
        let same_dir = parent(from) == parent(to);
        let mut old_dir = Sight::of_path(by, parent(from));
        let mut new_dir = Sight::of_path(by, parent(to));
        let mut near = self.near(from);
        if !same_dir {
            near.extend(self.near(to));
            near.sort_unstable_by_key(|watch| Arc::as_ptr(watch).addr());
            near.dedup_by(|a, b| Arc::ptr_eq(a, b));
        }
        for watch in near {
            if watch.filter & names == 0 {
                // As on Windows, watches without a name filter are told that the file at the new
                // name changed, but not about directories.
                let ways = filter::ATTRIBUTES | filter::CREATION;
                let told = kind != FileKind::Dir && watch.filter & ways != 0;
                if let Some(name) = told.then(|| watch.sees(&mut new_dir, to)).flatten() {
                    watch.note(&[(Action::Modified, name)]);
                }
                continue;
            }
            let old = watch
                .sees(&mut old_dir, from)
                .map(|name| (Action::RenamedOld, name));
            let new = watch
                .sees(&mut new_dir, to)
                .map(|name| (Action::RenamedNew, name));
            let changes = match (old, new) {
                (Some(old), Some(new)) if same_dir => vec![old, new],
                (old, new) => {
                    let gone = old.map(|(_, name)| (Action::Removed, name));
                    let came = new.map(|(_, name)| (Action::Added, name));
                    gone.into_iter().chain(came).collect()
                }
            };
            if !changes.is_empty() {
                watch.note(&changes);
            }
        }
    }

    fn tell(&self, by: By<'_>, action: Action, path: &[Vec<u8>], filter: u32) {
        if self.is_empty() {
            return;
        }
        let mut dir = Sight::of_path(by, parent(path));
        for watch in self.near(path) {
            if watch.filter & filter == 0 {
                continue;
            }
            if let Some(name) = watch.sees(&mut dir, path) {
                watch.note(&[(action, name)]);
            }
        }
    }

    /// Reports that an entry was removed from a directory, whose path may have to be found.
    pub(crate) fn removed_in(&self, by: By<'_>, dir: NodeId, name: &[u8], kind: Option<FileKind>) {
        self.tell_in(by, dir, &[(Action::Removed, name)], name_filter(kind));
    }

    /// Reports a change that was not made through this server.
    pub(crate) fn elsewhere(&self, by: By<'_>, news: &News) {
        let session = by.root_session();
        match news {
            News::Made { dir, name, node } => {
                let kind = session.getattr(*node).ok().map(|attr| attr.kind);
                self.tell_in(by, *dir, &[(Action::Added, name)], name_filter(kind));
            }
            News::Renamed {
                from,
                name,
                to,
                new_name,
                ..
            } => {
                let kind = session.lookup(*to, new_name).ok().map(|e| e.attr.kind);
                let filter = name_filter(kind);
                let (old, new) = if from == to {
                    (Action::RenamedOld, Action::RenamedNew)
                } else {
                    (Action::Removed, Action::Added)
                };
                if from == to {
                    self.tell_in(by, *from, &[(old, name), (new, new_name)], filter);
                } else {
                    self.tell_in(by, *from, &[(old, name)], filter);
                    self.tell_in(by, *to, &[(new, new_name)], filter);
                }
            }
            News::Entries(dir) => self.overflow(Some(*dir)),
            News::Everything => self.overflow(None),
            News::Removed { .. } | News::Data(_) | News::Attr(_) | News::Gone(_) => {}
        }
    }

    fn tell_in(&self, by: By<'_>, dir: NodeId, changes: &[(Action, &[u8])], filter: u32) {
        let index = self.index.read();
        let (has_trees, mut near) = (index.has_trees(), index.of_node(dir));
        drop(index);
        near.retain(|watch| watch.filter & filter != 0);
        note_below(&near, &[], changes);
        if !has_trees {
            return;
        }
        let Ok(above) = climb::above(&by.root_session(), dir) else {
            let all = self.all().into_iter();
            all.filter(|watch| watch.tree)
                .for_each(|watch| watch.overflow());
            return;
        };
        let nodes = above.iter().map(|(node, _)| *node).collect();
        let mut sight = Sight::of_nodes(by, nodes);
        for (depth, (node, _)) in above.iter().rev().enumerate() {
            if *node == dir {
                continue;
            }
            let mut trees = self.index.read().of_node(*node);
            trees.retain(|watch| watch.tree && watch.filter & filter != 0);
            trees.retain(|watch| watch.is_let_into(&mut sight, depth));
            if let Some(below) = climb::below(&above, *node) {
                note_below(&trees, &below, changes);
            }
        }
    }

    fn overflow(&self, dir: Option<NodeId>) {
        for watch in self.all() {
            if dir.is_none_or(|dir| watch.tree || watch.node == dir) {
                watch.overflow();
            }
        }
    }
}

impl FileWatch {
    /// Returns whether the watch's user may see the entries of a directory below.
    fn is_let_into(&self, dir: &mut Sight<'_>, depth: usize) -> bool {
        let file = self.file.upgrade();
        file.is_some_and(|file| dir.is_open_to(&file, depth))
    }

    /// Returns the path as this watch reports it, if it sees this entry of `dir`.
    fn sees(&self, dir: &mut Sight<'_>, path: &[Vec<u8>]) -> Option<Vec<u8>> {
        let file = self.file.upgrade()?;
        let own = file.path.lock().components();
        let below = path.strip_prefix(own.as_slice())?;
        let (last, dirs) = below.split_last()?;
        let told = dirs.is_empty() || self.tree && dir.is_open_to(&file, own.len());
        told.then(|| shown_below(dirs.iter().map(Vec::as_slice), last))
    }
}

/// Reports changes in a directory at `below`, relative to the watched one.
fn note_below(watches: &[Arc<FileWatch>], below: &[Vec<u8>], changes: &[(Action, &[u8])]) {
    let named = |name: &[u8]| shown_below(below.iter().map(Vec::as_slice), name);
    for watch in watches {
        let seen: Vec<_> = changes.iter().map(|(a, name)| (*a, named(name))).collect();
        watch.note(&seen);
    }
}

fn shown_below<'a>(dirs: impl Iterator<Item = &'a [u8]>, name: &'a [u8]) -> Vec<u8> {
    let path: Vec<Vec<u8>> = dirs.chain([name]).map(<[u8]>::to_vec).collect();
    let shown = Path::show(&path);
    shown
        .strip_prefix(b"\\")
        .map_or_else(Vec::new, <[u8]>::to_vec)
}

fn parent(path: &[Vec<u8>]) -> &[Vec<u8>] {
    path.split_last().map_or(&[], |(_, dir)| dir)
}

fn name_filter(kind: Option<FileKind>) -> u32 {
    match kind {
        Some(FileKind::Dir) => filter::DIR_NAME,
        Some(_) => filter::FILE_NAME,
        None => filter::FILE_NAME | filter::DIR_NAME,
    }
}
