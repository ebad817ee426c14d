//! The file system of a volume that keeps files of a remote.
//!
//! What is the volume's own goes to [`CedarFs`]. Of nodes of the remote, names and
//! attributes are asked of the remote, and noted; the content of a file is fetched whole
//! when it is opened and is not here, or is of what the file was. When the remote cannot be
//! reached, what was noted is given, and content that is here. Nothing of the remote is
//! changed, and neither are its nodes here.
//!
//! # Locks
//! A file's turn (one fetch of a file at a time) is held over calls of the remote; the
//! volume's lock, the tables of `reach` and of files that are read through are leaves.

use crate::bring::Content;
use crate::core::Takes;
use crate::entry::Head;
use crate::fs::CedarFs;
use crate::nodes::{node_id, uid_of};
use crate::reach::{Reach, walk};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Error, Extent, FileKind, FileSystem, Finding,
    Fs, Kind, Mode, Name, NodeId, OpenId, Remote, RenameFlags, Result, SetAttr, StatFs, escape,
};

/// Entries of a listing of the remote that are asked for together, and bytes of their names.
const ENTRIES: usize = 1024;
const NAMES: usize = 64 << 10;
/// The path of what a node stands for, on the remote.
pub(crate) const REMOTE: &[u8] = b"user.cedar.remote";

/// A volume that keeps files of a remote, as a file system.
pub(crate) struct CachedFs {
    pub(crate) local: CedarFs,
    caps: Caps,
    /// What the remote is called.
    remote: String,
    pub(crate) reach: Reach,
    /// Files that are being fetched.
    pub(crate) turns: Mutex<BTreeSet<u64>>,
    pub(crate) turn_ended: Condvar,
    /// Opens of files that have no room here: they are read from the remote.
    pub(crate) through: Mutex<BTreeMap<OpenId, (Fs, OpenId)>>,
}

fn not_ours() -> Error {
    let words = "a file of the remote: it is changed there";
    Error::note(Kind::ReadOnly, words)
}

impl CachedFs {
    /// A volume, and the remote if there is one to be asked. It is opened at once, so that
    /// a name that makes no sense is told.
    ///
    /// # Errors
    /// As opening the remote, but for `Io`.
    pub(crate) fn new(local: CedarFs, remote: Option<Remote>) -> Result<Self> {
        let can_note = local.state()?.core.takes != Takes::Nothing;
        let has_remote = can_note && remote.is_some();
        let reach = Reach::new(remote.filter(|_| can_note))?;
        let mut caps = local.caps();
        let root = node_id(crate::entry::ROOT_UID)?;
        let is_cache = local.state()?.far(root).is_ok_and(|far| far.is_some());
        if is_cache {
            caps = caps.without(Caps::WRITE);
        }
        if has_remote {
            caps = caps.with(Caps::SHARED);
        }
        let name = local.state()?.core.layout.remote.clone();
        Ok(Self {
            local,
            caps,
            remote: name,
            reach,
            turns: Mutex::new(BTreeSet::new()),
            turn_ended: Condvar::new(),
            through: Mutex::new(BTreeMap::new()),
        })
    }

    /// What is known of a node, if it is one of the remote.
    fn far(&self, node: NodeId) -> Result<Option<Head>> {
        self.local.state()?.far(node)
    }

    /// The answer to who wants what is not here while the remote is not to be asked.
    pub(crate) fn not_here(&self) -> Error {
        let words = match self.reach.is_named() {
            true => "it is not here, and the remote cannot be reached".to_owned(),
            false => {
                let remote = escape(self.remote.as_bytes());
                format!("it is not here; -o remote={remote} reaches it")
            }
        };
        Error::note(Kind::Io, words)
    }

    /// # Errors
    /// `ReadOnly` for a node of the remote.
    fn must_be_own(&self, node: NodeId) -> Result<()> {
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
        if self.local.state()?.core.writable().is_err() {
            return Ok(None);
        }
        let path = || self.local.state()?.far_path(uid);
        self.reach.ask(cx, uid, &path, ask)
    }

    /// What the remote says of a node, which is noted; if it cannot be reached, or has lost
    /// what a link leads to, what it said last.
    ///
    /// # Errors
    /// `Stale` if it has no such node any more.
    fn look(&self, cx: &Ctx<'_>, head: Head) -> Result<Head> {
        match self.ask(cx, head.uid, |fs, node| fs.getattr(cx, node)) {
            Ok(Some(far)) if far.kind == head.kind => {
                self.local.to_change()?.note_far(cx, head.uid, &far)
            }
            Ok(None) => Ok(head),
            Ok(Some(_)) => lost(head),
            Err(e) if is_gone(&e) => lost(head),
            Err(e) => Err(e),
        }
    }

