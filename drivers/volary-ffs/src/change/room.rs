//! What a change takes of the volume's free room, and what it gives back.

use crate::groups::alloc::{Alloc, Grower, Run};
use crate::groups::mistakes::{Mistake, made};
use crate::groups::policy::{Policy, Wish};
use crate::inodes::blocks::Reader;
use crate::inodes::node::{Node, Opens};
use volary_core::{FileKind, Kind, Result, Time};

/// What was taken.
enum Taken {
    /// A piece.
    Piece(Run),
    /// Fragments by which a piece grew.
    More(Run),
    Inode(u32, bool),
}

/// The room of a change: all that is taken can be given back until it is done, and what it frees
/// goes only then.
pub(crate) struct Room<'a> {
    reader: Reader<'a>,
    alloc: &'a mut Alloc,
    /// For files that are open, room is kept where they may grow.
    opens: &'a Opens,
    /// May use what is kept for root.
    pub(crate) is_root: bool,
    taken: Vec<Taken>,
    freed: Vec<Run>,
    freed_inodes: Vec<(u32, bool)>,
}

impl<'a> Room<'a> {
    /// Returns the room of a change that has taken nothing yet.
    pub(crate) fn new(
        reader: Reader<'a>,
        alloc: &'a mut Alloc,
        opens: &'a Opens,
        is_root: bool,
    ) -> Self {
        Self {
            reader,
            alloc,
            opens,
            is_root,
            taken: Vec::new(),
            freed: Vec::new(),
            freed_inodes: Vec::new(),
        }
    }

    /// Returns the parameters of the policies.
    pub(crate) fn policy(&self) -> &Policy {
        &self.alloc.policy
    }

    /// Returns the place that the policy wishes for block `lbn` of a file, after the one at
    /// `before`, if there is one.
    pub(crate) fn wish(&self, ino: u32, lbn: u64, before: Option<u64>) -> Wish {
        self.alloc.wish(self.reader.volume, ino, lbn, before)
    }

    /// Returns whether the piece at this fragment was allocated since the last commit.
    pub(crate) fn is_fresh(&self, first: u64) -> bool {
        self.alloc.is_fresh(first)
    }

    /// Takes `count` fragments of a block, as near to what is wished for as can be.
    ///
    /// # Errors
    /// `NoSpace`, for others than root before all is taken; `Corrupt`; `Io`.
    pub(crate) fn take(&mut self, count: u64, wish: Wish) -> Result<Run> {
        self.check_reserve()?;
        self.take_within(count, count, wish)
    }

