//! Nodes that were listed, packed: a list of millions takes some fifty bytes for each.
//!
//! A record says what tells a node from the first one of its block: numbers as differences, with seven bits in
//! a byte, and most fields not at all. Nodes that follow on each other share the path of their directory.

use crate::delivery::{File, Range, Way};
use std::num::NonZeroU64;
use volary_core::{Attr, FileKind, NodeId, Time};

/// Records of a block.
const BLOCK: usize = 256;
/// Memory for a record besides its bytes: where it begins, and its part of the block.
const RECORD: u64 = 8;
/// Memory for a directory besides its path. The vector of them may hold twice the room it needs.
const DIR: u64 = 4 * size_of::<Box<[u8]>>() as u64;

/// A node that was listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: Box<[u8]>,
    pub(crate) attr: Attr,
    /// How many fragments it has.
    pub(crate) fragments: u32,
    /// Where it has data, if it has holes.
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

    /// As consumers see it.
    pub(crate) fn view(&self, source: usize, way: Way) -> File<'_> {
        File {
            source,
            path: &self.path,
            attr: Some(&self.attr),
            way,
            data: self.data.as_deref(),
        }
    }

    /// Returns its length in memory: it is in one piece.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.attr.size).unwrap_or(usize::MAX)
    }
}

/// A node to list.
pub(crate) struct New<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) attr: &'a Attr,
    pub(crate) fragments: u32,
    pub(crate) data: Option<&'a [Range]>,
}

/// The fields of a node that sweeps look at again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) fragments: u32,
    pub(crate) has_holes: bool,
}

/// Packed nodes, by number.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// All but the last one are full.
    blocks: Vec<Block>,
    /// Paths up to the last slash.
    dirs: Vec<Box<[u8]>>,
    /// The record that is being made.
    record: Vec<u8>,
}

#[derive(Debug)]
struct Block {
    base: Attr,
    /// Where each record begins.
    starts: Vec<u32>,
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

