//! Node ids, and their current paths.
//!
//! A node has the names under which it was seen, each in its directory's node. So a renamed
//! directory takes everything below it along. A number never stands for two nodes. The number of
//! nodes is bounded: those that were used longest ago are evicted first, except open nodes and
//! directories with known entries. A node that is gone is `Stale`.

use parking_lot::Mutex;
use std::collections::HashMap;
use volary_core::{Error, FileKind, Kind, Result};

/// The root's number.
pub(super) const ROOT: u64 = 1;
/// The longest path, in bytes.
const PATH_MAX: usize = 64 << 10;

/// The number and generation by which a plug-in knows a node; 0 if it does not tell.
pub(super) type Identity = (u64, u32);

type Key = (u64, Box<[u8]>);

#[derive(Debug)]
pub(super) struct Tree {
    state: Mutex<State>,
    most: usize,
    /// Paths with the same identity lead to one node.
    has_links: bool,
}

#[derive(Debug, Default)]
struct State {
    nodes: HashMap<u64, Node>,
    names: HashMap<Key, u64>,
    linked: HashMap<Identity, u64>,
    last: u64,
    time: u64,
}

#[derive(Debug)]
struct Node {
    kind: FileKind,
    identity: Identity,
    /// Empty once all names were removed.
    names: Vec<Key>,
    /// The reserved name in the root of a file that was removed while open.
    hidden: Option<Box<[u8]>>,
    children: usize,
    opens: usize,
    /// The time of its last use; 0 if it was only listed, or was forgotten.
    used: u64,
}

/// What the plug-in reported of the file under a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) kind: FileKind,
    pub(super) identity: Identity,
}

impl Tree {
    pub(super) fn new(most: usize, has_links: bool) -> Self {
        let mut state = State {
            last: ROOT,
            ..State::default()
        };
        let root = Node {
            kind: FileKind::Dir,
            identity: (0, 0),
            names: Vec::new(),
            hidden: None,
            children: 0,
            opens: 0,
            used: u64::MAX,
        };
        state.nodes.insert(ROOT, root);
        Self {
            state: Mutex::new(state),
            most,
            has_links,
        }
    }

    /// Returns the path of a node, without a NUL.
    ///
    /// # Errors
    /// `Stale`; `NameTooLong`.
    pub(super) fn path(&self, node: u64) -> Result<Vec<u8>> {
        let mut state = self.state.lock();
        state.touch(node);
        state.path(node)
    }

