//! Operations on opens: open, read, write, list, close.

use crate::events::News;
use crate::locks::LockOwner;
use crate::opens::Opened;
use crate::rules;
use crate::session::Session;
use std::sync::atomic::Ordering;
use volary_core::{
    Access, Attr, Caps, Cookie, Ctx, DirBuf, Extent, FileKind, Kind, Mode, NodeId, OpenId, Result,
    SetAttr,
};

/// How to open a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenHow {
    /// What for.
    pub mode: Mode,
    /// Every write goes to the end, as it is at that moment (`O_APPEND`).
    pub append: bool,
    /// Cut it to nothing first (`O_TRUNC`).
    pub truncate: bool,
}

impl From<Mode> for OpenHow {
    fn from(mode: Mode) -> Self {
        Self {
            mode,
            append: false,
            truncate: false,
        }
    }
}

impl Session {
    /// Opens a file, or a directory for reading. Needs read or write access on
    /// it, as `how` says. A node that is open outlives its last name.
    ///
    /// # Errors
    /// `SymlinkLoop` for a symlink; `IsDir` for writing a directory; `Invalid`
    /// for other kinds of node and for truncation without writing; `ReadOnly`
    /// for writing; `Access`.
    pub fn open(&self, node: NodeId, how: impl Into<OpenHow>) -> Result<OpenId> {
        let how = how.into();
        let cx = self.ctx();
        let attr = self.fs().getattr(&cx, node)?;
        self.open_entry(&cx, &attr, how.mode, how.append, how.truncate)
    }

    pub(crate) fn open_entry(
        &self,
        cx: &Ctx<'_>,
        attr: &Attr,
        mode: Mode,
        append: bool,
        truncate: bool,
    ) -> Result<OpenId> {
        let writes = mode != Mode::Read;
        match attr.kind {
            FileKind::Symlink => return Err(Kind::SymlinkLoop.into()),
            FileKind::Dir if writes => return Err(Kind::IsDir.into()),
            FileKind::File | FileKind::Dir => {}
            _ => return Err(Kind::Invalid.into()),
        }
        if truncate && !writes {
            return Err(Kind::Invalid.into());
        }
        if writes {
            self.check_writable()?;
        }
        self.need(cx, attr, access_for(mode))?;
        let below = self.fs().open(cx, attr.node, mode)?;
        let plain_at = self.plain_epoch(attr);
        let open = self.enter_open(cx, below, attr.node, mode, append, plain_at)?;
        if truncate && let Err(e) = self.change(cx, attr.node, &SetAttr::size(0), true) {
            // The open never was: what ending it says does not matter.
            let _ = self.close(open);
            return Err(e);
        }
        Ok(open)
    }

    pub(crate) fn enter_open(
        &self,
        cx: &Ctx<'_>,
        below: OpenId,
        node: NodeId,
        mode: Mode,
        append: bool,
        plain_at: u64,
    ) -> Result<OpenId> {
        let opened = Opened {
            below,
            node,
            mode,
            append,
            plain_at,
        };
        let entered = self
            .volume
            .check_attached()
            .and_then(|()| self.volume.opens.insert(opened));
        if entered.is_err() {
            // Not entered, it is nobody's: what ending it says does not matter.
            let _ = self.fs().close(cx, below);
        }
        entered
    }

    /// Reads at byte `offset` and gives the bytes read: fewer than asked for
    /// only at the end of the file.
    ///
    /// # Errors
    /// `Access` if it was opened for writing only; `IsDir`.
    pub fn read(&self, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let opened = self.volume.opens.get(open)?;
        if !opened.reads() {
            return Err(Kind::Access.into());
        }
        self.fs().read(&self.ctx(), opened.below, offset, buf)
    }

    /// Writes all of `data` at byte `offset`; with no offset, or if it was
    /// opened to append, at the end as it is at that moment. Gives the offset
    /// just after the data. Written by anybody but root, a file loses set-uid
    /// and set-gid.
    ///
    /// # Errors
    /// `Access` if it was opened for reading only; `TooBig`.
    pub fn write(&self, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let (cx, opened) = self.to_write(open)?;
        let offset = if opened.append { None } else { offset };
        let end = self.fs().write(&cx, opened.below, offset, data)?;
        self.tell(|| News::Data(opened.node));
        Ok(end)
    }

