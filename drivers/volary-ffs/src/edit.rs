//! A change under way: everything it does can be taken back until it is done.

use crate::alloc::{Alloc, Run};
use crate::blocks::Reader;
use crate::commit::{ADDITIONS, Epoch, POINTERS};
use crate::index::Indexes;
use crate::inode::Inode;
use crate::node::{Node, Nodes, Opens};
use crate::policy::Wish;
use crate::quota::{Kept, Quotas};
use crate::store::kept;
use crate::volume::Volume;
use parking_lot::Mutex;
use volary_block::{Cache, Stage};
use volary_core::{Error, FileKind, Kind, NodeId, QuotaOf, Result, Time};
use volary_ondisk::Undo;
pub(crate) use volary_ondisk::retry::{Step, Stop};

/// What was taken, or changed in memory.
enum Taken {
    /// Fragments; whether they are a piece of their own.
    Fragments(Run, bool),
    Inode(u32, bool),
    /// What there was of a quota record in memory.
    Record(QuotaOf, u32, Option<Kept>),
}

/// A change.
pub(crate) struct Edit<'a> {
    pub(crate) volume: &'a Volume,
    pub(crate) cache: &'a Cache,
    pub(crate) alloc: &'a mut Alloc,
    pub(crate) nodes: &'a mut Nodes,
    pub(crate) epoch: &'a mut Epoch,
    pub(crate) quotas: &'a mut Quotas,
    pub(crate) opens: &'a Opens,
    pub(crate) indexes: &'a Mutex<Indexes>,
    pub(crate) now: Time,
    /// May use what is kept for root, and go past quotas.
    pub(crate) is_root: bool,
    undo: Undo<Inode, Taken>,
    freed: Vec<Run>,
    freed_inodes: Vec<(u32, bool)>,
}

impl<'a> Edit<'a> {
    pub(crate) fn new(
        reader: Reader<'a>,
        alloc: &'a mut Alloc,
        nodes: &'a mut Nodes,
        (epoch, quotas, opens): (&'a mut Epoch, &'a mut Quotas, &'a Opens),
        indexes: &'a Mutex<Indexes>,
        (now, is_root): (Time, bool),
    ) -> Self {
        Self {
            volume: reader.volume,
            cache: reader.cache,
            alloc,
            nodes,
            epoch,
            quotas,
            opens,
            indexes,
            now: kept(reader.volume.variant, now),
            is_root,
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

    /// Returns an inode in memory, to be changed: it is dirty from now on.
    ///
    /// # Errors
    /// As [`inode`](Self::inode).
    pub(crate) fn node(&mut self, ino: u32) -> Result<&mut Node> {
        let reader = self.reader();
        self.undo.node(self.nodes, &reader, ino)
    }

    /// Returns the inodes that it has touched, as they were before and as they are now.
    pub(crate) fn touched(&self) -> impl Iterator<Item = (&Inode, &Inode)> {
        self.undo.changed(self.nodes)
    }

    /// Notes what there was of a quota record that was changed.
    pub(crate) fn note_record(&mut self, of: QuotaOf, id: u32, before: Option<Kept>) {
        self.undo.note(Taken::Record(of, id, before));
    }

    /// Puts a new inode where a free one is.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn new_inode(&mut self, dir: &Inode, kind: FileKind) -> Step<Inode> {
        let is_dir = kind == FileKind::Dir;
        let own = u64::from(dir.ino) / self.volume.ipg;
        let (group, near) = match is_dir {
            true => (crate::policy::directory(self.volume, self.alloc), Some(0)),
            // Files beside the directory that holds them.
            false => (own, Some(u64::from(dir.ino) % self.volume.ipg)),
        };
        let ino = self.alloc.take_inode(&self.reader(), group, near, is_dir)?;
        self.undo.note(Taken::Inode(ino, is_dir));
        let before = self.nodes.get(ino);
        let disk = match before {
            Some(node) => node.disk.clone(),
            None => self.reader().inode_as_it_is(ino.into())?,
        };
        let last = before.map_or(disk.generation, |n| n.mem.generation);
        if disk.mode != 0 {
            let found = format!("{:#o} (inode {ino})", disk.mode);
            return Err(
                Error::corrupt("di_mode", disk.at, found, "0: it is free in the map").into(),
            );
        }
        let mut inode = Inode::free(self.volume, ino, disk.at, last.wrapping_add(1).max(1));
        inode.mode = u16::try_from(kind.mode_bits()).unwrap_or(0);
        inode.times = [self.now; 3];
        inode.birth = inode.birth.or(Some(self.now)).filter(|_| self.has_birth());
        let mut node = Node::of(disk, 0);
        node.mem = inode.clone();
        self.undo.put_node(self.nodes, ino, node);
        Ok(inode)
    }

    fn has_birth(&self) -> bool {
        self.volume.variant == crate::volume::Variant::Ufs2
    }

    /// Frees an inode that has no blocks any more.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn free_inode(&mut self, ino: u32) -> Result<()> {
        let volume = self.volume;
        let node = self.node(ino)?;
        let is_dir = node.mem.kind() == Some(FileKind::Dir);
        node.mem = Inode::free(volume, ino, node.mem.at, node.mem.generation);
        self.freed_inodes.push((ino, is_dir));
        self.indexes.lock().forget(ino);
        Ok(())
    }

    /// Takes `count` fragments of a block, as near to what is wished for as can be.
    ///
    /// # Errors
    /// `NoSpace`, for others than root before all is taken; `Corrupt`; `Io`.
    pub(crate) fn take(&mut self, count: u64, wish: Wish) -> Result<Run> {
        self.check_reserve()?;
        let reader = self.reader();
        let run = self.alloc.take(&reader, count, count, wish)?;
        self.undo.note(Taken::Fragments(run, true));
        Ok(run)
    }

    /// Returns the same for a piece that grows: optimised for time, it comes where it can go on
    /// growing; for space, and when much of the volume is in pieces, where it fits.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn take_to_grow(&mut self, count: u64, wish: Wish) -> Result<Run> {
        let policy = &self.alloc.policy;
        let pieces = u64::try_from(self.alloc.total[3]).unwrap_or(0);
        let few = policy.minfree.saturating_sub(2);
        let is_time = policy.saves_time && pieces <= self.volume.dsize / 100 * few;
        if !is_time {
            return self.take(count, wish);
        }
        self.check_reserve()?;
        let reader = self.reader();
        match self.alloc.take(&reader, count, self.volume.frag, wish) {
            Ok(run) => {
                self.undo.note(Taken::Fragments(run, true));
                Ok(run)
            }
            Err(e) if e == Kind::NoSpace => self.take(count, wish),
            Err(e) => Err(e),
        }
    }

