//! [`Members`]: the sessions of a connection, and the trees of each.

use crate::budget::{Budget, Taken};
use crate::client::Logon;
use crate::clock::now;
use crate::files::Tree;
use crate::ipc::Pipes;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The most sessions that are remembered after their end.
const ENDED_MAX: usize = 8;

/// The share that a tree id stands for.
#[derive(Clone, Debug)]
pub(super) enum Joined {
    Disk(Arc<Tree>),
    Pipes(Arc<Pipes>),
}

impl Joined {
    fn disk(&self) -> Option<&Arc<Tree>> {
        match self {
            Self::Disk(tree) => Some(tree),
            Self::Pipes(_) => None,
        }
    }
}

/// A session on this connection.
#[derive(Debug)]
pub(crate) struct Member {
    pub(super) logon: Arc<Logon>,
    trees: RwLock<HashMap<u32, Joined>>,
    /// The user's resources that its trees take.
    tree_places: Mutex<HashMap<u32, Taken>>,
    /// The user's connection count that this connection takes, shared by all the user's sessions on
    /// it.
    place: Mutex<Option<Arc<Taken>>>,
    tree_ids: AtomicU32,
}

impl Member {
    pub(super) fn new(logon: Arc<Logon>) -> Self {
        Self {
            logon,
            trees: RwLock::default(),
            tree_places: Mutex::default(),
            place: Mutex::default(),
            tree_ids: AtomicU32::new(0),
        }
    }

    /// Stores what its connection takes of the user's resources.
    pub(super) fn takes(&self, place: Arc<Taken>) {
        *self.place.lock() = Some(place);
    }

    /// Returns an id that no tree of the session has had.
    pub(super) fn next_tree_id(&self) -> u32 {
        self.tree_ids
            .fetch_add(1, Ordering::Relaxed)
            .wrapping_add(1)
    }

    /// Adds a tree. Returns false if there are `max` already.
    pub(super) fn join(&self, id: u32, joined: Joined, place: Taken, max: usize) -> bool {
        let mut trees = self.trees.write();
        if trees.len() >= max {
            return false;
        }
        trees.insert(id, joined);
        self.tree_places.lock().insert(id, place);
        true
    }

    /// Removes a tree.
    pub(super) fn part(&self, id: u32) -> Option<Joined> {
        let joined = self.trees.write().remove(&id);
        self.tree_places.lock().remove(&id);
        joined
    }

    /// Removes all trees, and releases what they and the connection take of the user's resources.
    pub(super) fn part_from_all(&self) {
        self.trees.write().clear();
        self.tree_places.lock().clear();
        self.place.lock().take();
    }

    pub(super) fn joined(&self, id: u32) -> Option<Joined> {
        self.trees.read().get(&id).cloned()
    }

    /// Returns the session's trees of volumes.
    pub(super) fn trees(&self) -> Vec<Arc<Tree>> {
        let trees = self.trees.read();
        trees.values().filter_map(Joined::disk).cloned().collect()
    }

    fn has_trees(&self) -> bool {
        !self.trees.read().is_empty()
    }
}

/// The sessions of a connection.
#[derive(Debug)]
pub(super) struct Members {
    /// Sessions that are set up.
    all: RwLock<HashMap<u64, Arc<Member>>>,
    /// Recently ended sessions. Their clients are told so with a signature.
    ended: Mutex<VecDeque<Arc<Logon>>>,
    /// When the last session ended, or the connection began.
    alone_since: Mutex<Instant>,
}

impl Default for Members {
    fn default() -> Self {
        Self {
            all: RwLock::default(),
            ended: Mutex::default(),
            alone_since: Mutex::new(now()),
        }
    }
}

impl Members {
    pub(super) fn get(&self, id: u64) -> Option<Arc<Member>> {
        self.all.read().get(&id).cloned()
    }

    pub(super) fn logon(&self, id: u64) -> Option<Arc<Logon>> {
        let all = self.all.read();
        all.get(&id).map(|member| Arc::clone(&member.logon))
    }

    pub(super) fn all(&self) -> Vec<Arc<Member>> {
        self.all.read().values().cloned().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.all.read().len()
    }

    pub(super) fn insert(&self, member: Arc<Member>) {
        self.all.write().insert(member.logon.id, member);
    }

    /// Removes a session, and remembers that it has ended. If too many are remembered, the oldest
    /// one is dropped.
    pub(super) fn forget(&self, id: u64) {
        // This comes first, so that nobody sees the connection without sessions for too long.
        *self.alone_since.lock() = now();
        let mut all = self.all.write();
        let Some(member) = all.remove(&id) else {
            return;
        };
        let mut ended = self.ended.lock();
        if ended.len() >= ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back(Arc::clone(&member.logon));
    }

    /// Returns a session that has ended, if it is remembered.
    pub(super) fn ended(&self, id: u64) -> Option<Arc<Logon>> {
        let ended = self.ended.lock();
        ended.iter().find(|logon| logon.id == id).cloned()
    }

    /// Returns the connection's session, if it has exactly one.
    pub(super) fn only_logon(&self) -> Option<Arc<Logon>> {
        let members = self.all.read();
        let mut all = members.values();
        let only = all.next().filter(|_| all.next().is_none());
        only.map(|member| Arc::clone(&member.logon))
    }

    /// Returns the share of the user's connection limit for a new session. If the user has another
    /// session on this connection, they use the same one. Returns `None` if the user has `max`
    /// already.
    pub(super) fn place_of(&self, budget: &Arc<Budget>, max: usize) -> Option<Arc<Taken>> {
        let members = self.all.read();
        let mut theirs = members
            .values()
            .filter(|other| Arc::ptr_eq(&other.logon.budget, budget));
        let has = theirs.find_map(|other| other.place.lock().clone());
        has.or_else(|| budget.connections.take(max).map(Arc::new))
    }

    /// Returns whether the time for logging on, perhaps again, is over.
    pub(super) fn is_late(&self, now: Instant, logon_time: Duration) -> bool {
        self.is_empty() && now.duration_since(*self.alone_since.lock()) >= logon_time
    }

    /// Returns whether there are no sessions.
    pub(super) fn is_empty(&self) -> bool {
        self.all.read().is_empty()
    }

    /// Returns whether this user has a session.
    pub(super) fn has_user(&self, user: &str) -> bool {
        let members = self.all.read();
        members.values().any(|member| member.logon.user == user)
    }

    pub(super) fn has_trees(&self) -> bool {
        let members = self.all.read();
        members.values().any(|member| member.has_trees())
    }

    /// Returns whether no file is open.
    pub(super) fn is_idle(&self) -> bool {
        let members = self.all.read();
        let trees = members.values().flat_map(|member| member.trees());
        trees.map(|tree| tree.files.len()).all(|count| count == 0)
    }
}
