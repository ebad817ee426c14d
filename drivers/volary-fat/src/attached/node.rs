//! Nodes: the files and directories that are in use, and which id they have.
//!
//! A directory's id is its first cluster, any other node's the place of its
//! entry, so that most ids can be found again without a table, after a restart
//! too. A node that is moved keeps its id while it is in the table; it is then
//! *odd*: its id is not what its place says.
//!
//! The table is bounded. What it drops, the oldest first, is neither open nor
//! changed, and odd nodes only when there are very many of them.

use crate::directory::dir::Dir;
use crate::table::runs::Runs;
use crate::volume::ondisk::DirEntry;
use crate::volume::time::{Zone, set_write};
use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use volary_core::{FileKind, Kind, NodeId, Result, Time};
use volary_ondisk::NumberMap;

/// The root's number.
pub(crate) const ROOT_INO: u64 = 1;
/// Set in the number of a directory.
const DIR_BIT: u64 = 1 << 62;
/// Where the salt of other numbers begins.
const SALT_SHIFT: u32 = 46;
/// Bits of a slot number in a place.
const SLOT_BITS: u32 = 17;
/// Added to places, so that no number is 0 or the root's.
const PLACE_BASE: u64 = 2;

/// Where a node's entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// First cluster of the directory; 0 for the root.
    pub(crate) dir: u32,
    /// The first slot of the entry: of its long name, if it has one.
    pub(crate) first_slot: u32,
    /// The slot of the short entry.
    pub(crate) slot: u32,
    /// The last slot.
    pub(crate) last_slot: u32,
    /// Byte offset of the short entry on the device.
    pub(crate) offset: u64,
}

impl Place {
    /// Returns the directory and the slot as one number.
    pub(crate) fn key(&self) -> u64 {
        key_of(self.dir, self.slot)
    }
}

/// Returns a directory and a slot in it as one number.
pub(crate) fn key_of(dir: u32, slot: u32) -> u64 {
    u64::from(dir) << SLOT_BITS | u64::from(slot)
}

/// What an ino says by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Natural {
    /// The root.
    Root,
    /// The directory that starts at this cluster.
    Dir(u32),
    /// The entry in this slot of the directory that starts at this cluster.
    Slot(u32, u32),
    /// Nothing: only the table knows.
    Odd,
}

impl Natural {
    /// Reads an ino.
    pub(crate) fn of(ino: u64) -> Self {
        if ino == ROOT_INO {
            return Self::Root;
        }
        if let Some(cluster) = ino.checked_sub(DIR_BIT) {
            return u32::try_from(cluster).map_or(Self::Odd, Self::Dir);
        }
        let Some(key) = ino.checked_sub(PLACE_BASE).filter(|k| k >> SALT_SHIFT == 0) else {
            return Self::Odd;
        };
        match u32::try_from(key >> SLOT_BITS) {
            Ok(dir) => Self::Slot(dir, (key & ((1 << SLOT_BITS) - 1)) as u32),
            Err(_) => Self::Odd,
        }
    }
}

/// Returns the number of a directory.
pub(crate) fn dir_ino(first_cluster: u32) -> u64 {
    DIR_BIT | u64::from(first_cluster)
}

/// The number of anything else, unless it is taken.
pub(crate) fn slot_ino(key: u64) -> u64 {
    key + PLACE_BASE
}

/// A file or directory in use.
///
/// Locks are taken in this order: `body` (of directories before those of
/// files), the epoch, `meta`.
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) kind: FileKind,
    /// How many opens there are.
    pub(crate) opens: AtomicU32,
    /// What the directory entry says, or will say.
    pub(crate) meta: Mutex<Meta>,
    /// Where the content lies.
    pub(crate) body: RwLock<Body>,
}

/// Where the content of a node lies.
pub(crate) enum Body {
    /// A file's, or that of anything but a directory.
    File(Runs),
    /// A directory's.
    Dir(Dir),
}

