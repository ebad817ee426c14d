//! An attached volume: its files, and what lives only while it is attached.

use crate::attached::attrs::Attrs;
use crate::attached::leaving::Leaving;
use crate::attached::listing::Listing;
use crate::attached::open_files::OpenFiles;
use crate::attached::options::MountOptions;
use crate::attached::xattrs::Xattrs;
use crate::change::cookies::Cookies;
use crate::change::files::Files;
use crate::change::names::{Make, Names};
use crate::change::nodes::{Nodes, is_named, node_id, uid_of};
use crate::change::sealing::Sealing;
use crate::change::versions::Versions;
use crate::name_table::entry::Part;
use crate::recover;
use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Create, Ctx, Entry, FileKind, Kind, Mode, Name, NodeId, OpenId, Result,
    SetAttr, StatFs,
};

/// An attached volume, under one lock.
pub(crate) struct Attached {
    pub(crate) files: Files,
    cookies: Cookies,
    detached: bool,
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

    // ---- Parts ----

    pub(crate) fn attrs(&mut self) -> Attrs<'_> {
        Attrs::of(&mut self.files)
    }

    pub(crate) fn xattrs(&mut self) -> Xattrs<'_> {
        Xattrs::of(&mut self.files)
    }

    pub(crate) fn open_files(&mut self) -> OpenFiles<'_> {
        OpenFiles::of(&mut self.files)
    }

    pub(crate) fn listing(&mut self) -> Listing<'_> {
        Listing::of(&mut self.files, &mut self.cookies)
    }

    // ---- The volume ----

    pub(crate) fn is_detached(&self) -> bool {
        self.detached
    }

    pub(crate) fn stat(&self) -> StatFs {
        let core = &self.files.core;
        let page = u64::from(core.layout.page);
        let free = core.free_pages() * page;
        let per_page = (page / ENTRY_LEN).max(1);
        StatFs {
            block_size: core.layout.page,
            size: u64::from(core.layout.data_pages()) * page,
            free,
            available: free,
            nodes: u64::from(core.layout.table_len) * per_page,
            nodes_free: u64::from(core.map.vam().table_free()) * per_page,
        }
    }

    /// Makes all durable; once nothing is left to do, saves the map.
    pub(crate) fn sync(&mut self, cx: &Ctx<'_>) -> Result<()> {
        let idle = self.files.core.batch.has_no_pages();
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
        self.files.core.map.give_all_kept_back();
        let mut result = Ok(());
        for uid in self.files.opens.clear() {
            let sealed = Sealing::of(&mut self.files).seal(uid, cx.now);
            result = result
                .and(sealed)
                .and(Leaving::of(&mut self.files).release(cx, uid));
        }
        result.and(self.files.core.leave(cx.now))
    }

    // ---- Nodes ----

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
        self.attrs().entry(&head)
    }

    pub(crate) fn parent(&mut self, dir: NodeId) -> Result<Entry> {
        let (place, head) = Nodes::of(&mut self.files).dir(uid_of(dir)?)?;
        if place.dir == crate::name_table::entry::NOWHERE {
            return match is_named(&place) {
                true => self.attrs().entry(&head),
                false => Err(Kind::Stale.into()),
            };
        }
        let (_, parent) = Nodes::of(&mut self.files).dir(place.dir)?;
        self.attrs().entry(&parent)
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
            made => self.attrs().entry(&made?),
        }
    }

    /// Makes a file, and grows it to the size that `set` asks for.
    ///
    /// # Errors
    /// As [`make`](Self::make), after which there is no such file.
    fn make_in_steps(
        &mut self,
        cx: &Ctx<'_>,
        dir: u64,
        name: Name<'_>,
        what: Make<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        let empty = SetAttr { size: None, ..*set };
        let node = node_id(dir)?;
        let made = self.make(cx, node, name, what, &empty)?;
        let grown = self
            .attrs()
            .set(cx, made.node, &SetAttr::size(set.size.unwrap_or(0)));
        match grown {
            Ok(attr) => Ok(Entry { attr, ..made }),
            Err(e) => self.unlink(cx, node, name).and(Err(e)),
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
                self.attrs().head(found.node)?.check_file()?;
                match how {
                    Create::Truncate => self.attrs().set(cx, found.node, &SetAttr::size(0))?,
                    _ => found.attr,
                };
                let head = self.attrs().head(found.node)?;
                self.attrs().entry(&head)?
            }
            Err(e) if e == Kind::NotFound => self.make(cx, dir, name, Make::File, set)?,
            Err(e) => return Err(e),
        };
        let open = self.open_files().add(uid_of(entry.node)?, Mode::ReadWrite);
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
        let head = self.attrs().head(node)?;
        self.attrs().entry(&head)
    }

    pub(crate) fn unlink(&mut self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = uid_of(dir)?;
        self.files.change(cx.now, |c| {
            Names::of(c).unlink(dir, name.as_bytes(), cx.now)
        })?;
        Leaving::of(&mut self.files).see_off(cx)
    }

    pub(crate) fn rmdir(&mut self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let dir = uid_of(dir)?;
        self.files
            .change(cx.now, |c| Names::of(c).rmdir(dir, name.as_bytes(), cx.now))
    }

    pub(crate) fn rename(
        &mut self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: volary_core::RenameFlags,
    ) -> Result<()> {
        let (from, to) = (uid_of(from)?, uid_of(to)?);
        let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
        self.files.change(cx.now, |c| {
            Names::of(c).rename(from, name, to, new_name, flags, cx.now)
        })?;
        Leaving::of(&mut self.files).see_off(cx)
    }

    pub(crate) fn read_link(&mut self, node: NodeId) -> Result<Vec<u8>> {
        let head = self.attrs().head(node)?;
        match head.kind {
            FileKind::Symlink => Nodes::of(&mut self.files).parts(&head, Part::Target),
            _ => Err(Kind::Invalid.into()),
        }
    }
}
