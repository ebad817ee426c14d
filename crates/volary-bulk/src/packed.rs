//! Nodes that were listed, packed: a list of millions takes some fifty bytes for each.
//!
//! A record says what tells a node from the first one of its block, its base: numbers as differences, in as many bytes
//! as each needs, and most other fields not at all. Nodes that follow on each other share the path of their directory.

use crate::delivery::{File, Range, Way};
use std::num::NonZeroU64;
use volary_core::{Attr, FileKind, Time};

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
    /// The records, and [`PAD`] bytes after them.
    bytes: Vec<u8>,
}

/// Numbers are read eight bytes at a time, however long they are.
const PAD: usize = 8;

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
            let end = block.bytes.len().saturating_sub(PAD);
            block.starts.push(end as u32);
            block.bytes.truncate(end);
            block.bytes.extend_from_slice(&self.record);
            block.bytes.extend_from_slice(&[0; PAD]);
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
        let mut lengths = record.lengths()?;
        Some(head(record.numbers(&mut lengths)?, base))
    }

    pub(crate) fn get(&self, number: usize) -> Option<Listed> {
        let (mut record, base) = self.record(number)?;
        let mut lengths = record.lengths()?;
        let head = head(record.numbers(&mut lengths)?, base);
        let [
            allocated,
            change,
            secs,
            nanos,
            times @ ..,
            differing,
            dir,
            len,
        ] = record.numbers::<{ NUMBERS - HEAD }>(&mut lengths)?;
        let [a, a_nanos, c, c_nanos, b, b_nanos] = times;
        let mtime = Time {
            secs: near(base.mtime.secs as u64, secs) as i64,
            nanos: nanos as u32,
        };
        let mut attr = Attr {
            size: head.size,
            allocated,
            change: near(base.change, change),
            mtime,
            atime: time(mtime, (a, a_nanos)),
            ctime: time(mtime, (c, c_nanos)),
            btime: (differing & field::BORN != 0).then(|| time(mtime, (b, b_nanos))),
            ..*base
        };
        attr.node.ino = NonZeroU64::new(head.ino)?;
        if differing & !field::BORN != 0 {
            record.fields(differing, &mut attr)?;
        }
        let dir = self.dirs.get(usize::try_from(dir).ok()?)?;
        let name = record.take(usize::try_from(len).ok()?)?;
        let path = [dir, name].concat().into_boxed_slice();
        let data = head.has_holes.then(|| record.ranges());
        Some(Listed {
            path,
            attr,
            fragments: head.fragments,
            data: data.flatten(),
        })
    }
}

/// Numbers of a record. Each takes as many bytes as it needs; sixteen lengths of four bits come first.
const NUMBERS: usize = 16;
/// Bytes of the lengths.
const LENGTHS: usize = 8;
/// Of these numbers only three are looked at again and again.
const HEAD: usize = 3;

/// What is a number of as many bytes in eight bytes.
const MASKS: [u64; 9] = [
    0,
    0xff,
    0xffff,
    0xff_ffff,
    0xffff_ffff,
    0xff_ffff_ffff,
    0xffff_ffff_ffff,
    0xff_ffff_ffff_ffff,
    u64::MAX,
];

/// Fields that a record has after its numbers, as bits of one of these: all others are those of the base.
mod field {
    pub(super) const KIND: u64 = 1;
    pub(super) const GENERATION: u64 = 1 << 1;
    pub(super) const MODE: u64 = 1 << 2;
    pub(super) const NLINK: u64 = 1 << 3;
    pub(super) const UID: u64 = 1 << 4;
    pub(super) const GID: u64 = 1 << 5;
    pub(super) const RDEV: u64 = 1 << 6;
    pub(super) const IO_SIZE: u64 = 1 << 7;
    pub(super) const DOS: u64 = 1 << 8;
    /// The time of birth is known: no field, but a bit.
    pub(super) const BORN: u64 = 1 << 9;
}

/// Returns the numbers of a node: 0 for what is as usual.
fn numbers(node: &New<'_>, base: &Attr, (dir, name): (u64, &[u8])) -> [u64; NUMBERS] {
    let attr = node.attr;
    let since = |time: Time| {
        (
            difference(time.secs as u64, attr.mtime.secs as u64),
            u64::from(time.nanos ^ attr.mtime.nanos),
        )
    };
    let (atime, ctime) = (since(attr.atime), since(attr.ctime));
    let btime = attr.btime.map_or((0, 0), since);
    let fragments = u64::from(node.fragments ^ 1) << 1 | u64::from(node.data.is_some());
    [
        difference(attr.node.ino.get(), base.node.ino.get()),
        attr.size,
        fragments,
        attr.allocated,
        difference(attr.change, base.change),
        difference(attr.mtime.secs as u64, base.mtime.secs as u64),
        u64::from(attr.mtime.nanos),
        atime.0,
        atime.1,
        ctime.0,
        ctime.1,
        btime.0,
        btime.1,
        fields(attr, base),
        dir,
        name.len() as u64,
    ]
}

