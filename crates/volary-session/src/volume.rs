//! [`Volume`]: the state that the sessions of one attached file system share.

use crate::caller::NEVER;
use crate::options::{Commit, VolumeOptions};
use crate::shared::events::{ClientId, Event, EventSink, Hub, News, Subscription};
use crate::shared::locks::LockTable;
use crate::shared::opens::OpenTable;
use crate::shared::uses::Uses;
use crate::timer::{Timed, Timer};
use parking_lot::{Mutex, RwLock};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;
use volary_core::{Caps, Change, ChangeSink, Cred, Ctx, Fs, Kind, Result, Time, Watch};

/// One attached file system, with the opens, locks and events that its users
/// share.
///
/// Unless [`VolumeOptions::commit`] is [`Commit::WhenAsked`], a volume that can be written has a
/// thread that syncs it. A sync begins within the commit time after an acknowledged change, and
/// after at most 256 MiB of writes. A failed sync is tried again after the same time, unless the
/// volume takes no more changes. The thread ends with [`detach`](Self::detach) or when the volume
/// is dropped; these wait for it, five seconds at most if its device is stuck.
///
/// Dropping it without [`detach`](Self::detach) leaves the volume as a power cut would.
pub struct Volume {
    pub(crate) fs: Fs,
    pub(crate) caps: Caps,
    pub(crate) trust: bool,
    pub(crate) opens: OpenTable,
    /// Byte-range locks, by lock owner.
    pub(crate) ranges: LockTable,
    /// Whole-file locks, by open.
    pub(crate) wholes: LockTable,
    pub(crate) hub: Arc<Hub>,
    /// Grows when a node is given a set-uid or set-gid bit or a capability; see
    /// `Session::drop_privileges`.
    pub(crate) set_id_epoch: AtomicU64,
    /// Makes "set if absent" and "set if present" of extended attributes one step.
    pub(crate) xattr_sets: Mutex<()>,
    /// Write-locked by callers that may remove only their own entries from a sticky directory, over
    /// the check and the removal of an entry. Read-locked by callers that add entries to one.
    pub(crate) sticky: RwLock<()>,
    /// Share modes and places of opens, and entries that are removed with their last open.
    pub(crate) uses: Arc<Uses>,
    pub(crate) lease_timeout: Duration,
    /// Write-locked to remove or move an entry while any open has a place, and to give an open a
    /// place. Read-locked to remove or move an entry while no open has one.
    pub(crate) moving: RwLock<()>,
    name: String,
    clock: fn() -> Time,
    clients: AtomicU64,
    detached: AtomicBool,
    timer: Option<Timer>,
    _watch: Option<Watch>,
}

/// Which changes a volume's sessions are told of; see [`Volume::hearing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// All changes, before they are answered: every change comes through a session.
    All,
    /// Also changes made elsewhere, after they have happened: the driver reports them.
    Told,
    /// No changes made elsewhere.
    Nothing,
}

/// Passes on the driver's reports of changes made elsewhere.
struct FromDriver {
    hub: Weak<Hub>,
    uses: Weak<Uses>,
}

impl ChangeSink for FromDriver {
    fn changed(&self, change: Change) {
        let (Some(hub), Some(uses)) = (self.hub.upgrade(), self.uses.upgrade()) else {
            return;
        };
        uses.changed_elsewhere(change);
        let news = match change {
            Change::Data(node) => News::Data(node),
            Change::Attr(node) => News::Attr(node),
            Change::Entries(dir) => News::Entries(dir),
            Change::Gone(node) => News::Gone(node),
            Change::Everything => News::Everything,
        };
        hub.tell(&Event { origin: None, news });
    }
}

/// Starts the thread that commits, if the options ask for one.
fn timed(fs: Fs, options: &VolumeOptions) -> (Fs, Option<Timer>) {
    let within = match options.commit {
        Commit::WhenAsked => None,
        Commit::AsVolume => Some(fs.commit_time()),
        Commit::Within(time) => Some(time),
    };
    let Some(within) = within.filter(|_| fs.caps().has(Caps::WRITE)) else {
        return (fs, None);
    };
    let how = Timed {
        name: options.name.clone(),
        within,
        clock: options.clock,
        failed: options.commit_failed,
    };
    let (fs, timer) = Timer::start(fs, how);
    (fs, Some(timer))
}

impl Volume {
    /// Takes over an attached file system.
    pub fn new(fs: Fs, options: VolumeOptions) -> Arc<Self> {
        let caps = fs.caps();
        let hub = Arc::new(Hub::default());
        let uses = Arc::new(Uses::new(caps, &options));
        let from_driver = FromDriver {
            hub: Arc::downgrade(&hub),
            uses: Arc::downgrade(&uses),
        };
        let watch = if caps.has(Caps::WATCH) {
            fs.watch(Arc::new(from_driver)).ok()
        } else {
            None
        };
        let (fs, timer) = timed(fs, &options);
        Arc::new(Self {
            _watch: watch,
            timer,
            fs,
            caps,
            trust: options.trust,
            opens: OpenTable::new(options.limits.opens),
            ranges: LockTable::new(&options.limits),
            wholes: LockTable::new(&options.limits),
            hub,
            set_id_epoch: AtomicU64::new(1),
            xattr_sets: Mutex::new(()),
            sticky: RwLock::new(()),
            uses,
            lease_timeout: options.lease_timeout,
            moving: RwLock::new(()),
            name: options.name,
            clock: options.clock,
            clients: AtomicU64::new(1),
            detached: AtomicBool::new(false),
        })
    }

