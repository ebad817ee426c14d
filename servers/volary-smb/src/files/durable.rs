//! Durable opens (MS-SMB2 3.3.1.10): what a client has open under a batch oplock, or a lease with H,
//! outlives its connection for a while, if the client wants that. [`Durables`] keeps those of one
//! share.
//!
//! An open is kept as long as nobody is in its way: whatever would take away its oplock or lease
//! ends it at once. It is given back to the user who opened it, and to nobody else; it ends when its
//! time is over, with the server, and when the volume is detached. [`Limits::durable_opens`]
//! bounds how many a user has there.
//!
//! [`Limits::durable_opens`]: crate::Limits::durable_opens

use super::ending;
use super::table::File;
use crate::clock::now;
use crate::files::tree::Tree;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use volary_session::{LeaseBits, LeaseKey};

/// How long the end of a connection may take that the client has hung up.
const HANG_UP_MAX: Duration = Duration::from_secs(10);

/// What a client may call an open by beside its id.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// Who opened it.
    pub(crate) user: String,
    /// The client's machine.
    pub(crate) client: [u8; 16],
    pub(crate) guid: Option<[u8; 16]>,
    pub(crate) app: Option<[u8; 16]>,
    /// How long it is kept without a connection; none if it is not durable.
    pub(crate) time: Option<Duration>,
}

/// What a CREATE is called by. The user is part of it: whoever learns what another calls theirs by
/// is not in their way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CreateName {
    pub(crate) user: String,
    /// The client's machine.
    pub(crate) client: [u8; 16],
    pub(crate) guid: [u8; 16],
}

impl Claim {
    fn name(&self) -> Option<CreateName> {
        Some(CreateName {
            user: self.user.clone(),
            client: self.client,
            guid: self.guid?,
        })
    }
}

/// The durable opens of one share.
#[derive(Default)]
pub(crate) struct Durables {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Those without a connection, by the persistent half of their ids.
    kept: HashMap<u64, Kept>,
    /// All that are durable, by the same.
    live: HashMap<u64, Arc<File>>,
    named: HashMap<CreateName, Arc<File>>,
    /// CREATEs that are being carried out.
    pending: HashSet<CreateName>,
    of_apps: HashMap<[u8; 16], Vec<Arc<File>>>,
    /// A thread waits for their time to be over.
    is_watched: bool,
}

/// An open without a connection.
struct Kept {
    file: Arc<File>,
    /// What it was opened in, and is ended in.
    tree: Arc<Tree>,
    until: Instant,
}

/// A CREATE under way; another by the same name is told so until this is dropped.
pub(crate) struct Pending<'a> {
    durables: &'a Durables,
    name: CreateName,
}

/// What is known of a CREATE's name.
pub(crate) enum Named<'a> {
    New(Pending<'a>),
    UnderWay,
    Done(Arc<File>),
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.durables.state.lock().pending.remove(&self.name);
    }
}

impl Durables {
    /// A file is open.
    pub(super) fn enter(&self, file: &Arc<File>) {
        let Some(claim) = &file.claim else { return };
        let mut state = self.state.lock();
        if claim.time.is_some() {
            state.live.insert(file.id.persistent, Arc::clone(file));
        }
        if let Some(name) = claim.name() {
            state.named.entry(name).or_insert_with(|| Arc::clone(file));
        }
        if let Some(app) = claim.app {
            state.of_apps.entry(app).or_default().push(Arc::clone(file));
        }
    }