    /// Returns the path of a name in a directory.
    ///
    /// # Errors
    /// `Stale`; `NotDir`; `NameTooLong`.
    pub(super) fn path_in(&self, dir: u64, name: &[u8]) -> Result<Vec<u8>> {
        if self.kind(dir)? != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let mut path = self.path(dir)?;
        if dir != ROOT {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Ok(path)
    }

    /// # Errors
    /// `Stale`.
    pub(super) fn kind(&self, node: u64) -> Result<FileKind> {
        let state = self.state.lock();
        let found = state.nodes.get(&node).map(|n| n.kind);
        found.ok_or_else(|| Kind::Stale.into())
    }

    pub(super) fn is_hidden(&self, node: u64) -> bool {
        let state = self.state.lock();
        state.nodes.get(&node).is_some_and(|n| n.hidden.is_some())
    }

    /// Returns the parent of `dir`.
    ///
    /// # Errors
    /// `Stale`; `NotDir`.
    pub(super) fn parent(&self, dir: u64) -> Result<u64> {
        if self.kind(dir)? != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if dir == ROOT {
            return Ok(ROOT);
        }
        let state = self.state.lock();
        let name = state.nodes.get(&dir).and_then(|n| n.names.first());
        name.map(|(parent, _)| *parent)
            .ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the node that `name` in `dir` led to when it was last seen.
    pub(super) fn known(&self, dir: u64, name: &[u8]) -> Option<u64> {
        self.state.lock().names.get(&(dir, name.into())).copied()
    }

    /// Returns the node of a name. It is a new one if the name was unknown, or led to another file
    /// before.
    ///
    /// # Errors
    /// `TooManyOpen` if there is no room and all nodes are in use.
    pub(super) fn enter(&self, dir: u64, name: &[u8], seen: Seen, is_used: bool) -> Result<u64> {
        let mut state = self.state.lock();
        let key = (dir, name.into());
        if let Some(&node) = state.names.get(&key) {
            if state.is_same(node, seen) {
                if is_used {
                    state.touch(node);
                }
                return Ok(node);
            }
            state.drop_name(&key);
        }
        let linked = self.linked(&state, seen);
        let node = match linked {
            Some(node) => node,
            None => {
                self.make_room(&mut state, dir)?;
                state.add(seen)
            }
        };
        if linked.is_none() && self.is_linkable(seen) {
            state.linked.insert(seen.identity, node);
        }
        state.name(node, key);
        if is_used {
            state.touch(node);
        }
        Ok(node)
    }

    fn is_linkable(&self, seen: Seen) -> bool {
        self.has_links && seen.kind != FileKind::Dir && seen.identity.0 != 0
    }

    fn linked(&self, state: &State, seen: Seen) -> Option<u64> {
        let found = state.linked.get(&seen.identity).copied();
        found.filter(|&node| self.is_linkable(seen) && state.is_same(node, seen))
    }

    /// Returns whether a node still has the kind and identity with which it was first seen.
    pub(super) fn is_same(&self, node: u64, seen: Seen) -> bool {
        self.state.lock().is_same(node, seen)
    }

    /// Forgets a name. A node without another name is gone, or goes with its last open.
    pub(super) fn remove(&self, dir: u64, name: &[u8]) {
        self.state.lock().drop_name(&(dir, name.into()));
    }

    /// Forgets the name that makes a node's path, as others removed it. Returns whether there was
    /// one.
    pub(super) fn lose(&self, node: u64) -> bool {
        let mut state = self.state.lock();
        let name = state
            .nodes
            .get(&node)
            .and_then(|n| n.names.first().cloned());
        name.map(|name| state.drop_name(&name)).is_some()
    }

    /// Returns the node of a name, if it is an open file and this is its only known name.
    pub(super) fn is_last_of_open(&self, dir: u64, name: &[u8]) -> Option<u64> {
        let state = self.state.lock();
        let node = state.names.get(&(dir, name.into()))?;
        let found = state.nodes.get(node)?;
        let is_last = found.kind != FileKind::Dir && found.opens > 0 && found.names.len() == 1;
        is_last.then_some(*node)
    }

    /// Replaces all names of a node by a reserved one in the root.
    pub(super) fn hide(&self, node: u64, hidden: &[u8]) {
        let mut state = self.state.lock();
        if let Some(found) = state.nodes.get_mut(&node) {
            found.hidden = Some(hidden.into());
        }
        let names = state.nodes.get(&node).map(|n| n.names.clone());
        for name in names.unwrap_or_default() {
            state.drop_name(&name);
        }
    }

    /// Moves a name. Forgets the node that the new name led to.
    pub(super) fn rename(&self, from: u64, name: &[u8], to: u64, new: &[u8]) {
        let mut state = self.state.lock();
        let (old, new) = ((from, name.into()), (to, new.into()));
        state.drop_name(&new);
        if let Some(node) = state.names.get(&old).copied() {
            state.unname(node, &old);
            state.name(node, new);
        }
    }

    pub(super) fn swap(&self, from: u64, name: &[u8], to: u64, new: &[u8]) {
        let mut state = self.state.lock();
        let (a, b) = ((from, name.into()), (to, new.into()));
        let (first, second) = (state.names.get(&a).copied(), state.names.get(&b).copied());
        if let (Some(first), Some(second)) = (first, second) {
            state.unname(first, &a);
            state.unname(second, &b);
            state.name(first, b);
            state.name(second, a);
        }
    }

    /// Keeps a node in memory for an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn hold(&self, node: u64) -> Result<()> {
        let mut state = self.state.lock();
        let found = state.nodes.get_mut(&node).ok_or(Kind::Stale)?;
        found.opens += 1;
        Ok(())
    }

    /// Releases a hold. If it was the last, returns the reserved name to remove.
    pub(super) fn let_go(&self, node: u64) -> Option<Box<[u8]>> {
        let mut state = self.state.lock();
        let found = state.nodes.get_mut(&node)?;
        found.opens = found.opens.saturating_sub(1);
        let hidden = match found.opens {
            0 => found.hidden.take(),
            _ => None,
        };
        state.end_if_gone(node);
        hidden
    }

    /// Makes a node one of the first to be evicted.
    pub(super) fn cool(&self, node: u64) {
        if let Some(found) = self.state.lock().nodes.get_mut(&node)
            && node != ROOT
        {
            found.used = 0;
        }
    }

    /// # Errors
    /// `TooManyOpen` if no node can be evicted.
    fn make_room(&self, state: &mut State, dir: u64) -> Result<()> {
        if state.nodes.len() < self.most {
            return Ok(());
        }
        let can_go = |node: &Node| node.opens == 0 && node.children == 0;
        let all = state.nodes.iter();
        let free = all.filter(|(id, node)| ![ROOT, dir].contains(id) && can_go(node));
        let mut free: Vec<(u64, u64)> = free.map(|(id, node)| (node.used, *id)).collect();
        if free.is_empty() {
            let words = "more files are in use than the plug-in's table of paths has room for";
            return Err(Error::note(Kind::TooManyOpen, words));
        }
        let count = (self.most / 8).clamp(1, free.len());
        free.select_nth_unstable(count - 1);
        for (_, node) in free.into_iter().take(count) {
            state.end(node);
        }
        Ok(())
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.state.lock().nodes.len()
    }
}

impl State {
    fn touch(&mut self, node: u64) {
        self.time += 1;
        let time = self.time;
        if let Some(found) = self.nodes.get_mut(&node)
            && node != ROOT
        {
            found.used = time;
        }
    }

