//! The list that phase 1 gathers: files and their fragments, as many as fit.

use crate::interface::delivery::{Range, Why};
use crate::listing::packed::{New, Packed};
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Attr, Error, Extent, Place};

/// A fragment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// Byte offset on the device.
    pub(crate) at: u64,
    /// The index of its file in the list.
    pub(crate) file: u32,
    /// Offset in the file.
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.at + u64::from(self.len)
    }
}

/// A set of fragments that were read, by index.
pub(crate) struct Done(Vec<AtomicU64>);

impl Done {
    pub(crate) fn new(count: usize) -> Self {
        Self((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn has(&self, piece: usize) -> bool {
        let word = self.0.get(piece / 64).map(|w| w.load(Ordering::Relaxed));
        word.is_some_and(|word| word >> (piece % 64) & 1 == 1)
    }

    pub(crate) fn set(&self, piece: usize) {
        if let Some(word) = self.0.get(piece / 64) {
            word.fetch_or(1 << (piece % 64), Ordering::Relaxed);
        }
    }
}

/// One part of the files to read.
pub(crate) struct List {
    /// Nodes without content, which are delivered before the files.
    pub(crate) nodes: Packed,
    /// Paths that failed, which are delivered after the nodes.
    pub(crate) failed: Vec<(Box<[u8]>, Error)>,
    pub(crate) files: Packed,
    /// Sorted by place once the part is complete.
    pub(crate) pieces: Vec<Piece>,
    /// Empty files.
    pub(crate) empty: Vec<u32>,
    /// Files to read through the session.
    pub(crate) ordinary: Vec<(u32, Why)>,
    /// Files to deliver in chunks, and the offsets of their first extents.
    pub(crate) large: Vec<(u64, u32)>,
    bytes: u64,
    max: u64,
    /// Sum of the files' sizes.
    content: u64,
    /// The part is complete once its files have this many bytes.
    content_max: u64,
}

/// Memory for a path that failed, besides the path, in bytes. A growing vector may hold three times
/// the room it needs.
const FAILED: u64 = 3 * size_of::<(Box<[u8]>, Error)>() as u64 + 64;
/// Memory for a fragment in bytes. The vector has spare room and is copied as it grows. Later a
/// sweep copies it, and cleaning makes an index of it.
const PIECE: u64 = 3 * size_of::<Piece>() as u64;
/// Memory for a file without fragments in this list, in bytes.
const WAY: u64 = 40;
/// A full vector of fragments grows by 1/n of its length.
const PIECES_MORE: usize = 2;

/// How to read a file.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// Read this fragment, which is the whole file, from the device.
    One(Piece),
    /// Read these fragments from the device. The ranges are where the file has data, if it has
    /// holes.
    Pieces(Vec<Piece>, Option<Box<[Range]>>),
    Empty,
    Large(u64),
    Ordinary(Why),
}

impl Mapped {
    /// Returns the number of fragments.
    fn fragments(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Pieces(pieces, _) => pieces.len(),
            _ => 0,
        }
    }

    fn data(&self) -> Option<&[Range]> {
        match self {
            Self::Pieces(_, data) => data.as_deref(),
            _ => None,
        }
    }

    /// Returns the memory that the file's fragments take in a list, in bytes.
    fn cost(&self) -> u64 {
        (PIECE * self.fragments() as u64).max(WAY)
    }
}

impl List {
    /// Returns a list that takes `max` bytes of memory, and no more files once they have
    /// `content_max` bytes.
    pub(crate) fn new(max: u64, content_max: u64) -> Self {
        Self {
            nodes: Packed::default(),
            failed: Vec::new(),
            files: Packed::default(),
            pieces: Vec::new(),
            empty: Vec::new(),
            ordinary: Vec::new(),
            large: Vec::new(),
            bytes: 0,
            max,
            content: 0,
            content_max,
        }
    }

    /// Returns the memory that the list takes, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the sum of the files' sizes.
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.nodes.is_empty() && self.failed.is_empty()
    }

    /// Returns the fragments of some files, in a vector without spare room.
    pub(crate) fn pieces_if(&self, is_in: impl Fn(u32) -> bool) -> Vec<Piece> {
        let own = || self.pieces.iter().filter(|piece| is_in(piece.file));
        let mut pieces = Vec::with_capacity(own().count());
        pieces.extend(own().copied());
        pieces
    }

