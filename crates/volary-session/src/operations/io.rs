//! Operations on opens: open, read, write, list, close.

use crate::operations::xattrs::CAPABILITY;
use crate::rules;
use crate::session::Session;
use crate::shared::events::News;
use crate::shared::how::OpenHow;
use crate::shared::leases::Impact;
use crate::shared::locks::LockOwner;
use crate::shared::opens::{Holds, Opened};
use crate::shared::sharing::{Rights, Share};
use crate::shared::uses::{By, MOMENTARY, Mark, PLAIN};
use crate::volume::Hearing;
use std::sync::atomic::Ordering;
use volary_core::{
    Access, Attr, Caps, Cookie, Ctx, DirBuf, Extent, FileKind, Kind, Mode, NodeId, OpenId, Result,
    SetAttr, Whole,
};

impl Session {
    /// Opens a file, or a directory for reading. Needs read or write access on it, as `how` says.
    /// An open node outlives its last name.
    ///
    /// # Errors
    /// `SymlinkLoop` for a symlink; `IsDir` for writing a directory; `Invalid`
    /// for other kinds of node and for truncation without writing; `ReadOnly`
    /// for writing; `Access`; `DeletePending`, `Sharing`.
    pub fn open(&self, node: NodeId, how: impl Into<OpenHow>) -> Result<OpenId> {
        self.open_entry_of(node, None, how)
    }

    /// Opens a node through the entry `at` (a directory and a name in it), which must lead to the
    /// node. An open with a share mode remembers the entry: see [`place`](Self::place).
    ///
    /// # Errors
    /// As [`open`](Self::open); then `NotFound` if the entry leads to another node,
    /// `DeletePending`, `Sharing`.
    pub fn open_entry_of(
        &self,
        node: NodeId,
        at: Option<(NodeId, &[u8])>,
        how: impl Into<OpenHow>,
    ) -> Result<OpenId> {
        let attr = self.fs().getattr(&self.ctx(), node)?;
        self.open_seen(&attr, at, how)
    }

    /// Opens a node whose attributes the caller has just read. Rights are judged by those
    /// attributes, `attr`.
    ///
    /// # Errors
    /// As [`open_entry_of`](Self::open_entry_of).
    pub fn open_seen(
        &self,
        attr: &Attr,
        at: Option<(NodeId, &[u8])>,
        how: impl Into<OpenHow>,
    ) -> Result<OpenId> {
        self.open_found(&self.ctx(), attr, at, &how.into())
    }

    /// Opens a node of any kind without access to its data: for its attributes, or to remove or
    /// rename it. Needs no rights. Reads and writes through the open answer `Access`. Its share
    /// mode and place count as those of any open do.
    ///
    /// # Errors
    /// `NotFound` if `at` leads to another node; `DeletePending`; `Sharing`.
    pub fn open_bare(
        &self,
        node: NodeId,
        at: Option<(NodeId, &[u8])>,
        share: Share,
    ) -> Result<OpenId> {
        let attr = self.fs().getattr(&self.ctx(), node)?;
        self.open_bare_seen(&attr, at, &OpenHow::from(Mode::Read).with_share(share))
    }

    /// Opens a node without access to its data, as [`open_bare`](Self::open_bare) does, with the
    /// keys of a lease. `attr` are attributes that the caller has just read; `how.mode` is ignored.
    ///
    /// # Errors
    /// As [`open_bare`](Self::open_bare).
    pub fn open_bare_seen(
        &self,
        attr: &Attr,
        at: Option<(NodeId, &[u8])>,
        how: &OpenHow,
    ) -> Result<OpenId> {
        let cx = self.ctx();
        let node = attr.node;
        let idle = Share {
            wants: Rights::NONE,
            allows: Rights::ALL,
        };
        let share = how.share.unwrap_or(idle);
        let how = OpenHow {
            mode: Mode::Read,
            share: Some(share),
            ..*how
        };
        let keyed = how.lease_key.is_some() || how.parent_key.is_some();
        let mark = if share == idle && at.is_none() && !keyed {
            let uses = &self.volume.uses;
            uses.enter_plain(node, Rights::NONE, attr.nlink)?;
            PLAIN
        } else {
            self.enter_use(&cx, attr, at, &how)?
        };
        // The driver opens it too, if it can, so that the node outlives its names.
        let can = matches!(attr.kind, FileKind::File | FileKind::Dir);
        let below = can.then(|| self.fs().open(&cx, node, Mode::Read).ok());
        let below = below.flatten();
        let opened = Opened {
            below: below.unwrap_or(OpenId(0)),
            node,
            mode: Mode::Read,
            append: false,
            plain_at: 0,
            mark,
            holds: match below {
                Some(_) => Holds::Node,
                None => Holds::Nothing,
            },
        };
        self.enter_open(&cx, opened)
    }