/// What is known of a node beside its content.
#[derive(Clone, Debug)]
pub(crate) struct Meta {
    /// Its entry, up to date but for `mtime` and `size`.
    pub(crate) entry: DirEntry,
    /// Where its entry stands; `None` for the root.
    pub(crate) place: Option<Place>,
    /// Length in bytes; 0 for a directory.
    pub(crate) size: u32,
    /// Last change of the content.
    pub(crate) mtime: Time,
    /// Last change of anything. FAT does not keep it, so that it starts as `mtime`.
    pub(crate) ctime: Time,
    /// See [`Attr::change`](volary_core::Attr::change).
    pub(crate) change: u64,
    /// For devices, what the content says.
    pub(crate) rdev: u64,
    /// The entry on the disk is to be written.
    pub(crate) dirty: bool,
    /// It was moved in this epoch, and that was counted in its birth.
    pub(crate) moved: bool,
    /// The node has no name any more.
    pub(crate) gone: bool,
}

impl Body {
    /// Returns the directory.
    ///
    /// # Errors
    /// `NotDir`.
    pub(crate) fn dir(&self) -> Result<&Dir> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(Kind::NotDir.into()),
        }
    }

    /// Returns the directory, to change.
    ///
    /// # Errors
    /// `NotDir`.
    pub(crate) fn dir_mut(&mut self) -> Result<&mut Dir> {
        match self {
            Self::Dir(dir) => Ok(dir),
            Self::File(_) => Err(Kind::NotDir.into()),
        }
    }

    /// Returns the clusters of a file.
    ///
    /// # Errors
    /// `IsDir`.
    pub(crate) fn file_mut(&mut self) -> Result<&mut Runs> {
        match self {
            Self::File(runs) => Ok(runs),
            Self::Dir(_) => Err(Kind::IsDir.into()),
        }
    }

    /// Returns the clusters, of whichever kind the node is.
    pub(crate) fn runs_mut(&mut self) -> &mut Runs {
        match self {
            Self::File(runs) => runs,
            Self::Dir(dir) => &mut dir.runs,
        }
    }
}

impl Meta {
    /// Returns the entry as it is to be stored.
    pub(crate) fn stored(&self, zone: Zone) -> DirEntry {
        let mut entry = self.entry;
        set_write(&mut entry, self.mtime, zone);
        entry.DIR_FileSize.set(self.size);
        entry
    }
}

impl Node {
    /// Returns whether it is a directory.
    pub(crate) fn is_dir(&self) -> bool {
        self.kind == FileKind::Dir
    }

    /// Returns whether it is open.
    pub(crate) fn is_open(&self) -> bool {
        self.opens.load(Ordering::Acquire) > 0
    }
}

/// The table of nodes.
pub(crate) struct Nodes {
    max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    by_ino: NumberMap<Arc<Node>>,
    /// Odd nodes by the key of their place.
    odd: NumberMap<Arc<Node>>,
    queue: VecDeque<u64>,
    /// No node that was dropped had a larger `change`.
    floor: u64,
    /// So many nodes are added before room is looked for again: the last look
    /// found none.
    rest: u32,
}

/// Nodes that are added without a look for room after one that found none:
/// while all are dirty, each look would cost more than the node itself.
const REST: u32 = 64;

/// How many nodes a look for room looks at.
const LOOKS: u32 = 8;

/// What a node takes in the table, about, in bytes.
pub(crate) const NODE_COST: u64 = 512;

impl Nodes {
    /// Returns a table for about `memory` bytes of nodes.
    pub(crate) fn new(memory: u64) -> Self {
        Self {
            max: usize::try_from(memory / NODE_COST).unwrap_or(0).max(64),
            inner: Mutex::default(),
        }
    }

