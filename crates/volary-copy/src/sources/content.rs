//! The content of a file as a source reads it: data, holes, and unreadable stretches.
//!
//! Stretches that the device or the volume cannot read become zeros in the copy, and are reported.
//! A failed read is repeated in pieces of [`GRAIN`], so that everything readable is delivered.

use crate::nodes::host_range::HostRange;
use crate::stream::{Piece, Pieces};
use crate::told::failure::{Done, Failure};
use crate::told::observer::{Damage, Report};
use std::ops::Range;
use volary_core::is_zero;

/// If part of a stretch is bad, the stretch is read again in pieces of this many bytes: a sector.
const GRAIN: usize = 512;

/// The length of these pieces after a stretch of which nothing could be read.
const COARSE: usize = 4096;

/// If the source cannot tell its holes, whole blocks of zeros count as holes.
const BLOCK: usize = 4096;

/// How many bytes are searched for zeros at once.
const LOOK: usize = 64 << 10;

/// Only for files of at least this length are the places of their bytes asked for.
const LONG: u64 = 1 << 20;

/// How far ahead holes are asked for at first.
const AHEAD: u64 = 16 << 20;
/// The most bytes ahead for which holes are asked for, in a file of nothing but holes.
const AHEAD_MAX: u64 = 1 << 50;

/// The most lines of messages about one file.
const LINES: u32 = 32;

/// Why a read returned nothing.
pub(super) enum Unread {
    /// This stretch cannot be read; others may be.
    Damage(String),
    /// Nothing more of the file can be read.
    Fail(Failure),
}

/// A source of content.
pub(super) trait Bytes {
    /// Reads at `offset`; returns 0 at the end.
    fn read(&mut self, offset: u64, room: &mut [u8]) -> Result<usize, Unread>;
    /// Returns the stretches of `range` in order, and which of them are holes. `None` if the source
    /// cannot tell.
    fn holes(&mut self, range: Range<u64>) -> Option<Vec<(Range<u64>, bool)>>;
    /// Returns the first part of `range` if it is long and lies in a file of the host. Default:
    /// `None`.
    fn host_range(&mut self, range: Range<u64>) -> Option<HostRange> {
        let _ = range;
        None
    }
    /// Returns the name of the content, for messages.
    fn place(&self) -> String;
}

/// Content with its holes and its bad stretches.
pub(super) struct Content<'a, B> {
    bytes: B,
    len: u64,
    /// It occupies less space than its length.
    sparse: bool,
    /// The source cannot tell holes, so zeros are searched for.
    by_zeros: bool,
    /// Whether to look for ranges of a host's file that can be copied without reading them.
    asks: bool,
    /// The length of the last such range.
    given: u64,
    /// Known stretches, the nearest last.
    map: Vec<(Range<u64>, bool)>,
    /// How far ahead to ask the next time.
    ahead: u64,
    /// Reads within this range are small.
    small: Range<u64>,
    grain: usize,
    /// Something was read since `small` began.
    some_good: bool,
    /// Something was read at all.
    any_good: bool,
    bad: Option<(Range<u64>, String)>,
    lines: u32,
    bad_bytes: u64,
    report: &'a Report<'a>,
}

impl<'a, B: Bytes> Content<'a, B> {
    /// Returns content of `len` bytes that occupies `allocated` bytes. `report` is told of
    /// stretches that cannot be read.
    pub(super) fn new(bytes: B, len: u64, allocated: u64, report: &'a Report<'a>) -> Self {
        Self {
            bytes,
            len,
            sparse: allocated < len,
            by_zeros: false,
            asks: len >= LONG,
            given: 0,
            map: Vec::new(),
            ahead: AHEAD,
            small: 0..0,
            grain: GRAIN,
            some_good: true,
            any_good: false,
            bad: None,
            lines: 0,
            bad_bytes: 0,
            report,
        }
    }

    /// Returns the end of the stretch that begins at `offset`, and whether it is a hole.
    fn stretch(&mut self, offset: u64) -> (u64, bool) {
        let whole = (self.len, false);
        if !self.sparse || self.by_zeros {
            return whole;
        }
        while self.map.last().is_some_and(|(r, _)| r.end <= offset) {
            self.map.pop();
        }
        if self.map.is_empty() {
            let end = self.len.min(offset.saturating_add(self.ahead));
            let Some(mut found) = self.bytes.holes(offset..end) else {
                self.by_zeros = true;
                return whole;
            };
            let only_holes = found.iter().all(|(_, is_hole)| *is_hole);
            self.ahead = if only_holes {
                (self.ahead * 2).min(AHEAD_MAX)
            } else {
                AHEAD
            };
            found.retain(|(r, _)| r.end > offset);
            found.reverse();
            self.map = found;
        }
        match self.map.last() {
            Some((r, is_hole)) if r.start <= offset => (r.end.min(self.len), *is_hole),
            // A part that the source did not describe is read.
            Some((r, _)) => (r.start.min(self.len), false),
            None => whole,
        }
    }

