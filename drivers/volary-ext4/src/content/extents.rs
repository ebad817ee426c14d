//! Extent trees (ifork.rst, "Extent Tree").

use crate::disk::blocks::Blocks;
use crate::disk::csum;
use crate::disk::ondisk::{
    EXTENT_DEPTH_MAX, EXTENT_ENTRY, EXTENT_LEN_MAX, EXTENT_MAGIC, ExtentHeader, ExtentIdx,
    ExtentLeaf,
};
use crate::disk::run::{MapBlock, Run, Spot};
use crate::inodes::inode::Inode;
use volary_core::{Error, Result};
use zerocopy::FromBytes;

/// One more than the last block that an extent can name.
const END: u64 = 1 << 32;

/// A node of a tree, checked.
pub(crate) struct Node {
    pub(crate) depth: u16,
    /// Its entries, as they are stored.
    entries: Vec<u8>,
    /// Where the node stands, in bytes.
    at: u64,
}

/// What a node has below it.
#[derive(Clone, Copy)]
pub(crate) enum Below {
    Node(MapBlock),
    Run(Run),
}

impl Below {
    fn first(&self) -> u64 {
        match self {
            Self::Node(node) => node.first,
            Self::Run(run) => run.first,
        }
    }
}

impl Node {
    /// Checks a node's head. `depth` is what its parent says.
    fn of(inode: &Inode, at: u64, bytes: &[u8], depth: Option<u16>) -> Result<Self> {
        let bad = |what, found: u16, expected: &str| {
            let found = format!("{found} (inode {})", inode.ino);
            Error::corrupt(what, at, found, expected)
        };
        let (head, rest) = ExtentHeader::read_from_prefix(bytes)
            .map_err(|_| bad("extent header", 0, "12 bytes"))?;
        let magic = head.eh_magic.get();
        if magic != EXTENT_MAGIC {
            return Err(bad("eh_magic", magic, "0xf30a"));
        }
        let own = head.eh_depth.get();
        if depth.is_some_and(|depth| depth != own) || own > EXTENT_DEPTH_MAX {
            return Err(bad("eh_depth", own, "one less than above, 5 at most"));
        }
        let (count, max) = (head.eh_entries.get(), head.eh_max.get());
        let room = rest.len() / EXTENT_ENTRY;
        if usize::from(max) > room {
            return Err(bad("eh_max", max, "entries that the block has room for"));
        }
        if count > max || count == 0 && depth.is_some() {
            return Err(bad("eh_entries", count, "1 to eh_max"));
        }
        let entries = rest.get(..usize::from(count) * EXTENT_ENTRY);
        Ok(Self {
            depth: own,
            entries: entries.unwrap_or_default().to_vec(),
            at,
        })
    }

    /// Returns what is below, in order, each inside of `first` to `end`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn below(&self, inode: &Inode, first: u64, end: u64) -> Result<Vec<Below>> {
        let (entries, _) = self.entries.as_chunks::<EXTENT_ENTRY>();
        let mut all = Vec::with_capacity(entries.len());
        let mut least = first;
        for (index, entry) in entries.iter().enumerate() {
            let next = entries.get(index + 1).map_or(end, starts);
            let one = match self.depth {
                0 => Below::Run(run_of(entry)),
                _ => Below::Node(self.node_of(entry, next)),
            };
            // The first entry of a node may begin later than its parent says.
            let stop = match one {
                Below::Node(node) => node.first + 1,
                Below::Run(run) => run.end(),
            };
            let is_empty = matches!(one, Below::Run(run) if run.len == 0);
            if one.first() < least || stop > next.min(end) || is_empty {
                let found = format!("{} to {stop} (inode {})", one.first(), inode.ino);
                let expected = format!("in order, inside of {first} to {end}");
                return Err(Error::corrupt("extent", self.at, found, expected));
            }
            least = stop;
            all.push(one);
        }
        Ok(all)
    }

    fn node_of(&self, entry: &[u8; EXTENT_ENTRY], end: u64) -> MapBlock {
        let (block, first) = ExtentIdx::read_from_bytes(entry).map_or((0, 0), |raw| {
            let low = u64::from(raw.ei_leaf_lo.get());
            (
                u64::from(raw.ei_leaf_hi.get()) << 32 | low,
                raw.ei_block.get().into(),
            )
        });
        MapBlock {
            block,
            first,
            end,
            depth: self.depth.saturating_sub(1),
        }
    }
}