    /// It is no more.
    pub(super) fn leave(&self, file: &File) {
        let Some(claim) = &file.claim else { return };
        let mut state = self.state.lock();
        state.live.remove(&file.id.persistent);
        if let Some(name) = claim.name()
            && state.named.get(&name).is_some_and(|f| f.id == file.id)
        {
            state.named.remove(&name);
        }
        if let Some(app) = claim.app
            && let Some(list) = state.of_apps.get_mut(&app)
        {
            list.retain(|other| other.id != file.id);
            if list.is_empty() {
                state.of_apps.remove(&app);
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// What is known of a CREATE of this name; if nothing, it is under way from now on.
    pub(crate) fn begin(&self, name: CreateName) -> Named<'_> {
        let mut state = self.state.lock();
        if let Some(file) = state.named.get(&name) {
            return Named::Done(Arc::clone(file));
        }
        if !state.pending.insert(name.clone()) {
            return Named::UnderWay;
        }
        Named::New(Pending {
            durables: self,
            name,
        })
    }

    /// The opens of a program's instance.
    pub(crate) fn of_app(&self, app: [u8; 16]) -> Vec<Arc<File>> {
        let state = self.state.lock();
        state.of_apps.get(&app).cloned().unwrap_or_default()
    }

    /// Keeps an open whose connection is lost, if it is durable; otherwise the caller ends it.
    pub(super) fn keep(&self, tree: &Arc<Tree>, file: &Arc<File>) -> bool {
        let Some((claim, time)) = file.claim.as_ref().and_then(|c| Some((c, c.time?))) else {
            return false;
        };

        if !holds(tree, file) {
            return false;
        }
        file.send_away();
        let mut state = self.state.lock();
        let theirs = |kept: &&Kept| {
            kept.file
                .claim
                .as_ref()
                .is_some_and(|c| c.user == claim.user)
        };
        if state.kept.values().filter(theirs).count() >= tree.limits().durable_opens {
            return false;
        }
        let kept = Kept {
            file: Arc::clone(file),
            tree: Arc::clone(tree),
            until: now() + time,
        };
        state.kept.insert(file.id.persistent, kept);
        let starts = !std::mem::replace(&mut state.is_watched, true);
        drop(state);
        self.changed.notify_all();
        if starts && !watch(tree) {
            self.state.lock().is_watched = false;
            return self.state.lock().kept.remove(&file.id.persistent).is_none();
        }
        // It may have been asked to give up its lease before it could be found here.
        holds(tree, file) || self.state.lock().kept.remove(&file.id.persistent).is_none()
    }

    /// If the client has just hung up whose open this is, waits until it is kept.
    pub(crate) fn await_kept(&self, persistent: u64) {
        let mut state = self.state.lock();
        let Some(file) = state.live.get(&persistent) else {
            return;
        };
        let link = file.breaker.as_ref().and_then(|breaker| breaker.link());
        let Some(link) = link.filter(|link| link.has_hung_up()) else {
            return;
        };
        drop(state);
        link.close();
        let end = now() + HANG_UP_MAX;
        state = self.state.lock();
        while state.live.contains_key(&persistent)
            && !state.kept.contains_key(&persistent)
            && now() < end
        {
            self.changed.wait_until(&mut state, end);
        }
    }

    /// Takes out an open without a connection, to be given back, if `check` has nothing against it.
    ///
    /// # Errors
    /// `missing` if there is none; what `check` says.
    pub(crate) fn take<E>(
        &self,
        persistent: u64,
        missing: E,
        check: impl FnOnce(&File) -> Result<(), E>,
    ) -> Result<Arc<File>, E> {
        let mut state = self.state.lock();

        let Some(kept) = state.kept.get(&persistent) else {
            return Err(missing);
        };
        check(&kept.file)?;
        match state.kept.remove(&persistent) {
            Some(kept) => Ok(kept.file),
            None => Err(missing),
        }
    }

    /// Ends those without a connection that have this oplock or lease.
    pub(super) fn end_of(&self, key: LeaseKey) {
        self.end_where(|kept| kept.file.lease == Some(key) || kept.file.oplock == Some(key));
    }

    /// Ends an open, whether it has a connection or not.
    pub(crate) fn end(&self, file: &Arc<File>) {
        self.end_where(|kept| Arc::ptr_eq(&kept.file, file));
        if let Some(tree) = file.tree.upgrade()
            && tree.files.remove(file.id).is_some()
        {
            // Nobody is left to be told.
            let _ = ending::end(&tree, file);
        }
    }

    /// Ends all those without a connection.
    pub(crate) fn end_all(&self) {
        self.end_where(|_| true);
    }

    fn end_where(&self, which: impl Fn(&Kept) -> bool) {
        let ended: Vec<Kept> = {
            let mut state = self.state.lock();
            state
                .kept
                .extract_if(|_, kept| which(kept))
                .map(|(_, kept)| kept)
                .collect()
        };
        if ended.is_empty() {
            return;
        }
        self.changed.notify_all();
        for kept in ended {
            // Nobody is left to be told.
            let _ = ending::end(&kept.tree, &kept.file);
        }
    }

    /// Ends each when its time is over, until there are none.
    fn wait_and_end(&self) {
        loop {
            let mut state = self.state.lock();
            let Some(first) = state.kept.values().map(|kept| kept.until).min() else {
                state.is_watched = false;
                return;
            };
            if now() < first {
                self.changed.wait_until(&mut state, first);
            }
            drop(state);
            let now = now();
            self.end_where(|kept| kept.until <= now);
        }
    }
}

/// Whether the open has, undisturbed, what makes it durable.
fn holds(tree: &Tree, file: &File) -> bool {
    let Some(key) = file.lease.or(file.oplock) else {
        return false;
    };
    let lease = tree.session.lease_state(key);
    lease.is_ok_and(|lease| lease.granted.has(LeaseBits::HANDLE) && !lease.breaking)
}

/// Starts the thread that ends the share's durable opens when their time is over.
fn watch(tree: &Tree) -> bool {
    let common = Arc::clone(&tree.common);
    let thread = thread::Builder::new().name("smb durable opens".to_owned());
    thread.spawn(move || common.durables.wait_and_end()).is_ok()
}

impl std::fmt::Debug for Durables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durables")
            .field("kept", &self.state.lock().kept.len())
            .finish_non_exhaustive()
    }
}
