//! Verifies that a node opened by its id alone lies in the tree, so that no id leads out of it.
//! Servers may seal ids that must not be guessed, as the NFS server does. But no id that comes back
//! is trusted to lie within the tree.

use crate::held::ids::Ids;
use crate::held::listing::each;
use crate::held::nodes::Nodes;
use crate::kernel::proc::link_of;
use crate::reach::resolve::{PATH, TRIES_MAX, open_in, open_up};
use crate::reach::root::Root;
use parking_lot::Mutex;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode as HostMode, OFlags};
use std::collections::HashSet;
use std::sync::Arc;
use volary_core::{Attr, FileKind, NodeId, Result};

/// The greatest depth of a directory.
pub(crate) const DEPTH_MAX: usize = 4096;
/// The most directories and entries that a search for a node without a known name visits. This
/// takes about a second if they are in memory.
const DIRS_MAX: usize = 1 << 14;
const ENTRIES_MAX: usize = 1 << 20;
/// How many nodes are remembered as not found by a search.
const MISSED_MAX: usize = 1 << 10;

/// Decides which nodes lie beneath the root.
pub(crate) struct Beneath {
    root: Root,
    ids: Arc<Ids>,
    nodes: Arc<Nodes>,
    /// Whether the volume is a whole file system, so that every node of it is beneath the root.
    whole: bool,
    /// Nodes that a search did not find. It is locked during a search, so that only one runs at a
    /// time.
    missed: Mutex<HashSet<NodeId>>,
}

/// What the kernel's name for a node says about its place.
enum Told {
    Beneath,
    Outside,
    /// The kernel knows no name for it, or only one of several.
    Nothing,
}

impl Beneath {
    pub(crate) fn new(root: Root, ids: Arc<Ids>, nodes: Arc<Nodes>, whole: bool) -> Self {
        Self {
            root,
            ids,
            nodes,
            whole,
            missed: Mutex::default(),
        }
    }

    /// Returns whether a node is in the tree. A directory is if the way up from it meets the root.
    /// Any other node is if the kernel's name for it, followed from the root, leads to it. If the
    /// kernel knows no name, or the node has several, the tree is searched.
    pub(crate) fn has(&self, attr: &Attr, fd: &OwnedFd) -> Result<bool> {
        if attr.kind == FileKind::Dir {
            return self.has_dir(attr.node, fd);
        }
        if self.whole {
            return Ok(true);
        }
        match self.told(attr, fd)? {
            Told::Beneath => Ok(true),
            Told::Outside => Ok(false),
            Told::Nothing => self.is_found(attr.node),
        }
    }

    /// Returns whether a directory is in the tree: see [`has`](Self::has).
    pub(crate) fn has_dir(&self, node: NodeId, fd: &OwnedFd) -> Result<bool> {
        Ok(self.whole || self.meets_root(node, fd)?)
    }

    /// Returns what the kernel's name for a node says. Repeats this if the name changes meanwhile.
    fn told(&self, attr: &Attr, fd: &OwnedFd) -> Result<Told> {
        let mut path = link_of(fd);
        for _ in 0..TRIES_MAX {
            let (Some(name), Some(root)) = (&path, link_of(&self.root.fd)) else {
                return Ok(Told::Nothing);
            };
            if self.leads_to(&root, name, attr.node)? {
                return Ok(Told::Beneath);
            }
            let again = link_of(fd);
            if again == path {
                break;
            }
            path = again;
        }
        let nameless = path.is_none_or(|path| path.iter().all(|&b| b == b'/'));
        if nameless || attr.nlink > 1 {
            Ok(Told::Nothing)
        } else {
            Ok(Told::Outside)
        }
    }

    /// Returns whether `path` begins with the root's path, and leads to the node without leaving
    /// the tree.
    fn leads_to(&self, root: &[u8], path: &[u8], node: NodeId) -> Result<bool> {
        let rest = if root == b"/" {
            path.strip_prefix(b"/")
        } else {
            path.strip_prefix(root).and_then(|r| r.strip_prefix(b"/"))
        };
        let Some(rest) = rest.filter(|rest| !rest.is_empty()) else {
            return Ok(false);
        };
        match open_in(&self.nodes, &self.root.fd, rest, PATH, HostMode::empty()) {
            Ok(found) => Ok(self.ids.node_at(&found, b"")? == node),
            Err(_) => Ok(false),
        }
    }

    /// Returns whether the way up from a directory meets the root.
    fn meets_root(&self, node: NodeId, fd: &OwnedFd) -> Result<bool> {
        let mut at = node;
        let mut up = None;
        for _ in 0..DEPTH_MAX {
            if at == self.root.node {
                return Ok(true);
            }
            let next = open_up(up.as_ref().unwrap_or(fd))?;
            let Ok(above) = self.ids.node_at(&next, b"") else {
                return Ok(false);
            };
            if above == at {
                return Ok(false);
            }
            at = above;
            up = Some(next);
        }
        Ok(false)
    }