fn starts(entry: &[u8; EXTENT_ENTRY]) -> u64 {
    ExtentLeaf::read_from_bytes(entry).map_or(0, |raw| raw.ee_block.get().into())
}

/// Returns the run of an entry of a leaf.
pub(crate) fn run_of(entry: &[u8; EXTENT_ENTRY]) -> Run {
    let Ok(raw) = ExtentLeaf::read_from_bytes(entry) else {
        return Run::hole(0, 0);
    };
    let start = u64::from(raw.ee_start_hi.get()) << 32 | u64::from(raw.ee_start_lo.get());
    let (len, spot) = match raw.ee_len.get() {
        len @ ..=EXTENT_LEN_MAX => (len, Spot::Data(start)),
        len => (len - EXTENT_LEN_MAX, Spot::Unwritten(start)),
    };
    Run {
        first: raw.ee_block.get().into(),
        len: len.into(),
        spot,
    }
}

/// The extent tree of an inode.
#[derive(Clone, Copy)]
pub(crate) struct ExtentTree<'a> {
    blocks: &'a Blocks,
    inode: &'a Inode,
}

impl<'a> ExtentTree<'a> {
    pub(crate) fn new(blocks: &'a Blocks, inode: &'a Inode) -> Self {
        Self { blocks, inode }
    }

    /// Returns the root of the tree.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn root(&self) -> Result<Node> {
        Node::of(self.inode, self.inode.at, &self.inode.head.i_block, None)
    }

    /// Returns a node below the root.
    ///
    /// # Errors
    /// `Corrupt`, also for a wrong checksum; `Io`.
    pub(crate) fn node(&self, place: &MapBlock, at: u64) -> Result<Node> {
        let bytes = self.blocks.block("extent index", at, place.block)?;
        let at = place.block * self.blocks.volume().block;
        let node = Node::of(self.inode, at, &bytes, Some(place.depth))?;
        if self.blocks.volume().verifies() {
            self.verify(at, &bytes)?;
        }
        Ok(node)
    }

    /// Compares a node's checksum, which stands after the entries that there is room for (checksums.rst).
    fn verify(&self, at: u64, bytes: &[u8]) -> Result<()> {
        let max = ExtentHeader::read_from_prefix(bytes).map_or(0, |(head, _)| head.eh_max.get());
        let tail = EXTENT_ENTRY + usize::from(max) * EXTENT_ENTRY;
        let stored = match bytes.get(tail..tail + 4) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => {
                return Err(Error::corrupt(
                    "eh_max",
                    at,
                    max.to_string(),
                    "room for a checksum",
                ));
            }
        };
        let sum = csum::crc32c(self.inode.seed, bytes.get(..tail).unwrap_or_default());
        self.blocks.verify("et_checksum", at, stored, sum)
    }

    /// Returns the run at `first`.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn run(&self, first: u64) -> Result<Run> {
        if first >= END {
            return Ok(Run::hole(first, u64::MAX));
        }
        let mut node = self.root()?;
        let (mut start, mut end) = (0, END);
        loop {
            let all = node.below(self.inode, start, end)?;
            let index = all.partition_point(|one| one.first() <= first);
            let next = all.get(index).map_or(end, Below::first);
            let here = index.checked_sub(1).and_then(|index| all.get(index));
            match here {
                Some(Below::Run(run)) if first < run.end() => return Ok(run.part(first, next)),
                Some(Below::Node(place)) => {
                    (start, end) = (place.first, next);
                    node = self.node(place, node.at)?;
                }
                // A hole up to the next extent, or to the end of all that can be mapped.
                None | Some(Below::Run(_)) if next == END => {
                    return Ok(Run::hole(first, u64::MAX));
                }
                None | Some(Below::Run(_)) => return Ok(Run::hole(first, next)),
            }
        }
    }
}
