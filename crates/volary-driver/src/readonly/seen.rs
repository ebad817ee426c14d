//! The nodes of a lazy tree that were looked up or listed.

use super::item::{Content, Item, Owner};
use super::lazy::Lazy;
use super::listing::is_name;
use super::nodes::{Handle, Listed, Nodes, full};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use volary_core::{Attach, Attr, Caps, Ctx, Error, FileKind, Kind, NodeId, Result, StatFs};

/// The nodes of a [`Lazy`]. A node is a path: a file made anew at the path is the same node. The
/// number is a hash of the path, so it stays the same as long as the tree has the path.
pub(super) struct Seen<T> {
    format: &'static str,
    tree: T,
    owner: Owner,
    memory: u64,
    seen: Mutex<Paths>,
}

/// The known nodes, and the memory that they take.
#[derive(Default)]
struct Paths {
    nodes: HashMap<u64, Node>,
    used: u64,
    /// The space that the known files take, and the most that it was.
    room: u64,
    room_most: u64,
}

struct Node {
    parent: u64,
    name: Box<[u8]>,
    kind: FileKind,
    room: u64,
    opens: u32,
}

/// The root's number.
const ROOT: u64 = 1;
/// Numbers and cookies are below this. So no cookie is the largest number.
const LIMIT: u64 = 1 << 63;
/// Approximate memory for a node besides its name.
const NODE_BYTES: u64 = size_of::<Node>() as u64 + 64;
/// The least memory for a tree, in bytes.
const MEMORY_MIN: u64 = 64 << 10;

/// Returns the hash of a text and the number before it, from 2 to [`LIMIT`] - 1 (FNV-1a).
fn hash(before: u64, text: &[u8]) -> u64 {
    let all = before.to_le_bytes().into_iter().chain(text.iter().copied());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The lower bits are better distributed.
    (hash % LIMIT).max(ROOT + 1)
}

impl Paths {
    /// Returns the number of an entry, and remembers the entry. `room` is the space it takes.
    fn number(&mut self, parent: u64, name: &[u8], kind: FileKind, room: u64) -> u64 {
        let ino = self.number_of(parent, name, kind);
        if let Some(node) = self.nodes.get_mut(&ino) {
            self.room = self.room.saturating_sub(node.room).saturating_add(room);
            self.room_most = self.room_most.max(self.room);
            node.room = room;
        }
        ino
    }

    fn number_of(&mut self, parent: u64, name: &[u8], kind: FileKind) -> u64 {
        let mut ino = hash(parent, name);
        loop {
            match self.nodes.get_mut(&ino) {
                Some(node) if node.parent == parent && *node.name == *name => {
                    node.kind = kind;
                    return ino;
                }
                Some(_) => ino = if ino + 1 < LIMIT { ino + 1 } else { ROOT + 1 },
                None => break,
            }
        }
        self.used += NODE_BYTES + name.len() as u64;
        let node = Node {
            parent,
            name: name.into(),
            kind,
            room: 0,
            opens: 0,
        };
        self.nodes.insert(ino, node);
        ino
    }

    /// Returns the path of a node.
    ///
    /// # Errors
    /// `Stale`.
    fn path(&self, ino: u64) -> Result<Vec<u8>> {
        let (mut names, mut at) = (Vec::new(), ino);
        while at != ROOT {
            let node = self.nodes.get(&at).ok_or(Kind::Stale)?;
            names.push(&*node.name);
            at = node.parent;
        }
        names.reverse();
        Ok(names.join(&b'/'))
    }

