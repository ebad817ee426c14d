//! The remote: opened when it is first needed, and left alone for a while when it could not
//! be reached. Nothing here holds the lock of the volume while the remote works.

use crate::remote::link::Path;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use volary_core::{Ctx, Fs, Kind, Name, NodeId, OpenId, Remote, Result, Time};

/// For how long a remote that could not be reached is not asked again, in seconds.
const HOLD_OFF: i64 = 5;
/// Nodes of the remote that are remembered.
const NODES_MAX: usize = 65_536;

/// A node of the remote that is open there.
#[derive(Clone, Copy)]
pub(crate) struct RemoteOpen<'a> {
    pub(crate) fs: &'a Fs,
    pub(crate) node: NodeId,
    pub(crate) open: OpenId,
}

/// The way to the remote.
pub(crate) struct Connection {
    remote: Option<Remote>,
    open: Mutex<Option<Fs>>,
    /// When it could not be reached.
    lost: Mutex<Option<Time>>,
    /// The nodes of the remote that nodes here stand for, as far as they are known.
    nodes: Mutex<BTreeMap<u64, NodeId>>,
}

impl Connection {
    /// # Errors
    /// As opening the remote, but for `Io`.
    pub(crate) fn new(remote: Option<Remote>) -> Result<Self> {
        let open = match remote.as_ref().map(Remote::open).transpose() {
            Err(e) if e == Kind::Io => None,
            opened => opened?,
        };
        Ok(Self {
            remote,
            open: Mutex::new(open),
            lost: Mutex::new(None),
            nodes: Mutex::new(BTreeMap::new()),
        })
    }

    /// Returns the remote; none if there is none or it cannot be reached.
    ///
    /// # Errors
    /// What else keeps it from being opened.
    pub(crate) fn fs(&self, now: Time) -> Result<Option<Fs>> {
        let lost = *self.lost.lock();
        if lost.is_some_and(|lost| (now.secs - lost.secs).abs() < HOLD_OFF) {
            return Ok(None);
        }
        let Some(remote) = &self.remote else {
            return Ok(None);
        };
        let mut open = self.open.lock();
        if let Some(fs) = &*open {
            return Ok(Some(fs.clone()));
        }
        match remote.open() {
            Ok(fs) => {
                *open = Some(fs.clone());
                Ok(Some(fs))
            }
            Err(e) if e == Kind::Io => {
                self.note_lost(now);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Returns whether there is a remote to be asked.
    pub(crate) fn is_named(&self) -> bool {
        self.remote.is_some()
    }

    /// Notes that the remote could not be reached.
    pub(crate) fn note_lost(&self, now: Time) {
        *self.lost.lock() = Some(now);
    }

    /// Ends the use of the remote.
    ///
    /// # Errors
    /// As [`detach`](volary_core::FileSystem::detach).
    pub(crate) fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        match self.open.lock().take() {
            Some(fs) => fs.detach(cx),
            None => Ok(()),
        }
    }

    /// Notes which node of the remote a node stands for.
    pub(crate) fn know(&self, uid: u64, node: NodeId) {
        let mut nodes = self.nodes.lock();
        if nodes.len() >= NODES_MAX {
            nodes.clear();
        }
        nodes.insert(uid, node);
    }

    /// Returns the remote's node that `uid` stands for; `path` says the way to it.
    fn node(
        &self,
        cx: &Ctx<'_>,
        fs: &Fs,
        uid: u64,
        path: &dyn Fn() -> Result<Path>,
    ) -> Result<NodeId> {
        if let Some(node) = self.nodes.lock().get(&uid) {
            return Ok(*node);
        }
        let path = path()?;
        let mut at = walk(cx, fs, &path.link)?;
        self.know(path.uid, at);
        for (uid, name) in &path.below {
            at = fs.lookup(cx, at, Name::new(name)?)?.node;
            self.know(*uid, at);
        }
        Ok(at)
    }

    /// Asks the remote something of a node; none if it cannot be reached. A node that it
    /// does not know any more is looked for anew.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `Stale` if it has no such node; what `ask` answers.
    pub(crate) fn ask<T>(
        &self,
        cx: &Ctx<'_>,
        uid: u64,
        path: &dyn Fn() -> Result<Path>,
        mut ask: impl FnMut(&Fs, NodeId) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(fs) = self.fs(cx.now)? else {
            return Ok(None);
        };
        let mut once = |this: &Self| ask(&fs, this.node(cx, &fs, uid, path)?);
        let mut answer = once(self);
        if matches!(&answer, Err(e) if *e == Kind::Stale) {
            self.nodes.lock().clear();
            answer = once(self);
        }
        match answer {
            Err(e) if e == Kind::Io => {
                self.note_lost(cx.now);
                Ok(None)
            }
            answer => answer.map(Some),
        }
    }
}

/// Returns the node at a path from the root; symlinks are not followed.
///
/// # Errors
/// `NotFound`, `NotDir`; what the volume answers.
pub(crate) fn walk(cx: &Ctx<'_>, fs: &Fs, path: &[u8]) -> Result<NodeId> {
    let parts = path.split(|b| *b == b'/').filter(|part| !part.is_empty());
    parts.into_iter().try_fold(fs.root(), |at, part| {
        Ok(fs.lookup(cx, at, Name::new(part)?)?.node)
    })
}
