//! [`Session`]: one caller on one volume.

use crate::caller::NEVER;
use crate::rules;
use crate::shared::events::{ClientId, Event, News};
use crate::shared::leases::LeaseKey;
use crate::volume::Volume;
use std::fmt;
use std::sync::Arc;
use volary_core::{
    Access, Attr, Cancel, Caps, Cred, Ctx, Error, FileKind, Fs, Kind, Name, NodeId, Prefetch,
    QuotaOf, QuotaReport, Result, SetQuota, StatFs, Time, permits,
};

/// One caller's credentials on one volume, and all operations that they can call there.
///
/// Names are bytes and are checked here: an empty one answers `NotFound`, one with `/` or NUL
/// `Invalid`, one longer than [`Caps::name_max`] `NameTooLong`. Each operation says which access it
/// needs; without it, it answers `Access`. Errors are listed in the order in which they are
/// checked.
///
/// Some errors are not repeated: any operation may answer `Stale` for a node or an open that is
/// gone, `Io`, `Corrupt`, `Interrupted`. Any that changes something may answer `ReadOnly` (first of
/// all on a volume without [`Caps::WRITE`]), `NoSpace`, `Quota`.
///
/// An [`OpenId`](volary_core::OpenId) is valid in every session of the volume: any caller that has
/// it may use it for what it was opened for. A server that hands opens to untrusted clients must
/// keep them apart itself.
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) volume: Arc<Volume>,
    pub(crate) cred: Cred,
    pub(crate) client: Option<ClientId>,
    cancel: Option<Arc<Cancel>>,
    wait_hook: Option<WaitHook>,
    pub(crate) parent_key: Option<LeaseKey>,
    pub(crate) umask: u32,
    pub(crate) claims: bool,
    /// Access is not checked here, because of the volume's options or of this caller.
    pub(crate) trust: bool,
}

/// A function that is called before a wait.
#[derive(Clone)]
struct WaitHook(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for WaitHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitHook")
    }
}

impl Volume {
    /// Returns a session for one caller. Cheap: a server may make one for each request.
    pub fn session(self: &Arc<Self>, cred: Cred) -> Session {
        Session::new(Arc::clone(self), cred)
    }

    /// Returns a session whose caller's access is not checked here, as if the volume's options said
    /// so ([`VolumeOptions::trust`](crate::VolumeOptions::trust)). For the program that owns the
    /// volume, while others use it through servers.
    pub fn trusted_session(self: &Arc<Self>, cred: Cred) -> Session {
        let mut session = self.session(cred);
        session.trust = true;
        session
    }
}

impl Session {
    fn new(volume: Arc<Volume>, cred: Cred) -> Self {
        let cred = volume.fs.caller(&cred).unwrap_or(cred);
        Self {
            trust: volume.trust,
            volume,
            cred,
            client: None,
            cancel: None,
            wait_hook: None,
            parent_key: None,
            umask: 0,
            claims: false,
        }
    }

    /// Makes the session one of `client`'s: its changes carry that origin, and its lock owners
    /// belong to that client.
    #[must_use]
    pub fn with_client(mut self, client: ClientId) -> Self {
        self.client = Some(client);
        self
    }

    /// Makes long operations of the session end early once `cancel` is set.
    #[must_use]
    pub fn with_cancel(mut self, cancel: Arc<Cancel>) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Makes operations of the session end early, with `Interrupted`, once the volume's clock
    /// reaches `at` or the session's cancel is set.
    #[must_use]
    pub fn with_deadline(mut self, at: Time) -> Self {
        let clock = self.volume.clock();
        self.cancel = Some(Arc::new(Cancel::until(at, clock, self.cancel)));
        self
    }

    /// Makes the session call `hook` each time before it waits for a lock or for the end of
    /// another's lease. It is called with no lock held, and must not call the volume.
    #[must_use]
    pub fn with_wait_hook(mut self, hook: Arc<dyn Fn() + Send + Sync>) -> Self {
        self.wait_hook = Some(WaitHook(hook));
        self
    }

    /// Spares the leases under this key on directories whose entries the session changes by
    /// name.
    #[must_use]
    pub fn with_parent_key(mut self, key: LeaseKey) -> Self {
        self.parent_key = Some(key);
        self
    }

    /// Takes these permission bits from new nodes, unless their directory has an access list
    /// for them.
    #[must_use]
    pub fn with_umask(mut self, umask: u32) -> Self {
        self.umask = umask & 0o777;
        self
    }

    /// Returns the volume.
    pub fn volume(&self) -> &Arc<Volume> {
        &self.volume
    }

    /// Returns the caller.
    pub fn cred(&self) -> &Cred {
        &self.cred
    }

    /// Returns what the volume can do.
    pub fn caps(&self) -> Caps {
        self.volume.caps
    }

