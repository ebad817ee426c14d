//! The file system operations of the layer.

use super::content::refused;
use super::{Crypt, blocks, names};
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind, Fs, Kind, Layer, Mode, Name,
    NodeId, OpenId, RenameFlags, Result, SetAttr,
};

impl Layer for Crypt {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        let below = self.below.caps();
        Caps {
            name_max: names::name_max(below.name_max.min(255)),
            size_max: blocks::size_of(below.size_max),
            ..below
        }
        .without(Caps::EXTENTS | Caps::PREALLOCATE | Caps::XATTRS | Caps::CRASH_SAFE)
        .with(Caps::CASE_SENSITIVE | Caps::CASE_KEEPING | Caps::ANY_NAME)
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let _looking = self.changing.read();
        let name = self.sealed(cx, dir, name)?;
        let found = self.below.lookup(cx, dir, Name::new(&name)?)?;
        Ok(self.shown_entry(found))
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.list(cx, dir, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let _changing = self.changing.write();
        let name = self.to_make(cx, dir, name)?;
        let name = Name::new(&name)?;
        let there = match self.below.lookup(cx, dir, name) {
            Err(e) if e == Kind::NotFound => None,
            found => Some(found?),
        };
        // Truncating a file to nothing removes its header, so the cached cipher must go.
        let held = there
            .filter(|there| how == Create::Truncate && there.attr.kind == FileKind::File)
            .map(|there| (there.node, self.files.lock().hold(there.node)));
        let cut = held.as_ref().map(|(_, cipher)| cipher.write());
        let plain = SetAttr { size: None, ..*set };
        let made = self.below.create(cx, dir, name, how, &plain);
        if let (Some(mut cut), true) = (cut, made.is_ok()) {
            *cut = None;
        }
        if let Some((node, _)) = held {
            self.files.lock().let_go(node);
        }
        let (mut entry, open) = made?;
        self.opened(open, entry.node);
        if let Some(size) = set.size.filter(|&size| size > 0 && there.is_none()) {
            let only = SetAttr::size(size);
            entry.attr = self.with_open(cx, open, |content| content.resize(size, &only))?;
        }
        Ok((self.shown_entry(entry), open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let _changing = self.changing.write();
        let name = self.to_make(cx, dir, name)?;
        let name = Name::new(&name)?;
        let entry = self.below.mkdir(cx, dir, name, set)?;
        if let Err(e) = self.give_id(cx, entry.node) {
            self.below.rmdir(cx, dir, name)?;
            return Err(e);
        }
        let attr = self.below.getattr(cx, entry.node)?;
        Ok(Entry { attr, ..entry })
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
        let _changing = self.changing.write();
        let name = self.to_make(cx, dir, name)?;
        let name = Name::new(&name)?;
        self.below.mknod(cx, dir, name, kind, rdev, set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let _changing = self.changing.write();
        let name = self.to_make(cx, dir, name)?;
        let name = Name::new(&name)?;
        let target = names::seal_target(&self.keys, target)?;
        let made = self.below.symlink(cx, dir, name, &target, set)?;
        Ok(self.shown_entry(made))
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let _changing = self.changing.write();
        let name = self.to_make(cx, dir, name)?;
        let made = self.below.link(cx, node, dir, Name::new(&name)?)?;
        Ok(self.shown_entry(made))
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let _changing = self.changing.write();
        let name = self.sealed(cx, dir, name)?;
        self.below.unlink(cx, dir, Name::new(&name)?)
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let _changing = self.changing.write();
        let name = self.sealed(cx, dir, name)?;
        let name = Name::new(&name)?;
        let node = self.below.lookup(cx, dir, name)?.node;
        self.without_id(cx, node, || self.below.rmdir(cx, dir, name))
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
        let _changing = self.changing.write();
        let old = self.sealed(cx, from, name)?;
        let new = self.to_make(cx, to, new_name)?;
        let (old, new) = (Name::new(&old)?, Name::new(&new)?);
        let call = || self.below.rename(cx, from, old, to, new, flags);
        match self.below.lookup(cx, to, new) {
            Ok(there) => self.without_id(cx, there.node, call),
            Err(_) => call(),
        }
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.below.parent(cx, dir)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        Ok(self.shown(self.below.getattr(cx, node)?))
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let Some(size) = set.size else {
            return Ok(self.shown(self.below.setattr(cx, node, set)?));
        };
        let attr = match self.below.getattr(cx, node)?.kind {
            FileKind::File => self.with_node(cx, node, |content| content.resize(size, set))?,
            _ => self.below.setattr(cx, node, set)?,
        };
        Ok(self.shown(attr))
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        names::open_target(&self.keys, &self.below.readlink(cx, node)?)
    }

    fn getxattr(&self, _: &Ctx<'_>, _: NodeId, _: &[u8]) -> Result<Vec<u8>> {
        refused()
    }

    fn setxattr(&self, _: &Ctx<'_>, _: NodeId, _: &[u8], _: &[u8]) -> Result<()> {
        refused()
    }

    fn listxattr(&self, _: &Ctx<'_>, _: NodeId) -> Result<Vec<Vec<u8>>> {
        refused()
    }

    fn removexattr(&self, _: &Ctx<'_>, _: NodeId, _: &[u8]) -> Result<()> {
        refused()
    }

    /// Opens for reading too if the caller writes: writing a part of a block needs the rest.
    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let mode = match mode {
            Mode::Read => Mode::Read,
            Mode::Write | Mode::ReadWrite => Mode::ReadWrite,
        };
        let open = self.below.open(cx, node, mode)?;
        self.opened(open, node);
        Ok(open)
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let attr = self.below.getattr(cx, self.node_of(open)?)?;
        match attr.kind {
            FileKind::Dir => Err(Kind::IsDir.into()),
            _ => self.with_open(cx, open, |content| content.read(offset, buf)),
        }
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.with_open(cx, open, |content| content.write(offset, data))
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        if !hole || !self.below.caps().has(Caps::HOLES) {
            return refused();
        }
        self.with_open(cx, open, |content| content.punch(offset, len))
    }

    /// Refuses: the bytes on the device are ciphertext.
    fn extents(&self, _: &Ctx<'_>, _: OpenId, _: u64, _: u64, _: &mut Vec<Extent>) -> Result<()> {
        refused()
    }

    fn ioctl(&self, _: &Ctx<'_>, _: OpenId, _: u32, _: &[u8]) -> Result<Vec<u8>> {
        refused()
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.close_open(cx, open)
    }
}
