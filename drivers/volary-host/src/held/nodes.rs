//! The known nodes: what is kept of each, and for how long.
//!
//! A node becomes *known* when it is returned to a caller. It stays known until it is forgotten, or
//! is evicted. There are two bounds: on the known nodes, and on the descriptors held for them. The
//! least recently used ones go first, but open nodes stay.

use crate::held::opens::Opened;
use parking_lot::RwLock;
use rustix::fd::OwnedFd;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use volary_core::{FileKind, Kind, NodeId, Result};

const SHARDS: usize = 32;
/// The bits of [`Known::used`].
const QUEUE: u8 = 1;
const HELD: u8 = 2;

/// Where a node was found: a directory, and a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) dir: NodeId,
    pub(crate) name: Box<[u8]>,
}

/// What is known of a node.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: FileKind,
    /// A descriptor of the node: that of an open, or else the held one.
    pub(crate) fd: Option<Arc<OwnedFd>>,
    /// Where it was found, if this is recorded.
    pub(crate) way: Option<Way>,
}

/// All known nodes.
pub(crate) struct Nodes {
    shards: Vec<RwLock<Shard>>,
    nodes_max: usize,
    fds_max: usize,
}

#[derive(Default)]
struct Shard {
    known: HashMap<NodeId, Known>,
    /// The known nodes, the first to be evicted first. Some may be gone already.
    queue: VecDeque<NodeId>,
    /// The nodes with a held descriptor, in the same order.
    held: VecDeque<NodeId>,
    fds: usize,
}

struct Known {
    kind: FileKind,
    fd: Option<Arc<OwnedFd>>,
    opens: Vec<Arc<Opened>>,
    way: Option<Way>,
    lookups: AtomicU64,
    /// Whether the node was used since its last turn for eviction: a bit for each queue.
    used: AtomicU8,
}

