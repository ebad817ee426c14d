//! The file system.

use crate::attached::operations::{Attached, stretch_of};
use crate::disk::volume::{Stretch, Tree};
use crate::extensions::rockridge;
use crate::extensions::susp::Areas;
use crate::tree::dir::Reader;
use crate::tree::node::Node;
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, Error, Extent, FileKind, FileSystem, Kind, Mode, Name,
    NodeId, OpenId, Prefetch, Result, StatFs,
};

/// An attached volume.
pub(crate) struct Iso9660Fs(pub(crate) Attached);

/// What every volume can do.
const CAPS: u32 = Caps::CASE_SENSITIVE
    | Caps::CASE_KEEPING
    | Caps::STABLE_IDS
    | Caps::STABLE_COOKIES
    | Caps::EXTENTS;
/// What Rock Ridge adds.
const ROCK_CAPS: u32 =
    Caps::MODES | Caps::SYMLINKS | Caps::HARD_LINKS | Caps::DEVICES | Caps::ANY_NAME;

/// 64 units of UCS-2 by the specification, up to 110 by some writers.
const NAME_MAX_JOLIET: u16 = 330;

impl Iso9660Fs {
    fn entry(&self, id: NodeId) -> Result<Entry> {
        let node = self.0.load(id)?;
        Ok(entry_of(&node))
    }
}

fn entry_of(node: &Node) -> Entry {
    Entry {
        node: node.attr.node,
        attr: node.attr,
    }
}

impl FileSystem for Iso9660Fs {
    fn caps(&self) -> Caps {
        let (more, name_max) = match self.0.volume.tree {
            Tree::RockRidge { .. } => (ROCK_CAPS, rockridge::NAME_MAX as u16),
            Tree::Joliet => (0, NAME_MAX_JOLIET),
            Tree::Plain | Tree::Iso => (0, 255),
        };
        Caps {
            bits: CAPS | more,
            name_max,
            size_max: i64::MAX as u64,
            time_step: 1_000_000_000,
        }
    }

    fn root(&self) -> NodeId {
        // The descriptors come before the root directory, so its place is not 0.
        NodeId {
            ino: std::num::NonZeroU64::new(self.0.volume.root).unwrap_or(std::num::NonZeroU64::MIN),
            generation: 0,
        }
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.0.alive()?;
        Ok(StatFs {
            block_size: self.0.volume.block as u32,
            size: self.0.volume.space,
            ..StatFs::default()
        })
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.detach();
        Ok(())
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.0.alive()
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let stretch = self.0.dir(dir)?;
        let nodes = self.0.nodes(cx)?;
        let (mut at, mut areas) = (0, Areas::of_all(nodes.reader.cache));
        while let Some(found) = nodes.reader.found(stretch, &mut at)? {
            cx.check_cancel()?;
            let entry = self.0.entry(&nodes, &found, &mut areas)?;
            let Some(entry) = entry.filter(|e| e.name == name.as_bytes()) else {
                continue;
            };
            return match &entry.node {
                Some(node) => Ok(entry_of(node)),
                None => Ok(entry_of(&nodes.dir(entry.id.ino.get())?)),
            };
        }
        Err(Kind::NotFound.into())
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let stretch = self.0.dir(dir)?;
        if dir == self.root() {
            return self.entry(dir);
        }
        let nodes = self.0.nodes(cx)?;
        Ok(entry_of(&nodes.dir(nodes.parent(stretch)?)?))
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let stretch = stretch_of(&*self.0.opened(dir)?)?;
        let nodes = self.0.nodes(cx)?;
        let mut at = place_of(&nodes.reader, stretch, from)?;
        let mut areas = Areas::of_all(nodes.reader.cache);
        while let Some(found) = nodes.reader.found(stretch, &mut at)? {
            cx.check_cancel()?;
            let Some(entry) = self.0.entry(&nodes, &found, &mut areas)? else {
                continue;
            };
            // Nobody could ask for a name that is not valid.
            if Name::new(&entry.name).is_err() {
                continue;
            }
            let attr = entry.node.as_ref().map(|node| node.attr);
            if !out.push(Cookie(at), entry.id, entry.kind, &entry.name, attr) {
                return Ok(false);
            }
            if let Some(node) = entry.node.filter(|node| !node.is_odd)
                && out.wants_extents(node.attr.size)
            {
                let size = node.attr.size;
                out.set_extents(entry.id, |extents| self.0.extents(&node, 0, size, extents));
            }
        }
        Ok(true)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        Ok(self.0.load(node)?.attr)
    }

    fn prefetch(&self, cx: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        if self.0.alive().is_ok() {
            self.0.prefetch(cx, nodes, what);
        }
        true
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let target = self.0.load(node)?.target;
        target.ok_or_else(|| Kind::Invalid.into())
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.0.alive()?;
        if mode != Mode::Read {
            return Err(Kind::ReadOnly.into());
        }
        let node = self.0.load(node)?;
        if node.is_odd {
            let words = "the file is interleaved, sparse or in too many sections";
            return Err(Error::note(Kind::Unsupported, words));
        }
        Ok(self.0.open(node))
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let node = self.0.opened(open)?;
        if node.attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        self.0.read(&node, offset, buf)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let node = self.0.opened(open)?;
        self.0.extents(&node, offset, len, out)
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.0.close(open)
    }
}

/// Returns the place in a directory that a cookie stands for.
///
/// # Errors
/// `Invalid` if no record ends there.
fn place_of(reader: &Reader<'_>, dir: Stretch, from: Cookie) -> Result<u64> {
    let at = from.0;
    let invalid = || Error::from(Kind::Invalid);
    if at > dir.len {
        return Err(invalid());
    }
    let mut end = at - at % reader.volume.block;
    while end < at {
        reader.record(dir, &mut end)?.ok_or_else(invalid)?;
    }
    if end == at { Ok(at) } else { Err(invalid()) }
}