    /// Returns a new client id, unique on this volume. A server gives it to its sessions
    /// ([`Session::with_client`](crate::Session::with_client)). By it the server knows its own
    /// changes among the events, and its lock owners are kept apart from others'.
    pub fn client(&self) -> ClientId {
        ClientId(self.clients.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the file system.
    pub fn fs(&self) -> &Fs {
        &self.fs
    }

    /// Returns what the volume can do.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Returns whether [subscribers](Self::subscribe) hear of all changes.
    pub fn hearing(&self) -> Hearing {
        let elsewhere = self.caps.has(Caps::SHARED_LOCKS)
            || self.caps.has(Caps::CHECKS_ACCESS)
            || self.caps.has(Caps::SHARED);
        match (elsewhere, self.caps.has(Caps::WATCH)) {
            (_, true) => Hearing::Told,
            (true, false) => Hearing::Nothing,
            (false, false) => Hearing::All,
        }
    }

    /// Returns the volume's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the time, by the volume's clock.
    pub fn now(&self) -> Time {
        (self.clock)()
    }

    pub(crate) fn clock(&self) -> fn() -> Time {
        self.clock
    }

    /// Returns whether callers' rights are checked here, by the attributes of nodes.
    pub(crate) fn checks_rights(&self) -> bool {
        !self.trust && !self.caps.has(Caps::CHECKS_ACCESS)
    }

    /// Returns how many opens the volume has.
    pub fn open_count(&self) -> usize {
        self.opens.len()
    }

    /// Tells `sink` of each change from now on, until the subscription is dropped; see
    /// [`EventSink`] for what a sink may do.
    pub fn subscribe(&self, sink: Arc<dyn EventSink>) -> Subscription {
        self.hub.subscribe(None, sink)
    }

    /// Subscribes to changes, except those by `client`'s sessions. If it is the only subscriber,
    /// the client's own changes cost no events.
    pub fn subscribe_to_others(&self, client: ClientId, sink: Arc<dyn EventSink>) -> Subscription {
        self.hub.subscribe(Some(client), sink)
    }

    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// `Stale` after [`detach`](Self::detach); `Io`, `NoSpace`.
    pub fn sync(&self) -> Result<()> {
        self.as_root(|cx| self.fs.sync(cx))
    }

    /// Ends the attachment. Callers that wait for locks are answered `Stale`, and all opens are
    /// ended, with the removal of entries marked for it. All changes are made durable, and the
    /// volume is marked as clean. Later calls answer `Stale`; a second detach does nothing. To
    /// refuse while there are opens, check [`open_count`](Self::open_count) first.
    ///
    /// # Errors
    /// The first error of closing the opens or of detaching; the volume is
    /// detached all the same.
    pub fn detach(&self) -> Result<()> {
        if self.detached.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        if let Some(timer) = &self.timer {
            timer.stop();
        }
        self.ranges.shut();
        self.wholes.shut();
        self.uses.shut();
        let mut first = Ok(());
        for (_, open) in self.opens.take_all() {
            let removal = self.uses.leave(open.node, open.mark, open.wants());
            if let Some(below) = open.any() {
                first = first.and(self.as_root(|cx| self.fs.close(cx, below)));
            }
            if let Some(removal) = removal {
                first = first.and(self.remove_at_last(&removal));
            }
        }
        let detached = self.as_root(|cx| self.fs.detach(cx));
        first.and(detached)
    }

    /// Notes that an open for writing has ended: its delayed writes may not be durable yet.
    pub(crate) fn note_writer_gone(&self) {
        if let Some(timer) = &self.timer {
            timer.note();
        }
    }

    /// Returns how many callers wait for locks and leases.
    pub fn waiting_count(&self) -> usize {
        let locks = self.ranges.waiting_count() + self.wholes.waiting_count();
        locks + self.uses.waiters.count()
    }

    /// Makes all waiting callers check at once whether they were cancelled. Call it after setting a
    /// [`Cancel`](volary_core::Cancel); otherwise they notice within 50 ms.
    pub fn wake_waiting(&self) {
        self.ranges.wake();
        self.wholes.wake();
        self.uses.wake();
    }

    /// Checks that the volume is still attached: `Stale` if not.
    pub(crate) fn check_attached(&self) -> Result<()> {
        if self.detached.load(Ordering::Relaxed) {
            return Err(Kind::Stale.into());
        }
        Ok(())
    }

    fn as_root<T>(&self, call: impl FnOnce(&Ctx<'_>) -> Result<T>) -> Result<T> {
        self.on_behalf_of(&Cred::root(), call)
    }

    /// Calls `call` with these credentials, and without a way to cancel it: it must be done in any
    /// case.
    pub(crate) fn on_behalf_of<T>(
        &self,
        cred: &Cred,
        call: impl FnOnce(&Ctx<'_>) -> Result<T>,
    ) -> Result<T> {
        call(&Ctx {
            cred,
            now: self.now(),
            cancel: &NEVER,
        })
    }
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("name", &self.name)
            .field("caps", &self.caps)
            .field("opens", &self.open_count())
            .finish_non_exhaustive()
    }
}
