//! The implementation of [`FileSystem`].

use crate::content::{Content, PAGE};
use crate::node::Body;
use crate::options::MemOptions;
use crate::state::State;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, FileKind, FileSystem, Fs, Kind, Mode, Name,
    NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs, Time,
};

/// The longest target of a symlink, in bytes.
const TARGET_MAX: usize = 4095;

/// An in-memory volume.
pub struct Mem {
    caps: Caps,
    root: NodeId,
    state: Mutex<State>,
}

impl Mem {
    /// Returns a new, empty volume. Its root is created at `now`.
    ///
    /// # Errors
    /// `NoSpace` if the options leave no room for the root.
    pub fn new(options: MemOptions, now: Time) -> Result<Self> {
        let caps = options.true_caps();
        let state = State::new(options, now)?;
        Ok(Self {
            caps,
            root: state.root,
            state: Mutex::new(state),
        })
    }

    /// Returns a new, empty volume that can be shared.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn attach(options: MemOptions, now: Time) -> Result<Fs> {
        Ok(Arc::new(Self::new(options, now)?))
    }

    /// Locks the state, if the volume is attached.
    ///
    /// # Errors
    /// `Stale` once detached.
    fn state(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state.lock();
        if state.detached {
            return Err(Kind::Stale.into());
        }
        Ok(state)
    }

    /// Locks the state for a change.
    ///
    /// # Errors
    /// `Stale` once detached; `ReadOnly`.
    fn to_change(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state()?;
        if !self.caps.has(Caps::WRITE) {
            return Err(Kind::ReadOnly.into());
        }
        Ok(state)
    }
}

impl FileSystem for Mem {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        let state = self.state()?;
        Ok(StatFs {
            block_size: PAGE as u32,
            size: state.options.size,
            free: state.free(),
            available: state.free(),
            nodes: state.options.nodes_max,
            nodes_free: state.nodes_free(),
        })
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.state().map(|_| ())
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        let mut state = self.state.lock();
        state.close_all();
        state.detached = true;
        Ok(())
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let state = self.state()?;
        state.entry(state.lookup(dir, name)?)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let state = self.state()?;
        let parent = state.node(dir)?.dir()?.parent;
        state.entry(parent)
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let state = self.state()?;
        let dir = state.node(state.opened(dir)?)?.dir()?;
        for (cookie, slot) in dir.after(from)? {
            let attr = state.attr(slot.node)?;
            let shown = out.wants_attr().then_some(attr);
            if !out.push(cookie, slot.node, attr.kind, &slot.name, shown) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let mut state = self.to_change()?;
        let node = match state.lookup(dir, name) {
            Ok(_) if how == Create::New => return Err(Kind::Exists.into()),
            Ok(node) => node,
            Err(e) if e == Kind::NotFound => {
                let made = state.make(cx, dir, name, Body::File(Content::default()), set)?;
                made.node
            }
            Err(e) => return Err(e),
        };
        state.node(node)?.file()?;
        if how == Create::Truncate {
            state.set_attr(cx, node, &SetAttr::size(0))?;
        }
        let open = state.open(node, Mode::ReadWrite)?;
        Ok((state.entry(node)?, open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.to_change()?.mkdir(cx, dir, name, set)
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
        let mut state = self.to_change()?;
        state.options.check_has(Caps::DEVICES)?;
        let rdev = match kind {
            FileKind::CharDevice | FileKind::BlockDevice => rdev,
            FileKind::Fifo | FileKind::Socket => 0,
            _ => return Err(Kind::Invalid.into()),
        };
        state.make(cx, dir, name, Body::Special(kind, rdev), set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let mut state = self.to_change()?;
        state.options.check_has(Caps::SYMLINKS)?;
        state.check_free(dir, name)?;
        if target.len() > TARGET_MAX {
            return Err(Kind::NameTooLong.into());
        }
        state.make(cx, dir, name, Body::Symlink(target.to_vec()), set)
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.to_change()?.link(cx, node, dir, name)
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.to_change()?.unlink(cx, dir, name)
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.to_change()?.rmdir(cx, dir, name)
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
        let mut state = self.to_change()?;
        state.rename(cx, from, name, to, new_name, flags)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.state()?.attr(node)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let mut state = self.to_change()?;
        state.set_attr(cx, node, set)?;
        state.attr(node)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        match &self.state()?.node(node)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let state = self.state()?;
        state.options.check_has(Caps::XATTRS)?;
        let value = state.node(node)?.xattrs.get(name).cloned();
        value.ok_or_else(|| Kind::NoXattr.into())
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let mut state = self.to_change()?;
        state.options.check_has(Caps::XATTRS)?;
        let old = state.node(node)?.xattrs.get(name);
        let before = old.map_or(0, |old| name.len() + old.len());
        state.use_room(before as u64, (name.len() + value.len()) as u64)?;
        let xattrs = &mut state.node_mut(node)?.xattrs;
        xattrs.insert(name.to_vec(), value.to_vec());
        state.touch(node, cx.now)
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let state = self.state()?;
        state.options.check_has(Caps::XATTRS)?;
        Ok(state.node(node)?.xattrs.keys().cloned().collect())
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        let mut state = self.to_change()?;
        state.options.check_has(Caps::XATTRS)?;
        let removed = state.node_mut(node)?.xattrs.remove(name);
        let value = removed.ok_or(Kind::NoXattr)?;
        state.use_room((name.len() + value.len()) as u64, 0)?;
        state.touch(node, cx.now)
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let mut state = if mode == Mode::Read {
            self.state()?
        } else {
            self.to_change()?
        };
        match state.node(node)?.kind() {
            FileKind::File => {}
            FileKind::Dir if mode == Mode::Read => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        state.open(node, mode)
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let state = self.state()?;
        let content = state.node(state.opened(open)?)?.file()?;
        Ok(content.read(offset, buf))
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let mut state = self.to_change()?;
        let node = state.opened_to_write(open)?;
        let offset = match offset {
            Some(offset) => offset,
            None => state.node(node)?.file()?.size(),
        };
        let len = data.len() as u64;
        let end = offset.checked_add(len).ok_or(Kind::TooBig)?;
        if data.is_empty() {
            state.node(node)?.file()?;
            return Ok(end);
        }
        state.change_content(node, offset..end, end, |content| {
            content.write(offset, data);
        })?;
        state.touch_content(node, cx.now)?;
        Ok(end)
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.state()?.opened(open).map(|_| ())
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        let mut state = self.to_change()?;
        state
            .options
            .check_has(if hole { Caps::HOLES } else { Caps::PREALLOCATE })?;
        let node = state.opened(open)?;
        let end = offset.checked_add(len).ok_or(Kind::TooBig)?;
        if len == 0 {
            return Err(Kind::Invalid.into());
        }
        state.options.check_size(end)?;
        if hole {
            state.change_content(node, 0..0, 0, |content| content.punch(offset, len))?;
            return state.touch_content(node, cx.now);
        }
        state.change_content(node, offset..end, 0, |content| content.fill(offset, len))?;
        state.touch(node, cx.now)
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.state()?.close(open)
    }
}
