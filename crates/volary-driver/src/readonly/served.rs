//! The file system over the nodes of either kind of tree.

use super::listing::NAME_MAX;
use super::nodes::{Handle, Listed, Nodes};
use crate::SharedOpens;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, Extent, FileKind, FileSystem, Finding, Kind, Mode,
    Name, NodeId, OpenId, Place, Result, StatFs,
};

/// An attached volume.
pub(super) struct Served<N: Nodes> {
    nodes: N,
    opens: SharedOpens<Arc<Opened<N>>>,
    is_detached: AtomicBool,
}

struct Opened<N: Nodes> {
    ino: u64,
    size: u64,
    what: What<N>,
}

enum What<N: Nodes> {
    Dir(Mutex<Listing<N>>),
    File(N::Open),
    Other,
}

/// The entries of a directory, as they were when its listing began.
type Listing<N> = Option<Arc<[Listed<<N as Nodes>::Known>]>>;

impl<N: Nodes> Served<N> {
    pub(super) fn new(nodes: N) -> Self {
        Self {
            nodes,
            opens: SharedOpens::default(),
            is_detached: AtomicBool::new(false),
        }
    }

    fn alive(&self) -> Result<()> {
        match self.is_detached.load(Ordering::Acquire) {
            true => Err(Kind::Stale.into()),
            false => Ok(()),
        }
    }

    /// Returns a node's number, if its generation is this volume's.
    fn number(&self, node: NodeId) -> Result<u64> {
        self.alive()?;
        match node.generation == self.nodes.generation() {
            true => Ok(node.ino.get()),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Returns the number of a node that must be a directory.
    fn dir(&self, node: NodeId) -> Result<u64> {
        let ino = self.number(node)?;
        match self.nodes.kind(ino)? {
            FileKind::Dir => Ok(ino),
            _ => Err(Kind::NotDir.into()),
        }
    }

    fn xattr(&self, node: NodeId, mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let ino = self.number(node)?;
        match self.caps().has(Caps::XATTRS) {
            true => self.nodes.xattrs(ino, &mut each),
            false => Err(Kind::Unsupported.into()),
        }
    }

    fn id(&self, ino: u64) -> Result<NodeId> {
        NodeId::new(ino, self.nodes.generation()).ok_or_else(|| Kind::Stale.into())
    }

    /// Returns how many bytes an open file has from `offset` on.
    fn file(&self, open: &Opened<N>, offset: u64) -> Result<u64> {
        self.alive()?;
        match open.what {
            What::Dir(_) => Err(Kind::IsDir.into()),
            What::Other => Err(Kind::Invalid.into()),
            What::File(_) => Ok(open.size.saturating_sub(offset)),
        }
    }
}

fn entry_of(attr: Attr) -> Entry {
    Entry {
        node: attr.node,
        attr,
    }
}

impl<N: Nodes> FileSystem for Served<N> {
    fn caps(&self) -> Caps {
        let most = Caps {
            bits: self.nodes.bits(),
            name_max: NAME_MAX as u16,
            size_max: i64::MAX as u64,
            time_step: 1,
        };
        let kept = self.nodes.caps(most);
        Caps {
            bits: kept.bits & most.bits,
            name_max: kept.name_max.min(most.name_max),
            size_max: kept.size_max.min(most.size_max),
            time_step: kept.time_step.max(1),
        }
    }

    fn root(&self) -> NodeId {
        let first = std::num::NonZeroU64::MIN;
        NodeId {
            ino: std::num::NonZeroU64::new(self.nodes.root()).unwrap_or(first),
            generation: self.nodes.generation(),
        }
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.alive()?;
        Ok(self.nodes.statfs())
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.alive()
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        self.is_detached.store(true, Ordering::Release);
        self.opens.clear();
        Ok(())
    }

    fn findings(&self) -> Vec<Finding> {
        self.nodes.findings()
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let dir = self.dir(dir)?;
        self.nodes.child(dir, name.as_bytes()).map(entry_of)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let parent = self.nodes.parent(self.dir(dir)?)?;
        self.nodes.attr(parent).map(entry_of)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.alive()?;
        let open = self.opens.get(dir)?;
        let What::Dir(listed) = &open.what else {
            return Err(Kind::NotDir.into());
        };
        let all = {
            let mut listed = listed.lock();
            match &*listed {
                Some(all) if from != Cookie::START => all.clone(),
                _ => listed.insert(self.nodes.list(cx, open.ino)?).clone(),
            }
        };
        if self.nodes.is_odd(from.0, &all) {
            return Err(Kind::Invalid.into());
        }
        let first = all.partition_point(|entry| entry.cookie <= from.0);
        for entry in all.iter().skip(first) {
            let attr = out.wants_attr().then(|| self.nodes.known(entry)).flatten();
            let node = self.id(entry.ino)?;
            if !out.push(Cookie(entry.cookie), node, entry.kind, &entry.name, attr) {
                return Ok(false);
            }
            if let Some(Attr {
                kind: FileKind::File,
                size,
                ..
            }) = attr
                && self.caps().has(Caps::EXTENTS)
                && out.wants_extents(size)
            {
                let place = self.nodes.place_of(entry);
                out.set_extents(node, |extents| add_extent(extents, place, 0, size));
            }
        }
        Ok(true)
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.nodes.attr(self.number(node)?)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.nodes.readlink(self.number(node)?)
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let mut found = None;
        self.xattr(node, |other, value| {
            if other == name {
                found = Some(value.to_vec());
            }
        })?;
        found.ok_or_else(|| Kind::NoXattr.into())
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let mut names = Vec::new();
        self.xattr(node, |name, _| names.push(name.to_vec()))?;
        Ok(names)
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let ino = self.number(node)?;
        if mode != Mode::Read {
            self.nodes.kind(ino)?;
            return Err(Kind::ReadOnly.into());
        }
        let Handle { kind, size, file } = self.nodes.open(ino)?;
        let what = match (kind, file) {
            (FileKind::Dir, _) => What::Dir(Mutex::new(None)),
            (_, Some(file)) => What::File(file),
            _ => What::Other,
        };
        Ok(self.opens.add(ino, Arc::new(Opened { ino, size, what })))
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let open = self.opens.get(open)?;
        let left = self.file(&open, offset)?;
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let (Some(buf), What::File(file)) = (buf.get_mut(..len), &open.what) else {
            return Ok(0);
        };
        if len > 0 {
            self.nodes.read(file, offset, buf)?;
        }
        Ok(len)
    }

    fn extents(
        &self,
        _: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        if !self.caps().has(Caps::EXTENTS) {
            return Err(Kind::Unsupported.into());
        }
        let open = self.opens.get(open)?;
        let len = self.file(&open, offset)?.min(len);
        if let (What::File(file), 1..) = (&open.what, len) {
            add_extent(out, self.nodes.place(file), offset, len)?;
        }
        Ok(())
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        let closed = self.opens.remove(open)?;
        self.nodes.close(closed.node);
        Ok(())
    }
}

/// Adds the extent of `len` bytes from `offset` on, of a file that begins at `place` on the device.
fn add_extent(out: &mut Vec<Extent>, place: Option<u64>, offset: u64, len: u64) -> Result<()> {
    if len > 0 {
        let place = place.ok_or(Kind::Unsupported)?;
        let place = place.checked_add(offset).ok_or(Kind::Corrupt)?;
        out.push(Extent {
            offset,
            len,
            place: Place::Device(place),
        });
    }
    Ok(())
}