    /// Returns the node of this id, if it is in the table.
    pub(crate) fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        let inner = self.inner.lock();
        let node = inner.by_ino.get(&id.ino.get())?;
        (node.id == id).then(|| node.clone())
    }

    /// Returns the directory that starts at this cluster, if it is in the table.
    pub(crate) fn dir(&self, first_cluster: u32) -> Option<Arc<Node>> {
        let ino = if first_cluster == 0 {
            ROOT_INO
        } else {
            dir_ino(first_cluster)
        };
        self.inner.lock().by_ino.get(&ino).cloned()
    }

    /// Returns the node whose entry stands at `key`, and is not a directory's, if it
    /// is in the table.
    pub(crate) fn at(&self, key: u64) -> Option<Arc<Node>> {
        self.inner.lock().at(key)
    }

    /// Returns the smallest `change` that a node not in the table may have.
    pub(crate) fn floor(&self) -> u64 {
        self.inner.lock().floor
    }

    /// Returns the node of a directory's cluster, or else the one that `make` makes.
    pub(crate) fn dir_or(
        &self,
        first_cluster: u32,
        generation: u32,
        make: impl FnOnce(NodeId, u64) -> Node,
    ) -> Option<Arc<Node>> {
        let mut inner = self.inner.lock();
        let ino = dir_ino(first_cluster);
        if let Some(node) = inner.by_ino.get(&ino) {
            return Some(node.clone());
        }
        let id = NodeId::new(ino, generation)?;
        Some(inner.add(id, self.max, make))
    }

    /// Returns the node at `key`, or else the one that `make` makes, with the number
    /// of its place or, where that is still in use, with a salted one.
    pub(crate) fn at_or(
        &self,
        key: u64,
        generation: u32,
        make: impl FnOnce(NodeId, u64) -> Node,
    ) -> Option<Arc<Node>> {
        let mut inner = self.inner.lock();
        if let Some(node) = inner.at(key) {
            return Some(node);
        }
        let natural = slot_ino(key);
        let salted = |salt: u64| natural | salt << SALT_SHIFT;
        let salt = (0..1 << 16).find(|&s| !inner.by_ino.contains_key(&salted(s)))?;
        let id = NodeId::new(salted(salt), generation)?;
        let node = inner.add(id, self.max, make);
        if salt != 0 {
            inner.odd.insert(key, node.clone());
        }
        Some(node)
    }

    /// Puts the root into the table.
    pub(crate) fn insert_root(&self, node: Arc<Node>) {
        self.inner.lock().by_ino.insert(ROOT_INO, node);
    }

    /// Notes that a node that is no directory has moved from one place to
    /// another, or lost its place.
    pub(crate) fn moved(&self, node: &Arc<Node>, from: u64, to: Option<u64>) {
        let mut inner = self.inner.lock();
        if inner.odd.get(&from).is_some_and(|n| n.id == node.id) {
            inner.odd.remove(&from);
        }
        if let Some(key) = to.filter(|&key| slot_ino(key) != node.id.ino.get()) {
            inner.odd.insert(key, node.clone());
        }
    }

    /// Takes a node that is gone and not open out of the table.
    pub(crate) fn remove(&self, id: NodeId) {
        let mut inner = self.inner.lock();
        let ino = id.ino.get();
        if let Some(node) = inner.by_ino.get(&ino).filter(|n| n.id == id) {
            let change = node.meta.lock().change;
            inner.floor = inner.floor.max(change);
            inner.by_ino.remove(&ino);
        }
    }

    /// Returns all directories in the table.
    pub(crate) fn dirs(&self) -> Vec<Arc<Node>> {
        let inner = self.inner.lock();
        let all = inner.by_ino.values();
        all.filter(|n| n.is_dir()).cloned().collect()
    }

    /// Returns all nodes that have no name any more.
    pub(crate) fn gone(&self) -> Vec<Arc<Node>> {
        let inner = self.inner.lock();
        let all = inner.by_ino.values();
        all.filter(|n| n.meta.lock().gone).cloned().collect()
    }
}

impl Inner {
    fn at(&self, key: u64) -> Option<Arc<Node>> {
        if let Some(node) = (!self.odd.is_empty()).then(|| self.odd.get(&key)).flatten() {
            return Some(node.clone());
        }
        let node = self.by_ino.get(&slot_ino(key))?;
        let meta = node.meta.lock();
        let here = !meta.gone && meta.place.is_some_and(|p| p.key() == key);
        here.then(|| node.clone())
    }

    fn add(&mut self, id: NodeId, max: usize, make: impl FnOnce(NodeId, u64) -> Node) -> Arc<Node> {
        if self.by_ino.len() >= max {
            if self.rest > 0 {
                self.rest -= 1;
            } else if !self.make_room(max) {
                self.rest = REST;
            }
        }
        let node = Arc::new(make(id, self.floor));
        self.by_ino.insert(id.ino.get(), node.clone());
        self.queue.push_back(id.ino.get());
        self.tidy();
        node
    }

