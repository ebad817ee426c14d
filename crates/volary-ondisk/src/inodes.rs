//! Inodes in memory, for drivers that write: open ones, and those changed since the last commit.

use crate::Opens;
use std::collections::HashMap;
use volary_core::{Attr, Kind, NodeId, Result};

/// An inode of a format.
pub trait Inode: Clone {
    /// Returns its number.
    fn number(&self) -> u32;

    /// Returns its generation.
    fn generation(&self) -> u32;

    /// Returns whether the inode is free.
    fn is_free(&self) -> bool;

    /// Returns the link count; 0 if the stored count is negative.
    fn links(&self) -> u32;

    /// Returns whether the inode is in use on disk without a name: it was removed while open, and
    /// then the power failed.
    fn is_left(&self) -> bool;
}

/// Reads inodes of a format from the disk.
pub trait Inodes {
    /// The format's inodes.
    type Inode: Inode;

    /// Reads an inode that is in use.
    ///
    /// # Errors
    /// `Stale` if there is no such inode, or it is free; `Corrupt`; `Io`.
    fn inode(&self, number: u64) -> Result<Self::Inode>;

    /// Returns the attributes of an inode, except [`Attr::change`].
    ///
    /// # Errors
    /// `Corrupt` if the mode is no file kind's.
    fn attr(&self, inode: &Self::Inode) -> Result<Attr>;
}

/// An inode in memory.
#[derive(Clone, Debug)]
pub struct Node<I> {
    /// The current inode.
    pub mem: I,
    /// The inode as it is on disk.
    pub disk: I,
    /// Names gained since the last commit: the disk may show them besides the old ones.
    pub adds: u32,
    /// See [`Attr::change`].
    pub change: u64,
    /// Whether the inode was changed since the last commit.
    pub is_dirty: bool,
    /// Whether the last name was removed. The inode is then freed when its last open ends.
    pub is_nameless: bool,
}

impl<I: Inode> Node<I> {
    /// Returns a node for an inode just read from disk.
    pub fn of(inode: I, change: u64) -> Self {
        Self {
            is_nameless: inode.is_left(),
            mem: inode.clone(),
            disk: inode,
            adds: 0,
            change,
            is_dirty: false,
        }
    }

    /// Returns whether the inode is free on disk.
    pub fn is_new(&self) -> bool {
        self.disk.is_free()
    }

    /// Returns whether the inode has been freed in memory.
    pub fn is_gone(&self) -> bool {
        self.mem.is_free()
    }

    /// Returns the most links that the disk may show while the changes are being written.
    pub fn links_most(&self) -> u32 {
        self.disk.links().saturating_add(self.adds)
    }
}

/// The table of inodes in memory, by number.
#[derive(Debug)]
pub struct Nodes<I> {
    map: HashMap<u32, Node<I>>,
    /// The change number given last.
    changes: u64,
    /// The change number of nodes that are not in the table.
    floor: u64,
    dirty: usize,
}

impl<I> Default for Nodes<I> {
    fn default() -> Self {
        Self {
            map: HashMap::new(),
            changes: 0,
            floor: 0,
            dirty: 0,
        }
    }
}

impl<I: Inode> Nodes<I> {
    /// Returns a node that is in the table.
    pub fn get(&self, number: u32) -> Option<&Node<I>> {
        self.map.get(&number)
    }

