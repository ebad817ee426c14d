//! Inodes in memory: those that are open, and those that were changed since the last commit.

use crate::blocks::Reader;
use crate::inode::Inode;
use std::collections::HashMap;
use volary_core::{Attr, Kind, Mode, NodeId, Result};

/// An inode in memory.
#[derive(Clone)]
pub(crate) struct Node {
    /// As it is.
    pub(crate) mem: Inode,
    /// As the disk has it.
    pub(crate) disk: Inode,
    /// Names that it has gained in this epoch: what it may have on the disk beside those that
    /// it had.
    pub(crate) adds: u16,
    /// See [`Attr::change`].
    pub(crate) change: u64,
    pub(crate) is_dirty: bool,
    /// Its last name was taken away: it goes with its last open.
    pub(crate) is_nameless: bool,
}

impl Node {
    /// One that the disk has like this.
    pub(crate) fn of(inode: Inode, change: u64) -> Self {
        Self {
            mem: inode.clone(),
            disk: inode,
            adds: 0,
            change,
            is_dirty: false,
            is_nameless: false,
        }
    }

    /// Returns whether the disk has it as free.
    pub(crate) fn is_new(&self) -> bool {
        self.disk.mode == 0
    }

    /// Returns whether it has been freed.
    pub(crate) fn is_gone(&self) -> bool {
        self.mem.mode == 0
    }

    /// Returns the links that the disk may show while the epoch is brought there, at most.
    pub(crate) fn links_most(&self) -> u16 {
        self.disk.nlink.saturating_add(self.adds)
    }
}

/// The open table, by inode number.
pub(crate) type Opens = volary_ondisk::Opens<Open>;

/// An open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) id: NodeId,
    pub(crate) mode: Mode,
}

/// The table.
#[derive(Default)]
pub(crate) struct Nodes {
    map: HashMap<u32, Node>,
    /// The last number given to a change.
    changes: u64,
    /// What nodes that are not in the table count as changed at.
    floor: u64,
    dirty: usize,
}

impl Nodes {
    pub(crate) fn get(&self, ino: u32) -> Option<&Node> {
        self.map.get(&ino)
    }

    pub(crate) fn get_mut(&mut self, ino: u32) -> Option<&mut Node> {
        self.map.get_mut(&ino)
    }

    /// Puts a node in, or what it was back.
    pub(crate) fn put(&mut self, ino: u32, node: Option<Node>) {
        let is_dirty = node.as_ref().is_some_and(|node| node.is_dirty);
        let old = match node {
            Some(node) => self.map.insert(ino, node),
            None => self.map.remove(&ino),
        };
        self.dirty += usize::from(is_dirty);
        self.dirty -= usize::from(old.is_some_and(|node| node.is_dirty));
    }

    /// Notes that a node was changed.
    pub(crate) fn touch(&mut self, ino: u32) {
        self.changes += 1;
        if let Some(node) = self.map.get_mut(&ino) {
            self.dirty += usize::from(!node.is_dirty);
            (node.is_dirty, node.change) = (true, self.changes);
        }
    }

    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Returns how many are dirty.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    /// Returns the numbers of dirty nodes, in order.
    pub(crate) fn all_dirty(&self) -> Vec<u32> {
        let dirty = self.map.iter().filter(|(_, node)| node.is_dirty);
        let mut all: Vec<u32> = dirty.map(|(&ino, _)| ino).collect();
        all.sort_unstable();
        all
    }

    /// Those without a name that are open.
    pub(crate) fn orphans(&self) -> Vec<u32> {
        let all = self.map.iter();
        let orphans = all.filter(|(_, node)| node.is_nameless && !node.is_gone());
        let mut all: Vec<u32> = orphans.map(|(&ino, _)| ino).collect();
        all.sort_unstable();
        all
    }

    /// All dirty ones are on the disk as they are: keeps those that are open.
    pub(crate) fn settle(&mut self, opens: &Opens) {
        for node in self.map.values_mut().filter(|node| node.is_dirty) {
            node.disk = node.mem.clone();
            (node.is_dirty, node.adds) = (false, 0);
        }
        self.dirty = 0;
        self.floor = self.changes;
        self.map
            .retain(|&ino, node| opens.is_open(ino.into()) && !node.is_gone());
    }

    /// Returns an inode that is in use, as it is now.
    ///
    /// # Errors
    /// `Stale` if there is none, or it is free; `Corrupt`; `Io`.
    pub(crate) fn inode(&self, reader: &Reader<'_>, ino: u64) -> Result<Inode> {
        let known = u32::try_from(ino).ok().and_then(|ino| self.map.get(&ino));
        match known {
            Some(node) if node.is_gone() => Err(Kind::Stale.into()),
            Some(node) => Ok(node.mem.clone()),
            None => reader.inode(ino),
        }
    }

    /// Returns the inode of a node.
    ///
    /// # Errors
    /// As [`inode`](Self::inode); `Stale` if `id` has another generation.
    pub(crate) fn load(&self, reader: &Reader<'_>, id: NodeId) -> Result<Inode> {
        let inode = self.inode(reader, id.ino.get())?;
        if u32::from(inode.generation) != id.generation {
            return Err(Kind::Stale.into());
        }
        Ok(inode)
    }

    /// Returns attributes of an inode.
    ///
    /// # Errors
    /// `Stale` for inode 0.
    pub(crate) fn attr(&self, reader: &Reader<'_>, inode: &Inode) -> Result<Attr> {
        let change = self.map.get(&inode.ino).map_or(self.floor, |n| n.change);
        Ok(Attr {
            change: change + 1,
            ..reader.attr(inode)?
        })
    }
}
