//! Listed nodes in packed form: a list of millions takes some fifty bytes for each.
//!
//! Consecutive nodes share the path of their directory, and are stored as differences from the
//! first one of their block.

mod record;

use crate::interface::delivery::{File, Range, Way};
pub(crate) use record::{Head, New};
use record::{PAD, Record, pack};
use volary_core::Attr;

/// Records of a block.
const BLOCK: usize = 256;
/// A block reserves this part (1/n) more than it is likely to need.
const BLOCK_MORE: usize = 16;
/// Memory for a record besides its bytes: its start, its part of the block, and spare room.
const RECORD: u64 = 14;
/// Memory for a directory besides its path. The vector of directories may hold twice the room it
/// needs.
const DIR: u64 = 4 * size_of::<Box<[u8]>>() as u64;

/// A listed node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: Box<[u8]>,
    pub(crate) attr: Attr,
    /// The number of its fragments.
    pub(crate) fragments: u32,
    /// The ranges that hold data, if it has holes.
    pub(crate) data: Option<Box<[Range]>>,
}

impl Listed {
    pub(crate) fn new(path: &[u8], attr: Attr) -> Self {
        Self {
            path: path.into(),
            attr,
            fragments: 0,
            data: None,
        }
    }

    /// Returns the node as consumers see it.
    pub(crate) fn view(&self, source: usize, way: Way) -> File<'_> {
        File {
            source,
            path: &self.path,
            attr: Some(&self.attr),
            way,
            data: self.data.as_deref(),
        }
    }

    /// Returns the size as a length in memory, for a file in one piece.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.attr.size).unwrap_or(usize::MAX)
    }
}

/// Packed nodes, by number.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// All blocks but the last are full.
    blocks: Vec<Block>,
    /// Paths of directories, up to and with the last slash.
    dirs: Vec<Box<[u8]>>,
    /// The record that is being made.
    record: Vec<u8>,
}

#[derive(Debug)]
struct Block {
    base: Attr,
    /// The start of each record.
    starts: Vec<u32>,
    /// The records, and [`PAD`] bytes after them.
    bytes: Vec<u8>,
}

impl Packed {
    pub(crate) fn len(&self) -> usize {
        let last = self.blocks.last().map_or(0, |block| block.starts.len());
        self.blocks.len().saturating_sub(1) * BLOCK + last
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds a node if it takes at most `room` bytes. Returns how many bytes it takes.
    pub(crate) fn push(&mut self, node: &New<'_>, room: u64) -> Option<u64> {
        let slash = node.path.iter().rposition(|&b| b == b'/');
        let (dir, name) = node.path.split_at(slash.map_or(0, |at| at + 1));
        let is_new = self.dirs.last().is_none_or(|last| **last != *dir);
        let number = self.dirs.len() - usize::from(!is_new);
        let open = self.blocks.last().filter(|b| b.starts.len() < BLOCK);
        let base = open.map_or(*node.attr, |block| block.base);
        self.record.clear();
        pack(&mut self.record, node, &base, number as u64, name);
        let of_dir = if is_new { DIR + dir.len() as u64 } else { 0 };
        let cost = RECORD + self.record.len() as u64 + of_dir;
        if cost > room {
            return None;
        }
        if is_new {
            self.dirs.push(dir.into());
        }
        self.append(base);
        Some(cost)
    }

    /// Appends the record in `self.record`, whose differences are from `base`.
    fn append(&mut self, base: Attr) {
        let last = self.blocks.last();
        if last.is_none_or(|b| b.starts.len() == BLOCK) {
            // Records of one block are about as long as those of the one before.
            let bytes = last.map_or(0, |b| b.bytes.len() + b.bytes.len() / BLOCK_MORE);
            self.blocks.push(Block {
                base,
                starts: Vec::with_capacity(BLOCK),
                bytes: Vec::with_capacity(bytes),
            });
        }
        if let Some(block) = self.blocks.last_mut() {
            let end = block.bytes.len().saturating_sub(PAD);
            block.starts.push(end as u32);
            block.bytes.truncate(end);
            block.bytes.extend_from_slice(&self.record);
            block.bytes.extend_from_slice(&[0; PAD]);
            let is_full = block.starts.len() == BLOCK;
            if is_full
                && block.bytes.capacity() > block.bytes.len() + block.bytes.len() / BLOCK_MORE * 2
            {
                block.bytes.shrink_to_fit();
            }
        }
    }

    fn record(&self, number: usize) -> Option<(Record<'_>, &Attr)> {
        let block = self.blocks.get(number / BLOCK)?;
        let start = *block.starts.get(number % BLOCK)? as usize;
        Some((Record(block.bytes.get(start..)?), &block.base))
    }

    pub(crate) fn head(&self, number: usize) -> Option<Head> {
        let (record, base) = self.record(number)?;
        record.head(base)
    }

    pub(crate) fn get(&self, number: usize) -> Option<Listed> {
        let (record, base) = self.record(number)?;
        let node = record.node(base)?;
        let dir = self.dirs.get(usize::try_from(node.dir).ok()?)?;
        Some(Listed {
            path: joined(dir, node.name),
            attr: node.attr,
            fragments: node.head.fragments,
            data: node.data,
        })
    }
}

fn joined(dir: &[u8], name: &[u8]) -> Box<[u8]> {
    let mut path = Vec::with_capacity(dir.len() + name.len());
    path.extend_from_slice(dir);
    path.extend_from_slice(name);
    path.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::record::KINDS;
    use super::*;
    use std::num::NonZeroU64;
    use volary_core::{NodeId, Time};

    /// Returns pseudorandom numbers, the same each time.
    fn numbers_of_all_lengths() -> impl FnMut() -> u64 {
        let mut state = 1_u64;
        move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // Short numbers are as frequent as long ones.
            (state >> 7).wrapping_mul(state) >> (state % 64)
        }
    }