    /// Forgets the nodes that are neither open nor ancestors of an open node, nor `keep` or its
    /// ancestors.
    fn shrink(&mut self, keep: u64) {
        let open = self.nodes.iter().filter(|(_, node)| node.opens > 0);
        let mut todo: Vec<u64> = open.map(|(ino, _)| *ino).chain([keep]).collect();
        let mut kept = HashSet::new();
        while let Some(ino) = todo.pop() {
            if let Some(node) = self.nodes.get(&ino)
                && kept.insert(ino)
            {
                todo.push(node.parent);
            }
        }
        self.nodes.retain(|ino, _| kept.contains(ino));
        let names = self
            .nodes
            .values()
            .map(|node| NODE_BYTES + node.name.len() as u64);
        self.used = names.sum();
        let rooms = self.nodes.values().map(|node| node.room);
        self.room = rooms.fold(0, u64::saturating_add);
    }
}

/// A node's place: the path of its directory, and its name there.
struct Spot {
    dir: Vec<u8>,
    name: Box<[u8]>,
    kind: FileKind,
}

impl<T: Lazy> Seen<T> {
    pub(super) fn new(format: &'static str, tree: T, how: &Attach) -> Self {
        Self {
            format,
            tree,
            owner: Owner {
                uid: how.uid,
                gid: how.gid,
            },
            memory: how.memory.max(MEMORY_MIN),
            seen: Mutex::default(),
        }
    }

    fn spot(&self, ino: u64) -> Result<Spot> {
        let seen = self.seen.lock();
        let node = seen.nodes.get(&ino).ok_or(Kind::Stale)?;
        Ok(Spot {
            dir: seen.path(node.parent)?,
            name: node.name.clone(),
            kind: node.kind,
        })
    }

    /// Returns the current entry at a node's path.
    ///
    /// # Errors
    /// `Stale` if there is none, or one of another kind.
    fn item(&self, ino: u64) -> Result<Item<T::File>> {
        if ino == ROOT {
            return Ok(Item::dir());
        }
        let spot = self.spot(ino)?;
        let found = self.tree.find(&spot.dir, &spot.name).map_err(gone)?;
        let same = found.filter(|item| item.kind == spot.kind);
        same.ok_or_else(|| Kind::Stale.into())
    }

    fn attr_of(&self, ino: u64, item: &Item<T::File>) -> Result<Attr> {
        let nlink = match item.kind {
            FileKind::Dir => {
                let path = self.seen.lock().path(ino)?;
                self.tree.subdirs(&path).map_err(gone)?.saturating_add(2)
            }
            _ => 1,
        };
        let id = NodeId::new(ino, 0).ok_or(Kind::Stale)?;
        Ok(item.attr(id, self.owner, nlink))
    }

    /// Remembers an entry, and returns its number.
    ///
    /// # Errors
    /// `TooManyOpen` if open nodes take all of the memory.
    fn number(&self, dir: u64, name: &[u8], item: &Item<T::File>) -> Result<u64> {
        let mut seen = self.seen.lock();
        if seen.used >= self.memory {
            seen.shrink(dir);
            if seen.used >= self.memory {
                let words = format!(
                    "the {} volume has more open files than fit into its memory",
                    self.format
                );
                return Err(Error::note(Kind::TooManyOpen, words));
            }
        }
        Ok(seen.number(dir, name, item.kind, item.room()))
    }
}

/// Turns `NotFound` into `Stale`: the node is gone.
fn gone(e: Error) -> Error {
    match e.kind() {
        Kind::NotFound => Kind::Stale.into(),
        _ => e,
    }
}

impl<T: Lazy> Nodes for Seen<T> {
    type Open = T::File;
    type Known = Option<Attr>;

    fn bits(&self) -> u32 {
        Caps::MODES
            | Caps::SYMLINKS
            | Caps::DEVICES
            | Caps::XATTRS
            | Caps::CASE_SENSITIVE
            | Caps::CASE_KEEPING
            | Caps::STABLE_COOKIES
            | Caps::ANY_NAME
    }

    fn caps(&self, most: Caps) -> Caps {
        self.tree.caps(most)
    }

    fn root(&self) -> u64 {
        ROOT
    }

    fn generation(&self) -> u32 {
        0
    }