    /// Returns whether other data lies between the list's fragments, once they are sorted: less
    /// than half of the stretch that they span is theirs.
    pub(crate) fn is_scattered(&self) -> bool {
        let (first, last) = (self.pieces.first(), self.pieces.last());
        let stretch = first
            .zip(last)
            .map_or(0, |(a, b)| b.end().saturating_sub(a.at));
        let bytes: u64 = self.pieces.iter().map(|p| u64::from(p.len)).sum();
        stretch > bytes.saturating_mul(2)
    }

    /// Returns whether the list is full.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.max || self.content >= self.content_max
    }

    /// Removes the bound on content, and sets the bound on memory to `max`. Returns whether content
    /// was bounded.
    pub(crate) fn widen(&mut self, max: u64) -> bool {
        self.max = max;
        std::mem::replace(&mut self.content_max, u64::MAX) < u64::MAX
    }

    /// Adds a node to deliver without content. It may exceed the bound.
    pub(crate) fn tell(&mut self, path: &[u8], attr: &Attr) {
        let node = New {
            path,
            attr,
            fragments: 1,
            data: None,
        };
        self.bytes += self.nodes.push(&node, u64::MAX).unwrap_or_default();
    }

    /// Adds a path that failed. It may exceed the bound.
    pub(crate) fn fail(&mut self, path: &[u8], e: Error) {
        self.bytes += FAILED + path.len() as u64;
        self.failed.push((path.into(), e));
    }

    /// Adds a file, or returns `how` if there is no room. An empty list takes any file. But a file
    /// with more fragments than the list can hold is read in chunks.
    pub(crate) fn push(&mut self, path: &[u8], attr: &Attr, how: Mapped) -> Result<(), Mapped> {
        let left = self.max.saturating_sub(self.bytes);
        let how = match how {
            Mapped::Pieces(pieces, _) if self.files.is_empty() && is_too_much(&pieces, left) => {
                Mapped::Large(pieces.first().map_or(0, |p| p.at))
            }
            how => how,
        };
        let room = match self.files.len() {
            0 => Some(u64::MAX),
            len if len >= u32::MAX as usize => None,
            _ => left.checked_sub(how.cost()),
        };
        let node = New {
            path,
            attr,
            fragments: how.fragments() as u32,
            data: how.data(),
        };
        let Some(cost) = room.and_then(|room| self.files.push(&node, room)) else {
            return Err(how);
        };
        self.bytes += cost + how.cost();
        self.content = self.content.saturating_add(attr.size);
        self.add(self.files.len() as u32 - 1, how);
        Ok(())
    }

    fn add(&mut self, file: u32, how: Mapped) {
        match how {
            Mapped::One(piece) => self.add_pieces(file, &[piece]),
            Mapped::Pieces(pieces, _) => self.add_pieces(file, &pieces),
            Mapped::Empty => self.empty.push(file),
            Mapped::Large(at) => self.large.push((at, file)),
            Mapped::Ordinary(why) => self.ordinary.push((file, why)),
        }
    }

    fn add_pieces(&mut self, file: u32, pieces: &[Piece]) {
        if self.pieces.capacity() - self.pieces.len() < pieces.len() {
            let more = self.pieces.len() / PIECES_MORE;
            self.pieces.reserve_exact(pieces.len().max(more).max(64));
        }
        let own = pieces.iter().map(|piece| Piece { file, ..*piece });
        self.pieces.extend(own);
    }

    /// Sorts everything by its place on the device.
    pub(crate) fn sort(&mut self, vanilla: bool) {
        self.pieces.sort_unstable();
        self.large.sort_unstable();
        if !vanilla {
            let files = &self.files;
            let number = |file: u32| files.head(file as usize).map(|head| head.ino);
            self.ordinary.sort_by_cached_key(|(file, _)| number(*file));
        }
    }
}

/// Returns whether the fragments take more than `room` bytes.
fn is_too_much(pieces: &[Piece], room: u64) -> bool {
    PIECE * pieces.len() as u64 > room
}