    fn attr(next: &mut impl FnMut() -> u64) -> Attr {
        let mut time = || Time {
            secs: next() as i64,
            nanos: (next() % 1_000_000_000) as u32,
        };
        let (mtime, other, born) = (time(), time(), time());
        let mut either = |of: [Time; 2]| of[(next() & 1) as usize];
        let (atime, ctime) = (either([mtime, other]), either([mtime, other]));
        Attr {
            node: NodeId {
                ino: NonZeroU64::new(next() | 1).expect("not 0"),
                generation: next() as u32,
            },
            kind: KINDS[next() as usize % KINDS.len()],
            mode: next() as u32,
            nlink: next() as u32,
            uid: next() as u32,
            gid: next() as u32,
            rdev: next(),
            size: next(),
            allocated: next(),
            io_size: next() as u32,
            atime,
            mtime,
            ctime,
            btime: [None, Some(mtime), Some(born)][next() as usize % 3],
            change: next(),
            dos: [None, Some(next() as u8)][next() as usize % 2],
        }
    }

    fn listed(next: &mut impl FnMut() -> u64, number: usize) -> Listed {
        let path = format!("/dir {}/name {}", number / 7, next()).into_bytes();
        let ranges = (next() % 4) as usize;
        let mut end = 0_u64;
        let mut range = || {
            let offset = end.wrapping_add(next());
            let len = next();
            end = offset.wrapping_add(len);
            Range { offset, len }
        };
        let data: Box<[Range]> = (0..ranges).map(|_| range()).collect();
        Listed {
            path: path.into(),
            attr: attr(next),
            fragments: next() as u32 % 3,
            data: (ranges < 3).then_some(data),
        }
    }

    fn new(listed: &Listed) -> New<'_> {
        New {
            path: &listed.path,
            attr: &listed.attr,
            fragments: listed.fragments,
            data: listed.data.as_deref(),
        }
    }

    #[test]
    fn what_was_packed_comes_back() {
        let mut next = numbers_of_all_lengths();
        let all: Vec<Listed> = (0..3 * BLOCK + 5).map(|n| listed(&mut next, n)).collect();
        let mut packed = Packed::default();
        assert!(packed.is_empty() && packed.get(0).is_none());
        for (number, listed) in all.iter().enumerate() {
            assert_eq!(packed.len(), number);
            packed.push(&new(listed), u64::MAX).expect("room");
        }
        for (number, listed) in all.iter().enumerate() {
            assert_eq!(packed.get(number).as_ref(), Some(listed));
            let head = Head {
                ino: listed.attr.node.ino.get(),
                size: listed.attr.size,
                fragments: listed.fragments,
                has_holes: listed.data.is_some(),
            };
            assert_eq!(packed.head(number), Some(head));
        }
        assert_eq!(packed.get(all.len()), None);
    }

    #[test]
    fn nodes_that_are_like_their_neighbours_take_few_bytes() {
        let (mut next, mut packed) = (numbers_of_all_lengths(), Packed::default());
        let first = listed(&mut next, 0);
        for number in 0..200_u64 {
            let mut attr = first.attr;
            attr.node.ino = attr.node.ino.saturating_add(number);
            (attr.size, attr.allocated) = (4096 + number, 8192);
            let path = format!("/dir/f{number:05}").into_bytes();
            let listed = Listed {
                path: path.into(),
                attr,
                ..first.clone()
            };
            let listed = Listed {
                data: None,
                fragments: 1,
                ..listed
            };
            let cost = packed.push(&new(&listed), u64::MAX).expect("room");
            assert!(number == 0 || cost <= 66, "{cost}");
        }
    }

    #[test]
    fn what_has_no_room_is_not_added() {
        let listed = listed(&mut numbers_of_all_lengths(), 0);
        let mut packed = Packed::default();
        assert_eq!(packed.push(&new(&listed), 40), None);
        assert!(packed.is_empty() && packed.dirs.is_empty());
        let cost = packed.push(&new(&listed), u64::MAX).expect("room");
        // The list has the directory already.
        let second = packed.push(&new(&listed), u64::MAX).expect("room");
        assert_eq!(cost - second, DIR + b"/dir 0/".len() as u64);
    }

    #[test]
    fn paths_end_in_names_or_slashes_or_have_none() {
        let mut packed = Packed::default();
        let mut next = numbers_of_all_lengths();
        let paths: [&[u8]; 5] = [b"/", b"", b"a", b"/a/b", b"/a/\xff\n"];
        for path in paths {
            let attr = attr(&mut next);
            let listed = Listed::new(path, attr);
            packed.push(&new(&listed), u64::MAX).expect("room");
        }
        for (number, path) in paths.iter().enumerate() {
            let found = packed.get(number).expect("it was packed");
            assert_eq!(&*found.path, *path);
        }
    }
}
