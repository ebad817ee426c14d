//! [`Index`]: finds the watches that a change may concern, without visiting the others.

use crate::files::open::table::File;
use crate::files::open::watch::Watch;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use volary_core::NodeId;

type FileWatch = Watch<File>;

/// A hash of a directory's path.
pub(super) type PathKey = u64;

/// The watches of a share, indexed by path and by node.
#[derive(Debug, Default)]
pub(super) struct Index {
    hasher: RandomState,
    len: usize,
    /// By path of the directory, and by whether the watch includes the whole tree below it.
    by_path: HashMap<(PathKey, bool), Vec<Weak<FileWatch>>>,
    by_node: HashMap<NodeId, Vec<Weak<FileWatch>>>,
    /// The number of watches on whole trees.
    trees: usize,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is a watch on a whole tree.
    pub(super) fn has_trees(&self) -> bool {
        self.trees > 0
    }

    pub(super) fn key_of(&self, path: &[Vec<u8>]) -> PathKey {
        let next = |key: PathKey, name: &Vec<u8>| self.hasher.hash_one((key, name));
        path.iter().fold(0, next)
    }

    /// Adds a watch of the directory whose path has this key.
    pub(super) fn add(&mut self, watch: &Arc<FileWatch>, key: PathKey) {
        watch.key.store(key, Ordering::Relaxed);
        let (by_path, by_node) = (&mut self.by_path, &mut self.by_node);
        let place = by_path.entry((key, watch.tree)).or_default();
        place.push(Arc::downgrade(watch));
        by_node
            .entry(watch.node)
            .or_default()
            .push(Arc::downgrade(watch));
        self.len = self.len.saturating_add(1);
        self.trees = self.trees.saturating_add(usize::from(watch.tree));
    }

    /// Removes a watch, if it is here.
    pub(super) fn remove(&mut self, watch: &FileWatch) {
        if !take(&mut self.by_node, &watch.node, watch) {
            return;
        }
        let key = watch.key.load(Ordering::Relaxed);
        take(&mut self.by_path, &(key, watch.tree), watch);
        self.len = self.len.saturating_sub(1);
        self.trees = self.trees.saturating_sub(usize::from(watch.tree));
    }

    /// Updates the path of a watch's directory.
    pub(super) fn put(&mut self, watch: &Arc<FileWatch>, key: PathKey) {
        let old = watch.key.swap(key, Ordering::Relaxed);
        if old != key && take(&mut self.by_path, &(old, watch.tree), watch) {
            let place = self.by_path.entry((key, watch.tree)).or_default();
            place.push(Arc::downgrade(watch));
        }
    }

    /// Returns the watches that a change of the entry at `path` concerns: those of its parent
    /// directory, and those of whole trees that contain it.
    pub(super) fn near(&self, path: &[Vec<u8>]) -> Vec<Arc<FileWatch>> {
        let Some((_, dirs)) = path.split_last() else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let mut key = 0;
        for name in dirs {
            self.collect(key, true, &mut found);
            key = self.hasher.hash_one((key, name));
        }
        self.collect(key, true, &mut found);
        self.collect(key, false, &mut found);
        found
    }

    fn collect(&self, key: PathKey, tree: bool, found: &mut Vec<Arc<FileWatch>>) {
        let there = self.by_path.get(&(key, tree)).into_iter().flatten();
        found.extend(there.filter_map(Weak::upgrade));
    }

    /// Returns the watches of a directory.
    pub(super) fn of_node(&self, node: NodeId) -> Vec<Arc<FileWatch>> {
        let there = self.by_node.get(&node).into_iter().flatten();
        there.filter_map(Weak::upgrade).collect()
    }

    pub(super) fn all(&self) -> Vec<Arc<FileWatch>> {
        let all = self.by_node.values().flatten();
        all.filter_map(Weak::upgrade).collect()
    }
}

/// Removes a watch from its list. Returns false if it is not there.
fn take<K: Eq + std::hash::Hash>(
    lists: &mut HashMap<K, Vec<Weak<FileWatch>>>,
    key: &K,
    watch: &FileWatch,
) -> bool {
    let Some(list) = lists.get_mut(key) else {
        return false;
    };
    let Some(at) = list.iter().position(|w| std::ptr::eq(w.as_ptr(), watch)) else {
        return false;
    };
    list.swap_remove(at);
    if list.is_empty() {
        lists.remove(key);
    }
    true
}
