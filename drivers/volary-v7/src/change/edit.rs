//! A change under way: inodes, and bytes of the volume's own structures. All of it can be taken
//! back until it is done.

use crate::change::node::{Node, Nodes};
use crate::disk::blocks::Reader;
use crate::disk::inode::{Inode, kept};
use volary_block::Stage;
use volary_core::{Kind, NodeId, Result, Time};
use volary_ondisk::Undo;
use volary_ondisk::inodes::Inode as _;
pub(crate) use volary_ondisk::retry::{Step, Stop};

/// Most links of an inode, a signed number of 16 bits, less one that counts twice while a name
/// moves.
pub(crate) const LINK_MAX: u32 = 32_766;

/// The inodes and bytes of a change. What it takes of the volume is of [`Room`](crate::change::room::Room).
pub(crate) struct Edit<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) now: Time,
    nodes: &'a mut Nodes,
    undo: Undo<Inode>,
}

impl<'a> Edit<'a> {
    /// Begins a change at a time.
    pub(crate) fn new(reader: Reader<'a>, nodes: &'a mut Nodes, now: Time) -> Self {
        Self {
            reader,
            now: kept(now),
            nodes,
            undo: Undo::default(),
        }
    }

    /// Returns the table of inodes in memory.
    pub(crate) fn nodes(&self) -> &Nodes {
        self.nodes
    }

    /// Returns an inode as it is now.
    ///
    /// # Errors
    /// `Stale` if it is free; `Corrupt`; `Io`.
    pub(crate) fn inode(&self, ino: u32) -> Result<Inode> {
        self.nodes.inode(&self.reader, ino.into())
    }

    /// Returns the inode of a node.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Inode> {
        self.nodes.load(&self.reader, id)
    }

    /// Returns whether a node has lost its last name.
    pub(crate) fn is_removed(&self, ino: u32) -> bool {
        self.nodes.get(ino).is_some_and(|node| node.is_nameless)
    }

    /// Returns an inode in memory, to be changed: it is dirty from now on.
    ///
    /// # Errors
    /// As [`inode`](Self::inode).
    pub(crate) fn node(&mut self, ino: u32) -> Result<&mut Node> {
        self.undo.node(self.nodes, &self.reader, ino)
    }

    /// Puts a node where a free inode is.
    pub(crate) fn put_node(&mut self, ino: u32, node: Node) {
        self.undo.put_node(self.nodes, ino, node);
    }

    /// Notes that the content of a node has changed.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn touch_content(&mut self, ino: u32) -> Result<()> {
        let now = self.now;
        let [_, mtime, ctime] = &mut self.node(ino)?.mem.times;
        (*mtime, *ctime) = (now, now);
        Ok(())
    }

    /// Counts names that an inode has gained.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn add_links(&mut self, ino: u32, count: u16) -> Result<()> {
        let now = self.now;
        let node = self.node(ino)?;
        node.mem.nlink = node.mem.nlink.saturating_add(count);
        node.adds = node.adds.saturating_add(count.into());
        node.mem.times[2] = now;
        Ok(())
    }

    /// Counts `..` of a directory that has left another.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn drop_link(&mut self, dir: u32) -> Result<()> {
        let mem = &mut self.node(dir)?.mem;
        mem.nlink = mem.nlink.saturating_sub(1);
        Ok(())
    }

    /// Checks that an inode can have one more link.
    ///
    /// # Errors
    /// `TooManyLinks`; [`Stop::Commit`] where there may be too many on the disk for a moment.
    pub(crate) fn check_links(&self, inode: &Inode) -> Step<()> {
        if inode.links() >= LINK_MAX {
            return Err(Kind::TooManyLinks.into());
        }
        let node = self.nodes.get(inode.ino);
        match node.map_or(0, Node::links_most) >= LINK_MAX {
            true => Err(Stop::Commit),
            false => Ok(()),
        }
    }

    /// Writes bytes that are not of a file's content: all in one block.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8], stage: Stage) -> Result<()> {
        self.undo.write(self.reader.cache, at, bytes, stage)
    }

    /// Writes a file's content at byte `place` of the device. It is not taken back.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_content(&self, place: u64, data: &[u8]) -> Result<()> {
        let cache = self.reader.cache;
        match data.len() >= cache.direct_from() {
            true => cache.write_direct(place, data),
            false => cache.write(place, data, Stage::DATA),
        }
    }

    /// Takes all of it back.
    ///
    /// # Errors
    /// `Io`: memory and disk differ then.
    pub(crate) fn take_back(self) -> Result<()> {
        self.undo.take_back(self.reader.cache, self.nodes)
    }
}
