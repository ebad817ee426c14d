//! Files that are read through the session.

use crate::interface::delivery::{Part as Told, Range, Way, Why};
use crate::listing::list::join;
use crate::listing::packed::Listed;
use crate::state::budget::Buf;
use crate::state::part::{Part, is_same};
use std::ops::ControlFlow;
use volary_core::{Attr, Caps, Error, Extent, Kind, Mode, OpenId, Place, Result};

/// How often a file is read that changes while it is read.
const TRIES: usize = 4;

/// How many bytes of a large file are read at once.
const CHUNK: u64 = 1 << 20;

/// The most ranges of data of a file; with more, it counts as one without holes.
pub(crate) const DATA_MAX: usize = 4096;

/// Delivers a file, or the error.
pub(crate) fn deliver(part: &Part<'_>, file: u32, why: Why) -> ControlFlow<()> {
    let Some(listed) = part.list.files.get(file as usize) else {
        return ControlFlow::Continue(());
    };
    let session = &part.source.session;
    let way = Way::Ordinary(why);
    match session.open(listed.attr.node, Mode::Read) {
        Ok(open) => {
            let reading = Reading { part, listed, open };
            let done = reading.deliver(why);
            // It was opened for reading: nothing is lost.
            let _ = session.close(open);
            done
        }
        Err(e) => failed(part, &listed, way, &e),
    }
}

/// A file that was read ahead of its turn. If it has holes, `data` tells where it has data.
pub(crate) struct Fetched {
    pub(crate) buf: Buf,
    pub(crate) data: Option<Box<[Range]>>,
}

/// A file that is being read into a buffer as long as the file. For a file that reports a size of
/// 0, the buffer has one byte.
pub(crate) struct Fetching<'a> {
    reading: Reading<'a>,
    buf: Buf,
}

impl<'a> Fetching<'a> {
    /// Opens a file, and announces to the driver that all of it will be read.
    pub(crate) fn begin(part: &'a Part<'a>, file: u32, buf: Buf) -> Option<Self> {
        let listed = part.list.files.get(file as usize)?;
        let session = &part.source.session;
        let open = session.open_seen(&listed.attr, None, Mode::Read).ok()?;
        session.will_read(open, 0, listed.attr.size);
        let reading = Reading { part, listed, open };
        Some(Self { reading, buf })
    }

    /// Reads the file. Returns `None` if it cannot be read whole, or has changed since the walk.
    pub(crate) fn end(self) -> Option<Fetched> {
        let Self { reading, mut buf } = self;
        let attr = &reading.listed.attr;
        let read = reading.fill(0, &mut buf.bytes);
        let is_all = read.is_ok_and(|len| len as u64 == attr.size);
        let data = (is_all && reading.stayed(attr)).then(|| reading.data_of(attr));
        // It was opened for reading: nothing is lost.
        let _ = reading.part.source.session.close(reading.open);
        buf.bytes.truncate(reading.listed.len());
        data.map(|data| Fetched { buf, data })
    }
}

/// Reports a file that cannot be read to the consumer.
pub(crate) fn failed(part: &Part<'_>, file: &Listed, way: Way, e: &Error) -> ControlFlow<()> {
    part.run.tally.add(|sum| sum.failed += 1);
    tell(part, &file.view(part.number, way), Told::Failed(e))
}

/// Passes something to the consumer. If the consumer breaks, the run ends.
pub(crate) fn tell(
    part: &Part<'_>,
    file: &crate::interface::delivery::File<'_>,
    told: Told<'_>,
) -> ControlFlow<()> {
    let taken = part.run.consumer.take(file, told);
    if taken.is_break() {
        part.run.end();
    }
    taken
}

/// An open file.
struct Reading<'a> {
    part: &'a Part<'a>,
    listed: Listed,
    open: OpenId,
}

