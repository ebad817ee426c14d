//! An attached volume: its files, and what lives only while it is attached.

use crate::attached::options::MountOptions;
use crate::change::cookies::Cookies;
use crate::change::file::File;
use crate::change::files::{Files, Open};
use crate::change::names::Names;
use crate::change::names::{Make, set_times};
use crate::change::nodes::Nodes;
use crate::change::nodes::{is_named, node_id, uid_of};
use crate::change::sealing::Sealing;
use crate::change::versions::Versions;
use crate::name_table::entry::{Entry as Named, Head, Part, dir_prefix, name_of_key};
use crate::recover;
use crate::tree::btree::Tree;
use std::sync::Arc;
use volary_core::{
    Attach, Attr, BlockDevice, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind, Kind, Mode,
    Name, NodeId, OpenId, Result, SetAttr, StatFs,
};

/// An attached volume, under one lock.
pub(crate) struct Attached {
    pub(crate) files: Files,
    cookies: Cookies,
    pub(crate) detached: bool,
}

/// Bytes that an entry of the name table takes, about: for counts of nodes.
const ENTRY_LEN: u64 = 200;

impl Attached {
    /// Attaches the volume on `dev`.
    ///
    /// # Errors
    /// `Invalid` for an option; as [`recover::open`].
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        let options = MountOptions::new(how)?;
        let how = recover::How {
            read_only: how.read_only,
            memory: how.memory,
            io_size: options.io_size,
            salvage: false,
        };
        let (mut files, _) = recover::open(dev, &how)?;
        files.core.commit_time = options.commit;
        files.core.through = options.through;
        files.seals.looks = options.looks_at_sums;
        let cookies = Cookies::new(files.core.layout.nonce);
        let mut attached = Self {
            files,
            cookies,
            detached: false,
        };
        if attached.files.core.writable().is_ok() {
            Versions::of(&mut attached.files).destroy_all_nameless()?;
        }
        Ok(attached)
    }

    // ---- The volume ----

    pub(crate) fn stat(&self) -> StatFs {
        let core = &self.files.core;
        let page = u64::from(core.layout.page);
        let waiting = core.batch.freed.pages();
        let free = (u64::from(core.vam.free()) + waiting) * page;
        let per_page = (page / ENTRY_LEN).max(1);
        StatFs {
            block_size: core.layout.page,
            size: u64::from(core.layout.data_pages()) * page,
            free,
            available: free,
            nodes: u64::from(core.layout.table_len) * per_page,
            nodes_free: u64::from(core.vam.table_free()) * per_page,
        }
    }

    /// Makes all durable; once nothing is left to do, saves the map.
    pub(crate) fn sync(&mut self, cx: &Ctx<'_>) -> Result<()> {
        let idle = self.files.core.batch.pages.is_empty();
        self.files.core.commit(cx.now)?;
        if idle {
            self.files.core.save_map()?;
        }
        Ok(())
    }

    pub(crate) fn detach(&mut self, cx: &Ctx<'_>) -> Result<()> {
        if self.detached {
            return Ok(());
        }
        self.detached = true;
        self.files.core.reserved.give_all_back();
        let mut result = Ok(());
        for uid in self.files.opens.clear() {
            let sealed = Sealing::of(&mut self.files).seal(uid, cx.now);
            result = result.and(sealed).and(self.release(cx, uid));
        }
        result.and(self.files.core.leave(cx.now))
    }

    // ---- Nodes ----

    pub(crate) fn attr_of(&self, head: &Head) -> Result<Attr> {
        let pages = match head.kind {
            FileKind::File if !head.is_away() => self.files.core.layout.pages_for(head.size),
            _ => 0,
        };
        Ok(head.attr(node_id(head.uid)?, pages, self.files.core.layout.page))
    }

    pub(crate) fn entry(&self, head: &Head) -> Result<Entry> {
        let attr = self.attr_of(head)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    pub(crate) fn head(&mut self, node: NodeId) -> Result<Head> {
        Ok(Nodes::of(&mut self.files).home(uid_of(node)?)?.1)
    }

    pub(crate) fn lookup(&mut self, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let dir = uid_of(dir)?;
        Nodes::of(&mut self.files).dir(dir)?;
        let head = match Nodes::of(&mut self.files).find(dir, name.as_bytes())? {
            Some((_, entry)) => Nodes::of(&mut self.files).head_of(entry)?,
            None => {
                let older = Versions::of(&mut self.files).find_version(dir, name.as_bytes())?;
                older.ok_or(Kind::NotFound)?.1
            }
        };
        self.entry(&head)
    }

    pub(crate) fn parent(&mut self, dir: NodeId) -> Result<Entry> {
        let (place, head) = Nodes::of(&mut self.files).dir(uid_of(dir)?)?;
        if place.dir == crate::name_table::entry::NOWHERE {
            return match is_named(&place) {
                true => self.entry(&head),
                false => Err(Kind::Stale.into()),
            };
        }
        let (_, parent) = Nodes::of(&mut self.files).dir(place.dir)?;
        self.entry(&parent)
    }

    pub(crate) fn make(
        &mut self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        what: Make<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        let dir = uid_of(dir)?;
        let made = self.files.change(cx.now, |c| {
            Names::of(c).make(dir, name.as_bytes(), what, set, cx.now)
        });
        match made {
            Err(_) if self.files.core.too_much && set.size.is_some_and(|size| size > 0) => {
                self.make_in_steps(cx, dir, name, what, set)
            }
            made => self.entry(&made?),
        }
    }

    pub(crate) fn create(
        &mut self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.files.core.writable()?;
        let entry = match self.lookup(dir, name) {
            Ok(_) if how == Create::New => return Err(Kind::Exists.into()),
            Ok(found) => {
                self.head(found.node)?.check_file()?;
                match how {
                    Create::Truncate => self.set_attr(cx, found.node, &SetAttr::size(0))?,
                    _ => found.attr,
                };
                let head = self.head(found.node)?;
                self.entry(&head)?
            }
            Err(e) if e == Kind::NotFound => self.make(cx, dir, name, Make::File, set)?,
            Err(e) => return Err(e),
        };
        let open = self.add_open(uid_of(entry.node)?, Mode::ReadWrite);
        Ok((entry, open))
    }

    pub(crate) fn link(
        &mut self,
        cx: &Ctx<'_>,
        node: NodeId,
        dir: NodeId,
        name: Name<'_>,
    ) -> Result<Entry> {
        let (uid, dir) = (uid_of(node)?, uid_of(dir)?);
        self.files.change(cx.now, |c| {
            Names::of(c).link(uid, dir, name.as_bytes(), cx.now)
        })?;
        let head = self.head(node)?;
        self.entry(&head)
    }

    pub(crate) fn unlink(&mut self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = uid_of(dir)?;
        self.files.change(cx.now, |c| {
            Names::of(c).unlink(dir, name.as_bytes(), cx.now)
        })?;
        self.see_off(cx)
    }

    pub(crate) fn rmdir(&mut self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = uid_of(dir)?;
        self.files
            .change(cx.now, |c| Names::of(c).rmdir(dir, name.as_bytes(), cx.now))
    }

    pub(crate) fn rename(
        &mut self,
        cx: &Ctx<'_>,
        from: (NodeId, Name<'_>),
        to: (NodeId, Name<'_>),
        flags: volary_core::RenameFlags,
    ) -> Result<()> {
        let from = (uid_of(from.0)?, from.1.as_bytes());
        let to = (uid_of(to.0)?, to.1.as_bytes());
        self.files
            .change(cx.now, |c| Names::of(c).rename(from, to, flags, cx.now))?;
        self.see_off(cx)
    }

    pub(crate) fn set_attr(&mut self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let uid = uid_of(node)?;
        if *set == SetAttr::default() {
            let head = self.head(node)?;
            return self.attr_of(&head);
        }
        let done = self.try_set(cx, uid, set);
        let head = match (done, set.size) {
            (Err(_), Some(size)) if self.files.core.too_much => {
                self.grow_and(cx, uid, size, |this| this.try_set(cx, uid, set))?
            }
            (done, _) => done?,
        };
        self.see_off(cx)?;
        if !self.files.is_open(uid) {
            Sealing::of(&mut self.files).seal(uid, cx.now)?;
        }
        self.attr_of(&head)
    }

    fn try_set(&mut self, cx: &Ctx<'_>, uid: u64, set: &SetAttr) -> Result<Head> {
        self.files.change(cx.now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            if set.dos.is_some() {
                return Err(Kind::Unsupported.into());
            }
            if let Some(size) = set.size {
                head.check_newest(&place)?;
                File::of(c).resize(&mut head, size)?;
                head.mtime = cx.now;
            }
            head.mode = set.mode.map_or(head.mode, |m| m & 0o7777);
            head.owner = set.uid.unwrap_or(head.owner);
            head.group = set.gid.unwrap_or(head.group);
            set_times(&mut head, set, cx.now);
            head.touch(cx.now, false);
            Nodes::of(c).keep(&place, head.clone())?;
            Ok(head)
        })
    }

    pub(crate) fn read_link(&mut self, node: NodeId) -> Result<Vec<u8>> {
        let head = self.head(node)?;
        match head.kind {
            FileKind::Symlink => Nodes::of(&mut self.files).parts(&head, Part::Target),
            _ => Err(Kind::Invalid.into()),
        }
    }

    // ---- Opens ----

    pub(crate) fn add_open(&mut self, uid: u64, mode: Mode) -> OpenId {
        let open = Open {
            uid,
            mode,
            checked: false,
        };
        self.files.opens.add(uid, open)
    }

    pub(crate) fn open(&mut self, node: NodeId, mode: Mode) -> Result<OpenId> {
        if mode != Mode::Read {
            self.files.core.writable()?;
        }
        let (place, head) = Nodes::of(&mut self.files).home(uid_of(node)?)?;
        match head.kind {
            FileKind::File | FileKind::Dir if mode == Mode::Read => {}
            FileKind::File => head.check_newest(&place)?,
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        Ok(self.add_open(head.uid, mode))
    }

    /// Returns the node of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<u64> {
        self.files.opens.get(open).map(|open| open.uid)
    }

    pub(crate) fn close(&mut self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let closed = self.files.opens.remove(open)?;
        if !closed.is_last {
            return Ok(());
        }
        let uid = closed.node;
        self.files.core.reserved.give_back(uid);
        Sealing::of(&mut self.files).seal(uid, cx.now)?;
        self.release(cx, uid)
    }

    /// Does what the last change left to be done.
    fn see_off(&mut self, cx: &Ctx<'_>) -> Result<()> {
        let leaving = std::mem::take(&mut self.files.leaving);
        leaving
            .into_iter()
            .try_for_each(|uid| self.release(cx, uid))
    }

    /// Lets a node go that is neither open nor has a name; of one that has a
    /// name, the versions that are too many.
    fn release(&mut self, cx: &Ctx<'_>, uid: u64) -> Result<()> {
        if self.files.core.writable().is_err() {
            return Ok(());
        }
        match Nodes::of(&mut self.files).home(uid) {
            Ok((place, _)) if is_named(&place) => Versions::of(&mut self.files).shed(uid, cx.now),
            Ok(_) if self.files.is_open(uid) => Ok(()),
            Ok(_) => Versions::of(&mut self.files).let_go(uid, cx.now),
            Err(e) if e == Kind::Stale => Ok(()),
            Err(e) => Err(e),
        }
    }

    pub(crate) fn read(&mut self, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let Open { uid, checked, .. } = *self.files.opens.get(open)?;
        let first = offset == 0 && !checked;
        let (_, head) = Nodes::of(&mut self.files).home(uid)?;
        head.check_file()?;
        let read = File::of(&mut self.files).read(&head, offset, buf, first)?;
        if first && read > 0 {
            self.files.opens.get_mut(open)?.checked = true;
        }
        Ok(read)
    }

    pub(crate) fn write(
        &mut self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<u64> {
        let Open { uid, mode, .. } = *self.files.opens.get(open)?;
        let (_, head) = Nodes::of(&mut self.files).home(uid)?;
        head.check_file()?;
        if mode == Mode::Read {
            return Err(Kind::Invalid.into());
        }
        if data.is_empty() {
            self.files.core.writable()?;
            return offset
                .unwrap_or(head.size)
                .checked_add(0)
                .ok_or_else(|| Kind::TooBig.into());
        }
        let at = offset.unwrap_or(head.size);
        Sealing::of(&mut self.files).unseal(uid, at, cx.now)?;
        let mut end = self.try_write(cx, uid, at, data);
        if end.is_err() && self.files.core.too_much {
            end = self.grow_and(cx, uid, at, |this| this.write_in_steps(cx, uid, at, data));
        }
        if end.is_err() {
            Sealing::of(&mut self.files).note_failed_write(uid, at);
        }
        let end = end?;
        Sealing::of(&mut self.files).note_write(uid, at, data)?;
        File::of(&mut self.files).write_through()?;
        Ok(end)
    }

    pub(crate) fn fsync(&mut self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.opened(open)?;
        self.files.core.commit(cx.now)
    }

    pub(crate) fn extents(
        &mut self,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let uid = self.opened(open)?;
        let (_, head) = Nodes::of(&mut self.files).home(uid)?;
        head.check_file()?;
        File::of(&mut self.files).extents(&head, offset, len, out)
    }

    // ---- Listing ----

    pub(crate) fn readdir(&mut self, open: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let dir = self.opened(open)?;
        Nodes::of(&mut self.files).dir(dir)?;
        let prefix = dir_prefix(dir);
        let mut start = match from {
            Cookie::START => prefix.clone(),
            cookie => self.cookies.key_after(&mut self.files, dir, cookie)?,
        };
        let mut last = Vec::new();
        loop {
            let leaf = Tree::of(&mut self.files.core).leaf(&start)?;
            for (key, value) in leaf.cells() {
                if !key.starts_with(&prefix) {
                    return Ok(true);
                }
                // Of a name's versions, the newest comes first.
                let Some(name) = name_of_key(key).filter(|name| *name != last) else {
                    continue;
                };
                let Some((node, kind, attr)) = self.shown(value, out.wants_attr())? else {
                    continue;
                };
                let next = self.cookies.of(dir, name);
                if !out.push(next, node, kind, name, attr) {
                    return Ok(false);
                }
                self.cookies.remember(dir, next, name);
                last.clear();
                last.extend_from_slice(name);
            }
            match leaf.end() {
                Some(end) => start = end.to_vec(),
                None => return Ok(true),
            }
        }
    }

    /// Returns what a listing shows of what a name leads to; none if that is no entry.
    fn shown(&mut self, value: &[u8], with_attr: bool) -> Result<Option<Shown>> {
        if let (false, Some((uid, kind))) = (with_attr, Head::uid_and_kind(value)) {
            return Ok(Some((node_id(uid)?, kind, None)));
        }
        let Some(entry) = Named::decode(value) else {
            return Ok(None);
        };
        let head = Nodes::of(&mut self.files).head_of(entry)?;
        let attr = self.attr_of(&head)?;
        Ok(Some((
            attr.node,
            attr.kind,
            Some(attr).filter(|_| with_attr),
        )))
    }
}

/// A node as a listing shows it.
type Shown = (NodeId, FileKind, Option<Attr>);
