//! What a volume that is only read should hold: [`Manifest`].
//!
//! One is made by the [`reference`](crate::reference) tree, taken from a directory of the host, from
//! a tar or from a volume, and written as a directory, as a tar or into a volume that takes changes.
//! What a format cannot keep is taken out [before](Manifest::without), and so neither written nor
//! asked for.

mod content;
mod lack;
mod take;
mod write;

pub use content::Content;
pub use lack::Lack;

use std::collections::BTreeMap;
use volary_core::{Cancel, Cred, Ctx, FileKind, Time};

/// What a volume should hold, path by path.
#[derive(Clone, Debug)]
pub struct Manifest {
    nodes: Vec<Node>,
    paths: BTreeMap<Vec<u8>, usize>,
    children: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    keeps: Keeps,
}

/// What of nodes is compared.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// Permission bits.
    pub modes: bool,
    /// Owner and group.
    pub owners: bool,
    /// Times of last change, in steps of this many nanoseconds.
    pub times: Option<u64>,
    /// Counts of names.
    pub links: bool,
}

/// A node that one path or more lead to.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Last change of the content.
    pub mtime: Time,
    /// For devices, as [`Attr::rdev`](volary_core::Attr::rdev).
    pub rdev: u64,
    /// What a file holds.
    pub content: Content,
    /// What a symlink holds.
    pub target: Vec<u8>,
    /// Names and values of extended attributes, where they are known.
    pub xattrs: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Whether attributes are stated; of a root they often are not.
    pub stated: bool,
    /// Whether all entries of a directory are in the manifest.
    pub listed: bool,
}

impl Node {
    /// Returns a node of a kind, with attributes that stand for any.
    pub fn new(kind: FileKind) -> Self {
        Self {
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
            mtime: Time::EPOCH,
            rdev: 0,
            content: Content::default(),
            target: Vec::new(),
            xattrs: None,
            stated: true,
            listed: true,
        }
    }
}

impl Default for Manifest {
    /// Nothing but a root.
    fn default() -> Self {
        let mut root = Node::new(FileKind::Dir);
        root.stated = false;
        Self {
            nodes: vec![root],
            paths: BTreeMap::from([(Vec::new(), 0)]),
            children: BTreeMap::new(),
            keeps: Keeps {
                modes: true,
                owners: true,
                times: Some(1),
                links: true,
            },
        }
    }
}

impl Manifest {
    /// Adds a node at a path, which has no leading slash and whose directory is there; returns its
    /// number.
    pub fn add(&mut self, path: impl AsRef<[u8]>, node: Node) -> usize {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.name(path.as_ref(), number);
        number
    }

    /// Gives a node one more path.
    pub fn link(&mut self, path: impl AsRef<[u8]>, number: usize) {
        self.name(path.as_ref(), number);
    }

    fn name(&mut self, path: &[u8], number: usize) {
        let (dir, name) = split(path);
        let names = self.children.entry(dir.to_vec()).or_default();
        if self.paths.insert(path.to_vec(), number).is_none() {
            names.push(name.to_vec());
        }
    }

    /// Returns the number of the node that a path leads to.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        self.paths.get(path).copied()
    }

    /// Returns a node by its number.
    ///
    /// # Panics
    /// If there is none.
    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// Returns paths and numbers of nodes, each directory before what it holds.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.paths.iter().map(|(path, number)| (&path[..], *number))
    }

    /// Returns the names in a directory.
    pub fn names(&self, dir: &[u8]) -> &[Vec<u8>] {
        self.children.get(dir).map_or(&[], |names| &names[..])
    }

    /// Returns what is compared.
    pub fn keeps(&self) -> Keeps {
        self.keeps
    }

    /// Returns how many names lead to a node; for directories, how many the convention of UNIX
    /// counts.
    pub fn links(&self, path: &[u8], number: usize) -> usize {
        if self.nodes[number].kind != FileKind::Dir {
            return self.paths.values().filter(|&&n| n == number).count();
        }
        let names = self.names(path).iter();
        let dirs = names.filter(|name| {
            let below = self.find(&join(path, name));
            below.is_some_and(|n| self.nodes[n].kind == FileKind::Dir)
        });
        2 + dirs.count()
    }
}

/// Returns the directory and the name of a path.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

/// Returns the path of a name in a directory.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Does something as root, at an even second in 2023.
pub(crate) fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000),
        cancel: &cancel,
    })
}
