//! The space that a change allocates on the volume, and the space that it frees.

use crate::groups::alloc::{Alloc, Grower, Run};
use crate::groups::mistakes::{Mistake, made};
use crate::groups::policy::{Policy, Wish};
use crate::inodes::blocks::Reader;
use crate::inodes::node::{Node, Opens};
use volary_core::{FileKind, Kind, Result, Time};

/// Something that was allocated.
enum Taken {
    /// The fragments of a block.
    Piece(Run),
    /// Fragments by which a block's piece grew.
    More(Run),
    Inode(u32, bool),
}

/// The space of a change. All that it allocates can be undone until it is done, and what it frees
/// is freed only then.
pub(crate) struct Room<'a> {
    reader: Reader<'a>,
    alloc: &'a mut Alloc,
    /// Room is reserved for open files where they may grow.
    opens: &'a Opens,
    /// Whether the change may use the space reserved for root.
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

    /// Returns the place that the policy prefers for block `lbn` of a file. `before` is where the
    /// block before it lies, if it exists.
    pub(crate) fn wish(&self, ino: u32, lbn: u64, before: Option<u64>) -> Wish {
        self.alloc.wish(self.reader.volume, ino, lbn, before)
    }

    /// Returns whether the fragments at `first` were allocated since the last commit.
    pub(crate) fn is_fresh(&self, first: u64) -> bool {
        self.alloc.is_fresh(first)
    }

    /// Allocates `count` fragments of a block, as near to the wish as possible.
    ///
    /// # Errors
    /// `NoSpace`, for users other than root before the volume is full; `Corrupt`; `Io`.
    pub(crate) fn take(&mut self, count: u64, wish: Wish) -> Result<Run> {
        self.check_reserve()?;
        self.take_within(count, count, wish)
    }

    /// Allocates fragments for a piece that grows. When optimising for time, they lie where the
    /// piece can grow further. When optimising for space, or if many free fragments are in pieces,
    /// they lie where they fit.
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

    /// Allocates `count` fragments where `room` are free.
    fn take_within(&mut self, count: u64, room: u64, wish: Wish) -> Result<Run> {
        let run = self.alloc.take(&self.reader, count, room, wish)?;
        self.taken.push(Taken::Piece(run));
        Ok(run)
    }

    /// Extends a piece in place, if there is room. Returns whether it did.
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

    /// Allocates exactly these fragments of one block, if they are free. Returns whether they were.
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

    /// Allocates `count` consecutive blocks, as near to the wish as possible. Returns the first
    /// fragment, or `None` if there is no such cluster. The reserve for root is not checked,
    /// because as many blocks are freed again.
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

    /// Frees the place that a block was moved from.
    ///
    /// # Errors
    /// Never fails, unless a mistake is planted.
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

    /// Allocates a free inode for a node of this kind in directory `dir`.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn take_inode(&mut self, dir: u32, kind: FileKind) -> Result<u32> {
        let volume = self.reader.volume;
        let is_dir = kind == FileKind::Dir;
        let (own, within) = (u64::from(dir) / volume.ipg, u64::from(dir) % volume.ipg);
        let (group, near) = match is_dir {
            true => (self.alloc.summary.group_for_directory(volume), 0),
            // A file's inode goes near that of its directory.
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

    /// Returns the open file that grows by block `lbn`, unless it has no blocks yet.
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

    /// Returns the place for a block of a growing file; see [`Alloc::steer`].
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

    /// Reserves the free room behind a piece that a growing file has got.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn keep_ahead(&mut self, grower: &Grower, piece: Run) -> Result<()> {
        self.alloc.keep_ahead(&self.reader, grower, piece)
    }

    /// Returns whether a block of a file lies in a run of at least `count` blocks that is reserved
    /// for the file.
    pub(crate) fn is_in_row(&self, ino: u32, first: u64, count: u64) -> bool {
        self.alloc.is_in_row(self.reader.volume, ino, first, count)
    }

    /// Drops the reservations of a file.
    pub(crate) fn give_up(&mut self, ino: u32) {
        self.alloc.give_up(ino);
    }

    /// Frees what the change gave up, now that it is done.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: some of it stays allocated.
    pub(crate) fn done(self) -> Result<()> {
        for run in self.freed {
            self.alloc.give_back(&self.reader, run)?;
        }
        for (ino, is_dir) in self.freed_inodes {
            self.alloc.give_back_inode(&self.reader, ino, is_dir)?;
        }
        Ok(())
    }

    /// Frees what was allocated, the last first. The caller has undone writes to it before.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: memory and disk then differ.
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
