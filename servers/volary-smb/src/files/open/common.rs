//! [`Common`]: the shared state of one share's trees.

use super::breaker::Breaker;
use super::durables::Durables;
use super::table::File;
use super::watches::{By, Watches};
use crate::files::known::Known;
use crate::files::names::KeptPath;
use crate::wire::fscc::time;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use volary_core::{Attr, Caps, Cred, NodeId};
use volary_session::{ClientId, Event, EventSink, LeaseKey, News, Session, Subscription, Volume};

/// The most times of change that are stored.
const CHANGE_TIMES_MAX: usize = 4096;

/// The shared state of one share's trees: open files, watched directories, and more.
pub(crate) struct Common {
    /// The client id under which the sessions of the share's trees make changes.
    pub(crate) client: ClientId,
    pub(crate) watches: Watches,
    pub(crate) known: Known,
    pub(crate) durables: Durables,
    /// Held during each change of a security descriptor.
    pub(crate) protecting: Mutex<()>,
    volume: Arc<Volume>,
    /// All open files, by node.
    files: Mutex<HashMap<NodeId, Vec<Arc<File>>>>,
    next: AtomicU64,
    /// Times of change that clients have set, with [`Attr::change`] at that time.
    change_times: Mutex<HashMap<NodeId, (u64, u64)>>,
    /// Leases, with the number of opens of each.
    leases: Mutex<HashMap<LeaseKey, (usize, Arc<Breaker>)>>,
    subscription: Mutex<Option<Subscription>>,
}

struct Sink(Weak<Common>);

impl EventSink for Sink {
    fn event(&self, event: &Event) {
        if let Some(common) = self.0.upgrade() {
            common.note(event);
        }
    }
}

impl Common {
    pub(crate) fn new(volume: &Arc<Volume>) -> Arc<Self> {
        let common = Arc::new(Self {
            client: volume.client(),
            watches: Watches::default(),
            known: Known::new(volume.hearing()),
            durables: Durables::default(),
            protecting: Mutex::default(),
            volume: Arc::clone(volume),
            files: Mutex::default(),
            next: AtomicU64::new(1),
            change_times: Mutex::default(),
            leases: Mutex::default(),
            subscription: Mutex::default(),
        });
        let sink = Arc::new(Sink(Arc::downgrade(&common)));
        *common.subscription.lock() = Some(volume.subscribe(sink));
        common
    }

    /// Returns the persistent half of a file id, which no file of the share has had.
    pub(crate) fn next_persistent(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn enter(&self, file: &Arc<File>) {
        self.durables.enter(file);
        let mut files = self.files.lock();
        files.entry(file.node).or_default().push(Arc::clone(file));
    }

    pub(crate) fn leave(&self, file: &File) {
        self.durables.leave(file);
        let mut files = self.files.lock();
        if let Some(list) = files.get_mut(&file.node) {
            list.retain(|other| other.id != file.id);
            if list.is_empty() {
                files.remove(&file.node);
            }
        }
    }

    /// Returns whether no file of the share is open.
    pub(crate) fn is_idle(&self) -> bool {
        self.files.lock().is_empty()
    }

    /// Returns the opens of a node.
    pub(crate) fn of_node(&self, node: NodeId) -> Vec<Arc<File>> {
        let files = self.files.lock();
        files.get(&node).cloned().unwrap_or_default()
    }

    /// Updates the paths of open files after `moved` was renamed: its own, and those below it.
    pub(crate) fn moved(&self, moved: &File, from: &[Vec<u8>], to: &[Vec<u8>]) {
        let there = if moved.is_dir() {
            self.files.lock().values().flatten().cloned().collect()
        } else {
            self.of_node(moved.node)
        };
        for file in there {
            let mut path = file.path.lock();
            if let Some(below) = path.components().strip_prefix(from) {
                *path = KeptPath::new(&[to, below].concat());
            }
        }
        if moved.is_dir() {
            self.watches.moved();
        }
    }

    /// Returns the node's time of change, as a FILETIME. A time that a client has set is valid
    /// until the node changes again. Volumes cannot store such a time. So it is lost when the
    /// server ends, or when there are too many.
    pub(crate) fn change_time(&self, attr: &Attr) -> u64 {
        match self.change_times.lock().get(&attr.node) {
            Some((change, set)) if *change == attr.change => *set,
            _ => time::from_time(attr.ctime),
        }
    }

    /// Sets the time of change, for the node's current state.
    pub(crate) fn set_change_time(&self, attr: &Attr, filetime: u64) {
        let mut times = self.change_times.lock();
        if times.len() >= CHANGE_TIMES_MAX {
            times.clear();
        }
        times.insert(attr.node, (attr.change, filetime));
    }

    /// Adds an open to a lease. Returns the notifier for its breaks. That is the first open's, on
    /// its connection, for as long as the connection lasts.
    pub(crate) fn enter_lease(&self, key: LeaseKey, new: &Arc<Breaker>) -> Arc<Breaker> {
        let mut leases = self.leases.lock();
        let (count, breaker) = leases.entry(key).or_insert_with(|| (0, Arc::clone(new)));
        *count = count.saturating_add(1);
        if !breaker.reaches() {
            breaker.go_by_way_of(new);
        }
        Arc::clone(breaker)
    }

    /// Removes an open from a lease. The lease is forgotten with the last one.
    pub(crate) fn leave_lease(&self, key: LeaseKey) {
        let mut leases = self.leases.lock();
        if let Some((count, _)) = leases.get_mut(&key) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                leases.remove(&key);
            }
        }
    }

    /// Returns the volume's abilities.
    pub(crate) fn caps(&self) -> Caps {
        self.volume.caps()
    }

    /// Returns root's session, for the server's own operations.
    pub(crate) fn root_session(&self) -> Session {
        self.by(None).root_session()
    }

    /// Returns who makes changes here. `cred` is the user, if known.
    pub(super) fn by<'a>(&'a self, cred: Option<&'a Cred>) -> By<'a> {
        By {
            volume: &self.volume,
            client: self.client,
            cred,
        }
    }

    /// Reports changes by other clients to watches. Changes through this server are reported where
    /// they are made, with exact information. The exception are entries that are removed with their
    /// last open.
    fn note(&self, event: &Event) {
        self.known.hear(&event.news);
        if self.watches.is_empty() {
            return;
        }
        let own = event.origin == Some(self.client);
        let by = self.by(None);
        match &event.news {
            News::Removed { dir, name, node } => {
                let open = node.and_then(|node| self.of_node(node).into_iter().next());
                let kind = open.as_ref().map(|file| file.kind);
                match open.filter(|_| own) {
                    Some(file) => {
                        let path = file.path.lock().components();
                        self.watches.removed(by, &path, kind);
                    }
                    None => self.watches.removed_in(by, *dir, name, kind),
                }
            }
            news if !own => self.watches.elsewhere(by, news),
            _ => {}
        }
    }
}

impl std::fmt::Debug for Common {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Common")
            .field("nodes_open", &self.files.lock().len())
            .finish_non_exhaustive()
    }
}