    /// Takes the numbers of nodes that are gone from the queue, and those that are
    /// there twice, once they may be most of it.
    fn tidy(&mut self) {
        if self.queue.len() > 2 * self.by_ino.len() + 64 {
            let mut seen = NumberMap::default();
            let nodes = &self.by_ino;
            self.queue
                .retain(|ino| nodes.contains_key(ino) && seen.insert(*ino, ()).is_none());
        }
    }

    /// Looks at a few of the oldest nodes and drops those that nobody needs.
    /// Whether it dropped one.
    fn make_room(&mut self, max: usize) -> bool {
        let before = self.by_ino.len();
        for _ in 0..LOOKS {
            let Some(ino) = self.queue.pop_front() else {
                break;
            };
            let Some(node) = self.by_ino.get(&ino) else {
                continue;
            };
            match self.droppable(node, max) {
                Some((change, place)) => {
                    self.floor = self.floor.max(change);
                    self.by_ino.remove(&ino);
                    if let Some(place) = place {
                        self.odd.remove(&place.key());
                    }
                    if self.by_ino.len() < max {
                        break;
                    }
                }
                None => self.queue.push_back(ino),
            }
        }
        self.by_ino.len() < before
    }

    /// Returns the node's `change`, and its place if it is odd, if it can be dropped.
    fn droppable(&self, node: &Arc<Node>, max: usize) -> Option<(u64, Option<Place>)> {
        let meta = node.meta.try_lock()?;
        let odd = meta
            .place
            .filter(|p| !node.is_dir() && slot_ino(p.key()) != node.id.ino.get());
        let references = 1 + usize::from(odd.is_some());
        // An open refers to its node.
        let idle = Arc::strong_count(node) == references;
        let few_odd = self.odd.len() < max / 2;
        let keep = !idle || meta.dirty || meta.gone || (odd.is_some() && few_odd);
        (!keep).then_some((meta.change, odd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::FromZeros;

    fn file(id: NodeId, change: u64) -> Node {
        let time = Time::EPOCH;
        let meta = Meta {
            entry: DirEntry::new_zeroed(),
            place: None,
            size: 0,
            mtime: time,
            ctime: time,
            change,
            rdev: 0,
            dirty: false,
            moved: false,
            gone: false,
        };
        Node {
            id,
            kind: FileKind::File,
            opens: AtomicU32::new(0),
            meta: Mutex::new(meta),
            body: RwLock::new(Body::File(Runs::default())),
        }
    }

    #[test]
    fn nodes_that_come_and_go_leave_nothing() {
        let nodes = Nodes::new(1 << 20);
        let stays = nodes.at_or(key_of(3, 0), 0, file).unwrap();
        for number in 0..10_000 {
            // Few places, used again and again, and ever new ones.
            for slot in [1 + number % 50, 100 + number] {
                let node = nodes.at_or(key_of(3, slot), number, file).unwrap();
                nodes.remove(node.id);
            }
            let inner = nodes.inner.lock();
            assert_eq!((inner.by_ino.len(), inner.odd.len()), (1, 0));
            assert!(inner.queue.len() <= 68, "{}", inner.queue.len());
            assert!(inner.queue.contains(&stays.id.ino.get()));
        }
    }

    #[test]
    fn numbers_say_where_the_entry_is() {
        assert_eq!(Natural::of(ROOT_INO), Natural::Root);
        assert_eq!(Natural::of(dir_ino(77)), Natural::Dir(77));
        let key = key_of(0x0fff_fff4, 65_535);
        assert_eq!(
            Natural::of(slot_ino(key)),
            Natural::Slot(0x0fff_fff4, 65_535)
        );
        assert_eq!(Natural::of(slot_ino(key_of(0, 0))), Natural::Slot(0, 0));
        assert_eq!(Natural::of(slot_ino(key) | 1 << SALT_SHIFT), Natural::Odd);
    }
}