    /// Checks whether the file could be opened for reading now, but opens nothing. For callers that
    /// read its content by its extents; `attr` is as for [`open_seen`](Self::open_seen).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn check_read(&self, attr: &Attr) -> Result<()> {
        if attr.kind != FileKind::File {
            return Err(Kind::Invalid.into());
        }
        self.need(&self.ctx(), attr, access_for(Mode::Read))?;
        let uses = &self.volume.uses;
        uses.check_names(attr.node, attr.nlink)?;
        uses.check_moment(attr.node, Rights::READ, self.client)?;
        self.contend(attr.node, By::Key(None), Impact::READ)
    }

    pub(crate) fn open_found(
        &self,
        cx: &Ctx<'_>,
        attr: &Attr,
        at: Option<(NodeId, &[u8])>,
        how: &OpenHow,
    ) -> Result<OpenId> {
        let writes = how.mode != Mode::Read;
        match attr.kind {
            FileKind::Symlink => return Err(Kind::SymlinkLoop.into()),
            FileKind::Dir if writes => return Err(Kind::IsDir.into()),
            FileKind::File | FileKind::Dir => {}
            _ => return Err(Kind::Invalid.into()),
        }
        if how.truncate && !writes {
            return Err(Kind::Invalid.into());
        }
        if writes {
            self.check_writable()?;
        }
        self.need(cx, attr, access_for(how.mode))?;
        let mark = self.enter_use(cx, attr, at, how)?;
        let below = self.fs().open(cx, attr.node, how.mode).inspect_err(|_| {
            self.leave_use(attr.node, mark, how.mode.into());
        })?;
        let open = self.enter_open(cx, self.opened_as(attr, below, mark, how))?;
        if how.truncate
            && let Err(e) = self.setattr_open(open, &SetAttr::size(0))
        {
            // The caller never saw the open: the result of closing it does not matter.
            let _ = self.close(open);
            return Err(e);
        }
        Ok(open)
    }

    /// Returns the entry of an open for the open table.
    pub(crate) fn opened_as(
        &self,
        attr: &Attr,
        below: OpenId,
        mark: Mark,
        how: &OpenHow,
    ) -> Opened {
        Opened {
            below,
            node: attr.node,
            mode: how.mode,
            append: how.append,
            plain_at: self.plain_epoch(attr),
            mark,
            holds: Holds::Data,
        }
    }

    /// Adds an open, whose use is registered already, to the open table.
    pub(crate) fn enter_open(&self, cx: &Ctx<'_>, opened: Opened) -> Result<OpenId> {
        let entered = self
            .volume
            .check_attached()
            .and_then(|()| self.volume.opens.insert(opened));
        match &entered {
            Ok(open) if opened.mark != PLAIN => {
                self.volume.uses.name(opened.node, opened.mark, *open);
            }
            Ok(_) => {}
            Err(_) => {
                self.leave_use(opened.node, opened.mark, opened.wants());
                // The open did not get into the table, so nobody will use it: the result does not
                // matter.
                let _ = opened.any().map(|below| self.fs().close(cx, below));
            }
        }
        entered
    }

    /// Reads at byte `offset` and returns the number of bytes read, which is smaller than asked for
    /// only at the end of the file.
    ///
    /// # Errors
    /// `Access` if the file was opened for writing only; `Sharing` for a
    /// [momentary](OpenHow::momentary) open; `IsDir`.
    pub fn read(&self, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let opened = self.volume.opens.get(open)?;
        if !opened.reads() {
            return Err(Kind::Access.into());
        }
        self.contend_open(&opened, Impact::READ)?;
        self.fs().read(&self.ctx(), opened.below, offset, buf)
    }

    /// A hint: the range will be read soon; see
    /// [`FileSystem::will_read`](volary_core::FileSystem::will_read).
    pub fn will_read(&self, open: OpenId, offset: u64, len: u64) {
        if let Ok(opened) = self.volume.opens.get(open)
            && opened.reads()
        {
            self.fs().will_read(&self.ctx(), opened.below, offset, len);
        }
    }

    /// Reads the beginnings of files in a batch; see
    /// [`FileSystem::read_whole`](volary_core::FileSystem::read_whole). Skips files that the caller
    /// may not open for reading, judged by their attributes as in [`open_seen`](Self::open_seen).
    pub fn read_whole(&self, files: &mut [Whole<'_>]) -> bool {
        let cx = self.ctx();
        let mut rest = files;
        loop {
            let readable = |file: &&Whole<'_>| self.check_read(file.attr).is_ok();
            let count = rest.iter().take_while(readable).count();
            let (some, others) = rest.split_at_mut(count);
            let gains = self.fs().read_whole(&cx, some);
            match others.split_first_mut() {
                Some((_, others)) if gains => rest = others,
                _ => return gains,
            }
        }
    }

    /// Writes all of `data` at byte `offset`. With no offset, or if the file was opened to append,
    /// writes at the end as it is at that moment. Returns the offset just after the data. The file
    /// loses the privileges that [`take_privileges`](Self::take_privileges) takes.
    ///
    /// # Errors
    /// `Access` if the file was opened for reading only; `Sharing` for a
    /// [momentary](OpenHow::momentary) open; `TooBig`.
    pub fn write(&self, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let (cx, opened) = self.to_write(open)?;
        let offset = if opened.append { None } else { offset };
        let end = self.fs().write(&cx, opened.below, offset, data)?;
        self.note_data(&opened);
        Ok(end)
    }

    /// Makes the file durable: its data and, unless `data_only`, its
    /// attributes.
    ///
    /// # Errors
    /// None of its own.
    pub fn fsync(&self, open: OpenId, data_only: bool) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        match opened.any() {
            Some(below) => self.fs().fsync(&self.ctx(), below, data_only),
            None => Ok(()),
        }
    }

    /// Allocates space for the range (`hole` false), or frees it and leaves a hole (`hole` true).
    /// The size stays.
    ///
    /// # Errors
    /// `Access` if the file was opened for reading only; `Unsupported`.
    pub fn allocate(&self, open: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        let (cx, opened) = self.to_write(open)?;
        self.fs().allocate(&cx, opened.below, offset, len, hole)?;
        self.note_data(&opened);
        Ok(())
    }

    /// Appends to `out` the extents of the range; see
    /// [`FileSystem::extents`](volary_core::FileSystem::extents).
    ///
    /// # Errors
    /// `Access` if the file was opened for writing only; `Unsupported` without [`Caps::EXTENTS`].
    pub fn extents(
        &self,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        if !opened.reads() {
            return Err(Kind::Access.into());
        }
        self.contend_open(&opened, Impact::READ)?;
        self.fs()
            .extents(&self.ctx(), opened.below, offset, len, out)
    }

    /// Fills `out` with entries of the open directory, starting at `from`, without `.` and `..`.
    /// Returns true if no more entries follow. See
    /// [`FileSystem::readdir`](volary_core::FileSystem::readdir).
    ///
    /// # Errors
    /// `NotDir`; `Invalid` for a cookie that was never given out.
    pub fn readdir(&self, open: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let opened = self.volume.opens.get(open)?;
        self.fs().readdir(&self.ctx(), opened.data()?, from, out)
    }

    /// Calls the driver with one of its own control codes.
    ///
    /// # Errors
    /// The driver's.
    pub fn ioctl(&self, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        let opened = self.volume.opens.get(open)?;
        self.fs().ioctl(&self.ctx(), opened.data()?, code, input)
    }

    /// Returns the node that is open, and the mode that it was opened with.
    ///
    /// # Errors
    /// None of its own.
    pub fn opened(&self, open: OpenId) -> Result<(NodeId, Mode)> {
        let opened = self.volume.opens.get(open)?;
        Ok((opened.node, opened.mode))
    }

    /// Ends the open, even if an error is returned. With it end all locks taken through it: its
    /// whole-file lock, and on its node every byte-range lock of each owner that took one through
    /// it. If its entry is marked for removal ([`set_delete`](Self::set_delete)) and this is the
    /// last open, it is removed. An error is from earlier writes, or says that the entry could not
    /// be removed.
    ///
    /// # Errors
    /// None of its own.
    pub fn close(&self, open: OpenId) -> Result<()> {
        let opened = self.volume.opens.remove(open)?;
        self.volume.ranges.end_open(opened.node, open);
        self.volume
            .wholes
            .end_owner(opened.node, LockOwner::of_open(open));
        let removal = self.leave_use(opened.node, opened.mark, opened.wants());
        let closed = match opened.any() {
            Some(below) => self.fs().close(&self.ctx(), below),
            None => Ok(()),
        };
        if opened.writes() {
            self.volume.note_writer_gone();
        }
        match removal {
            Some(removal) => closed.and(self.volume.remove_at_last(&removal)),
            None => closed,
        }
    }

    /// Returns the open, ready for a write by this caller.
    fn to_write(&self, open: OpenId) -> Result<(Ctx<'_>, Opened)> {
        let opened = self.volume.opens.get(open)?;
        if !opened.writes() {
            return Err(Kind::Access.into());
        }
        self.contend_open(&opened, Impact::WRITE)?;
        let cx = self.ctx();
        self.drop_privileges(&cx, open, &opened, false)?;
        Ok((cx, opened))
    }

    #[inline]
    fn contend_open(&self, opened: &Opened, impact: Impact) -> Result<()> {
        self.check_momentary(opened, impact)?;
        self.contend(opened.node, By::Open(opened.mark), impact)
    }

    /// Checks a momentary open, which has registered no share mode, against others' share modes.
    ///
    /// # Errors
    /// `Sharing`.
    #[inline]
    pub(crate) fn check_momentary(&self, opened: &Opened, impact: Impact) -> Result<()> {
        if opened.mark != MOMENTARY {
            return Ok(());
        }
        let rights = if impact == Impact::READ {
            Rights::READ
        } else {
            Rights::WRITE
        };
        let uses = &self.volume.uses;
        uses.check_moment(opened.node, rights, self.client)
    }

    /// Notes that the file's content has changed through this open.
    fn note_data(&self, opened: &Opened) {
        self.has_changed(opened.node, By::Open(opened.mark));
        self.tell(|| News::Data(opened.node));
    }

    /// Takes from an open file the privileges that no write leaves, as the writing operations do by
    /// themselves. These are its capabilities (`security.capability`), and set-uid and set-gid if
    /// the caller is not root or `also_roots`. Returns whether there were any.
    ///
    /// # Errors
    /// `Access` if the file was opened for reading only.
    pub fn take_privileges(&self, open: OpenId, also_roots: bool) -> Result<bool> {
        let opened = self.volume.opens.get(open)?;
        if !opened.writes() {
            return Err(Kind::Access.into());
        }
        self.drop_privileges(&self.ctx(), open, &opened, also_roots)
    }

    /// Reads the node's mode once per open, and again only after some node of the volume was given
    /// a privilege. If others may change nodes without a notice, reads it each time.
    fn drop_privileges(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        opened: &Opened,
        also_roots: bool,
    ) -> Result<bool> {
        let epoch = self.volume.set_id_epoch.load(Ordering::SeqCst);
        let heard = self.volume.hearing() == Hearing::All;
        if opened.plain_at == epoch && heard || !self.keeps_set_id() {
            return Ok(false);
        }
        let mut had = self.drop_capability(cx, opened.node)?;
        let takes_set_id = also_roots || !self.cred.is_root();
        let attr = self.fs().getattr(cx, opened.node)?;
        let plain = rules::without_set_id(attr.mode);
        if takes_set_id && let Some(mode) = plain {
            self.fs().setattr(cx, opened.node, &SetAttr::mode(mode))?;
            had = true;
        }
        if takes_set_id || plain.is_none() {
            self.volume.opens.note_plain(open, epoch);
        }
        if had {
            self.tell(|| News::Attr(opened.node));
        }
        Ok(had)
    }

    /// Removes the node's capabilities. Returns whether it had any.
    pub(crate) fn drop_capability(&self, cx: &Ctx<'_>, node: NodeId) -> Result<bool> {
        if !self.volume.caps.has(Caps::XATTRS) {
            return Ok(false);
        }
        match self.fs().getxattr(cx, node, CAPABILITY) {
            Err(e) if e == Kind::NoXattr || e == Kind::Unsupported => return Ok(false),
            found => found?,
        };
        match self.fs().removexattr(cx, node, CAPABILITY) {
            Err(e) if e == Kind::NoXattr => Ok(false),
            removed => removed.map(|()| true),
        }
    }

    /// Returns the epoch in which an open of a node with these attributes knows it to be without
    /// privileges; 0 if it does not know.
    pub(crate) fn plain_epoch(&self, attr: &Attr) -> u64 {
        match rules::without_set_id(attr.mode) {
            None if !self.volume.caps.has(Caps::XATTRS) => {
                self.volume.set_id_epoch.load(Ordering::SeqCst)
            }
            _ => 0,
        }
    }

    fn keeps_set_id(&self) -> bool {
        let caps = self.volume.caps;
        caps.has(Caps::MODES) && !caps.has(Caps::CHECKS_ACCESS)
    }
}

fn access_for(mode: Mode) -> Access {
    match mode {
        Mode::Read => Access::READ,
        Mode::Write => Access::WRITE,
        Mode::ReadWrite => Access::READ.and(Access::WRITE),
    }
}