    /// Returns a node that is in the table, for changes.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Node<I>> {
        self.map.get_mut(&number)
    }

    /// Inserts a node, or removes it if `node` is `None`.
    pub fn put(&mut self, number: u32, node: Option<Node<I>>) {
        let is_dirty = node.as_ref().is_some_and(|node| node.is_dirty);
        let old = match node {
            Some(node) => self.map.insert(number, node),
            None => self.map.remove(&number),
        };
        self.dirty += usize::from(is_dirty);
        self.dirty -= usize::from(old.is_some_and(|node| node.is_dirty));
    }

    /// Marks a node as changed.
    pub fn touch(&mut self, number: u32) {
        self.changes += 1;
        if let Some(node) = self.map.get_mut(&number) {
            self.dirty += usize::from(!node.is_dirty);
            (node.is_dirty, node.change) = (true, self.changes);
        }
    }

    /// Returns the change number of nodes that are not in the table.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns the number of dirty nodes.
    pub fn dirty(&self) -> usize {
        self.dirty
    }

    /// Returns the numbers of dirty nodes, in order.
    pub fn all_dirty(&self) -> Vec<u32> {
        self.numbers(|node| node.is_dirty)
    }

    /// Returns the numbers of nodes without a name that are not freed yet, in order.
    pub fn orphans(&self) -> Vec<u32> {
        self.numbers(|node| node.is_nameless && !node.is_gone())
    }

    fn numbers(&self, is_wanted: impl Fn(&Node<I>) -> bool) -> Vec<u32> {
        let wanted = self.map.iter().filter(|(_, node)| is_wanted(node));
        let mut all: Vec<u32> = wanted.map(|(&number, _)| number).collect();
        all.sort_unstable();
        all
    }

    /// Marks all dirty nodes as written. Drops those that are not open or have been freed.
    pub fn settle<T>(&mut self, opens: &Opens<T>) {
        for node in self.map.values_mut().filter(|node| node.is_dirty) {
            node.disk = node.mem.clone();
            (node.is_dirty, node.adds) = (false, 0);
        }
        self.dirty = 0;
        self.floor = self.changes;
        self.map
            .retain(|&number, node| opens.is_open(number.into()) && !node.is_gone());
    }

    /// Returns the current state of an inode that is in use.
    ///
    /// # Errors
    /// `Stale` if there is no such inode, or it is free; `Corrupt`; `Io`.
    pub fn inode(&self, reader: &impl Inodes<Inode = I>, number: u64) -> Result<I> {
        let known = u32::try_from(number).ok();
        match known.and_then(|number| self.map.get(&number)) {
            Some(node) if node.is_gone() => Err(Kind::Stale.into()),
            Some(node) => Ok(node.mem.clone()),
            None => reader.inode(number),
        }
    }

    /// Returns the inode of a node.
    ///
    /// # Errors
    /// As [`inode`](Self::inode); `Stale` if `id` has another generation.
    pub fn load(&self, reader: &impl Inodes<Inode = I>, id: NodeId) -> Result<I> {
        let inode = self.inode(reader, id.ino.get())?;
        match inode.generation() == id.generation {
            true => Ok(inode),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Returns the attributes of an inode.
    ///
    /// # Errors
    /// As [`Inodes::attr`].
    pub fn attr(&self, reader: &impl Inodes<Inode = I>, inode: &I) -> Result<Attr> {
        let known = self.map.get(&inode.number());
        Ok(Attr {
            change: known.map_or(self.floor, |node| node.change) + 1,
            ..reader.attr(inode)?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Plain {
        number: u32,
        links: u32,
        is_free: bool,
    }

    impl Inode for Plain {
        fn number(&self) -> u32 {
            self.number
        }

        fn generation(&self) -> u32 {
            1
        }

        fn is_free(&self) -> bool {
            self.is_free
        }

        fn links(&self) -> u32 {
            self.links
        }

        fn is_left(&self) -> bool {
            self.links == 0
        }
    }

    fn inode(number: u32, links: u32) -> Plain {
        Plain {
            number,
            links,
            is_free: false,
        }
    }

    #[test]
    fn dirty_nodes_are_counted_whatever_is_put_in_their_places() {
        let mut nodes = Nodes::default();
        for number in [5, 3, 9] {
            nodes.put(number, Some(Node::of(inode(number, 1), 0)));
            nodes.touch(number);
            nodes.touch(number);
        }
        assert_eq!((nodes.dirty(), nodes.all_dirty()), (3, vec![3, 5, 9]));
        nodes.put(5, None);
        nodes.put(9, Some(Node::of(inode(9, 1), 0)));
        assert_eq!((nodes.dirty(), nodes.all_dirty()), (1, vec![3]));
        nodes.settle(&Opens::<()>::default());
        assert_eq!((nodes.dirty(), nodes.get(3).is_none()), (0, true));
        assert_eq!(nodes.floor(), 6);
    }

    #[test]
    fn what_is_without_a_name_is_an_orphan_until_it_is_freed() {
        let mut nodes = Nodes::default();
        nodes.put(1, Some(Node::of(inode(1, 0), 0)));
        nodes.put(2, Some(Node::of(inode(2, 1), 0)));
        assert_eq!(nodes.orphans(), [1]);
        let node = nodes.get_mut(2).unwrap();
        (node.is_nameless, node.adds) = (true, 2);
        assert_eq!(node.links_most(), 3);
        nodes.get_mut(1).unwrap().mem.is_free = true;
        assert_eq!(nodes.orphans(), [2]);
    }
}