    fn attr(&self, ino: u64) -> Result<Attr> {
        self.attr_of(ino, &self.item(ino)?)
    }

    fn kind(&self, ino: u64) -> Result<FileKind> {
        match ino {
            ROOT => Ok(FileKind::Dir),
            _ => Ok(self.seen.lock().nodes.get(&ino).ok_or(Kind::Stale)?.kind),
        }
    }

    fn parent(&self, dir: u64) -> Result<u64> {
        match dir {
            ROOT => Ok(ROOT),
            _ => Ok(self.seen.lock().nodes.get(&dir).ok_or(Kind::Stale)?.parent),
        }
    }

    fn child(&self, dir: u64, name: &[u8]) -> Result<Attr> {
        let path = self.seen.lock().path(dir)?;
        let found = self.tree.find(&path, name)?.filter(|_| is_name(name));
        let item = found.ok_or(Kind::NotFound)?;
        self.attr_of(self.number(dir, name, &item)?, &item)
    }

    fn list(&self, cx: &Ctx<'_>, dir: u64) -> Result<Arc<[Listed<Self::Known>]>> {
        let path = self.seen.lock().path(dir)?;
        let mut listed = Vec::new();
        let (mut cookies, mut used) = (HashSet::new(), 0);
        let mut all = self.tree.list(&path).map_err(gone)?;
        all.retain(|(name, _)| is_name(name));
        // If a name comes twice, the last one counts. The sorting gives the same entries the same
        // cookies.
        all.reverse();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all.dedup_by(|(a, _), (b, _)| a == b);
        for (name, item) in all {
            cx.check_cancel()?;
            used += size_of::<Listed<Self::Known>>() as u64 + name.len() as u64;
            if used > self.memory {
                let words = format!(
                    "a directory of the {} volume has more entries than fit into memory; open it with a larger -o memory=SIZE",
                    self.format
                );
                return Err(Error::note(Kind::Unsupported, words));
            }
            let mut cookie = hash(0, &name);
            while !cookies.insert(cookie) {
                cookie = if cookie + 1 < LIMIT {
                    cookie + 1
                } else {
                    ROOT + 1
                };
            }
            let ino = self.number(dir, &name, &item)?;
            let known = (!item.is_dir())
                .then(|| self.attr_of(ino, &item))
                .transpose()?;
            listed.push(Listed {
                cookie,
                name: name.into(),
                ino,
                kind: item.kind,
                known,
            });
        }
        listed.sort_by_key(|entry| entry.cookie);
        Ok(listed.into())
    }

    fn known(&self, entry: &Listed<Self::Known>) -> Option<Attr> {
        entry.known
    }

    fn is_odd(&self, cookie: u64, _: &[Listed<Self::Known>]) -> bool {
        cookie >= LIMIT
    }

    fn open(&self, ino: u64) -> Result<Handle<T::File>> {
        let item = self.item(ino)?;
        if let Some(node) = self.seen.lock().nodes.get_mut(&ino) {
            node.opens += 1;
        }
        Ok(Handle {
            kind: item.kind,
            size: item.size,
            file: match item.content {
                Content::File(file) => Some(file),
                _ => None,
            },
        })
    }

    fn close(&self, ino: u64) {
        if let Some(node) = self.seen.lock().nodes.get_mut(&ino) {
            node.opens = node.opens.saturating_sub(1);
        }
    }

    fn read(&self, open: &T::File, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.tree.read(open, offset, buf)
    }

    fn readlink(&self, ino: u64) -> Result<Vec<u8>> {
        match self.item(ino)?.content {
            Content::Target(target) => Ok(target.into()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    fn xattrs(&self, ino: u64, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let item = self.item(ino)?;
        item.xattrs
            .iter()
            .for_each(|(name, value)| each(name, value));
        Ok(())
    }

    fn statfs(&self) -> StatFs {
        full(self.seen.lock().room_most)
    }
}
