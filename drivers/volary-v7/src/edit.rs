//! A change under way: everything it does can be taken back until it is done.

use crate::alloc::Alloc;
use crate::blocks::Reader;
use crate::commit::{ADDITIONS, Epoch, POINTERS};
use crate::dir;
use crate::inode::{Inode, kept};
use crate::node::{Node, Nodes, Opens};
use crate::volume::Volume;
use volary_block::{Cache, Stage};
use volary_core::{Error, FileKind, NodeId, Result, Time};
use volary_ondisk::Undo;
pub(crate) use volary_ondisk::retry::{Step, Stop};

/// What was taken.
enum Taken {
    Block(u32),
    Inode(u32),
}

/// A change.
pub(crate) struct Edit<'a> {
    pub(crate) volume: &'a Volume,
    pub(crate) cache: &'a Cache,
    pub(crate) alloc: &'a mut Alloc,
    pub(crate) nodes: &'a mut Nodes,
    pub(crate) epoch: &'a mut Epoch,
    pub(crate) opens: &'a Opens,
    pub(crate) now: Time,
    undo: Undo<Inode, Taken>,
    freed: Vec<u32>,
    freed_inodes: Vec<u32>,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(
        reader: Reader<'a>,
        alloc: &'a mut Alloc,
        nodes: &'a mut Nodes,
        (epoch, opens): (&'a mut Epoch, &'a Opens),
        now: Time,
    ) -> Self {
        Self {
            volume: reader.volume,
            cache: reader.cache,
            alloc,
            nodes,
            epoch,
            opens,
            now: kept(now),
            undo: Undo::default(),
            freed: Vec::new(),
            freed_inodes: Vec::new(),
        }
    }

    pub(crate) fn reader(&self) -> Reader<'a> {
        Reader {
            cache: self.cache,
            volume: self.volume,
        }
    }

    /// Returns an inode as it is now.
    ///
    /// # Errors
    /// `Stale` if it is free; `Corrupt`; `Io`.
    pub(crate) fn inode(&self, ino: u32) -> Result<Inode> {
        self.nodes.inode(&self.reader(), ino.into())
    }

    /// Returns the inode of a node.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Inode> {
        self.nodes.load(&self.reader(), id)
    }

    /// Looks for a name: what it leads to, and where its entry is.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn search(&self, dir: &Inode, name: &[u8]) -> Result<Option<(u32, u64)>> {
        dir::search(&self.reader(), dir, name)
    }

    /// Returns an inode in memory, to be changed: it is dirty from now on.
    ///
    /// # Errors
    /// As [`inode`](Self::inode).
    pub(crate) fn node(&mut self, ino: u32) -> Result<&mut Node> {
        let reader = self.reader();
        self.undo.node(self.nodes, &reader, ino)
    }

    /// Puts a new inode where a free one is.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn new_inode(&mut self, kind: FileKind) -> Step<Inode> {
        let ino = self.alloc.take_inode()?;
        self.undo.note(Taken::Inode(ino));
        let before = self.nodes.get(ino);
        let disk = match before {
            Some(node) => node.disk.clone(),
            None => self.reader().inode_as_it_is(ino.into())?,
        };
        if disk.mode != 0 {
            let found = format!("{:#o} (inode {ino})", disk.mode);
            return Err(
                Error::corrupt("di_mode", disk.at, found, "0: it is listed as free").into(),
            );
        }
        let last = before.map_or(disk.generation, |n| n.mem.generation);
        let mut inode = Inode::free(self.volume, ino, last.wrapping_add(1));
        inode.mode = u16::try_from(kind.mode_bits()).unwrap_or(0);
        inode.times = [self.now; 3];
        let mut node = Node::of(disk, 0);
        node.mem = inode.clone();
        self.undo.put_node(self.nodes, ino, node);
        Ok(inode)
    }

    /// Frees an inode that has no blocks any more.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn free_inode(&mut self, ino: u32) -> Result<()> {
        let volume = self.volume;
        let node = self.node(ino)?;
        node.mem = Inode::free(volume, ino, node.mem.generation);
        self.freed_inodes.push(ino);
        Ok(())
    }

    /// Takes a block.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take(&mut self) -> Result<u32> {
        let block = self.alloc.take(&self.reader())?;
        self.undo.note(Taken::Block(block));
        Ok(block)
    }

    /// Gives a block back when the change is done.
    ///
    /// # Errors
    /// `Corrupt` if there are more than the volume has: files share them.
    pub(crate) fn free(&mut self, block: u32) -> Result<()> {
        self.freed.push(block);
        if self.freed.len() as u64 > self.volume.blocks {
            let found = "more blocks than the volume has";
            let at = self.volume.bsize;
            return Err(Error::corrupt("di_addr", at, found, "each block once"));
        }
        Ok(())
    }

    /// Writes bytes that are not of a file's content: all in one block.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8], stage: Stage) -> Result<()> {
        self.undo.write(self.cache, at, bytes, stage)
    }

    /// Returns the stage of an address in an indirect block.
    pub(crate) fn pointer_stage(&self, block: u32) -> Stage {
        match self.alloc.is_fresh(block) {
            true => Stage::DATA,
            false => POINTERS,
        }
    }

    /// Returns the stage of an entry in a block of a directory: any if the disk does not lead there.
    pub(crate) fn entry_stage(&self, dir: u32, block: u32) -> Stage {
        let is_new = self.nodes.get(dir).is_some_and(Node::is_new);
        match is_new || self.alloc.is_fresh(block) {
            true => Stage::DATA,
            false => ADDITIONS,
        }
    }

    /// It is done: what it freed goes.
    ///
    /// # Errors
    /// `Corrupt`: some of it stays taken.
    pub(crate) fn done(mut self) -> Result<()> {
        let given_back = self.alloc.give_back(std::mem::take(&mut self.freed));
        for ino in std::mem::take(&mut self.freed_inodes) {
            self.alloc.give_inode_back(ino);
        }
        given_back
    }

    /// Takes all of it back.
    ///
    /// # Errors
    /// `Io`: memory and disk differ then.
    pub(crate) fn take_back(self) -> Result<()> {
        let reader = self.reader();
        let (cache, nodes, alloc) = (self.cache, self.nodes, self.alloc);
        self.undo.take_back(cache, nodes, |taken| match taken {
            Taken::Block(block) => alloc.put_back(&reader, block),
            Taken::Inode(ino) => {
                alloc.put_inode_back(ino);
                Ok(())
            }
        })
    }
}