/// Returns how to read a file of `size` bytes with these extents, on a device of `device` bytes.
pub(crate) fn mapped(extents: &[Extent], size: u64, device: u64) -> Mapped {
    if let [only] = extents
        && let Some(piece) = whole(only, size, device)
    {
        return Mapped::One(piece);
    }
    let (mut at, mut pieces, mut data) = (0, Vec::new(), Vec::new());
    for extent in extents {
        if extent.offset != at || extent.len == 0 || at >= size {
            break;
        }
        let len = extent.len.min(size - at);
        match extent.place {
            Place::Encoded => return Mapped::Ordinary(Why::Encoded),
            Place::Hole => {}
            Place::Device(place) => {
                if place.checked_add(len).is_none_or(|end| end > device) {
                    return Mapped::Ordinary(Why::Unmapped);
                }
                add(&mut pieces, place, at, len);
                join(&mut data, Range { offset: at, len });
            }
        }
        at += len;
    }
    if at != size || size > u64::from(u32::MAX) {
        return Mapped::Ordinary(Why::Unmapped);
    }
    let is_full = data.iter().map(|r| r.len).sum::<u64>() == size;
    Mapped::Pieces(pieces, (!is_full).then(|| data.into()))
}

/// Returns the fragment of a file that consists of one extent.
fn whole(extent: &Extent, size: u64, device: u64) -> Option<Piece> {
    let Place::Device(at) = extent.place else {
        return None;
    };
    let is_all = extent.offset == 0 && extent.len >= size && size > 0;
    let is_there = at.checked_add(size).is_some_and(|end| end <= device);
    let len = u32::try_from(size).ok().filter(|_| is_all && is_there)?;
    Some(Piece {
        at,
        file: 0,
        offset: 0,
        len,
    })
}

/// Adds a fragment, or lengthens the last one if the new one continues it.
fn add(pieces: &mut Vec<Piece>, at: u64, offset: u64, len: u64) {
    if let Some(last) = pieces.last_mut() {
        let follows = u64::from(last.offset) + u64::from(last.len) == offset;
        if follows && last.end() == at {
            last.len += len as u32;
            return;
        }
    }
    pieces.push(Piece {
        at,
        file: 0,
        offset: offset as u32,
        len: len as u32,
    });
}

/// Adds a range, or lengthens the last one if the new one continues it.
pub(crate) fn join(data: &mut Vec<Range>, range: Range) {
    match data.last_mut() {
        Some(last) if last.offset + last.len == range.offset => last.len += range.len,
        _ => data.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, len: u64, place: Place) -> Extent {
        Extent { offset, len, place }
    }

    fn pieces(extents: &[Extent], size: u64) -> Option<Vec<(u64, u32, u32)>> {
        match mapped(extents, size, 10_000) {
            Mapped::One(piece) => Some(vec![(piece.at, piece.offset, piece.len)]),
            Mapped::Pieces(pieces, _) => {
                Some(pieces.iter().map(|p| (p.at, p.offset, p.len)).collect())
            }
            _ => None,
        }
    }

    #[test]
    fn extents_that_go_on_from_each_other_are_one_fragment() {
        let extents = [
            extent(0, 512, Place::Device(1024)),
            extent(512, 512, Place::Device(1536)),
            extent(1024, 512, Place::Hole),
            extent(1536, 512, Place::Device(0)),
        ];
        let found = pieces(&extents, 1600).unwrap();
        assert_eq!(found, [(1024, 0, 1024), (0, 1536, 64)]);
        let Mapped::Pieces(_, data) = mapped(&extents, 1600, 10_000) else {
            panic!("it is on the device");
        };
        let range = |offset, len| Range { offset, len };
        assert_eq!(data.unwrap().to_vec(), [range(0, 1024), range(1536, 64)]);
    }

    #[test]
    fn extents_with_a_gap_or_past_the_device_are_not_gone_by() {
        let device = |at| Place::Device(at);
        for extents in [
            vec![extent(0, 512, device(0))],
            vec![extent(512, 512, device(0))],
            vec![extent(0, 512, device(0)), extent(600, 424, device(0))],
            vec![extent(0, 1024, device(9_500))],
            vec![extent(0, 1024, device(u64::MAX))],
        ] {
            assert_eq!(pieces(&extents, 1024), None, "{extents:?}");
        }
    }
}
