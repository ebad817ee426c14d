//! Received records (RFC 5531, section 11): a reader that can stop anywhere and continue later, in
//! bounded memory.

use std::io::{self, Read};
use volary_rpc::numbers::LAST_FRAGMENT;

/// The longest record: the largest READ that is requested, and its header.
pub(crate) const RECORD_MAX: usize = (1 << 20) + (16 << 10);
/// The most fragments of a record; no server uses that many.
const FRAGMENTS_MAX: usize = 4096;
/// How many bytes are read ahead.
const AHEAD: usize = 16 << 10;
/// How many bytes are allocated at a time for an announced length.
const STEP: usize = 256 << 10;

/// One record, in a buffer that can be reused without being zeroed.
#[derive(Debug, Default)]
pub(crate) struct Record {
    room: Vec<u8>,
    len: usize,
}

impl Record {
    pub(crate) fn bytes(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }

    /// Returns space for up to `len` more bytes, but not more than a step at a time.
    fn grow(&mut self, len: usize) -> &mut [u8] {
        let end = self.len + len.min(STEP);
        if self.room.len() < end {
            self.room.resize(end, 0);
        }
        self.room.get_mut(self.len..end).unwrap_or_default()
    }
}

/// The bytes read from a connection and not yet consumed.
pub(crate) struct Records {
    ahead: Box<[u8]>,
    start: usize,
    end: usize,
    record: Record,
    /// How many bytes of the fragment are still to come; `None` before its header.
    fragment: Option<usize>,
    is_last: bool,
    fragments: usize,
    /// Buffers to reuse.
    spare: Vec<Record>,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            ahead: vec![0; AHEAD].into(),
            start: 0,
            end: 0,
            record: Record::default(),
            fragment: None,
            is_last: false,
            fragments: 0,
            spare: Vec::new(),
        }
    }

    /// Takes the buffer of a record back.
    pub(crate) fn give_back(&mut self, mut record: Record) {
        const SPARE_MAX: usize = 2;
        if self.spare.len() < SPARE_MAX {
            record.len = 0;
            self.spare.push(record);
        }
    }

    /// Reads until a record is complete.
    ///
    /// # Errors
    /// `InvalidData` for a record that is too long or in too many fragments; `UnexpectedEof` at the
    /// end of the connection; those of the reader. After `WouldBlock` it can be called again.
    pub(crate) fn read(&mut self, from: &mut impl Read) -> io::Result<Record> {
        loop {
            match self.fragment {
                None => {
                    let head = self.head(from)?;
                    self.begin_fragment(head)?;
                }
                Some(0) => {
                    self.fragment = None;
                    if self.is_last {
                        self.fragments = 0;
                        let next = self.spare.pop().unwrap_or_default();
                        return Ok(std::mem::replace(&mut self.record, next));
                    }
                }
                Some(left) => self.fragment = Some(left - self.body(from, left)?),
            }
        }
    }

    fn begin_fragment(&mut self, head: u32) -> io::Result<()> {
        let len = usize::try_from(head & !LAST_FRAGMENT).unwrap_or(usize::MAX);
        self.fragments += 1;
        if self.record.len.saturating_add(len) > RECORD_MAX || self.fragments > FRAGMENTS_MAX {
            let words = "a reply is longer than anything that was asked for";
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        self.is_last = head & LAST_FRAGMENT != 0;
        self.fragment = Some(len);
        Ok(())
    }

    /// Reads the header of a fragment.
    fn head(&mut self, from: &mut impl Read) -> io::Result<u32> {
        loop {
            let here = self.ahead.get(self.start..self.end).unwrap_or_default();
            if let Some(head) = here.first_chunk::<4>() {
                self.start += 4;
                return Ok(u32::from_be_bytes(*head));
            }
            self.ahead.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            let room = self.ahead.get_mut(self.end..).unwrap_or_default();
            self.end += got(from.read(room))?;
        }
    }

    /// Reads some of the `left` bytes of the fragment: from the bytes read ahead, and then straight
    /// into the record. Returns how many.
    fn body(&mut self, from: &mut impl Read, left: usize) -> io::Result<usize> {
        let here = self.ahead.get(self.start..self.end).unwrap_or_default();
        let len = if here.is_empty() {
            got(from.read(self.record.grow(left)))?
        } else {
            let room = self.record.grow(left.min(here.len()));
            let here = here.get(..room.len()).unwrap_or_default();
            room.copy_from_slice(here);
            self.start += here.len();
            here.len()
        };
        self.record.len += len;
        Ok(len)
    }
}

fn got(read: io::Result<usize>) -> io::Result<usize> {
    match read? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        len => Ok(len),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a few bytes at a time, and `WouldBlock` in between.
    struct Drip<'a>(&'a [u8], usize, bool);

    impl Read for Drip<'_> {
        fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let len = self.1.min(room.len()).min(self.0.len());
            let (now, rest) = self.0.split_at(len);
            room[..len].copy_from_slice(now);
            self.0 = rest;
            Ok(len)
        }
    }

    fn read(records: &mut Records, from: &mut impl Read) -> io::Result<Vec<u8>> {
        loop {
            match records.read(from) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Ok(record) => {
                    let bytes = record.bytes().to_vec();
                    records.give_back(record);
                    return Ok(bytes);
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn fragment(bytes: &[u8], last: bool) -> Vec<u8> {
        let head = bytes.len() as u32 | if last { LAST_FRAGMENT } else { 0 };
        [&head.to_be_bytes()[..], bytes].concat()
    }

    #[test]
    fn records_come_whole_however_they_are_cut() {
        let wire = [
            fragment(b"one", true),
            fragment(b"", false),
            fragment(b"two ", false),
            fragment(&[b'x'; 40_000], false),
            fragment(b"", true),
            fragment(b"", true),
        ]
        .concat();
        for step in [1, 3, 7, 100, 100_000] {
            let (mut records, mut drip) = (Records::new(), Drip(&wire, step, false));
            assert_eq!(read(&mut records, &mut drip).unwrap(), b"one");
            let two = read(&mut records, &mut drip).unwrap();
            assert_eq!((&two[..4], two.len()), (&b"two "[..], 40_004));
            assert_eq!(read(&mut records, &mut drip).unwrap(), b"");
            let end = read(&mut records, &mut drip).unwrap_err();
            assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn what_is_too_long_or_in_too_many_pieces_ends_it() {
        let long = (RECORD_MAX as u32 + 1).to_be_bytes();
        let e = read(&mut Records::new(), &mut &long[..]).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::InvalidData);
        let e = read(&mut Records::new(), &mut io::repeat(0)).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::InvalidData);
        let halves = [fragment(&[1; RECORD_MAX], false), fragment(b"1", true)].concat();
        let e = read(&mut Records::new(), &mut &halves[..]).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_length_that_lies_takes_no_more_room_than_what_comes() {
        let mut wire = (RECORD_MAX as u32 | LAST_FRAGMENT).to_be_bytes().to_vec();
        wire.extend([0; 100]);
        let mut records = Records::new();
        assert!(records.read(&mut &wire[..]).is_err());
        assert!(records.record.room.capacity() <= 2 * STEP);
    }
}
