//! Nodes of the hash trees over directories (directory.rst, "Hash Tree Directories").

use crate::disk::csum;

/// Where a node's entries stand: `struct dx_root`, or `struct dx_node`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// Where `limit` and `count` stand; they are the first entry's hash.
    at: usize,
    pub(crate) limit: usize,
    pub(crate) count: usize,
}

/// Where the entries begin in the root, and in other nodes.
const ROOT_ENTRIES: usize = 0x20;
const NODE_ENTRIES: usize = 8;
/// `struct dx_entry`: a hash, and the block of the directory that it leads to.
const ENTRY: usize = 8;

/// The head of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Root {
    pub(crate) hash_version: u8,
    pub(crate) levels: u8,
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*two))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*four))
}

impl Root {
    /// Returns the root in the first block of a directory, if it looks like one.
    pub(crate) fn of(block: &[u8]) -> Option<Self> {
        // Entries of '.' and '..', then zeros, the hash's number, the length of this, the levels.
        let info = block.get(0x18..0x20)?;
        match info {
            &[0, 0, 0, 0, hash_version, 8, levels, _] => Some(Self {
                hash_version,
                levels,
            }),
            _ => None,
        }
    }
}

impl Node {
    /// Returns the node in a block, if its counts make sense.
    pub(crate) fn of(block: &[u8], is_root: bool) -> Option<Self> {
        let at = match is_root {
            true => Root::of(block).map(|_| ROOT_ENTRIES)?,
            false => NODE_ENTRIES,
        };
        let limit = usize::from(u16_at(block, at)?);
        let count = usize::from(u16_at(block, at + 2)?);
        let end = at + limit * ENTRY;
        (count >= 1 && count <= limit && end <= block.len()).then_some(Self { at, limit, count })
    }

    /// Returns the blocks of the directory that the entries lead to, with the hashes that they begin at.
    pub(crate) fn entries(&self, block: &[u8]) -> Vec<(u32, u32)> {
        let entry = |index: usize| {
            let at = self.at + index * ENTRY;
            let hash = if index == 0 { 0 } else { u32_at(block, at)? };
            Some((hash, u32_at(block, at + 4)? & 0x0fff_ffff))
        };
        (0..self.count).filter_map(entry).collect()
    }

    /// Returns the checksum that is stored behind the room for entries, and the one that there should be.
    pub(crate) fn sums(&self, seed: u32, block: &[u8]) -> Option<(u32, u32)> {
        let tail = self.at + self.limit * ENTRY;
        let used = block.get(..self.at + self.count * ENTRY)?;
        let reserved = block.get(tail..tail + 4)?;
        let stored = u32_at(block, tail + 4)?;
        let sum = csum::crc32c(csum::crc32c(seed, used), reserved);
        Some((stored, csum::crc32c(sum, &[0; 4])))
    }
}