    /// Lets a piece grow where it is, if there is room.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn extend(&mut self, piece: Run, count: u64) -> Result<bool> {
        self.check_reserve()?;
        let reader = self.reader();
        let grew = self.alloc.extend(&reader, piece, count)?;
        if grew {
            let (first, count) = (piece.first + piece.count, count - piece.count);
            self.undo
                .note(Taken::Fragments(Run { first, count }, false));
        }
        Ok(grew)
    }

    /// Takes exactly these fragments, which are of one block, if they are free.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn take_exactly(&mut self, run: Run) -> Result<bool> {
        let taken = self.alloc.take_exactly(&self.reader(), run)?;
        if taken {
            self.undo.note(Taken::Fragments(run, true));
        }
        Ok(taken)
    }

    /// Takes `count` blocks in a row, as near to what is wished for as can be; gives the first
    /// fragment, `None` if there is no such cluster. What is kept for root is not asked
    /// after: as many blocks are given back.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn take_cluster(&mut self, count: u64, wish: Wish) -> Result<Option<u64>> {
        let reader = self.reader();
        let Some(cluster) = self.alloc.take_cluster(&reader, count, wish)? else {
            return Ok(None);
        };
        let frag = self.volume.frag;
        let first = (0..count).map(|i| cluster + i * frag);
        for run in first.map(|first| Run { first, count: frag }) {
            self.undo.note(Taken::Fragments(run, true));
        }
        Ok(Some(cluster))
    }

    /// The free-space reserve (section 2.4 of the paper).
    fn check_reserve(&self) -> Result<()> {
        let free = self.alloc.free_fragments(self.volume);
        if !self.is_root && free <= self.volume.reserve(self.alloc.policy.minfree) {
            return Err(Kind::NoSpace.into());
        }
        Ok(())
    }

    /// Gives fragments back when the change is done.
    pub(crate) fn free(&mut self, run: Run) {
        self.freed.push(run);
    }

    /// Writes bytes that are not of a file's content: all in one block.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8], stage: Stage) -> Result<()> {
        self.undo.write(self.cache, at, bytes, stage)
    }

    /// Returns the stage of a pointer in the indirect block that begins at `first`.
    pub(crate) fn pointer_stage(&self, first: u64) -> Stage {
        match self.alloc.is_fresh(first) {
            true => Stage::DATA,
            false => POINTERS,
        }
    }

    /// Returns the stage of a directory's sector at `at`, in the piece that begins at `first`: any if
    /// the disk does not lead there.
    pub(crate) fn entry_stage(&self, dir: &Node, at: u64, first: u64) -> Stage {
        match dir.is_new() || at >= dir.disk.size || self.alloc.is_fresh(first) {
            true => Stage::DATA,
            false => ADDITIONS,
        }
    }

    /// It is done: what it freed goes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: some of it stays taken.
    pub(crate) fn done(mut self) -> Result<()> {
        let reader = self.reader();
        for run in std::mem::take(&mut self.freed) {
            self.alloc.give_back(&reader, run)?;
        }
        for (ino, is_dir) in std::mem::take(&mut self.freed_inodes) {
            self.alloc.give_back_inode(&reader, ino, is_dir)?;
        }
        Ok(())
    }

    /// Takes all of it back.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: memory and disk differ then.
    pub(crate) fn take_back(self) -> Result<()> {
        let reader = self.reader();
        for &ino in self.undo.touched() {
            self.indexes.lock().forget(ino);
        }
        let (alloc, quotas) = (self.alloc, self.quotas);
        self.undo
            .take_back(self.cache, self.nodes, |taken| match taken {
                Taken::Fragments(run, true) => alloc.give_back(&reader, run),
                Taken::Fragments(run, false) => alloc.put_back(&reader, run),
                Taken::Inode(ino, is_dir) => alloc.give_back_inode(&reader, ino, is_dir),
                Taken::Record(of, id, before) => {
                    quotas.put_back(of, id, before);
                    Ok(())
                }
            })
    }
}
