//! The nodes of a lazy tree that somebody has seen.

use super::item::{Content, Item, Owner};
use super::lazy::Lazy;
use super::listing::is_name;
use super::nodes::{Handle, Listed, Nodes};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use volary_core::{Attach, Attr, Caps, Ctx, Error, FileKind, Kind, NodeId, Result, StatFs};

/// The nodes of a [`Lazy`]. A node is a path: what is made anew under it is the same node. Its number is made from the
/// path, so it means the same for as long as the tree has such a path.
pub(super) struct Seen<T> {
    format: &'static str,
    tree: T,
    owner: Owner,
    memory: u64,
    seen: Mutex<Paths>,
}

/// What is known of nodes: how their paths are found.
#[derive(Default)]
struct Paths {
    nodes: HashMap<u64, Node>,
    used: u64,
}

struct Node {
    parent: u64,
    name: Box<[u8]>,
    kind: FileKind,
    opens: u32,
}

/// The root's number.
const ROOT: u64 = 1;
/// Numbers and cookies are below: no cookie is the largest that there can be.
const LIMIT: u64 = 1 << 63;
/// About what a node takes in memory beside its name.
const NODE_BYTES: u64 = size_of::<Node>() as u64 + 64;
/// The least memory that a tree is attached with, in bytes.
const MEMORY_MIN: u64 = 64 << 10;

/// Returns a number from 2 to [`LIMIT`] - 1 for a text after another (FNV-1a).
fn hash(before: u64, text: &[u8]) -> u64 {
    let all = before.to_le_bytes().into_iter().chain(text.iter().copied());
    let hash = all.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    // The lower bits are the better ones.
    (hash % LIMIT).max(ROOT + 1)
}

impl Paths {
    /// Returns the number of an entry, which is known from now on.
    fn number(&mut self, parent: u64, name: &[u8], kind: FileKind) -> u64 {
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

    /// Forgets the nodes that are neither open nor on the way to one that is, or to `keep`.
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
    }
}

/// Where a node is: the path of its directory, and its name there.
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

    /// Returns what is now at a node's path.
    ///
    /// # Errors
    /// `Stale` if there is nothing, or of another kind.
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

    /// Makes an entry known.
    ///
    /// # Errors
    /// `TooManyOpen` if there is no memory but for what is open.
    fn number(&self, dir: u64, name: &[u8], kind: FileKind) -> Result<u64> {
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
        Ok(seen.number(dir, name, kind))
    }
}

/// What is not found is a node that is gone.
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
        self.attr_of(self.number(dir, name, item.kind)?, &item)
    }

    fn list(&self, cx: &Ctx<'_>, dir: u64) -> Result<Arc<[Listed<Self::Known>]>> {
        let path = self.seen.lock().path(dir)?;
        let mut listed = Vec::new();
        let (mut cookies, mut used) = (HashSet::new(), 0);
        let mut all = self.tree.list(&path).map_err(gone)?;
        all.retain(|(name, _)| is_name(name));
        // Of one name the last counts. In this order the same entries have the same cookies.
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
            let ino = self.number(dir, &name, item.kind)?;
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
        StatFs {
            block_size: 512,
            ..StatFs::default()
        }
    }
}