    /// Returns the root directory.
    pub fn root(&self) -> NodeId {
        self.volume.fs.root()
    }

    /// Returns how full the volume is.
    ///
    /// # Errors
    /// None of its own.
    pub fn statfs(&self) -> Result<StatFs> {
        self.fs().statfs(&self.ctx())
    }

    /// Returns the quota of a user or group: the first one with a number of at least `from` that
    /// has any usage or limits.
    ///
    /// # Errors
    /// `NotPermitted` for callers other than root; `Unsupported`, `NotFound` of a volume without
    /// quotas.
    pub fn quota(&self, of: QuotaOf, from: u32) -> Result<QuotaReport> {
        self.check_root()?;
        self.fs().quota(&self.ctx(), of, from)
    }

    /// Changes quotas.
    ///
    /// # Errors
    /// `NotPermitted` for callers other than root; `ReadOnly`; `Unsupported`; `NotFound`,
    /// `Invalid`, `TooBig` for limits that cannot be set.
    pub fn set_quota(&self, of: QuotaOf, set: &SetQuota) -> Result<()> {
        self.check_root()?;
        self.fs().set_quota(&self.ctx(), of, set)
    }

    fn check_root(&self) -> Result<()> {
        match self.cred.is_root() {
            true => Ok(()),
            false => Err(Kind::NotPermitted.into()),
        }
    }

    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// None of its own.
    pub fn sync(&self) -> Result<()> {
        self.fs().sync(&self.ctx())
    }

    /// Hints that the caller has dropped `lookups` of its references to `node`.
    pub fn forget(&self, node: NodeId, lookups: u64) {
        self.fs().forget(node, lookups);
    }

    /// Hints that the caller will soon look at `what` of these nodes; see
    /// [`FileSystem::prefetch`](volary_core::FileSystem::prefetch).
    pub fn prefetch(&self, nodes: &[NodeId], what: Prefetch) -> bool {
        self.fs().prefetch(&self.ctx(), nodes, what)
    }

    pub(crate) fn fs(&self) -> &Fs {
        &self.volume.fs
    }

    pub(crate) fn ctx(&self) -> Ctx<'_> {
        Ctx {
            cred: &self.cred,
            now: self.volume.now(),
            cancel: self.cancel.as_deref().unwrap_or(&NEVER),
        }
    }

    /// Tells the server that a wait begins.
    pub(crate) fn note_wait(&self) {
        if let Some(WaitHook(hook)) = &self.wait_hook {
            hook();
        }
    }

    /// Tells the subscribers of a change, if there are any.
    pub(crate) fn tell(&self, news: impl FnOnce() -> News) {
        let origin = self.client;
        if self.volume.hub.is_heard(origin) {
            let news = news();
            self.volume.hub.tell(&Event { origin, news });
        }
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.volume.caps.has(Caps::WRITE) {
            return Ok(());
        }
        Err(match self.fs().why_read_only() {
            Some(why) => {
                let words = format!("{}: {why}", Kind::ReadOnly.words());
                Error::note(Kind::ReadOnly, words)
            }
            None => Kind::ReadOnly.into(),
        })
    }

    /// Returns whether the caller's rights come from attributes and are checked here.
    pub(crate) fn checks_rights(&self) -> bool {
        !self.trust && self.volume.checks_rights()
    }

    /// Returns whether the caller has all of `want` on the node with these attributes.
    pub(crate) fn may(&self, cx: &Ctx<'_>, attr: &Attr, want: Access) -> Result<bool> {
        if self.trust {
            return Ok(true);
        }
        if self.volume.caps.has(Caps::CHECKS_ACCESS) {
            return Ok(self.fs().access(cx, attr.node, want)?.has(want));
        }
        permits(&**self.fs(), cx, attr, want)
    }

    /// # Errors
    /// `Access`.
    pub(crate) fn need(&self, cx: &Ctx<'_>, attr: &Attr, want: Access) -> Result<()> {
        if self.may(cx, attr, want)? {
            Ok(())
        } else {
            Err(Kind::Access.into())
        }
    }

    /// Returns the attributes of a directory in which the caller may look up names.
    ///
    /// # Errors
    /// `NotDir`, `Access`.
    pub(crate) fn searchable(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Attr> {
        let attr = self.fs().getattr(cx, dir)?;
        if attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        self.need(cx, &attr, Access::EXEC)?;
        Ok(attr)
    }

    /// Checks a name, which must be that of an entry: `.` and `..` answer `dots`.
    ///
    /// # Errors
    /// `NotFound`, `dots`, `Invalid`, `NameTooLong`.
    pub(crate) fn name<'a>(&self, name: &'a [u8], dots: Kind) -> Result<Name<'a>> {
        rules::checked_name(name, dots, self.volume.caps.name_max)
    }
}