    /// Adds a node if it takes at most `room` bytes. Returns how many it takes.
    pub(crate) fn push(&mut self, node: &New<'_>, room: u64) -> Option<u64> {
        let slash = node.path.iter().rposition(|&b| b == b'/');
        let (dir, name) = node.path.split_at(slash.map_or(0, |at| at + 1));
        let is_new = self.dirs.last().is_none_or(|last| **last != *dir);
        let number = self.dirs.len() - usize::from(!is_new);
        let open = self.blocks.last().filter(|b| b.starts.len() < BLOCK);
        let base = open.map_or(*node.attr, |block| block.base);
        self.record.clear();
        pack(&mut self.record, node, &base, (number as u64, name));
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

    /// Adds the record that was made, in terms of `base`.
    fn append(&mut self, base: Attr) {
        if self.blocks.last().is_none_or(|b| b.starts.len() == BLOCK) {
            self.blocks.push(Block {
                base,
                starts: Vec::with_capacity(BLOCK),
                bytes: Vec::new(),
            });
        }
        if let Some(block) = self.blocks.last_mut() {
            block.starts.push(block.bytes.len() as u32);
            block.bytes.extend_from_slice(&self.record);
            if block.starts.len() == BLOCK {
                block.bytes.shrink_to_fit();
            }
        }
    }

    fn record(&self, number: usize) -> Option<(Unpack<'_>, &Attr)> {
        let block = self.blocks.get(number / BLOCK)?;
        let start = *block.starts.get(number % BLOCK)? as usize;
        Some((Unpack(block.bytes.get(start..)?), &block.base))
    }

    pub(crate) fn head(&self, number: usize) -> Option<Head> {
        let (mut record, base) = self.record(number)?;
        Some(record.head(base)?.1)
    }

    pub(crate) fn get(&self, number: usize) -> Option<Listed> {
        let (mut record, base) = self.record(number)?;
        let (fields, head) = record.head(base)?;
        let attr = record.attr(fields, &head, base)?;
        let dir = self.dirs.get(usize::try_from(record.number()?).ok()?)?;
        let len = usize::try_from(record.number()?).ok()?;
        let path = [dir, record.take(len)?].concat().into_boxed_slice();
        let data = head.has_holes.then(|| record.ranges());
        Some(Listed {
            path,
            attr,
            fragments: head.fragments,
            data: data.flatten(),
        })
    }
}

/// What a record says, as bits; all else is as in the block's first node, or as said here.
mod field {
    /// It has holes, and ranges of data.
    pub(super) const HOLES: u16 = 1;
    /// Its fragments are not one.
    pub(super) const FRAGMENTS: u16 = 1 << 1;
    pub(super) const KIND: u16 = 1 << 2;
    pub(super) const GENERATION: u16 = 1 << 3;
    pub(super) const MODE: u16 = 1 << 4;
    pub(super) const NLINK: u16 = 1 << 5;
    pub(super) const UID: u16 = 1 << 6;
    pub(super) const GID: u16 = 1 << 7;
    pub(super) const RDEV: u16 = 1 << 8;
    pub(super) const IO_SIZE: u16 = 1 << 9;
    /// Its time of access is not that of its change of content.
    pub(super) const ATIME: u16 = 1 << 10;
    /// Its time of change is not that of its change of content.
    pub(super) const CTIME: u16 = 1 << 11;
    /// Its time of birth is known.
    pub(super) const BORN: u16 = 1 << 12;
    /// Its time of birth is not that of its change of content.
    pub(super) const BTIME: u16 = 1 << 13;
    pub(super) const DOS: u16 = 1 << 14;
}

/// Returns the fields in which a node differs.
fn fields(node: &New<'_>, base: &Attr) -> u16 {
    let attr = node.attr;
    let all = [
        (node.data.is_some(), field::HOLES),
        (node.fragments != 1, field::FRAGMENTS),
        (attr.kind != base.kind, field::KIND),
        (
            attr.node.generation != base.node.generation,
            field::GENERATION,
        ),
        (attr.mode != base.mode, field::MODE),
        (attr.nlink != base.nlink, field::NLINK),
        (attr.uid != base.uid, field::UID),
        (attr.gid != base.gid, field::GID),
        (attr.rdev != base.rdev, field::RDEV),
        (attr.io_size != base.io_size, field::IO_SIZE),
        (attr.atime != attr.mtime, field::ATIME),
        (attr.ctime != attr.mtime, field::CTIME),
        (attr.btime.is_some(), field::BORN),
        (attr.btime.is_some_and(|b| b != attr.mtime), field::BTIME),
        (attr.dos != base.dos, field::DOS),
    ];
    all.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum()
}

/// Writes the record of a node: its directory's number and its name come last but for ranges.
fn pack(out: &mut Vec<u8>, node: &New<'_>, base: &Attr, (dir, name): (u64, &[u8])) {
    let (attr, fields) = (node.attr, fields(node, base));
    let has = |field| fields & field != 0;
    out.extend_from_slice(&fields.to_le_bytes());
    difference(out, attr.node.ino.get(), base.node.ino.get());
    number(out, attr.size);
    let optional = [
        (field::FRAGMENTS, u64::from(node.fragments)),
        (field::KIND, attr.kind as u64),
        (field::GENERATION, u64::from(attr.node.generation)),
        (field::MODE, u64::from(attr.mode)),
        (field::NLINK, u64::from(attr.nlink)),
        (field::UID, u64::from(attr.uid)),
        (field::GID, u64::from(attr.gid)),
        (field::RDEV, attr.rdev),
        (field::IO_SIZE, u64::from(attr.io_size)),
        (field::DOS, attr.dos.map_or(0, |dos| u64::from(dos) + 1)),
    ];
    for (_, value) in optional.iter().filter(|(field, _)| has(*field)) {
        number(out, *value);
    }
    number(out, attr.allocated);
    difference(out, attr.change, base.change);
    time(out, attr.mtime, base.mtime);
    let times = [
        (field::ATIME, Some(attr.atime)),
        (field::CTIME, Some(attr.ctime)),
        (field::BTIME, attr.btime),
    ];
    for (_, at) in times.iter().filter(|(field, _)| has(*field)) {
        time(out, at.unwrap_or(attr.mtime), attr.mtime);
    }
    number(out, dir);
    number(out, name.len() as u64);
    out.extend_from_slice(name);
    if let Some(data) = node.data {
        ranges(out, data);
    }
}

fn ranges(out: &mut Vec<u8>, data: &[Range]) {
    number(out, data.len() as u64);
    let mut end = 0;
    for range in data {
        number(out, range.offset.wrapping_sub(end));
        number(out, range.len);
        end = range.offset.wrapping_add(range.len);
    }
}

fn time(out: &mut Vec<u8>, time: Time, base: Time) {
    difference(out, time.secs as u64, base.secs as u64);
    number(out, u64::from(time.nanos));
}

/// Writes a number near another one: the sign is in the lowest bit.
fn difference(out: &mut Vec<u8>, value: u64, base: u64) {
    let signed = value.wrapping_sub(base) as i64;
    number(out, ((signed << 1) ^ (signed >> 63)) as u64);
}

/// Writes a number, the lower bits first, with seven in each byte; the eighth says that more follow.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// What is left to read of a record.
struct Unpack<'a>(&'a [u8]);