/// Returns the fields in which a node differs.
fn fields(attr: &Attr, base: &Attr) -> u64 {
    let bit = |is: bool, field: u64| u64::from(is) * field;
    let generation = attr.node.generation != base.node.generation;
    bit(attr.kind != base.kind, field::KIND)
        | bit(generation, field::GENERATION)
        | bit(attr.mode != base.mode, field::MODE)
        | bit(attr.nlink != base.nlink, field::NLINK)
        | bit(attr.uid != base.uid, field::UID)
        | bit(attr.gid != base.gid, field::GID)
        | bit(attr.rdev != base.rdev, field::RDEV)
        | bit(attr.io_size != base.io_size, field::IO_SIZE)
        | bit(attr.dos != base.dos, field::DOS)
        | bit(attr.btime.is_some(), field::BORN)
}

/// Writes the record of a node: numbers, fields that differ, name, ranges of data.
fn pack(out: &mut Vec<u8>, node: &New<'_>, base: &Attr, (dir, name): (u64, &[u8])) {
    let numbers = numbers(node, base, (dir, name));
    let mut bytes = [0; LENGTHS + 8 * NUMBERS];
    let (mut at, mut lengths) = (LENGTHS, 0);
    for (i, number) in numbers.into_iter().enumerate() {
        let len = (u64::BITS - number.leading_zeros()).div_ceil(8);
        lengths |= u64::from(len) << (4 * i);
        if let Some(into) = bytes.get_mut(at..at + 8) {
            into.copy_from_slice(&number.to_le_bytes());
        }
        at += len as usize;
    }
    bytes[..LENGTHS].copy_from_slice(&lengths.to_le_bytes());
    out.extend_from_slice(bytes.get(..at).unwrap_or_default());
    let [.., differing, _, _] = numbers;
    if differing & !field::BORN != 0 {
        pack_fields(out, node.attr, differing);
    }
    out.extend_from_slice(name);
    if let Some(data) = node.data {
        ranges(out, data);
    }
}

fn pack_fields(out: &mut Vec<u8>, attr: &Attr, differing: u64) {
    let all = [
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
    for (_, value) in all.iter().filter(|(field, _)| differing & field != 0) {
        number(out, *value);
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

/// Returns a number that is small if two are near each other: the sign is in its lowest bit.
fn difference(value: u64, base: u64) -> u64 {
    let signed = value.wrapping_sub(base) as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// Returns the number that has this [`difference`] from a base.
fn near(base: u64, difference: u64) -> u64 {
    let signed = (difference >> 1) as i64 ^ -((difference & 1) as i64);
    base.wrapping_add(signed as u64)
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
    /// Reads the lengths of the numbers.
    fn lengths(&mut self) -> Option<u64> {
        let (lengths, rest) = self.0.split_first_chunk::<LENGTHS>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*lengths))
    }

    /// Reads as many numbers. Their lengths are taken off `lengths`.
    fn numbers<const N: usize>(&mut self, lengths: &mut u64) -> Option<[u64; N]> {
        let (mut numbers, mut at) = ([0; N], 0);
        for number in &mut numbers {
            let len = (*lengths & 0xf) as usize;
            *lengths >>= 4;
            let bytes = self.0.get(at..at + PAD)?.first_chunk()?;
            *number = u64::from_le_bytes(*bytes) & MASKS.get(len)?;
            at += len;
        }
        self.0 = self.0.get(at..)?;
        Some(numbers)
    }

    /// Reads fields that are not those of the base.
    fn fields(&mut self, differing: u64, attr: &mut Attr) -> Option<()> {
        let mut next = |field| match differing & field {
            0 => Some(None),
            _ => self.number().map(Some),
        };
        if let Some(kind) = next(field::KIND)? {
            attr.kind = KINDS.into_iter().find(|k| *k as u64 == kind)?;
        }
        for (field, into) in [
            (field::GENERATION, &mut attr.node.generation),
            (field::MODE, &mut attr.mode),
            (field::NLINK, &mut attr.nlink),
            (field::UID, &mut attr.uid),
            (field::GID, &mut attr.gid),
        ] {
            if let Some(value) = next(field)? {
                *into = u32::try_from(value).ok()?;
            }
        }
        if let Some(rdev) = next(field::RDEV)? {
            attr.rdev = rdev;
        }
        if let Some(size) = next(field::IO_SIZE)? {
            attr.io_size = u32::try_from(size).ok()?;
        }
        if let Some(dos) = next(field::DOS)? {
            attr.dos = dos.checked_sub(1).map(|dos| dos as u8);
        }
        Some(())
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

/// Returns what the first numbers say.
fn head([ino, size, fragments]: [u64; HEAD], base: &Attr) -> Head {
    Head {
        ino: near(base.node.ino.get(), ino),
        size,
        fragments: (fragments >> 1) as u32 ^ 1,
        has_holes: fragments & 1 != 0,
    }
}

/// Returns the time that is told as seconds and nanoseconds in terms of another one.
fn time(base: Time, (secs, nanos): (u64, u64)) -> Time {
    Time {
        secs: near(base.secs as u64, secs) as i64,
        nanos: nanos as u32 ^ base.nanos,
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
    use volary_core::NodeId;

    /// Returns numbers without an order: the same each time.
    fn numbers_of_all_lengths() -> impl FnMut() -> u64 {
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
            assert!(number == 0 || cost <= 60, "{cost}");
        }
    }

    #[test]
    fn what_has_no_room_is_not_added() {
        let listed = listed(&mut numbers_of_all_lengths(), 0);
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
