//! The implementation of `FileSystem`.

use crate::attached::ahead::Ahead;
use crate::attached::operations::{Attached, Open, What};
use crate::attributes::form::{Form, Wsl};
use crate::directory::dir::{Directory, Entry as DirEntry, is_shown};
use crate::disk::names::utf16;
use crate::disk::ondisk::{fflag, number};
use crate::files::node::{Node, id_of};
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, Error, Extent, FileKind, FileSystem, Finding, Kind,
    Mode, Name, NodeId, OpenId, Prefetch, Result, StatFs,
};

/// An attached volume.
pub(crate) struct NtfsFs(pub(crate) Attached);

const CAPS: u32 = Caps::MODES
    | Caps::SYMLINKS
    | Caps::HARD_LINKS
    | Caps::DEVICES
    | Caps::XATTRS
    | Caps::HOLES
    | Caps::CASE_KEEPING
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::EXTENTS;

/// The most bytes of a name: 255 units of UTF-16, each of up to three bytes.
const NAME_MAX: u16 = 765;

/// The resolution of times, in nanoseconds.
const TIME_STEP: u64 = 100;

impl NtfsFs {
    fn entry_of(&self, node: &Node) -> Result<Entry> {
        let (_, attr) = self.0.attributes().of(node)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    /// Puts an entry into the buffer. Returns false if there is no room.
    fn push(&self, dir: u64, entry: &DirEntry, out: &mut DirBuf) -> Result<bool> {
        if !is_shown(dir, entry.to.number, self.0.shows_system) {
            return Ok(true);
        }
        let id = id_of(entry.to);
        let (kind, attr) = self.kind_of(entry, id, out.wants_attr())?;
        Ok(out.push(entry.end, id, kind, &entry.shown(), attr))
    }

    /// Returns the kind of an entry's node, and its attributes if they are wanted. For a node that
    /// is gone or damaged, the kind is the one that its name gives.
    fn kind_of(
        &self,
        entry: &DirEntry,
        id: NodeId,
        wants_attr: bool,
    ) -> Result<(FileKind, Option<Attr>)> {
        let flags = entry.name.flags;
        let told = match flags & fflag::DIRECTORY {
            0 => FileKind::File,
            _ => FileKind::Dir,
        };
        let may_be_other = fflag::REPARSE_POINT | fflag::SYSTEM;
        // A special file has no bytes. Only its extended attributes give its kind, and the flags of
        // a name do not always show that there are any.
        let has_bytes = told == FileKind::Dir || entry.name.size > 0;
        let is_plain = flags & may_be_other == 0 && has_bytes;
        if is_plain && !wants_attr {
            return Ok((told, None));
        }
        let node = Node::read(self.0.store.mft(), id);
        match node.and_then(|node| self.0.attributes().of(&node)) {
            Ok((_, attr)) => Ok((attr.kind, Some(attr).filter(|_| wants_attr))),
            Err(e) if e == Kind::Io => Err(e),
            Err(_) => Ok((told, None)),
        }
    }

    /// Finds a named stream of a file in a directory. Its name has the form `FILE:STREAM`.
    fn find_stream(&self, dir: &Directory, name: &[u8]) -> Result<Node> {
        let at = name.iter().rposition(|byte| *byte == b':');
        let (file, rest) = name.split_at_checked(at.unwrap_or(0)).unwrap_or_default();
        let stream = rest
            .get(1..)
            .and_then(utf16)
            .filter(|name| !name.is_empty());
        let stream = stream.ok_or(Kind::NotFound)?;
        let entry = self.0.find(dir, file)?.ok_or(Kind::NotFound)?;
        let mut node = self.0.load(id_of(entry.to))?;
        let place = node.streams().iter().position(|name| *name == stream);
        node.stream = place.ok_or(Kind::NotFound)? as u64 + 1;
        Ok(node)
    }

    fn dir_of(open: &Open) -> Result<&Directory> {
        match &open.what {
            What::Dir(dir) => Ok(dir),
            What::File(_) => Err(Kind::NotDir.into()),
        }
    }
}

impl FileSystem for NtfsFs {
    fn caps(&self) -> Caps {
        Caps {
            bits: CAPS,
            name_max: NAME_MAX,
            size_max: i64::MAX as u64,
            time_step: TIME_STEP,
        }
    }

    fn root(&self) -> NodeId {
        self.0.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.0.alive()?;
        Ok(self.0.statfs())
    }

    fn findings(&self) -> Vec<Finding> {
        self.0.findings()
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.detach();
        Ok(())
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.alive()
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let node = self.0.load(dir)?;
        let mft = self.0.store.mft();
        let dir = Directory::of(mft, &node)?;
        let Some(entry) = self.0.find(&dir, name.as_bytes())? else {
            return self.entry_of(&self.find_stream(&dir, name.as_bytes())?);
        };
        if !is_shown(dir.number(), entry.to.number, self.0.shows_system) {
            return Err(Kind::NotFound.into());
        }
        self.entry_of(&Node::read(mft, id_of(entry.to))?)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let node = self.0.load(dir)?;
        if !node.is_dir() {
            return Err(Kind::NotDir.into());
        }
        if node.number() == number::ROOT {
            return self.entry_of(&node);
        }
        let mft = self.0.store.mft();
        let parent = node.parent(mft)?;
        self.entry_of(&Node::read(mft, id_of(parent))?)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let open = self.0.opened(dir)?;
        let dir = Self::dir_of(&open)?;
        let mft = self.0.store.mft();
        dir.list(mft, cx, from, |entry| self.push(dir.number(), entry, out))
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let node = self.0.load(node)?;
        Ok(self.0.attributes().of(&node)?.1)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let node = self.0.load(node)?;
        let mft = self.0.store.mft();
        match Form::of(mft, &node, &Wsl::read(mft, &node)?)? {
            Form::Link(target) => Ok(target),
            _ => Err(Kind::Invalid.into()),
        }
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let node = self.0.load(node)?;
        self.0.store.xattrs(&node).value(name)
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let node = self.0.load(node)?;
        Ok(self.0.store.xattrs(&node).names())
    }

    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        if self.0.alive().is_ok() {
            Ahead::new(self.0.store.mft()).prefetch(cx, nodes, what);
        }
        true
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.alive()?;
        if mode != Mode::Read {
            return Err(Kind::ReadOnly.into());
        }
        self.0.open(node)
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        match &self.0.opened(open)?.what {
            What::Dir(..) => Err(Kind::IsDir.into()),
            What::File(None) => Ok(0),
            What::File(Some(stream)) => stream.read(self.0.store.mft(), offset, buf),
        }
    }

    fn extents(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        match &self.0.opened(open)?.what {
            What::Dir(..) => Err(Error::from(Kind::IsDir)),
            What::File(None) => Ok(()),
            What::File(Some(stream)) => {
                let bytes = offset..offset.saturating_add(len);
                stream.extents(self.0.store.mft(), cx, bytes, out)
            }
        }
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close(open)
    }
}