impl Nodes {
    /// Returns a table for this many nodes and descriptors.
    pub(crate) fn new(nodes_max: usize, fds_max: usize) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            nodes_max: nodes_max.div_ceil(SHARDS).max(1),
            fds_max: fds_max.div_ceil(SHARDS).max(1),
        }
    }

    fn with<T: Default>(&self, node: NodeId, look: impl FnOnce(&Shard) -> T) -> T {
        let shard = self.shards.get(place(node));
        shard.map_or_else(T::default, |shard| look(&shard.read()))
    }

    /// Changes a shard. What `change` returns is dropped outside of the lock, because this may
    /// close descriptors.
    fn with_mut<T: Default>(&self, node: NodeId, change: impl FnOnce(&mut Shard) -> T) -> T {
        let shard = self.shards.get(place(node));
        shard.map_or_else(T::default, |shard| change(&mut shard.write()))
    }

    /// Returns what is known of a node.
    pub(crate) fn get(&self, node: NodeId) -> Option<Seen> {
        self.with(node, |shard| {
            let known = shard.known.get(&node)?;
            known.used.store(QUEUE | HELD, Ordering::Relaxed);
            let fd = known.opens.first().map(|open| Arc::clone(&open.fd));
            let fd = fd.or_else(|| known.fd.clone());
            Some(Seen {
                kind: known.kind,
                way: if fd.is_none() {
                    known.way.clone()
                } else {
                    None
                },
                fd,
            })
        })
    }

    /// Notes that a node was returned `lookups` more times. It was found by `way`, if ways are
    /// recorded. `fd` is a descriptor to hold, if any.
    pub(crate) fn note(
        &self,
        node: NodeId,
        kind: FileKind,
        lookups: u64,
        way: Option<(NodeId, &[u8])>,
        fd: Option<Arc<OwnedFd>>,
    ) {
        let is_way = |known: &Known| match (&known.way, way) {
            (_, None) => true,
            (Some(old), Some((dir, name))) => old.dir == dir && *old.name == *name,
            (None, Some(_)) => false,
        };
        let noted = self.with(node, |shard| match shard.known.get(&node) {
            Some(known) if is_way(known) && (fd.is_none() || known.fd.is_some()) => {
                known.used.store(QUEUE | HELD, Ordering::Relaxed);
                known.lookups.fetch_add(lookups, Ordering::Relaxed);
                true
            }
            _ => false,
        });
        if noted {
            return;
        }
        let way = way.map(|(dir, name)| Way {
            dir,
            name: name.into(),
        });
        drop(self.with_mut(node, |shard| {
            let known = shard.enter(node, kind);
            known.lookups.fetch_add(lookups, Ordering::Relaxed);
            known.way = way.or(known.way.take());
            let unused = fd.and_then(|fd| shard.hold(node, fd));
            (unused, shard.make_room(self.nodes_max, self.fds_max))
        }));
    }

    /// Holds a descriptor of a known node.
    pub(crate) fn hold(&self, node: NodeId, fd: Arc<OwnedFd>) {
        drop(self.with_mut(node, |shard| {
            let unused = shard.hold(node, fd);
            (unused, shard.make_room(self.nodes_max, self.fds_max))
        }));
    }

    /// Notes an open of a node.
    pub(crate) fn add_open(&self, open: &Arc<Opened>) {
        self.with_mut(open.node, |shard| {
            shard
                .enter(open.node, open.kind)
                .opens
                .push(Arc::clone(open));
        });
    }

    /// Removes an open. Returns whether it was the node's last one.
    pub(crate) fn end_open(&self, open: &Opened) -> bool {
        let ended = self.with_mut(open.node, |shard| {
            let known = shard.known.get_mut(&open.node)?;
            let at = known.opens.iter().position(|other| other.id == open.id)?;
            let ended = known.opens.swap_remove(at);
            Some((ended, known.opens.is_empty()))
        });
        ended.is_some_and(|(_, last)| last)
    }

    /// Returns one of the node's opens that permits writing.
    pub(crate) fn open_to_write(&self, node: NodeId) -> Option<Arc<Opened>> {
        self.with(node, |shard| {
            let known = shard.known.get(&node)?;
            known.opens.iter().find(|open| open.writes()).cloned()
        })
    }

    /// Returns whether the node is open.
    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        self.with(node, |shard| {
            let known = shard.known.get(&node);
            known.is_some_and(|known| !known.opens.is_empty())
        })
    }

    /// Takes back `lookups` of the times that a node was returned. With the last one, the node is
    /// no longer known, unless it is open.
    pub(crate) fn forget(&self, node: NodeId, lookups: u64) {
        drop(self.with_mut(node, |shard| {
            let known = shard.known.get_mut(&node)?;
            let left = known.lookups.get_mut();
            *left = left.saturating_sub(lookups);
            if *left > 0 || !known.opens.is_empty() {
                return None;
            }
            shard.remove(node)
        }));
    }

    /// Removes a node that no longer exists, unless it is open.
    pub(crate) fn remove(&self, node: NodeId) {
        drop(self.with_mut(node, |shard| {
            let is_open = !shard.known.get(&node)?.opens.is_empty();
            if is_open { None } else { shard.remove(node) }
        }));
    }

    /// Calls `call`. If there are too many descriptors, closes some held ones and calls it again.
    pub(crate) fn with_descriptors<T>(&self, call: impl Fn() -> Result<T>) -> Result<T> {
        match call() {
            Err(e) if e == Kind::TooManyOpen => {
                self.release();
                call()
            }
            done => done,
        }
    }

    /// Closes half of the held descriptors.
    pub(crate) fn release(&self) {
        for shard in &self.shards {
            let mut shard = shard.write();
            let half = shard.fds / 2;
            let freed = shard.release(half);
            drop(shard);
            drop(freed);
        }
    }

    /// Returns the descriptors held for directories.
    pub(crate) fn dirs(&self) -> Vec<Arc<OwnedFd>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.read();
            let dirs = shard.known.values().filter(|k| k.kind == FileKind::Dir);
            all.extend(dirs.filter_map(|known| known.fd.clone()));
        }
        all
    }

    /// Removes all nodes.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let all = std::mem::take(&mut *shard.write());
            drop(all);
        }
    }

    /// Returns the number of known nodes, and of descriptors held for them.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize) {
        let sums = self.shards.iter().map(|shard| {
            let shard = shard.read();
            (shard.known.len(), shard.fds)
        });
        sums.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    }
}

impl Shard {
    fn enter(&mut self, node: NodeId, kind: FileKind) -> &mut Known {
        let queue = &mut self.queue;
        self.known.entry(node).or_insert_with(|| {
            queue.push_back(node);
            Known {
                kind,
                fd: None,
                opens: Vec::new(),
                way: None,
                lookups: AtomicU64::new(0),
                used: AtomicU8::new(0),
            }
        })
    }

    /// Holds a descriptor of a node. Returns it, if the node has one already or is not known.
    fn hold(&mut self, node: NodeId, fd: Arc<OwnedFd>) -> Option<Arc<OwnedFd>> {
        match self.known.get_mut(&node) {
            Some(known) if known.fd.is_none() => {
                known.fd = Some(fd);
                self.fds += 1;
                self.held.push_back(node);
                None
            }
            _ => Some(fd),
        }
    }