    fn entry(&self, head: &Head) -> Result<Entry> {
        self.local.state()?.entry(head)
    }

    // ---- Directories ----

    /// Has the names of a directory of the remote be here, as they are there now.
    fn list(&self, cx: &Ctx<'_>, dir: u64) -> Result<()> {
        let listed = self.ask(cx, dir, |fs, node| {
            let far = fs.getattr(cx, node)?;
            let open = fs.open(cx, node, Mode::Read)?;
            let seen = self.list_open(cx, dir, fs, (node, open));
            let closed = fs.close(cx, open);
            let seen = seen?;
            closed?;
            Ok((far, seen))
        })?;
        match listed {
            Some((far, seen)) => {
                let mut state = self.local.to_change()?;
                state.end_listing(cx, dir, &seen, &far)
            }
            None => Ok(()),
        }
    }

    /// Notes all names of an open directory of the remote; gives the nodes.
    fn list_open(
        &self,
        cx: &Ctx<'_>,
        dir: u64,
        fs: &Fs,
        (node, open): (NodeId, OpenId),
    ) -> Result<BTreeSet<u64>> {
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
                match state.record(cx, dir, entry.name, &attr) {
                    Ok(found) => {
                        let uid = uid_of(found.node)?;
                        self.reach.know(uid, attr.node);
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

    /// Has a file or directory stand for one of the remote.
    fn link_to(&self, cx: &Ctx<'_>, node: NodeId, path: &[u8]) -> Result<()> {
        if !path.starts_with(b"/") {
            let words = "the path of a file of the remote begins with /";
            return Err(Error::note(Kind::Invalid, words));
        }
        let Some(fs) = self.reach.fs(cx.now)? else {
            let words = "the remote cannot be reached";
            return Err(Error::note(Kind::Io, words));
        };
        let far = fs.getattr(cx, walk(cx, &fs, path)?)?;
        self.local.to_change()?.link_far(cx, node, path, &far)
    }

    /// The path that a link stands for.
    fn path_of(&self, head: &Head) -> Result<Vec<u8>> {
        let path = self.local.state()?.far_path(head.uid)?;
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

/// An error of the volume itself within a question to the remote: not one that says that
/// the remote is lost.
fn here(e: Error) -> Error {
    match e.kind() {
        Kind::Io => Error::note(Kind::Corrupt, format!("the cache's own device failed: {e}")),
        _ => e,
    }
}

/// Whether the remote has no such node any more.
pub(crate) fn is_gone(e: &Error) -> bool {
    matches!(e.kind(), Kind::NotFound | Kind::Stale | Kind::NotDir)
}

/// A node that the remote has lost: what was known of a link, nothing of others.
fn lost(head: Head) -> Result<Head> {
    match head.is_link() {
        true => Ok(head),
        false => Err(Kind::Stale.into()),
    }
}

impl FileSystem for CachedFs {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.local.root()
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        self.local.statfs(cx)
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        self.local.sync(cx)
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.through.lock().clear();
        let left = self.reach.detach(cx);
        // Nothing was written there.
        drop(left);
        self.local.detach(cx)
    }

    fn commit_time(&self) -> Duration {
        self.local.commit_time()
    }

    fn findings(&self) -> Vec<Finding> {
        self.local.findings()
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let Some(head) = self.far(dir)? else {
            let found = self.local.state()?.far_at(dir, name)?;
            return match found {
                Some(link) => self.entry(&self.look(cx, link)?),
                None => self.local.lookup(cx, dir, name),
            };
        };
        if !head.is_dir() {
            return Err(Kind::NotDir.into());
        }
        match self.ask(cx, head.uid, |fs, node| fs.lookup(cx, node, name)) {
            Ok(Some(found)) => {
                let mut state = self.local.to_change()?;
                let entry = state.record(cx, head.uid, name.as_bytes(), &found.attr)?;
                self.reach.know(uid_of(entry.node)?, found.node);
                Ok(entry)
            }
            Ok(None) => self.local.lookup(cx, dir, name),
            Err(e) if e == Kind::NotFound => {
                let mut state = self.local.to_change()?;
                state.core.forget_name(head.uid, name.as_bytes(), cx.now)?;
                Err(e)
            }
            Err(e) => Err(e),
        }
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.local.parent(cx, dir)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        if from == Cookie::START {
            let uid = self.local.state()?.opened(dir)?;
            if self.far(node_id(uid)?)?.is_some_and(|head| head.is_dir()) {
                match self.list(cx, uid) {
                    Err(e) if is_gone(&e) => return Err(Kind::Stale.into()),
                    other => other?,
                }
            }
        }
        self.local.readdir(cx, dir, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.must_be_own(dir)?;
        let link = self.local.state()?.far_at(dir, name)?;
        if link.is_some() && how != Create::New {
            return Err(not_ours());
        }
        self.local.create(cx, dir, name, how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.must_be_own(dir)?;
        self.local.mkdir(cx, dir, name, set)
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.must_be_own(dir)?;
        self.local.mknod(cx, dir, name, kind, rdev, set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.must_be_own(dir)?;
        self.local.symlink(cx, dir, name, target, set)
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.must_be_own(node)?;
        self.must_be_own(dir)?;
        self.local.link(cx, node, dir, name)
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.must_be_own(dir)?;
        self.local.unlink(cx, dir, name)
    }

    /// A link to a directory goes with what is known of the names in that.
    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.must_be_own(dir)?;
        let link = self.local.state()?.far_at(dir, name)?;
        if let Some(link) = link.filter(Head::is_dir) {
            self.local.to_change()?.forget_names_in(cx, link.uid)?;
        }
        self.local.rmdir(cx, dir, name)
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.must_be_own(from)?;
        self.must_be_own(to)?;
        self.local.rename(cx, from, name, to, new_name, flags)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        match self.far(node)? {
            None => self.local.getattr(cx, node),
            Some(head) => Ok(self.entry(&self.look(cx, head)?)?.attr),
        }
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.must_be_own(node)?;
        self.local.setattr(cx, node, set)
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let Some(head) = self.far(node)? else {
            return self.local.readlink(cx, node);
        };
        if head.kind != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        let head = self.look(cx, head)?;
        let far = head.far.ok_or(Kind::Stale)?;
        if far.whole {
            return self.local.readlink(cx, node);
        }
        match self.ask(cx, head.uid, |fs, node| fs.readlink(cx, node))? {
            Some(target) => {
                let mut state = self.local.to_change()?;
                state.note_target(cx, head.uid, &far.seen, &target)?;
                Ok(target)
            }
            None => Err(self.not_here()),
        }
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        match self.far(node)? {
            Some(head) if name == REMOTE => self.path_of(&head),
            None if name == REMOTE => Err(Kind::NoXattr.into()),
            _ => self.local.getxattr(cx, node, name),
        }
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.must_be_own(node)?;
        match name == REMOTE {
            true => self.link_to(cx, node, value),
            false => self.local.setxattr(cx, node, name, value),
        }
    }

    fn listxattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.local.listxattr(cx, node)
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        self.must_be_own(node)?;
        self.local.removexattr(cx, node, name)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let far = self.far(node)?;
        if far.is_some() && mode != Mode::Read {
            return Err(not_ours());
        }
        let open = self.local.open(cx, node, mode)?;
        let Some(head) = far.filter(|head| head.kind == FileKind::File) else {
            return Ok(open);
        };
        // While it is open, nobody takes its content away to have room.
        match self.bring(cx, head.uid) {
            Ok(Content::Here) => Ok(open),
            Ok(Content::Through(fs, far)) => {
                self.through.lock().insert(open, (fs, far));
                Ok(open)
            }
            Err(e) => self.local.close(cx, open).and(Err(e)),
        }
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let through = self.through.lock().get(&open).cloned();
        if let Some((fs, far)) = through {
            return fs.read(cx, far, offset, buf);
        }
        let read = self.local.state()?.read_if_here(open, offset, buf)?;
        match read {
            Some(n) => Ok(n),
            None => self.read_again(cx, open, offset, buf),
        }
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.local.write(cx, open, offset, data)
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        self.local.fsync(cx, open, data_only)
    }

    fn extents(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let uid = self.local.state()?.opened(open)?;
        match self.far(node_id(uid)?)?.is_some_and(|head| head.is_away()) {
            true => Err(Kind::Unsupported.into()),
            false => self.local.extents(cx, open, offset, len, out),
        }
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let through = self.through.lock().remove(&open);
        if let Some((fs, far)) = through {
            // It was for reading: what the remote says of it is no matter here.
            let _ = fs.close(cx, far);
        }
        self.local.close(cx, open)
    }
}
