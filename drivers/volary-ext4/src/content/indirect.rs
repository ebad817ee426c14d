//! Direct and indirect blocks (ifork.rst, "Direct/Indirect Block Addressing").

use crate::disk::blocks::Blocks;
use crate::disk::run::{MapBlock, Run, Spot};
use crate::inodes::inode::Inode;
use volary_core::{Error, Result};

/// Pointers to blocks of data in the inode.
const DIRECT: usize = 12;
/// Levels of the three pointers that follow.
const LEVELS: u16 = 3;

/// Pointers as they are stored.
pub(crate) struct Pointers(Vec<u8>);

impl Pointers {
    /// Returns the pointers in an inode.
    pub(crate) fn of(inode: &Inode) -> Self {
        Self(inode.head.i_block.to_vec())
    }

    /// Returns the pointer of this index; 0 where there is none.
    pub(crate) fn get(&self, index: usize) -> u64 {
        let at = index.saturating_mul(4);
        match self.0.get(at..at.saturating_add(4)) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]).into(),
            _ => 0,
        }
    }

    /// Returns the run at pointer `index` of `count`, each of which maps one block; it is the block
    /// `first` of the file.
    pub(crate) fn run(&self, index: usize, count: usize, first: u64) -> Run {
        let start = self.get(index);
        let follows = |at: &usize| {
            let skip = (at - index) as u64;
            self.get(*at) == if start == 0 { 0 } else { start + skip }
        };
        let len = (index..count).take_while(follows).count() as u64;
        Run {
            first,
            len,
            spot: match start {
                0 => Spot::Hole,
                start => Spot::Data(start),
            },
        }
    }
}

/// The direct and indirect blocks of an inode.
#[derive(Clone, Copy)]
pub(crate) struct Indirect<'a> {
    blocks: &'a Blocks,
    inode: &'a Inode,
}

impl<'a> Indirect<'a> {
    pub(crate) fn new(blocks: &'a Blocks, inode: &'a Inode) -> Self {
        Self { blocks, inode }
    }

    /// Returns how many pointers an indirect block has.
    fn per_block(&self) -> u64 {
        self.blocks.volume().block / 4
    }

    /// Returns the indirect blocks that the inode names itself.
    pub(crate) fn roots(&self) -> Vec<MapBlock> {
        let pointers = Pointers::of(self.inode);
        let (mut all, mut first, mut span) = (Vec::new(), DIRECT as u64, 1u64);
        for depth in 0..LEVELS {
            span = span.saturating_mul(self.per_block());
            let end = first.saturating_add(span);
            all.push(MapBlock {
                block: pointers.get(DIRECT + usize::from(depth)),
                first,
                end,
                depth,
            });
            first = end;
        }
        all
    }

    /// Returns the pointers in an indirect block.
    ///
    /// # Errors
    /// `Corrupt` for a block that is not there; `Io`.
    pub(crate) fn pointers(&self, place: &MapBlock) -> Result<Pointers> {
        self.blocks
            .block("indirect block", self.inode.at, place.block)
            .map(Pointers)
    }

    /// Returns what the pointer of this index in an indirect block maps.
    pub(crate) fn below(&self, place: &MapBlock, index: u64, block: u64) -> MapBlock {
        let span = (0..place.depth).fold(1u64, |span, _| span.saturating_mul(self.per_block()));
        let first = place.first.saturating_add(index.saturating_mul(span));
        MapBlock {
            block,
            first,
            end: first.saturating_add(span),
            depth: place.depth.saturating_sub(1),
        }
    }

    /// Returns the run at `first`.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn run(&self, first: u64) -> Result<Run> {
        if let Some(index) = usize::try_from(first).ok().filter(|at| *at < DIRECT) {
            return Ok(Pointers::of(self.inode).run(index, DIRECT, first));
        }
        let roots = self.roots();
        let root = roots.into_iter().find(|root| first < root.end);
        let Some(mut place) = root else {
            return Ok(Run::hole(first, u64::MAX));
        };
        loop {
            if place.block == 0 {
                return Ok(Run::hole(first, place.end));
            }
            let pointers = self.pointers(&place)?;
            let span = (place.end - place.first) / self.per_block();
            let index = (first - place.first).checked_div(span).unwrap_or(0);
            let at = usize::try_from(index).unwrap_or(usize::MAX);
            if place.depth == 0 {
                let count = usize::try_from(self.per_block()).unwrap_or(0);
                return Ok(pointers.run(at, count, first));
            }
            place = self.below(&place, index, pointers.get(at));
        }
    }

    /// Checks that the pointers reach the end of the file.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_reach(&self) -> Result<()> {
        let inode = self.inode;
        let end = self.roots().last().map_or(0, |root| root.end);
        if inode.size.div_ceil(self.blocks.volume().block) <= end {
            return Ok(());
        }
        let found = format!("{} (inode {})", inode.size, inode.ino);
        let expected = format!("at most {end} blocks");
        Err(Error::corrupt("i_size", inode.at, found, expected))
    }
}

/// Returns how many pointers to data an inode has.
pub(crate) const fn direct() -> usize {
    DIRECT
}