    /// Makes the file durable: its data and, unless `data_only`, its
    /// attributes.
    ///
    /// # Errors
    /// None of its own.
    pub fn fsync(&self, open: OpenId, data_only: bool) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        self.fs().fsync(&self.ctx(), opened.below, data_only)
    }

    /// Gives the range room of its own (`hole` false) or takes it away
    /// (`hole` true). The size stays.
    ///
    /// # Errors
    /// `Access` if it was opened for reading only; `Unsupported`.
    pub fn allocate(&self, open: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        let (cx, opened) = self.to_write(open)?;
        self.fs().allocate(&cx, opened.below, offset, len, hole)?;
        self.tell(|| News::Data(opened.node));
        Ok(())
    }

    /// Where the bytes of the range lie; see
    /// [`FileSystem::extents`](volary_core::FileSystem::extents).
    ///
    /// # Errors
    /// `Access` if it was opened for writing only; `Unsupported` without
    /// [`Caps::EXTENTS`].
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
        self.fs()
            .extents(&self.ctx(), opened.below, offset, len, out)
    }

    /// Fills `out` with entries of the open directory, starting at `from`,
    /// without `.` and `..`. True when there are no more after these. See
    /// [`FileSystem::readdir`](volary_core::FileSystem::readdir).
    ///
    /// # Errors
    /// `NotDir`; `Invalid` for a cookie that was never given out.
    pub fn readdir(&self, open: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let opened = self.volume.opens.get(open)?;
        self.fs().readdir(&self.ctx(), opened.below, from, out)
    }

    /// Anything else, in the driver's own codes.
    ///
    /// # Errors
    /// The driver's.
    pub fn ioctl(&self, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        let opened = self.volume.opens.get(open)?;
        self.fs().ioctl(&self.ctx(), opened.below, code, input)
    }

    /// The node that is open, and what for.
    ///
    /// # Errors
    /// None of its own.
    pub fn opened(&self, open: OpenId) -> Result<(NodeId, Mode)> {
        let opened = self.volume.opens.get(open)?;
        Ok((opened.node, opened.mode))
    }

    /// Ends the open, whatever the answer, and with it all locks that were
    /// taken through it: its whole-file lock, and on its node every byte-range
    /// lock of each owner that took one through it. An error tells of earlier
    /// writes.
    ///
    /// # Errors
    /// None of its own.
    pub fn close(&self, open: OpenId) -> Result<()> {
        let opened = self.volume.opens.remove(open)?;
        self.volume.ranges.end_open(opened.node, open);
        self.volume
            .wholes
            .end_owner(opened.node, LockOwner::of_open(open));
        self.fs().close(&self.ctx(), opened.below)
    }

    /// An open about to be written by this caller.
    fn to_write(&self, open: OpenId) -> Result<(Ctx<'_>, Opened)> {
        let opened = self.volume.opens.get(open)?;
        if !opened.writes() {
            return Err(Kind::Access.into());
        }
        let cx = self.ctx();
        self.drop_set_id(&cx, open, &opened)?;
        Ok((cx, opened))
    }

    /// Takes set-uid and set-gid from a file about to be written. The node is
    /// looked at once per open, and again only after some node of the volume
    /// was given one of the bits.
    fn drop_set_id(&self, cx: &Ctx<'_>, open: OpenId, opened: &Opened) -> Result<()> {
        if self.cred.is_root() || !self.keeps_set_id() {
            return Ok(());
        }
        let epoch = self.volume.set_id_epoch.load(Ordering::SeqCst);
        if opened.plain_at == epoch {
            return Ok(());
        }
        let attr = self.fs().getattr(cx, opened.node)?;
        if let Some(mode) = rules::without_set_id(attr.mode) {
            self.fs().setattr(cx, opened.node, &SetAttr::mode(mode))?;
        }
        self.volume.opens.note_plain(open, epoch);
        Ok(())
    }

    /// The epoch to note for an open of a node with these attributes.
    pub(crate) fn plain_epoch(&self, attr: &Attr) -> u64 {
        match rules::without_set_id(attr.mode) {
            None => self.volume.set_id_epoch.load(Ordering::SeqCst),
            Some(_) => 0,
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
