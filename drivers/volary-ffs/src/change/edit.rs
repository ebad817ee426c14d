//! A change in progress: inodes, and bytes of the volume's own structures. All of it can be undone
//! until it is done.

use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::{Node, Nodes};
use crate::inodes::store::kept;
use volary_block::Stage;
use volary_core::{FileKind, Kind, NodeId, Result, Time};
use volary_ondisk::Undo;
use volary_ondisk::inodes::Inode as _;
pub(crate) use volary_ondisk::retry::{Step, Stop};

/// The highest link count of an inode: what the BSDs allow, less one that counts twice while a name
/// moves.
pub(crate) const LINK_MAX: u32 = 32_766;

/// The inodes and bytes of a change. [`Room`](crate::change::room::Room) has the space that it
/// allocates.
pub(crate) struct Edit<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) now: Time,
    nodes: &'a mut Nodes,
    undo: Undo<Inode>,
}

impl<'a> Edit<'a> {
    /// Begins a change at time `now`.
    pub(crate) fn new(reader: Reader<'a>, nodes: &'a mut Nodes, now: Time) -> Self {
        Self {
            reader,
            now: kept(reader.volume.variant, now),
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

    /// Returns the kind that an entry must state for this inode.
    ///
    /// # Errors
    /// `NotFound` if the inode has no kind. As [`inode`](Self::inode).
    pub(crate) fn kind_of(&self, ino: u32) -> Result<FileKind> {
        let inode = self.inode(ino)?;
        inode.kind().ok_or_else(|| Kind::NotFound.into())
    }

    /// Returns an inode in memory for a change. It is dirty from now on.
    ///
    /// # Errors
    /// As [`inode`](Self::inode).
    pub(crate) fn node(&mut self, ino: u32) -> Result<&mut Node> {
        self.undo.node(self.nodes, &self.reader, ino)
    }

    /// Puts a node in the place of a free inode.
    pub(crate) fn put_node(&mut self, ino: u32, node: Node) {
        self.undo.put_node(self.nodes, ino, node);
    }

    /// Returns the inodes that this change has touched, each before and after it.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (&Inode, &Inode)> {
        self.undo.changed(self.nodes)
    }

    /// Returns the numbers of the changed inodes.
    pub(crate) fn touched(&self) -> &[u32] {
        self.undo.touched()
    }

    /// Sets the times of a node whose content has changed.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn touch_content(&mut self, ino: u32) -> Result<()> {
        let now = self.now;
        let [_, mtime, ctime] = &mut self.node(ino)?.mem.times;
        (*mtime, *ctime) = (now, now);
        Ok(())
    }

    /// Adds `count` links for names that an inode has gained.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn add_links(&mut self, ino: u32, count: i16) -> Result<()> {
        let now = self.now;
        let node = self.node(ino)?;
        node.mem.nlink = node.mem.nlink.saturating_add(count);
        node.adds = node.adds.saturating_add(count.unsigned_abs().into());
        node.mem.times[2] = now;
        Ok(())
    }

    /// Drops the link of a `..` that has left this directory.
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
    /// `TooManyLinks`; [`Stop::Commit`] if the disk may have too many for a moment.
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

    /// Writes bytes of a structure, not of a file's content, all in one block.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8], stage: Stage) -> Result<()> {
        self.undo.write(self.reader.cache, at, bytes, stage)
    }

    /// Writes a file's content at byte `place` of the device. This is not undone with the change.
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

    /// Undoes the whole change.
    ///
    /// # Errors
    /// `Io`: memory and disk then differ.
    pub(crate) fn take_back(self) -> Result<()> {
        self.undo.take_back(self.reader.cache, self.nodes)
    }
}