    /// Takes fragments for a piece that grows: optimised for time, where it can go on growing;
    /// for space, and when much of the volume is in pieces, where it fits.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn take_to_grow(&mut self, count: u64, wish: Wish) -> Result<Run> {
        let (volume, policy) = (self.reader.volume, &self.alloc.policy);
        let pieces = u64::try_from(self.alloc.summary.total()[3]).unwrap_or(0);
        let few = policy.minfree.saturating_sub(2);
        let is_time = policy.saves_time && pieces <= volume.dsize / 100 * few;
        if !is_time {
            return self.take(count, wish);
        }
        self.check_reserve()?;
        match self.take_within(count, volume.frag, wish) {
            Err(e) if e == Kind::NoSpace => self.take(count, wish),
            taken => taken,
        }
    }

    /// Takes fragments where there is room for `room`.
    fn take_within(&mut self, count: u64, room: u64, wish: Wish) -> Result<Run> {
        let run = self.alloc.take(&self.reader, count, room, wish)?;
        self.taken.push(Taken::Piece(run));
        Ok(run)
    }

    /// Lets a piece grow where it is, if there is room.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(crate) fn extend(&mut self, piece: Run, count: u64) -> Result<bool> {
        self.check_reserve()?;
        let grew = self.alloc.extend(&self.reader, piece, count)?;
        if grew {
            let (first, count) = (piece.first + piece.count, count - piece.count);
            self.taken.push(Taken::More(Run { first, count }));
        }
        Ok(grew)
    }

    /// Takes exactly these fragments, which are of one block, if they are free.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn take_exactly(&mut self, run: Run) -> Result<bool> {
        let taken = self.alloc.take_exactly(&self.reader, run)?;
        if taken {
            self.taken.push(Taken::Piece(run));
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
        let Some(cluster) = self.alloc.take_cluster(&self.reader, count, wish)? else {
            return Ok(None);
        };
        let frag = self.reader.volume.frag;
        let blocks = (0..count).map(|i| Run {
            first: cluster + i * frag,
            count: frag,
        });
        self.taken.extend(blocks.map(Taken::Piece));
        Ok(Some(cluster))
    }

    /// The free-space reserve (section 2.4 of the paper).
    fn check_reserve(&self) -> Result<()> {
        let volume = self.reader.volume;
        let free = self.alloc.free_fragments(volume);
        if !self.is_root && free <= volume.reserve(self.alloc.policy.minfree) {
            return Err(Kind::NoSpace.into());
        }
        Ok(())
    }

    /// Gives fragments back when the change is done.
    pub(crate) fn free(&mut self, run: Run) {
        self.freed.push(run);
    }

    /// Gives back the place that a block was moved from.
    ///
    /// # Errors
    /// None, unless a mistake is planted.
    pub(crate) fn leave_block(&mut self, first: u64) -> Result<()> {
        let count = self.reader.volume.frag;
        if made(Mistake::NamedBlocksMove) {
            return self.alloc.put_back(&self.reader, Run { first, count });
        }
        if !made(Mistake::OldPlaceStays) {
            self.free(Run { first, count });
        }
        Ok(())
    }

    /// Takes a free inode for a node of a kind in a directory.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take_inode(&mut self, dir: u32, kind: FileKind) -> Result<u32> {
        let volume = self.reader.volume;
        let is_dir = kind == FileKind::Dir;
        let (own, within) = (u64::from(dir) / volume.ipg, u64::from(dir) % volume.ipg);
        let (group, near) = match is_dir {
            true => (self.alloc.summary.group_for_directory(volume), 0),
            // Files beside the directory that holds them.
            false => (own, within),
        };
        let ino = self
            .alloc
            .take_inode(&self.reader, group, Some(near), is_dir)?;
        self.taken.push(Taken::Inode(ino, is_dir));
        Ok(ino)
    }

    /// Gives an inode back when the change is done.
    pub(crate) fn free_inode(&mut self, ino: u32, is_dir: bool) {
        self.freed_inodes.push((ino, is_dir));
    }

    /// Returns a file that is open and grows by block `lbn`, unless that is the first that it gets.
    pub(crate) fn grower(&self, node: Option<&Node>, lbn: u64, now: Time) -> Option<Grower> {
        let mem = &node?.mem;
        let is_file = mem.kind() == Some(FileKind::File);
        let grows = is_file && mem.blocks != 0 && self.opens.is_open(mem.ino.into());
        grows.then(|| Grower {
            ino: mem.ino,
            lbn,
            blocks: mem.blocks.saturating_mul(512) / self.reader.volume.bsize,
            now: now.secs,
        })
    }

    /// Returns the place for a block of a file that grows; see [`Alloc::steer`].
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn steer(
        &mut self,
        grower: &Grower,
        before: Option<u64>,
        wish: Wish,
    ) -> Result<Wish> {
        self.alloc.steer(&self.reader, grower, before, wish)
    }

    /// Keeps what is free behind a piece that a growing file has got.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn keep_ahead(&mut self, grower: &Grower, piece: Run) -> Result<()> {
        self.alloc.keep_ahead(&self.reader, grower, piece)
    }

    /// Returns whether a block of a file lies in a stretch of at least so many blocks that is kept
    /// for it.
    pub(crate) fn is_in_row(&self, ino: u32, first: u64, count: u64) -> bool {
        self.alloc.is_in_row(self.reader.volume, ino, first, count)
    }

    /// Gives back what is kept for a file.
    pub(crate) fn give_up(&mut self, ino: u32) {
        self.alloc.give_up(ino);
    }

    /// Lets what was freed go: the change is done.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: some of it stays taken.
    pub(crate) fn done(self) -> Result<()> {
        for run in self.freed {
            self.alloc.give_back(&self.reader, run)?;
        }
        for (ino, is_dir) in self.freed_inodes {
            self.alloc.give_back_inode(&self.reader, ino, is_dir)?;
        }
        Ok(())
    }

    /// Gives back what was taken, the last first. What was written there is taken back before.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: memory and disk differ then.
    pub(crate) fn take_back(self) -> Result<()> {
        let (alloc, reader) = (self.alloc, &self.reader);
        self.taken
            .into_iter()
            .rev()
            .try_for_each(|taken| match taken {
                Taken::Piece(run) => alloc.give_back(reader, run),
                Taken::More(run) => alloc.put_back(reader, run),
                Taken::Inode(ino, is_dir) => alloc.give_back_inode(reader, ino, is_dir),
            })
    }
}
