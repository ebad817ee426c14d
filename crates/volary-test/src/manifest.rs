//! The expected content of a volume that is only read: [`Manifest`].
//!
//! A manifest is made from the [`reference`](crate::reference) tree, a directory of the host, a tar
//! or a volume. It can be written as a directory, as a tar or into a volume that allows changes.
//! What a format cannot keep is [removed](Manifest::without) first: it is then neither written nor
//! compared.

mod content;
mod lack;
mod take;
mod write;

pub use content::Content;
pub use lack::Lack;

use std::collections::BTreeMap;
use volary_core::{Cancel, Cred, Ctx, FileKind, Time};

/// The expected content of a volume, path by path.
#[derive(Clone, Debug)]
pub struct Manifest {
    nodes: Vec<Node>,
    paths: BTreeMap<Vec<u8>, usize>,
    children: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    keeps: Keeps,
}

/// The attributes of nodes that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Keeps {
    /// Permission bits.
    pub modes: bool,
    /// Owner and group.
    pub owners: bool,
    /// The time of last change, in steps of this many nanoseconds.
    pub times: Option<u64>,
    /// The number of names (link count).
    pub links: bool,
}

/// A node with one or more paths.
#[derive(Clone, Debug)]
pub struct Node {
    /// The kind of the node.
    pub kind: FileKind,
    /// The permission bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The time when the content last changed.
    pub mtime: Time,
    /// The device number, as in [`Attr::rdev`](volary_core::Attr::rdev).
    pub rdev: u64,
    /// The content of a file.
    pub content: Content,
    /// The target of a symlink.
    pub target: Vec<u8>,
    /// Names and values of extended attributes, if they are known.
    pub xattrs: Option<BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Whether the attributes are known; those of a root often are not.
    pub stated: bool,
    /// Whether the manifest has all entries of the directory.
    pub listed: bool,
}

impl Node {
    /// Returns a node of a kind, with default attributes.
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
    /// Returns a manifest with only a root.
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
    /// Adds a node at a path, and returns the node's number. The path has no leading slash, and its
    /// directory must already be in the manifest.
    pub fn add(&mut self, path: impl AsRef<[u8]>, node: Node) -> usize {
        self.nodes.push(node);
        let number = self.nodes.len() - 1;
        self.name(path.as_ref(), number);
        number
    }

    /// Gives a node another path.
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

    /// Returns the number of the node at a path.
    pub fn find(&self, path: &[u8]) -> Option<usize> {
        self.paths.get(path).copied()
    }

    /// Returns a node by its number.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    /// Returns all paths with the numbers of their nodes, directories before their entries.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], usize)> {
        self.paths.iter().map(|(path, number)| (&path[..], *number))
    }

    /// Returns the names in a directory.
    pub fn names(&self, dir: &[u8]) -> &[Vec<u8>] {
        self.children.get(dir).map_or(&[], |names| &names[..])
    }

    /// Returns which attributes are compared.
    pub fn keeps(&self) -> Keeps {
        self.keeps
    }

    /// Returns the expected link count of a node. For a directory, it follows the UNIX convention:
    /// 2, and 1 more for each directory in it.
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

/// Splits a path into its directory and its last name.
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

/// Runs `act` as root, at a fixed time (an even second in 2023).
pub(crate) fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000),
        cancel: &cancel,
    })
}
