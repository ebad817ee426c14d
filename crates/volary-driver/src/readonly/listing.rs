//! Gathers all entries of a tree.

use super::item::{Item, Owner};
use std::collections::BTreeMap;
use volary_core::{
    Attach, Error, FileKind, Finding, Kind, Name, Result, Severity, Untold, escape_short,
};

/// The longest name that is shown, in bytes, which is the limit of the hosts' systems.
pub(super) const NAME_MAX: usize = 255;

/// Returns whether a name can be shown.
pub(super) fn is_name(name: &[u8]) -> bool {
    name.len() <= NAME_MAX && Name::new(name).is_ok()
}

/// Takes the entries of a [`Tree`](super::Tree) by their paths, in any order. Missing directories
/// on the way are made. If two entries have the same path, the later one counts, as in tar, but a
/// directory stays a directory.
///
/// An entry that cannot be shown is left out, with a finding of the volume. Examples are a path
/// with `..` or through a file, a name that is too long, and a hard link to nothing.
pub struct Listing<F> {
    format: &'static str,
    owner: Owner,
    memory: u64,
    used: u64,
    nodes: Vec<Node<F>>,
    untold: Untold,
}

/// A node, before it goes into the index.
pub(super) struct Node<F> {
    pub(super) item: Item<F>,
    /// For a directory: the index of its parent.
    pub(super) parent: usize,
    /// For a directory: the indexes of its entries, by name.
    pub(super) entries: BTreeMap<Box<[u8]>, usize>,
}

/// All entries of a tree.
pub(super) struct Gathered<F> {
    pub(super) owner: Owner,
    pub(super) nodes: Vec<Node<F>>,
    pub(super) untold: Untold,
}

/// The index of the root.
const ROOT: usize = 0;

/// Approximate memory for an entry besides its name: in the directory's map, and later in the
/// index.
const ENTRY_BYTES: u64 = 128;

/// A directory, and a name in it.
struct Spot<'a> {
    dir: usize,
    name: Name<'a>,
}

impl<F> Listing<F> {
    pub(super) fn new(format: &'static str, how: &Attach) -> Self {
        let root = Node {
            item: Item::dir(),
            parent: ROOT,
            entries: BTreeMap::new(),
        };
        Self {
            format,
            owner: Owner {
                uid: how.uid,
                gid: how.gid,
            },
            memory: how.memory,
            used: 0,
            nodes: vec![root],
            untold: Untold::default(),
        }
    }

    /// Adds an entry at a path: names with `/` between them; empty names and `.` are ignored. An
    /// entry for the root sets the root's attributes.
    ///
    /// # Errors
    /// `Unsupported` if the entries do not fit into memory.
    pub fn add(&mut self, path: &[u8], item: Item<F>) -> Result<()> {
        if item.size > i64::MAX as u64 {
            self.leave_out(path, "its size cannot be");
            return Ok(());
        }
        let spot = match self.spot(path)? {
            Ok(spot) => spot,
            Err(why) if why.is_empty() && item.is_dir() => {
                self.set(ROOT, item);
                return Ok(());
            }
            Err(why) => {
                self.leave_out(
                    path,
                    if why.is_empty() {
                        "the root is a directory"
                    } else {
                        why
                    },
                );
                return Ok(());
            }
        };
        match self.entry(&spot) {
            Some(there) if self.is_dir(there) && item.is_dir() => self.set(there, item),
            Some(there) if self.is_dir(there) => {
                self.leave_out(path, "a directory of that name is there");
            }
            _ => self.insert(&spot, item)?,
        }
        Ok(())
    }

