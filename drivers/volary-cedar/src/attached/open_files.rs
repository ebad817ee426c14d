//! What is done through an open: reading, writing, and letting go of what was closed.

use crate::attached::leaving::Leaving;
use crate::attached::steps::Steps;
use crate::change::file::File;
use crate::change::files::{Files, Open};
use crate::change::nodes::{Nodes, uid_of};
use crate::change::sealing::Sealing;
use volary_core::{Ctx, Extent, FileKind, Kind, Mode, NodeId, OpenId, Result};

/// Open files and directories.
pub(crate) struct OpenFiles<'a> {
    files: &'a mut Files,
}

impl<'a> OpenFiles<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    pub(crate) fn add(&mut self, uid: u64, mode: Mode) -> OpenId {
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
        let (place, head) = Nodes::of(self.files).home(uid_of(node)?)?;
        match head.kind {
            FileKind::File | FileKind::Dir if mode == Mode::Read => {}
            FileKind::File => head.check_newest(&place)?,
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        Ok(self.add(head.uid, mode))
    }

    /// Returns the node of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, open: OpenId) -> Result<u64> {
        self.files.opens.get(open).map(|open| open.uid)
    }

    pub(crate) fn close(&mut self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let closed = self.files.opens.remove(open)?;
        if !closed.is_last {
            return Ok(());
        }
        let uid = closed.node;
        self.files.core.map.give_back_kept(uid);
        Sealing::of(self.files).seal(uid, cx.now)?;
        Leaving::of(self.files).release(cx, uid)
    }

    pub(crate) fn read(&mut self, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let Open { uid, checked, .. } = *self.files.opens.get(open)?;
        let first = offset == 0 && !checked;
        let (_, head) = Nodes::of(self.files).home(uid)?;
        head.check_file()?;
        let read = File::of(self.files).read(&head, offset, buf, first)?;
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
        let (_, head) = Nodes::of(self.files).home(uid)?;
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
        Sealing::of(self.files).unseal(uid, at, cx.now)?;
        let mut end = Steps::of(self.files).try_write(cx, uid, at, data);
        if end.is_err() && self.files.core.too_much {
            end = Steps::of(self.files).grow_and(cx, uid, at, |files| {
                Steps::of(files).write_in_steps(cx, uid, at, data)
            });
        }
        if end.is_err() {
            Sealing::of(self.files).note_failed_write(uid, at);
        }
        let end = end?;
        Sealing::of(self.files).note_write(uid, at, data)?;
        File::of(self.files).write_through()?;
        Ok(end)
    }

    pub(crate) fn fsync(&mut self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.node(open)?;
        self.files.core.commit(cx.now)
    }

    pub(crate) fn extents(
        &mut self,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let uid = self.node(open)?;
        let (_, head) = Nodes::of(self.files).home(uid)?;
        head.check_file()?;
        File::of(self.files).extents(&head, offset, len, out)
    }
}
