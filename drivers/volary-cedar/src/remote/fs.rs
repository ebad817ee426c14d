//! The file system of a volume that keeps files of a remote: each operation in a few words, the work is in
//! `attached` and `fetch`.

use crate::attached::xattrs::REMOTE;
use crate::change::nodes::{node_id, uid_of};
use crate::name_table::entry::Head;
use crate::remote::attached::{CachedFs, is_gone, not_ours};
use crate::remote::cache::FarNodes;
use crate::remote::fetch::Content;
use crate::remote::link::Links;
use std::time::Duration;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind, FileSystem, Finding, Kind,
    Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs,
};

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
        let left = self.connection.detach(cx);
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
            let found = FarNodes::of(&mut self.local.state()?.files).far_at(dir, name)?;
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
                let entry = FarNodes::of(&mut state.files).record(
                    cx,
                    head.uid,
                    name.as_bytes(),
                    &found.attr,
                )?;
                self.connection.know(uid_of(entry.node)?, found.node);
                Ok(entry)
            }
            Ok(None) => match self.local.lookup(cx, dir, name) {
                Err(e) if e == Kind::NotFound => self.must_be_listed(dir).and(Err(e)),
                found => found,
            },
            Err(e) if e == Kind::NotFound => {
                let mut state = self.local.to_change()?;
                Links::of(&mut state.files).forget_name(head.uid, name.as_bytes(), cx.now)?;
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
            let uid = self.local.state()?.open_files().node(dir)?;
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
        let link = FarNodes::of(&mut self.local.state()?.files).far_at(dir, name)?;
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
        let link = FarNodes::of(&mut self.local.state()?.files).far_at(dir, name)?;
        if let Some(link) = link.filter(Head::is_dir) {
            FarNodes::of(&mut self.local.to_change()?.files).forget_names_in(cx, link.uid)?;
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
                FarNodes::of(&mut state.files).note_target(cx, head.uid, &far.seen, &target)?;
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
        let read = FarNodes::of(&mut self.local.state()?.files).read_if_here(open, offset, buf)?;
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
        let uid = self.local.state()?.open_files().node(open)?;
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
