//! A volume that keeps files of a remote: what it asks of that, and what it notes.
//!
//! What is the volume's own goes to [`CedarFs`]. Of nodes of the remote, names and
//! attributes are asked of the remote, and noted; the content of a file is fetched whole
//! when it is opened and is not here, or is of what the file was. When the remote cannot be
//! reached, what was noted is given, and content that is here. Nothing of the remote is
//! changed, and neither are its nodes here.
//!
//! # Locks
//! A file's turn (one fetch of a file at a time) is held over calls of the remote; the
//! volume's lock, the tables of `connection` and of files that are read through are leaves.

use crate::attached::fs::CedarFs;
use crate::change::nodes::{node_id, uid_of};
use crate::commit::core::Takes;
use crate::name_table::entry::Head;
use crate::remote::cache::FarNodes;
use crate::remote::connection::{Connection, RemoteOpen, walk};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{
    Caps, Cookie, Ctx, DirBuf, Entry, Error, FileSystem, Fs, Kind, Mode, Name, NodeId, OpenId,
    Remote, Result, escape,
};

/// Entries of a listing of the remote that are asked for together, and bytes of their names.
const ENTRIES: usize = 1024;
const NAMES: usize = 64 << 10;

/// A volume that keeps files of a remote, as a file system.
pub(crate) struct CachedFs {
    pub(crate) local: CedarFs,
    pub(crate) caps: Caps,
    /// What the remote is called.
    remote: String,
    pub(crate) connection: Connection,
    /// Files that are being fetched.
    pub(crate) turns: Mutex<BTreeSet<u64>>,
    pub(crate) turn_ended: Condvar,
    /// Opens of files that have no room here: they are read from the remote.
    pub(crate) through: Mutex<BTreeMap<OpenId, (Fs, OpenId)>>,
}

pub(crate) fn not_ours() -> Error {
    let words = "a file of the remote: it is changed there";
    Error::note(Kind::ReadOnly, words)
}

impl CachedFs {
    /// Returns a volume, and the remote if there is one to be asked. It is opened at once, so that
    /// a name that makes no sense is told.
    ///
    /// # Errors
    /// As opening the remote, but for `Io`.
    pub(crate) fn new(local: CedarFs, remote: Option<Remote>) -> Result<Self> {
        let can_note = local.state()?.files.core.takes != Takes::Nothing;
        let has_remote = can_note && remote.is_some();
        let connection = Connection::new(remote.filter(|_| can_note))?;
        let mut caps = local.caps();
        let root = node_id(crate::name_table::entry::ROOT_UID)?;
        let is_cache = FarNodes::of(&mut local.state()?.files)
            .far(root)
            .is_ok_and(|far| far.is_some());
        if is_cache {
            caps = caps.without(Caps::WRITE);
        }
        if has_remote {
            caps = caps.with(Caps::SHARED);
        }
        let name = local.state()?.files.core.layout.remote.clone();
        Ok(Self {
            local,
            caps,
            remote: name,
            connection,
            turns: Mutex::new(BTreeSet::new()),
            turn_ended: Condvar::new(),
            through: Mutex::new(BTreeMap::new()),
        })
    }

    /// Returns what is known of a node, if it is one of the remote.
    pub(crate) fn far(&self, node: NodeId) -> Result<Option<Head>> {
        FarNodes::of(&mut self.local.state()?.files).far(node)
    }

    /// Returns the error for content that is not here while the remote is not to be asked.
    pub(crate) fn not_here(&self) -> Error {
        let words = match self.connection.is_named() {
            true => "it is not here, and the remote cannot be reached".to_owned(),
            false => {
                let remote = escape(self.remote.as_bytes());
                format!("it is not here; -o remote={remote} reaches it")
            }
        };
        Error::note(Kind::Io, words)
    }

    /// Checks that all names of a remote's directory were seen at some time.
    ///
    /// # Errors
    /// `Io` if it was never listed, while the remote is not to be asked.
    pub(crate) fn must_be_listed(&self, dir: NodeId) -> Result<()> {
        let far = self.far(dir)?.and_then(|head| head.far);
        match far.is_some_and(|far| far.whole) {
            true => Ok(()),
            false => Err(self.not_here()),
        }
    }

    /// # Errors
    /// `ReadOnly` for a node of the remote.
    pub(crate) fn must_be_own(&self, node: NodeId) -> Result<()> {
        match self.far(node)? {
            None => Ok(()),
            Some(_) => Err(not_ours()),
        }
    }

    /// Asks the remote something of a node; none if it cannot be reached, or if what it says
    /// cannot be noted.
    pub(crate) fn ask<T>(
        &self,
        cx: &Ctx<'_>,
        uid: u64,
        ask: impl FnMut(&Fs, NodeId) -> Result<T>,
    ) -> Result<Option<T>> {
        if self.local.state()?.files.core.writable().is_err() {
            return Ok(None);
        }
        let path = || FarNodes::of(&mut self.local.state()?.files).far_path(uid);
        self.connection.ask(cx, uid, &path, ask)
    }