    fn remove(&mut self, node: NodeId) -> Option<Known> {
        let known = self.known.remove(&node)?;
        self.fds -= usize::from(known.fd.is_some());
        Some(known)
    }

    /// Brings the shard within its bounds. Returns what was evicted.
    fn make_room(&mut self, nodes_max: usize, fds_max: usize) -> (Vec<Arc<OwnedFd>>, Vec<Known>) {
        let mut gone = Vec::new();
        let mut turns = self.queue.len() * 2;
        while self.known.len() > nodes_max && turns > 0 {
            turns -= 1;
            let Some(node) = self.queue.pop_front() else {
                break;
            };
            match self.known.get(&node) {
                None => {}
                Some(known) if known.stays(QUEUE) => self.queue.push_back(node),
                Some(_) => gone.extend(self.remove(node)),
            }
        }
        let freed = self.release(fds_max);
        self.tidy();
        (freed, gone)
    }

    /// Reduces the held descriptors to `fds_max`. Returns the others.
    fn release(&mut self, fds_max: usize) -> Vec<Arc<OwnedFd>> {
        let mut freed = Vec::new();
        let mut turns = self.held.len() * 2;
        while self.fds > fds_max && turns > 0 {
            turns -= 1;
            let Some(node) = self.held.pop_front() else {
                break;
            };
            match self.known.get_mut(&node) {
                Some(known) if known.fd.is_some() => {
                    if known.stays(HELD) {
                        self.held.push_back(node);
                    } else {
                        freed.extend(known.fd.take());
                        self.fds -= 1;
                    }
                }
                _ => {}
            }
        }
        freed
    }

    /// Removes stale entries from the queues, once these are most of them.
    fn tidy(&mut self) {
        if self.queue.len() > 2 * self.known.len() + 64 {
            self.queue = self.known.keys().copied().collect();
        }
        if self.held.len() > 2 * self.fds + 64 {
            let held = self.known.iter().filter(|(_, known)| known.fd.is_some());
            self.held = held.map(|(node, _)| *node).collect();
        }
    }
}

impl Known {
    /// Returns whether the node is kept at its turn for eviction: it is open, or was used since its
    /// last turn.
    fn stays(&self, queue: u8) -> bool {
        !self.opens.is_empty() || self.used.fetch_and(!queue, Ordering::Relaxed) & queue != 0
    }
}

fn place(node: NodeId) -> usize {
    let spread = node.ino.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    usize::try_from(spread).unwrap_or(0) % SHARDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(ino: u64) -> NodeId {
        NodeId::new(ino, 0).unwrap()
    }

    fn fd() -> Arc<OwnedFd> {
        Arc::new(rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
    }

    #[test]
    fn both_bounds_hold_and_what_is_used_stays() {
        let nodes = Nodes::new(SHARDS * 8, SHARDS * 2);
        nodes.note(node(1), FileKind::Dir, 1, None, Some(fd()));
        for ino in 2..10_000 {
            nodes.note(node(ino), FileKind::File, 1, None, Some(fd()));
            assert!(nodes.get(node(1)).unwrap().fd.is_some(), "at {ino}");
        }
        let (known, fds) = nodes.len();
        assert!(known <= SHARDS * 8 && fds <= SHARDS * 2, "{known}, {fds}");
        assert!(nodes.get(node(2)).is_none());
    }

    #[test]
    fn queues_do_not_grow_with_what_comes_and_goes() {
        let nodes = Nodes::new(1000, 1000);
        for _ in 0..100_000 {
            nodes.note(node(7), FileKind::File, 2, None, Some(fd()));
            nodes.forget(node(7), 1);
            assert_eq!(nodes.len(), (1, 1));
            nodes.forget(node(7), 1);
            assert_eq!(nodes.len(), (0, 0));
        }
        let shard = nodes.shards[place(node(7))].read();
        assert!(shard.queue.len() < 200 && shard.held.len() < 200);
    }

    #[test]
    fn the_newest_way_is_kept() {
        let nodes = Nodes::new(10, 10);
        nodes.note(node(7), FileKind::File, 1, Some((node(1), b"old")), None);
        nodes.note(node(7), FileKind::File, 1, Some((node(2), b"new")), None);
        nodes.note(node(7), FileKind::File, 1, None, None);
        let way = nodes.get(node(7)).unwrap().way.unwrap();
        assert_eq!((way.dir, &*way.name), (node(2), &b"new"[..]));
    }
}