    /// Reads up to `end`, which is greater than `offset`.
    fn read(&mut self, offset: u64, end: u64, room: &mut [u8]) -> Done<Piece> {
        let is_small = self.small.contains(&offset);
        let mut len = usize::try_from(end - offset).unwrap_or(room.len());
        len = len.min(room.len());
        if is_small {
            let grain = self.grain as u64;
            let piece = (offset / grain + 1) * grain - offset;
            len = len.min(usize::try_from(piece).unwrap_or(len));
        } else if self.by_zeros {
            len = len.min(LOOK);
            // Reads whole blocks of the file, so that zeros are found by block.
            let past = usize::try_from((offset + len as u64) % BLOCK as u64).unwrap_or(0);
            if offset + (len as u64) < end && past < len {
                len -= past;
            }
        }
        let room = room.get_mut(..len).unwrap_or_default();
        let why = match self.bytes.read(offset, room) {
            Ok(0) => return Ok(Piece::End),
            Ok(n) => {
                self.any_good = true;
                self.some_good = true;
                self.grain = GRAIN;
                self.tell();
                let data = room.get(..n).unwrap_or_default();
                return Ok(match self.by_zeros {
                    true => zeros_of(data),
                    false => Piece::Data(n),
                });
            }
            Err(Unread::Fail(fail)) => return Err(fail),
            Err(Unread::Damage(why)) => why,
        };
        self.report.observer.check()?;
        if is_small {
            self.is_bad(offset..offset + len as u64, why);
            return Ok(Piece::Hole(len as u64));
        }
        // Makes the next reads small, and repeats this one.
        self.grain = if self.some_good { GRAIN } else { COARSE };
        self.some_good = false;
        self.small = offset..offset + len as u64;
        self.read(offset, end, room)
    }

    fn is_bad(&mut self, range: Range<u64>, why: String) {
        self.report.note_incomplete();
        self.bad_bytes += range.end - range.start;
        match &mut self.bad {
            Some((bad, _)) if bad.end == range.start => bad.end = range.end,
            _ => {
                self.tell();
                self.bad = Some((range, why));
            }
        }
    }

    /// Reports the bad stretch once its end is known.
    fn tell(&mut self) {
        let Some((bad, why)) = self.bad.take() else {
            return;
        };
        self.lines += 1;
        if self.lines > LINES {
            return;
        }
        self.report.observer.damaged(&Damage::Stretch {
            place: self.bytes.place(),
            first: bad.start,
            last: bad.end - 1,
            why,
        });
    }

    /// Reports what is left to report once all is read.
    ///
    /// # Errors
    /// If nothing could be read: zeros alone are no copy.
    fn end(&mut self) -> Done {
        if self.bad_bytes > 0 && !self.any_good {
            let why = self.bad.take().map(|(_, why)| why).unwrap_or_default();
            let words = format!("nothing of it can be read; left out: {why}");
            return Err(Failure::words(self.bytes.place(), words));
        }
        self.tell();
        if self.lines > LINES {
            self.report.observer.damaged(&Damage::More {
                place: self.bytes.place(),
                stretches: self.lines - LINES,
                bytes: self.bad_bytes,
            });
            self.lines = 0;
        }
        Ok(())
    }
}

impl<B: Bytes> Pieces for Content<'_, B> {
    fn next(&mut self, offset: u64, room: &mut [u8]) -> Done<Piece> {
        if offset >= self.len {
            return Ok(Piece::End);
        }
        let (end, is_hole) = self.stretch(offset);
        if is_hole {
            self.report.observer.check()?;
            return Ok(Piece::Hole(end - offset));
        }
        self.read(offset, end, room)
    }

    fn ended(&mut self) -> Done {
        self.end()
    }

    fn host_range(&mut self, offset: u64) -> Option<HostRange> {
        if !self.asks || offset >= self.len || self.small.contains(&offset) {
            return None;
        }
        let host_range = self.bytes.host_range(offset..self.len)?;
        self.given = host_range.len();
        Some(host_range)
    }

    fn copied(&mut self, copied: u64) {
        // The next read meets the same obstacle, and reports it.
        self.asks = copied == self.given;
        if copied > 0 {
            (self.any_good, self.some_good) = (true, true);
            self.grain = GRAIN;
            self.tell();
        }
    }

    fn data_len(&mut self) -> Option<u64> {
        let (mut at, mut sum) = (0, 0);
        while at < self.len {
            // The next read reports that the copy was stopped.
            if self.report.observer.is_stopped() {
                break;
            }
            let (end, is_hole) = self.stretch(at);
            sum += if is_hole { 0 } else { end - at };
            at = end.max(at + 1);
        }
        self.map.clear();
        self.ahead = AHEAD;
        Some(sum)
    }

    fn place(&self) -> String {
        self.bytes.place()
    }
}

/// Returns the run of zeros or of data at the beginning, in whole blocks.
fn zeros_of(data: &[u8]) -> Piece {
    let mut blocks = data.chunks(BLOCK).map(is_zero);
    let Some(is_hole) = blocks.next() else {
        return Piece::End;
    };
    let same = 1 + blocks.take_while(|&zeros| zeros == is_hole).count();
    let len = (same * BLOCK).min(data.len());
    if is_hole {
        Piece::Hole(len as u64)
    } else {
        Piece::Data(len)
    }
}

#[cfg(test)]
mod tests;
