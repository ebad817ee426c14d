//! The index of a tree, which holds all entries in memory.

use super::item::{Content, Item, Owner};
use super::listing::{Gathered, Node};
use super::nodes::{Handle, Listed, Nodes, full};
use super::tree::Tree;
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Attr, Caps, Ctx, FileKind, Finding, Kind, NodeId, Result, StatFs, Untold};

/// The nodes of a [`Tree`]. A node's number is its index in the list plus 1. The generation is a
/// fingerprint of all entries: if they change, older node ids are stale.
pub(super) struct Index<T: Tree> {
    tree: T,
    owner: Owner,
    generation: u32,
    nodes: Vec<Kept<T::File>>,
    has_xattrs: bool,
    untold: Mutex<Untold>,
}

struct Kept<F> {
    item: Item<F>,
    parent: u64,
    nlink: u32,
    /// Sorted by name.
    entries: Arc<[Listed<()>]>,
}

/// Returns the node number for an index in the list.
fn ino_of(place: usize) -> u64 {
    place as u64 + 1
}

impl<T: Tree> Index<T> {
    pub(super) fn new(tree: T, gathered: Gathered<T::File>) -> Self {
        let links = gathered.links();
        let kinds: Vec<FileKind> = gathered.nodes.iter().map(|node| node.item.kind).collect();
        let mut print = Print::default();
        let has_xattrs = gathered
            .nodes
            .iter()
            .any(|node| !node.item.xattrs.is_empty());
        let nodes = gathered.nodes.into_iter().zip(links);
        let nodes: Vec<_> = nodes
            .map(|(node, nlink)| keep(node, nlink, &kinds, &mut print))
            .collect();
        Self {
            tree,
            owner: gathered.owner,
            generation: print.of_all(),
            nodes,
            has_xattrs,
            untold: Mutex::new(gathered.untold),
        }
    }

    fn node(&self, ino: u64) -> Result<&Kept<T::File>> {
        let place = ino
            .checked_sub(1)
            .and_then(|place| usize::try_from(place).ok());
        let node = place.and_then(|place| self.nodes.get(place));
        // A replaced node has no name, and its id was never given out.
        node.filter(|node| node.nlink > 0)
            .ok_or_else(|| Kind::Stale.into())
    }

    fn attr_of(&self, ino: u64, node: &Kept<T::File>) -> Result<Attr> {
        let id = NodeId::new(ino, self.generation).ok_or(Kind::Stale)?;
        Ok(node.item.attr(id, self.owner, node.nlink))
    }
}

fn keep<F>(node: Node<F>, nlink: u32, kinds: &[FileKind], print: &mut Print) -> Kept<F> {
    print.add(&[node.item.kind.mode_bits().to_le_bytes()].concat());
    print.add(&node.item.size.to_le_bytes());
    print.add(&node.item.modified.secs.to_le_bytes());
    let listed = node
        .entries
        .into_iter()
        .zip(1..)
        .map(|((name, place), cookie)| {
            print.add(&name);
            print.add(&ino_of(place).to_le_bytes());
            Listed {
                cookie,
                name,
                ino: ino_of(place),
                kind: kinds.get(place).copied().unwrap_or(FileKind::File),
                known: (),
            }
        });
    Kept {
        entries: listed.collect(),
        parent: ino_of(node.parent),
        nlink,
        item: node.item,
    }
}

/// A fingerprint of all entries (FNV-1a): the same in every run and on every machine.
struct Print(u64);

impl Default for Print {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Print {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn of_all(&self) -> u32 {
        (self.0 >> 32) as u32 ^ self.0 as u32
    }
}

impl<T: Tree> Nodes for Index<T> {
    /// The file's node number.
    type Open = u64;
    type Known = ();

    fn bits(&self) -> u32 {
        let mut bits = Caps::MODES
            | Caps::SYMLINKS
            | Caps::HARD_LINKS
            | Caps::DEVICES
            | Caps::CASE_SENSITIVE
            | Caps::CASE_KEEPING
            | Caps::STABLE_IDS
            | Caps::STABLE_COOKIES
            | Caps::ANY_NAME;
        if self.has_xattrs {
            bits |= Caps::XATTRS;
        }
        if T::HAS_PLACES {
            bits |= Caps::EXTENTS;
        }
        bits
    }

    fn caps(&self, most: Caps) -> Caps {
        self.tree.caps(most)
    }

    fn root(&self) -> u64 {
        ino_of(0)
    }

    fn generation(&self) -> u32 {
        self.generation
    }

    fn attr(&self, ino: u64) -> Result<Attr> {
        self.attr_of(ino, self.node(ino)?)
    }

    fn kind(&self, ino: u64) -> Result<FileKind> {
        Ok(self.node(ino)?.item.kind)
    }

    fn parent(&self, dir: u64) -> Result<u64> {
        Ok(self.node(dir)?.parent)
    }

    fn child(&self, dir: u64, name: &[u8]) -> Result<Attr> {
        let entries = &self.node(dir)?.entries;
        let found = entries
            .binary_search_by(|entry| (*entry.name).cmp(name))
            .ok();
        let found = found.and_then(|at| entries.get(at)).ok_or(Kind::NotFound)?;
        self.attr(found.ino)
    }

    fn list(&self, _: &Ctx<'_>, dir: u64) -> Result<Arc<[Listed<()>]>> {
        Ok(self.node(dir)?.entries.clone())
    }

    fn known(&self, entry: &Listed<()>) -> Option<Attr> {
        self.attr(entry.ino).ok()
    }

    fn is_odd(&self, cookie: u64, listed: &[Listed<()>]) -> bool {
        cookie > listed.len() as u64
    }

    fn open(&self, ino: u64) -> Result<Handle<u64>> {
        let item = &self.node(ino)?.item;
        Ok(Handle {
            kind: item.kind,
            size: item.size,
            file: (item.kind == FileKind::File).then_some(ino),
        })
    }

    fn close(&self, _: u64) {}

    fn read(&self, open: &u64, offset: u64, buf: &mut [u8]) -> Result<()> {
        match &self.node(*open)?.item.content {
            Content::File(file) => self.tree.read(file, offset, buf),
            _ => Err(Kind::Invalid.into()),
        }
    }

    fn place(&self, open: &u64) -> Option<u64> {
        match &self.node(*open).ok()?.item.content {
            Content::File(file) => self.tree.place(file),
            _ => None,
        }
    }

    fn place_of(&self, entry: &Listed<()>) -> Option<u64> {
        self.place(&entry.ino)
    }

    fn readlink(&self, ino: u64) -> Result<Vec<u8>> {
        match &self.node(ino)?.item.content {
            Content::Target(target) => Ok(target.to_vec()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    fn xattrs(&self, ino: u64, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let xattrs = &self.node(ino)?.item.xattrs;
        xattrs.iter().for_each(|(name, value)| each(name, value));
        Ok(())
    }

    fn statfs(&self) -> StatFs {
        let there = || self.nodes.iter().filter(|node| node.nlink > 0);
        let size = match self.tree.size() {
            0 => there()
                .map(|node| node.item.room())
                .fold(0, u64::saturating_add),
            size => size,
        };
        StatFs {
            nodes: there().count() as u64,
            ..full(size)
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.untold.lock().take()
    }
}