impl Reading<'_> {
    fn deliver(&self, why: Why) -> ControlFlow<()> {
        let mut why = why;
        for _ in 0..TRIES {
            self.part.run.check()?;
            let attr = match self.part.source.session.getattr_open(self.open) {
                Ok(attr) => attr,
                Err(e) => return failed(self.part, &self.listed, Way::Ordinary(why), &e),
            };
            if attr.size > self.part.run.shares.whole_max {
                return self.in_chunks(why, attr);
            }
            let mut seen = Listed::new(&self.listed.path, attr);
            match self.whole(attr.size) {
                Ok(Some(buf)) if self.stayed(&attr) => {
                    let bytes = &buf.bytes;
                    seen.attr.size = bytes.len() as u64;
                    seen.data = self.data_of(&attr);
                    let view = seen.view(self.part.number, Way::Ordinary(why));
                    tell(self.part, &view, Told::Whole(bytes))?;
                    let way = Way::Ordinary(why);
                    self.part.run.tally.delivered(way, bytes.len() as u64);
                    return ControlFlow::Continue(());
                }
                Ok(_) => why = Why::Changed,
                Err(e) => return failed(self.part, &seen, Way::Ordinary(why), &e),
            }
        }
        let e = changing();
        failed(self.part, &self.listed, Way::Ordinary(why), &e)
    }

    /// Returns whether the file is unchanged since `attr`, or nobody can change it.
    fn stayed(&self, attr: &Attr) -> bool {
        let now = || self.part.source.session.getattr_open(self.open);
        !self.part.source.is_live || now().is_ok_and(|now| is_same(&now, attr))
    }

    /// Returns the content of a file that should have `size` bytes. Reads even if `size` is 0, as
    /// files that a kernel generates report that. `None` if the file is now too large for one
    /// piece.
    fn whole(&self, size: u64) -> Result<Option<Buf>> {
        let most = self.part.run.shares.whole_max;
        let mut room = size;
        loop {
            let mut buf = self.room(room.saturating_add(1))?;
            let read = self.fill(0, &mut buf.bytes)?;
            if read < buf.bytes.len() {
                buf.bytes.truncate(read);
                return Ok(Some(buf));
            }
            if room >= most {
                return Ok(None);
            }
            room = (room * 2).max(4096).min(most);
        }
    }

    /// Returns a buffer from the assembly's memory, not from that of reading ahead: it is this
    /// file's turn.
    fn room(&self, len: u64) -> Result<Buf> {
        let buf = self.part.run.assembly.buffer(len);
        buf.ok_or_else(|| Kind::Interrupted.into())
    }

    /// Reads until the buffer is full or the file ends.
    fn fill(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let session = &self.part.source.session;
            match session.read(self.open, offset + done as u64, rest)? {
                0 => break,
                n => done += n,
            }
        }
        Ok(done)
    }

    /// Returns the ranges that hold data, if the volume reports extents.
    fn data_of(&self, attr: &Attr) -> Option<Box<[Range]>> {
        let session = &self.part.source.session;
        if attr.allocated >= attr.size || !session.caps().has(Caps::EXTENTS) {
            return None;
        }
        let mut extents: Vec<Extent> = Vec::new();
        session
            .extents(self.open, 0, attr.size, &mut extents)
            .ok()?;
        let mut data = Vec::new();
        let mut end = 0;
        for extent in &extents {
            if extent.offset != end || data.len() > DATA_MAX {
                return None;
            }
            end = extent.offset.checked_add(extent.len)?;
            if extent.place != Place::Hole {
                let (offset, len) = (extent.offset, extent.len);
                join(&mut data, Range { offset, len });
            }
        }
        let is_whole = end == attr.size && data.len() <= DATA_MAX;
        is_whole.then(|| data.into())
    }

    fn in_chunks(&self, why: Why, attr: Attr) -> ControlFlow<()> {
        let mut seen = Listed::new(&self.listed.path, attr);
        seen.data = self.data_of(&attr);
        let way = Way::Ordinary(why);
        let view = seen.view(self.part.number, way);
        tell(self.part, &view, Told::Begin)?;
        match self.chunks(&view, attr.size) {
            Ok(ControlFlow::Continue(())) if self.stayed(&attr) => {
                self.part.run.tally.delivered(way, attr.size);
                tell(self.part, &view, Told::End)
            }
            Ok(ControlFlow::Break(())) => ControlFlow::Break(()),
            Ok(_) => failed(self.part, &seen, way, &changing()),
            Err(e) => failed(self.part, &seen, way, &e),
        }
    }

    fn chunks(
        &self,
        view: &crate::interface::delivery::File<'_>,
        size: u64,
    ) -> Result<ControlFlow<()>> {
        let mut buf = self.room(CHUNK.min(self.part.run.shares.reads / 8))?;
        let mut stretches = Stretches::new(view.data, size);
        while let Some((range, is_hole)) = stretches.next(buf.bytes.len() as u64) {
            if self.part.run.check().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let told = if is_hole {
                Told::Hole(range)
            } else {
                let len = usize::try_from(range.len).unwrap_or(0);
                let into = buf.bytes.get_mut(..len).unwrap_or_default();
                if self.fill(range.offset, into)? < len {
                    return Err(changing());
                }
                let (offset, bytes) = (range.offset, &*into);
                Told::Chunk { offset, bytes }
            };
            if tell(self.part, view, told).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

pub(crate) fn changing() -> Error {
    Error::note(Kind::Io, "it changes while it is read")
}

/// A file's data and holes in order, with data in stretches of bounded length.
pub(crate) struct Stretches<'a> {
    data: Option<&'a [Range]>,
    at: u64,
    size: u64,
}

impl<'a> Stretches<'a> {
    pub(crate) fn new(data: Option<&'a [Range]>, size: u64) -> Self {
        Self { data, at: 0, size }
    }

    /// Returns the next stretch, and whether it is a hole.
    pub(crate) fn next(&mut self, most: u64) -> Option<(Range, bool)> {
        if self.at >= self.size || most == 0 {
            return None;
        }
        let whole = Range {
            offset: 0,
            len: self.size,
        };
        let next = match self.data {
            None => Some(whole),
            Some(data) => {
                let after = data.partition_point(|r| r.offset + r.len <= self.at);
                data.get(after).copied()
            }
        };
        let (end, is_hole) = match next {
            None => (self.size, true),
            Some(r) if r.offset > self.at => (r.offset.min(self.size), true),
            Some(r) => ((r.offset + r.len).min(self.at.saturating_add(most)), false),
        };
        let range = Range {
            offset: self.at,
            len: end.min(self.size) - self.at,
        };
        self.at += range.len;
        Some((range, is_hole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_the_whole_file_in_order() {
        let range = |offset, len| Range { offset, len };
        let data = [range(10, 25), range(50, 10)];
        let mut stretches = Stretches::new(Some(&data), 70);
        let all: Vec<_> = std::iter::from_fn(|| stretches.next(20)).collect();
        let expected = [
            (range(0, 10), true),
            (range(10, 20), false),
            (range(30, 5), false),
            (range(35, 15), true),
            (range(50, 10), false),
            (range(60, 10), true),
        ];
        assert_eq!(all, expected);
        let mut stretches = Stretches::new(None, 5);
        assert_eq!(stretches.next(20), Some((range(0, 5), false)));
        assert_eq!(stretches.next(20), None);
    }
}
