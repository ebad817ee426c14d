//! [`Volume`]: what the sessions of one attached file system share.

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
/// Unless [`VolumeOptions::commit`] is [`Commit::WhenAsked`], a volume that can be
/// written has a thread that syncs it: what was acknowledged gets no older than the commit
/// time before its sync begins, and no more than 256 MiB are written between two. A
/// sync that fails is tried again when the time has passed once more, unless the volume
/// takes no more changes. The thread ends with [`detach`](Self::detach) or when the volume
/// is dropped; these wait for it, five seconds at most if its device is stuck.
///
/// Dropped without [`detach`](Self::detach), it leaves the volume as a power
/// cut would.
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
    /// Grows when a node is given a set-uid or set-gid bit; see `Session::drop_set_id`.
    pub(crate) set_id_epoch: AtomicU64,
    /// Makes "set if absent" and "set if present" of extended attributes one step.
    pub(crate) xattr_sets: Mutex<()>,
    /// Held by those who may take only their own entries from a sticky
    /// directory, over the look at an entry and its removal; shared by those who
    /// put entries into one.
    pub(crate) sticky: RwLock<()>,
    /// Share modes and places of opens, and what goes with its last open.
    pub(crate) uses: Arc<Uses>,
    pub(crate) lease_timeout: Duration,
    /// Held by those who take away or move an entry while opens have places,
    /// and while an open is given one; shared by the former while none has.
    pub(crate) moving: RwLock<()>,
    name: String,
    clock: fn() -> Time,
    clients: AtomicU64,
    detached: AtomicBool,
    timer: Option<Timer>,
    _watch: Option<Watch>,
}

/// What a volume's sessions hear of changes; see [`Volume::hearing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// All of them, before they are answered: every change comes through a session.
    All,
    /// Those made elsewhere as well, when they have happened: the driver tells of them.
    Told,
    /// Nothing of those made elsewhere.
    Nothing,
}

/// Passes on what the driver tells of changes made elsewhere.
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

/// Starts the thread that commits, if there is to be one.
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
    /// Takes charge of an attached file system.
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

    /// Returns what the volume is called.
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

    /// Returns whether there are callers whose rights are checked by the attributes of nodes.
    pub(crate) fn checks_rights(&self) -> bool {
        !self.trust && !self.caps.has(Caps::CHECKS_ACCESS)
    }

    /// Returns how many opens there are.
    pub fn open_count(&self) -> usize {
        self.opens.len()
    }

    /// Tells `sink` of each change from now on, until the subscription is
    /// dropped; see [`EventSink`] for what a sink may do.
    pub fn subscribe(&self, sink: Arc<dyn EventSink>) -> Subscription {
        self.hub.subscribe(None, sink)
    }

    /// Subscribes to changes, but those that `client`'s sessions make: alone, it then does not
    /// pay for events that nobody wants.
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

    /// Ends the attachment: those who wait for locks are sent away with
    /// `Stale`, all opens are ended (and entries that go with them removed), all
    /// changes made durable, and the volume marked as cleanly left. Later calls answer `Stale`; a second detach does
    /// nothing. Who would rather refuse while there are opens asks
    /// [`open_count`](Self::open_count) first.
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

    /// Notes that an open of a writer's has ended: what it left may not be durable yet.
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

    /// Looks again, at once, whether those who wait still want to:
    /// for the one who has just set a [`Cancel`](volary_core::Cancel). Without
    /// it they see it within 50 ms.
    pub fn wake_waiting(&self) {
        self.ranges.wake();
        self.wholes.wake();
        self.uses.wake();
    }

    /// Answers `Stale` once the volume is detached.
    pub(crate) fn check_attached(&self) -> Result<()> {
        if self.detached.load(Ordering::Relaxed) {
            return Err(Kind::Stale.into());
        }
        Ok(())
    }

    fn as_root<T>(&self, call: impl FnOnce(&Ctx<'_>) -> Result<T>) -> Result<T> {
        self.on_behalf_of(&Cred::root(), call)
    }

    /// For what has to be done whoever has lost interest.
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