impl<'a> Unpack<'a> {
    fn head(&mut self, base: &Attr) -> Option<(u16, Head)> {
        let (fields, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        let fields = u16::from_le_bytes(*fields);
        let (ino, size) = (self.near(base.node.ino.get())?, self.number()?);
        let fragments = match fields & field::FRAGMENTS {
            0 => 1,
            _ => u32::try_from(self.number()?).ok()?,
        };
        let head = Head {
            ino,
            size,
            fragments,
            has_holes: fields & field::HOLES != 0,
        };
        Some((fields, head))
    }

    /// Reads what follows on the head, up to the name.
    fn attr(&mut self, fields: u16, head: &Head, base: &Attr) -> Option<Attr> {
        let kind = self.optional(fields & field::KIND, base.kind as u32)?;
        let generation = self.optional(fields & field::GENERATION, base.node.generation)?;
        let mode = self.optional(fields & field::MODE, base.mode)?;
        let nlink = self.optional(fields & field::NLINK, base.nlink)?;
        let uid = self.optional(fields & field::UID, base.uid)?;
        let gid = self.optional(fields & field::GID, base.gid)?;
        let rdev = match fields & field::RDEV {
            0 => base.rdev,
            _ => self.number()?,
        };
        let io_size = self.optional(fields & field::IO_SIZE, base.io_size)?;
        let dos = match fields & field::DOS {
            0 => base.dos,
            _ => self.number()?.checked_sub(1).map(|dos| dos as u8),
        };
        let (allocated, change) = (self.number()?, self.near(base.change)?);
        let mtime = self.time(1, base.mtime)?;
        let atime = self.time(fields & field::ATIME, mtime)?;
        let ctime = self.time(fields & field::CTIME, mtime)?;
        let btime = self.time(fields & field::BTIME, mtime)?;
        Some(Attr {
            node: NodeId {
                ino: NonZeroU64::new(head.ino)?,
                generation,
            },
            kind: KINDS.into_iter().find(|k| *k as u32 == kind)?,
            mode,
            nlink,
            uid,
            gid,
            rdev,
            size: head.size,
            allocated,
            io_size,
            atime,
            mtime,
            ctime,
            btime: (fields & field::BORN != 0).then_some(btime),
            change,
            dos,
        })
    }

    fn ranges(&mut self) -> Option<Box<[Range]>> {
        let (count, mut end) = (self.number()?, 0_u64);
        (0..count)
            .map(|_| {
                let offset = end.wrapping_add(self.number()?);
                let len = self.number()?;
                end = offset.wrapping_add(len);
                Some(Range { offset, len })
            })
            .collect()
    }

    /// Reads a number of 32 bits if `is_here` is not 0; else it is `base`.
    fn optional(&mut self, is_here: u16, base: u32) -> Option<u32> {
        match is_here {
            0 => Some(base),
            _ => u32::try_from(self.number()?).ok(),
        }
    }

    /// Reads a time if `is_here` is not 0; else it is `base`.
    fn time(&mut self, is_here: u16, base: Time) -> Option<Time> {
        if is_here == 0 {
            return Some(base);
        }
        let secs = self.near(base.secs as u64)? as i64;
        let nanos = u32::try_from(self.number()?).ok()?;
        Some(Time { secs, nanos })
    }

    fn near(&mut self, base: u64) -> Option<u64> {
        let value = self.number()?;
        let signed = (value >> 1) as i64 ^ -((value & 1) as i64);
        Some(base.wrapping_add(signed as u64))
    }

    fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
            shift += 7;
        }
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }
}

/// All kinds of nodes.
const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Dir,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers without an order: the same each time.
    fn numbers() -> impl FnMut() -> u64 {
        let mut state = 1_u64;
        move || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // Short ones as often as long ones.
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
        let mut next = numbers();
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
    fn what_has_no_room_is_not_added() {
        let listed = listed(&mut numbers(), 0);
        let mut packed = Packed::default();
        assert_eq!(packed.push(&new(&listed), 40), None);
        assert!(packed.is_empty() && packed.dirs.is_empty());
        let cost = packed.push(&new(&listed), u64::MAX).expect("room");
        // The directory is there already.
        let second = packed.push(&new(&listed), u64::MAX).expect("room");
        assert_eq!(cost - second, DIR + b"/dir 0/".len() as u64);
    }

    #[test]
    fn paths_end_in_names_or_slashes_or_have_none() {
        let mut packed = Packed::default();
        let mut next = numbers();
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
