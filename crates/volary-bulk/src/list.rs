//! What phase 1 gathers: files and their fragments, as many as fit.

use crate::delivery::{File, Range, Way, Why};
use crate::grown::Grown;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Attr, Error, Extent, Place};

/// A file.
#[derive(Debug)]
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

/// A fragment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// Where it is on the device.
    pub(crate) at: u64,
    /// Which of the listed files it belongs to.
    pub(crate) file: u32,
    /// Where in the file.
    pub(crate) offset: u32,
    pub(crate) len: u32,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.at + u64::from(self.len)
    }
}

/// Fragments that were read.
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

/// A name without content, or one that failed.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) path: Box<[u8]>,
    pub(crate) attr: Option<Attr>,
    pub(crate) failed: Option<Error>,
}

/// One part of all files.
pub(crate) struct List {
    /// What is told before the files.
    pub(crate) names: Vec<Name>,
    pub(crate) files: Grown<Listed>,
    /// Sorted by place once the part is complete.
    pub(crate) pieces: Vec<Piece>,
    /// Files without a byte.
    pub(crate) empty: Vec<u32>,
    /// Files to read through the session.
    pub(crate) ordinary: Vec<(u32, Why)>,
    /// Files to deliver in chunks, and where they begin.
    pub(crate) large: Vec<(u64, u32)>,
    bytes: u64,
    max: u64,
    /// Bytes of the files.
    content: u64,
    /// With so many of these, it is complete.
    content_max: u64,
}

/// Memory for a file besides its path, in bytes.
const FILE: u64 = size_of::<Listed>() as u64 + 64;
/// Memory for a name besides its path, in bytes. A vector may hold twice the room it needs.
const NAME: u64 = 2 * size_of::<Name>() as u64 + 64;
/// Memory for a fragment and for its places in the indices of sweeps, in bytes.
const PIECE: u64 = 4 * size_of::<Piece>() as u64;
/// Memory for a range of data, in bytes.
const DATA: u64 = size_of::<Range>() as u64;

/// How to read a file.
#[derive(Debug)]
pub(crate) enum Mapped {
    /// Read this, which is all of it, from the device.
    One(Piece),
    /// Read these fragments from the device. The ranges say where the file has data, if it has holes.
    Pieces(Vec<Piece>, Option<Box<[Range]>>),
    Empty,
    Large(u64),
    Ordinary(Why),
}

impl List {
    /// Takes up to `max` bytes of memory, and no more files once they have `content_max` bytes.
    pub(crate) fn new(max: u64, content_max: u64) -> Self {
        Self {
            names: Vec::new(),
            files: Grown::new(),
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

    /// Returns the sum of the sizes of its files.
    pub(crate) fn content(&self) -> u64 {
        self.content
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.names.is_empty()
    }

    /// Returns whether others lie between its fragments, once they are sorted: most of the stretch that they are in
    /// is not theirs.
    pub(crate) fn is_scattered(&self) -> bool {
        let (first, last) = (self.pieces.first(), self.pieces.last());
        let stretch = first
            .zip(last)
            .map_or(0, |(a, b)| b.end().saturating_sub(a.at));
        let bytes: u64 = self.pieces.iter().map(|p| u64::from(p.len)).sum();
        stretch > bytes.saturating_mul(2)
    }

    /// Returns whether the walk has gathered enough.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= self.max || self.content >= self.content_max
    }

    /// Lifts the bound on content, and sets that on memory to `max` bytes. Returns whether content was bounded.
    pub(crate) fn widen(&mut self, max: u64) -> bool {
        self.max = max;
        std::mem::replace(&mut self.content_max, u64::MAX) < u64::MAX
    }

    /// Adds a name that is told of. One always fits.
    pub(crate) fn tell(&mut self, name: Name) {
        self.bytes += NAME + name.path.len() as u64;
        self.names.push(name);
    }

    /// Adds a file, or gives it back if there is no room. One that does not fit into an empty list
    /// is read in chunks.
    pub(crate) fn push(
        &mut self,
        file: Listed,
        mapped: Mapped,
    ) -> Result<(), Box<(Listed, Mapped)>> {
        let more = match &mapped {
            Mapped::Pieces(pieces, data) => {
                let data = data.as_deref().unwrap_or_default();
                PIECE * pieces.len() as u64 + DATA * data.len() as u64
            }
            Mapped::One(_) => PIECE,
            _ => 32,
        };
        let cost = FILE + file.path.len() as u64 + more;
        let no_room = self.bytes + cost > self.max || self.files.len() >= u32::MAX as usize;
        match mapped {
            Mapped::Pieces(pieces, _) if no_room && self.files.is_empty() => {
                let first = pieces.first().map_or(0, |p| p.at);
                self.add(file, Mapped::Large(first), cost - more);
            }
            mapped if no_room && !self.files.is_empty() => return Err(Box::new((file, mapped))),
            mapped => self.add(file, mapped, cost),
        }
        Ok(())
    }

    fn add(&mut self, mut file: Listed, mapped: Mapped, cost: u64) {
        let number = self.files.len() as u32;
        match mapped {
            Mapped::One(piece) => {
                file.fragments = 1;
                self.pieces.push(Piece {
                    file: number,
                    ..piece
                });
            }
            Mapped::Pieces(pieces, data) => {
                file.fragments = pieces.len() as u32;
                file.data = data;
                let own = pieces.into_iter().map(|p| Piece { file: number, ..p });
                self.pieces.extend(own);
            }
            Mapped::Empty => self.empty.push(number),
            Mapped::Large(at) => self.large.push((at, number)),
            Mapped::Ordinary(why) => self.ordinary.push((number, why)),
        }
        self.bytes += cost;
        self.content = self.content.saturating_add(file.attr.size);
        self.files.push(file);
    }

    /// Sorts everything by its place on the device.
    pub(crate) fn sort(&mut self, vanilla: bool) {
        self.pieces.sort_unstable();
        self.large.sort_unstable();
        if !vanilla {
            let files = &self.files;
            let number = |file: u32| files.get(file as usize).map(|f| f.attr.node.ino);
            self.ordinary.sort_by_key(|(file, _)| number(*file));
        }
    }
}

/// Returns how a file of `size` bytes is read that has these extents, on a device of `device` bytes.
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

/// Returns the fragment of a file that is one extent.
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

/// Adds a fragment, or makes the last one longer if this one goes on from it.
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

/// Adds a stretch, or makes the last one longer if this one goes on from it.
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