    /// Returns what the remote says of a node, which is noted; if it cannot be reached, or has lost
    /// what a link leads to, what it said last.
    ///
    /// # Errors
    /// `Stale` if it has no such node any more.
    pub(crate) fn look(&self, cx: &Ctx<'_>, head: Head) -> Result<Head> {
        match self.ask(cx, head.uid, |fs, node| fs.getattr(cx, node)) {
            Ok(Some(far)) if far.kind == head.kind => {
                FarNodes::of(&mut self.local.to_change()?.files).note_far(cx, head.uid, &far)
            }
            Ok(None) => Ok(head),
            Ok(Some(_)) => lost(head),
            Err(e) if is_gone(&e) => lost(head),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn entry(&self, head: &Head) -> Result<Entry> {
        self.local.state()?.attrs().entry(head)
    }

    // ---- Directories ----

    /// Fetches the names of a remote's directory, as they are there now; keeps those that are here
    /// if the remote cannot be reached.
    ///
    /// # Errors
    /// As [`must_be_listed`](Self::must_be_listed) without the remote; what that answers.
    pub(crate) fn list(&self, cx: &Ctx<'_>, dir: u64) -> Result<()> {
        let listed = self.ask(cx, dir, |fs, node| {
            let far = fs.getattr(cx, node)?;
            let open = fs.open(cx, node, Mode::Read)?;
            let seen = self.list_open(cx, dir, RemoteOpen { fs, node, open });
            let closed = fs.close(cx, open);
            let seen = seen?;
            closed?;
            Ok((far, seen))
        })?;
        match listed {
            Some((far, seen)) => {
                let mut state = self.local.to_change()?;
                FarNodes::of(&mut state.files).end_listing(cx, dir, &seen, &far)
            }
            None => self.must_be_listed(node_id(dir)?),
        }
    }

    /// Notes all names of an open directory of the remote; gives the nodes.
    fn list_open(&self, cx: &Ctx<'_>, dir: u64, there: RemoteOpen<'_>) -> Result<BTreeSet<u64>> {
        let RemoteOpen { fs, node, open } = there;
        let (mut seen, mut from) = (BTreeSet::new(), Cookie::START);
        loop {
            cx.check_cancel()?;
            let mut buf = DirBuf::new(ENTRIES, NAMES, true);
            let is_end = fs.readdir(cx, open, from, &mut buf)?;
            for entry in buf.iter() {
                from = entry.next;
                let attr = match entry.attr {
                    Some(attr) => attr,
                    None => match fs.lookup(cx, node, Name::new(entry.name)?) {
                        Ok(found) => found.attr,
                        Err(e) if e == Kind::NotFound => continue,
                        Err(e) => return Err(e),
                    },
                };
                let mut state = self.local.to_change()?;
                match FarNodes::of(&mut state.files).record(cx, dir, entry.name, &attr) {
                    Ok(found) => {
                        let uid = uid_of(found.node)?;
                        self.connection.know(uid, attr.node);
                        seen.insert(uid);
                    }
                    // There is no such name here.
                    Err(e) if e == Kind::NameTooLong => {}
                    Err(e) => return Err(here(e)),
                }
            }
            if is_end || buf.iter().next().is_none() {
                return Ok(seen);
            }
        }
    }

    // ---- Links ----

    /// Links a file or directory to one of the remote.
    pub(crate) fn link_to(&self, cx: &Ctx<'_>, node: NodeId, path: &[u8]) -> Result<()> {
        if !path.starts_with(b"/") {
            let words = "the path of a file of the remote begins with /";
            return Err(Error::note(Kind::Invalid, words));
        }
        let Some(fs) = self.connection.fs(cx.now)? else {
            let words = "the remote cannot be reached";
            return Err(Error::note(Kind::Io, words));
        };
        let far = fs.getattr(cx, walk(cx, &fs, path)?)?;
        FarNodes::of(&mut self.local.to_change()?.files).link_far(cx, node, path, &far)
    }

    /// Returns the path that a link stands for.
    pub(crate) fn path_of(&self, head: &Head) -> Result<Vec<u8>> {
        let path = FarNodes::of(&mut self.local.state()?.files).far_path(head.uid)?;
        let mut out = path.link;
        for (_, name) in path.below {
            if out.last() != Some(&b'/') {
                out.push(b'/');
            }
            out.extend(name);
        }
        Ok(out)
    }
}

/// Returns an error of the volume itself within a question to the remote: not one that says that
/// the remote is lost.
fn here(e: Error) -> Error {
    match e.kind() {
        Kind::Io => Error::note(Kind::Corrupt, format!("the cache's own device failed: {e}")),
        _ => e,
    }
}

/// Returns whether the remote has no such node any more.
pub(crate) fn is_gone(e: &Error) -> bool {
    matches!(e.kind(), Kind::NotFound | Kind::Stale | Kind::NotDir)
}

/// Returns a node that the remote has lost: what was known of a link, nothing of others.
fn lost(head: Head) -> Result<Head> {
    match head.is_link() {
        true => Ok(head),
        false => Err(Kind::Stale.into()),
    }
}
