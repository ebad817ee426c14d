//! The record of a node: its differences from another node, the base. Each number takes as many
//! bytes as it needs, and most other fields are left out.

use crate::interface::delivery::Range;
use std::num::NonZeroU64;
use volary_core::{Attr, FileKind, Time};

/// Bytes that must follow a record, since numbers are read eight bytes at a time, however short
/// they are.
pub(super) const PAD: usize = 8;

/// A node to list.
pub(crate) struct New<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) attr: &'a Attr,
    pub(crate) fragments: u32,
    pub(crate) data: Option<&'a [Range]>,
}

/// The fields of a node that sweeps read often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) ino: u64,
    pub(crate) size: u64,
    pub(crate) fragments: u32,
    pub(crate) has_holes: bool,
}

/// How many numbers a record has. Sixteen lengths of four bits come first; each number takes as
/// many bytes as its length says.
const NUMBERS: usize = 16;
/// How many bytes the lengths take.
const LENGTHS: usize = 8;
/// How many of the numbers, the first ones, are read often.
const HEAD: usize = 3;

/// For each length in bytes, a mask of the number in eight bytes.
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

/// Bits for the fields that follow the numbers in a record. A field without its bit equals the
/// base's.
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
    /// The birth time is known. This bit has no field.
    pub(super) const BORN: u64 = 1 << 9;
}

/// Returns the numbers of a node; those that are as usual are 0.
fn numbers(node: &New<'_>, base: &Attr, dir: u64, name: &[u8]) -> [u64; NUMBERS] {
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

/// Returns the bits of the fields in which a node differs from the base.
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
pub(super) fn pack(out: &mut Vec<u8>, node: &New<'_>, base: &Attr, dir: u64, name: &[u8]) {
    let numbers = numbers(node, base, dir, name);
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

/// Returns the difference of two numbers in zigzag encoding: the sign is the lowest bit, so a small
/// difference is a small number.
fn difference(value: u64, base: u64) -> u64 {
    let signed = value.wrapping_sub(base) as i64;
    ((signed << 1) ^ (signed >> 63)) as u64
}

/// Returns the number that has this [`difference`] from `base`.
fn near(base: u64, difference: u64) -> u64 {
    let signed = (difference >> 1) as i64 ^ -((difference & 1) as i64);
    base.wrapping_add(signed as u64)
}

/// Writes a number in LEB128: seven bits a byte, the lowest first; the eighth bit says that more
/// follow.
fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A node read from a record. Its path is the number of a directory, and a name.
pub(super) struct Node<'a> {
    pub(super) head: Head,
    pub(super) attr: Attr,
    pub(super) dir: u64,
    pub(super) name: &'a [u8],
    pub(super) data: Option<Box<[Range]>>,
}

/// The unread rest of a record, and the bytes that follow it.
pub(super) struct Record<'a>(pub(super) &'a [u8]);

impl<'a> Record<'a> {
    pub(super) fn head(mut self, base: &Attr) -> Option<Head> {
        let mut lengths = self.lengths()?;
        Some(head(self.numbers(&mut lengths)?, base))
    }

    pub(super) fn node(mut self, base: &Attr) -> Option<Node<'a>> {
        let mut lengths = self.lengths()?;
        let head = head(self.numbers(&mut lengths)?, base);
        let [
            allocated,
            change,
            secs,
            nanos,
            times @ ..,
            differing,
            dir,
            len,
        ] = self.numbers::<{ NUMBERS - HEAD }>(&mut lengths)?;
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
            atime: time(mtime, a, a_nanos),
            ctime: time(mtime, c, c_nanos),
            btime: (differing & field::BORN != 0).then(|| time(mtime, b, b_nanos)),
            ..*base
        };
        attr.node.ino = NonZeroU64::new(head.ino)?;
        if differing & !field::BORN != 0 {
            self.fields(differing, &mut attr)?;
        }
        let name = self.take(usize::try_from(len).ok()?)?;
        let data = head.has_holes.then(|| self.ranges()).flatten();
        Some(Node {
            head,
            attr,
            dir,
            name,
            data,
        })
    }

    /// Reads the lengths of the numbers.
    fn lengths(&mut self) -> Option<u64> {
        let (lengths, rest) = self.0.split_first_chunk::<LENGTHS>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*lengths))
    }

    /// Reads `N` numbers, and shifts their lengths out of `lengths`.
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

    /// Reads the fields that differ from the base's.
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

/// Decodes the first numbers of a record.
fn head([ino, size, fragments]: [u64; HEAD], base: &Attr) -> Head {
    Head {
        ino: near(base.node.ino.get(), ino),
        size,
        fragments: (fragments >> 1) as u32 ^ 1,
        has_holes: fragments & 1 != 0,
    }
}

/// Decodes a time that is stored as a difference in seconds and changed bits of nanoseconds.
fn time(base: Time, secs: u64, nanos: u64) -> Time {
    Time {
        secs: near(base.secs as u64, secs) as i64,
        nanos: nanos as u32 ^ base.nanos,
    }
}

/// All kinds of nodes.
pub(super) const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Dir,
    FileKind::Symlink,
    FileKind::Fifo,
    FileKind::Socket,
    FileKind::CharDevice,
    FileKind::BlockDevice,
];