    fn path(&self, node: u64) -> Result<Vec<u8>> {
        let (mut parts, mut len, mut at) = (Vec::<&[u8]>::new(), 0, node);
        while at != ROOT {
            let found = self.nodes.get(&at).ok_or(Kind::Stale)?;
            let (parent, name) = match (&found.hidden, found.names.first()) {
                (Some(hidden), _) => (ROOT, hidden),
                (None, Some((parent, name))) => (*parent, name),
                (None, None) => return Err(Kind::Stale.into()),
            };
            len += name.len() + 1;
            if len > PATH_MAX {
                return Err(Kind::NameTooLong.into());
            }
            parts.push(name);
            at = parent;
        }
        let mut path = Vec::with_capacity(len + 1);
        for part in parts.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(part);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Ok(path)
    }

    fn is_same(&self, node: u64, seen: Seen) -> bool {
        self.nodes.get(&node).is_some_and(|found| {
            let is_told = found.identity.0 != 0 && seen.identity.0 != 0;
            found.kind == seen.kind && (!is_told || found.identity == seen.identity)
        })
    }

    fn add(&mut self, seen: Seen) -> u64 {
        self.last += 1;
        let node = Node {
            kind: seen.kind,
            identity: seen.identity,
            names: Vec::new(),
            hidden: None,
            children: 0,
            opens: 0,
            used: 0,
        };
        self.nodes.insert(self.last, node);
        self.last
    }

    fn name(&mut self, node: u64, key: Key) {
        if let Some(dir) = self.nodes.get_mut(&key.0) {
            dir.children += 1;
        }
        if let Some(found) = self.nodes.get_mut(&node) {
            found.names.push(key.clone());
        }
        self.names.insert(key, node);
    }

    fn unname(&mut self, node: u64, key: &Key) {
        self.names.remove(key);
        if let Some(dir) = self.nodes.get_mut(&key.0) {
            dir.children = dir.children.saturating_sub(1);
        }
        if let Some(found) = self.nodes.get_mut(&node) {
            found.names.retain(|name| name != key);
        }
    }

    fn drop_name(&mut self, key: &Key) {
        if let Some(node) = self.names.get(key).copied() {
            self.unname(node, key);
            self.end_if_gone(node);
        }
    }

    fn end_if_gone(&mut self, node: u64) {
        let is_gone = self.nodes.get(&node).is_some_and(|n| {
            let has_name = !n.names.is_empty() || n.hidden.is_some();
            !has_name && n.opens == 0 && n.children == 0 && node != ROOT
        });
        if is_gone {
            self.end(node);
        }
    }