    /// Returns whether a search of the tree finds a node that is not a directory, within the
    /// bounds.
    fn is_found(&self, node: NodeId) -> Result<bool> {
        let mut missed = self.missed.lock();
        if missed.contains(&node) {
            return Ok(false);
        }
        let found = self.seek(node)?;
        if !found {
            if missed.len() >= MISSED_MAX {
                missed.clear();
            }
            missed.insert(node);
        }
        Ok(found)
    }

    /// Searches the directories of the tree for a node, comparing numbers first.
    fn seek(&self, node: NodeId) -> Result<bool> {
        let (mut left, mut seen, mut entries) = (vec![self.root.node], 0, 0);
        while let Some(dir) = left.pop() {
            seen += 1;
            let Ok(fd) = self.open_listed(dir) else {
                continue;
            };
            let done = each(&fd, |ino, kind, name| {
                entries += 1;
                if ino == node.ino.get() && self.ids.node_at(&fd, name).is_ok_and(|n| n == node) {
                    return Some(true);
                }
                // The bound on visited directories also bounds the pending ones.
                if kind.is_none_or(|kind| kind == FileKind::Dir)
                    && seen + left.len() < DIRS_MAX
                    && let Ok(below) = self.ids.node_at(&fd, name)
                {
                    left.push(below);
                }
                (entries > ENTRIES_MAX).then_some(false)
            })?;
            match done {
                // The directory may have been moved out of the tree since the search found it.
                Some(true) => return self.meets_root(dir, &fd),
                Some(false) => return Ok(false),
                None => {}
            }
        }
        Ok(false)
    }

    /// Returns a descriptor by which a directory can be listed.
    fn open_listed(&self, dir: NodeId) -> Result<OwnedFd> {
        if dir == self.root.node {
            return self.root.open();
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.nodes.with_descriptors(|| self.ids.open(dir, flags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::path::Path;
    use tempfile::TempDir;

    fn open(path: &Path) -> OwnedFd {
        rustix::fs::openat(CWD, path, PATH, HostMode::empty()).unwrap()
    }

    fn beneath(root: &Path, whole: bool) -> Beneath {
        let fd = open(root);
        let ids = Arc::new(Ids::new(&fd, true).unwrap());
        let node = ids.of(&fd).unwrap().node;
        let fd = Arc::new(fd);
        Beneath::new(Root { node, fd }, ids, Arc::new(Nodes::new(16, 16)), whole)
    }

    impl Beneath {
        fn has_open(&self, fd: &OwnedFd) -> bool {
            self.has(&self.ids.of(fd).unwrap(), fd).unwrap()
        }
    }

    #[test]
    fn what_is_beside_the_root_is_not_beneath_it() {
        let top = TempDir::new().unwrap();
        let at = |path: &str| top.path().join(path);
        for dir in ["tree", "tree/in", "tree2"] {
            fs::create_dir(at(dir)).unwrap();
        }
        for file in ["beside", "tree/file", "tree/in/file", "tree2/file"] {
            fs::write(at(file), "").unwrap();
        }
        std::os::unix::fs::symlink("../beside", at("tree/symlink")).unwrap();
        let beneath = beneath(&at("tree"), false);
        for path in [
            "tree",
            "tree/in",
            "tree/file",
            "tree/in/file",
            "tree/symlink",
        ] {
            assert!(beneath.has_open(&open(&at(path))), "{path}");
        }
        for path in ["", "beside", "tree2", "tree2/file"] {
            assert!(!beneath.has_open(&open(&at(path))), "{path:?}");
        }
    }

    #[test]
    fn where_a_node_is_now_counts() {
        let top = TempDir::new().unwrap();
        let at = |path: &str| top.path().join(path);
        fs::create_dir_all(at("tree/in")).unwrap();
        fs::write(at("tree/in/file"), "").unwrap();
        let beneath = beneath(&at("tree"), false);
        let (dir, file) = (open(&at("tree/in")), open(&at("tree/in/file")));
        fs::rename(at("tree/in"), at("out")).unwrap();
        assert!(!beneath.has_open(&dir) && !beneath.has_open(&file));
        fs::rename(at("out"), at("tree/back")).unwrap();
        assert!(beneath.has_open(&dir) && beneath.has_open(&file));
    }

    #[test]
    fn a_file_with_two_names_is_sought_by_the_other() {
        let top = TempDir::new().unwrap();
        let at = |path: &str| top.path().join(path);
        fs::create_dir(at("tree")).unwrap();
        fs::write(at("one"), "").unwrap();
        fs::hard_link(at("one"), at("two")).unwrap();
        fs::write(at("three"), "").unwrap();
        fs::hard_link(at("three"), at("tree/four")).unwrap();
        let beneath = beneath(&at("tree"), false);
        assert!(!beneath.has_open(&open(&at("one"))));
        assert!(beneath.has_open(&open(&at("three"))));
    }

    #[test]
    fn everything_is_beneath_the_root_of_a_whole_file_system() {
        let top = TempDir::new().unwrap();
        fs::create_dir(top.path().join("tree")).unwrap();
        let beneath = beneath(&top.path().join("tree"), true);
        assert!(beneath.has_open(&open(top.path())));
    }
}
