//! Durable opens (MS-SMB2 3.3.1.10). If a client asks for it, an open with a batch oplock, or a
//! lease with H, outlives its connection for a while. [`Durables`] stores those of one share.
//!
//! An open is kept only while nobody conflicts with it: whatever would break its oplock or lease
//! closes it at once. Only the user who opened it can reconnect it. It ends when its time is over,
//! with the server, and when the volume is detached. [`Limits::durable_opens`] bounds their number
//! for a user.
//!
//! [`Limits::durable_opens`]: crate::Limits::durable_opens

use super::claim::CreateName;
use super::table::{File, Home};
use crate::clock::now;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for a connection to end after the client has closed it.
const HANG_UP_MAX: Duration = Duration::from_secs(10);

/// The durable opens of one share.
#[derive(Default)]
pub(crate) struct Durables {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Disconnected opens, by the persistent half of their ids.
    kept: HashMap<u64, Kept>,
    /// All durable opens, by the persistent half of their ids.
    live: HashMap<u64, Arc<File>>,
    named: HashMap<CreateName, Arc<File>>,
    /// CREATEs in progress.
    pending: HashSet<CreateName>,
    of_apps: HashMap<[u8; 16], Vec<Arc<File>>>,
    /// Whether a thread waits for their time to be over.
    is_watched: bool,
}

/// A disconnected open.
pub(super) struct Kept {
    pub(super) file: Arc<File>,
    /// The tree in which it was opened, and will be closed.
    pub(super) home: Arc<dyn Home>,
    pub(super) until: Instant,
}

/// A CREATE in progress. Until this is dropped, another one with the same name is told so.
pub(crate) struct Pending<'a> {
    durables: &'a Durables,
    name: CreateName,
}

/// The state of a CREATE's name.
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
    /// Adds an open file.
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

    /// Removes a file that is closed.
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

    /// Returns the state of a CREATE's name. If it is new, the CREATE is in progress from now on.
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

    /// Returns the opens of a program instance.
    pub(crate) fn of_app(&self, app: [u8; 16]) -> Vec<Arc<File>> {
        let state = self.state.lock();
        state.of_apps.get(&app).cloned().unwrap_or_default()
    }

    /// Keeps an open that lost its connection until `until`, for its tree. Returns `None`, and
    /// keeps nothing, if its user has `max`. Otherwise, returns whether the caller must start a
    /// thread that calls [`wait`](Self::wait).
    pub(super) fn keep(
        &self,
        home: Arc<dyn Home>,
        file: &Arc<File>,
        until: Instant,
        max: usize,
    ) -> Option<bool> {
        let mut state = self.state.lock();
        let all = state.kept.values();
        let theirs = all.filter(|kept| user_of(&kept.file) == user_of(file));
        if theirs.count() >= max {
            return None;
        }
        let kept = Kept {
            file: Arc::clone(file),
            home,
            until,
        };
        state.kept.insert(file.id.persistent, kept);
        let starts = !std::mem::replace(&mut state.is_watched, true);
        drop(state);
        self.changed.notify_all();
        Some(starts)
    }

    /// Stops keeping an open. Returns false if it was not kept.
    pub(super) fn let_go(&self, file: &File) -> bool {
        self.state.lock().kept.remove(&file.id.persistent).is_some()
    }

    /// Notes that no thread waits for their time to be over.
    pub(super) fn is_left(&self) {
        self.state.lock().is_watched = false;
    }

    /// If the open's client has just closed its connection, waits until the open is kept.
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

    /// Takes a disconnected open, to reconnect it, if `check` accepts it.
    ///
    /// # Errors
    /// `missing` if there is none; those of `check`.
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

    /// Takes the disconnected opens for which `which` is true.
    pub(super) fn extract(&self, which: impl Fn(&Kept) -> bool) -> Vec<Kept> {
        let mut state = self.state.lock();
        let kept = state.kept.extract_if(|_, kept| which(kept));
        let out: Vec<Kept> = kept.map(|(_, kept)| kept).collect();
        drop(state);
        if !out.is_empty() {
            self.changed.notify_all();
        }
        out
    }

    /// Waits until the first one's time may be over. Returns false if there are none, and no thread
    /// waits any more.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        let Some(first) = state.kept.values().map(|kept| kept.until).min() else {
            state.is_watched = false;
            return false;
        };
        if now() < first {
            self.changed.wait_until(&mut state, first);
        }
        true
    }
}

fn user_of(file: &File) -> Option<&str> {
    file.claim.as_ref().map(|claim| claim.user.as_str())
}

impl std::fmt::Debug for Durables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Durables")
            .field("kept", &self.state.lock().kept.len())
            .finish_non_exhaustive()
    }
}