    fn end(&mut self, node: u64) {
        let Some(found) = self.nodes.remove(&node) else {
            return;
        };
        if self.linked.get(&found.identity) == Some(&node) {
            self.linked.remove(&found.identity);
        }
        for key in found.names {
            self.names.remove(&key);
            if let Some(dir) = self.nodes.get_mut(&key.0) {
                dir.children = dir.children.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir() -> Seen {
        Seen {
            kind: FileKind::Dir,
            identity: (0, 0),
        }
    }

    fn file(number: u64) -> Seen {
        Seen {
            kind: FileKind::File,
            identity: (number, 0),
        }
    }

    fn shown(tree: &Tree, node: u64) -> String {
        tree.path(node).map_or_else(
            |e| e.to_string(),
            |path| String::from_utf8_lossy(&path).into(),
        )
    }

    #[test]
    fn what_is_below_a_directory_goes_where_it_goes() {
        let tree = Tree::new(100, false);
        let a = tree.enter(ROOT, b"a", dir(), true).unwrap();
        let b = tree.enter(a, b"b", dir(), true).unwrap();
        let f = tree.enter(b, b"f", file(0), true).unwrap();
        assert_eq!(shown(&tree, f), "/a/b/f");
        tree.rename(a, b"b", ROOT, b"c");
        assert_eq!(
            (shown(&tree, f), tree.parent(b).unwrap()),
            ("/c/f".into(), ROOT)
        );
        assert_eq!(tree.enter(ROOT, b"c", dir(), true).unwrap(), b);
        assert_eq!(shown(&tree, ROOT), "/");
    }

    #[test]
    fn a_number_never_means_another_node() {
        let tree = Tree::new(100, false);
        let old = tree.enter(ROOT, b"f", file(0), true).unwrap();
        tree.remove(ROOT, b"f");
        assert_eq!(tree.path(old).unwrap_err(), Kind::Stale);
        let new = tree.enter(ROOT, b"f", file(7), true).unwrap();
        // Others have put another file in its place.
        let other = tree.enter(ROOT, b"f", file(8), true).unwrap();
        assert!(old != new && new != other);
        assert_eq!(tree.path(new).unwrap_err(), Kind::Stale);
        assert_ne!(tree.enter(ROOT, b"f", dir(), true).unwrap(), other);
    }

    #[test]
    fn names_of_one_file_lead_to_one_node_if_the_plug_in_says_so() {
        let tree = Tree::new(100, true);
        let a = tree.enter(ROOT, b"a", file(7), true).unwrap();
        assert_eq!(tree.enter(ROOT, b"b", file(7), true).unwrap(), a);
        tree.remove(ROOT, b"a");
        assert_eq!(shown(&tree, a), "/b");
        tree.remove(ROOT, b"b");
        assert_eq!(tree.path(a).unwrap_err(), Kind::Stale);
        assert_ne!(tree.enter(ROOT, b"c", file(7), true).unwrap(), a);
    }

    #[test]
    fn what_is_open_outlives_its_name_and_goes_with_its_last_open() {
        let tree = Tree::new(100, false);
        let f = tree.enter(ROOT, b"f", file(0), true).unwrap();
        tree.hold(f).unwrap();
        tree.hold(f).unwrap();
        assert_eq!(tree.is_last_of_open(ROOT, b"f"), Some(f));
        tree.hide(f, b".hidden");
        assert_eq!(
            (shown(&tree, f), tree.is_hidden(f)),
            ("/.hidden".into(), true)
        );
        assert_eq!(tree.let_go(f), None);
        assert_eq!(tree.let_go(f).as_deref(), Some(&b".hidden"[..]));
        assert_eq!(tree.path(f).unwrap_err(), Kind::Stale);
        assert_eq!(tree.len(), 1);
    }

    #[test]
    fn there_are_never_more_nodes_than_the_bound_and_what_is_open_stays() {
        let tree = Tree::new(64, false);
        let d = tree.enter(ROOT, b"d", dir(), true).unwrap();
        let open = tree.enter(d, b"open", file(0), true).unwrap();
        tree.hold(open).unwrap();
        let used = tree.enter(ROOT, b"used", file(0), true).unwrap();
        for n in 0..10_000 {
            tree.enter(ROOT, format!("{n}").as_bytes(), file(0), false)
                .unwrap();
            tree.path(used).unwrap();
            assert!(tree.len() <= 64);
        }
        assert_eq!(shown(&tree, open), "/d/open");
        for n in 0..70 {
            if let Ok(node) = tree.enter(ROOT, format!("x{n}").as_bytes(), file(0), true) {
                tree.hold(node).unwrap();
            }
        }
        let more = tree.enter(ROOT, b"more", file(0), true);
        assert_eq!(more.unwrap_err(), Kind::TooManyOpen);
        assert!(tree.len() <= 64);
        assert_eq!(shown(&tree, open), "/d/open");
    }
}