    /// Adds another name for the node at the path `to`, which was added before and is not a
    /// directory.
    ///
    /// # Errors
    /// `Unsupported` if the entries do not fit into memory.
    pub fn link(&mut self, path: &[u8], to: &[u8]) -> Result<()> {
        let Some(node) = self.find(to).filter(|node| !self.is_dir(*node)) else {
            self.leave_out(path, "it links to nothing");
            return Ok(());
        };
        match self.spot(path)? {
            Ok(spot) if self.entry(&spot).is_none_or(|there| !self.is_dir(there)) => {
                self.put(&spot, node)?;
            }
            Ok(_) => self.leave_out(path, "a directory of that name is there"),
            Err(why) => self.leave_out(path, why),
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Gathered<F> {
        Gathered {
            owner: self.owner,
            nodes: self.nodes,
            untold: self.untold,
        }
    }

    /// Finds the directory and the name of a path; makes missing directories on the way. The inner
    /// `Err` says why that is impossible; it is empty for the root itself.
    fn spot<'a>(&mut self, path: &'a [u8]) -> Result<std::result::Result<Spot<'a>, &'static str>> {
        let (mut dir, mut names) = (ROOT, parts(path).peekable());
        while let Some(part) = names.next() {
            let name = match Name::new(part) {
                Ok(name) if part.len() <= NAME_MAX => name,
                Ok(_) => return Ok(Err("a name in its path is too long")),
                Err(_) => return Ok(Err("its path leads outside, or holds a zero byte")),
            };
            let spot = Spot { dir, name };
            if names.peek().is_none() {
                return Ok(Ok(spot));
            }
            dir = match self.entry(&spot) {
                Some(there) if self.is_dir(there) => there,
                Some(_) => return Ok(Err("its path leads through what is no directory")),
                None => {
                    self.insert(&spot, Item::dir())?;
                    self.nodes.len() - 1
                }
            };
        }
        Ok(Err(""))
    }

    fn find(&self, path: &[u8]) -> Option<usize> {
        parts(path).try_fold(ROOT, |dir, part| {
            self.nodes.get(dir)?.entries.get(part).copied()
        })
    }

    fn entry(&self, spot: &Spot<'_>) -> Option<usize> {
        self.nodes
            .get(spot.dir)?
            .entries
            .get(spot.name.as_bytes())
            .copied()
    }

    fn is_dir(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|node| node.item.is_dir())
    }

    fn set(&mut self, node: usize, item: Item<F>) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.item = item;
        }
    }

    /// Adds a node with its first name.
    fn insert(&mut self, spot: &Spot<'_>, item: Item<F>) -> Result<()> {
        let bytes = size_of::<Node<F>>() as u64 + item.heap();
        let node = self.nodes.len();
        self.take(bytes)?;
        self.put(spot, node)?;
        self.nodes.push(Node {
            item,
            parent: spot.dir,
            entries: BTreeMap::new(),
        });
        Ok(())
    }

    fn put(&mut self, spot: &Spot<'_>, node: usize) -> Result<()> {
        let name = spot.name.as_bytes();
        // Both the map and the index hold the name while the index is made.
        self.take(ENTRY_BYTES + 2 * name.len() as u64)?;
        if let Some(dir) = self.nodes.get_mut(spot.dir) {
            dir.entries.insert(name.into(), node);
        }
        Ok(())
    }

    fn take(&mut self, bytes: u64) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.memory {
            return Ok(());
        }
        let words = format!(
            "the {} volume has more entries than fit into memory: {} took {} MiB; open it with a larger -o memory=SIZE",
            self.format,
            self.nodes.len(),
            self.memory >> 20
        );
        Err(Error::note(Kind::Unsupported, words))
    }

    /// Leaves out an entry that the driver cannot show, and reports why.
    pub fn leave_out(&mut self, path: &[u8], why: &str) {
        self.untold.add(Finding {
            code: "left-out",
            severity: Severity::Damage,
            path: None,
            offset: None,
            message: format!("the entry '{}' is not shown: {why}", escape_short(path)),
            repair: String::new(),
        });
    }
}

/// Returns the names in a path.
fn parts(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let all = path.split(|&b| b == b'/');
    all.filter(|part| !part.is_empty() && *part != b".")
}

impl<F> Gathered<F> {
    /// Returns the link count of each node. A directory has two links and one for each
    /// subdirectory. A replaced node has none.
    pub(super) fn links(&self) -> Vec<u32> {
        let mut links = vec![0_u32; self.nodes.len()];
        let mut count = |node: usize, more: u32| {
            if let Some(links) = links.get_mut(node) {
                *links = links.saturating_add(more);
            }
        };
        count(ROOT, 2);
        for (dir, node) in self.nodes.iter().enumerate() {
            for &child in node.entries.values() {
                let is_dir = self
                    .nodes
                    .get(child)
                    .is_some_and(|child| child.item.kind == FileKind::Dir);
                count(child, if is_dir { 2 } else { 1 });
                count(dir, is_dir.into());
            }
        }
        links
    }
}
