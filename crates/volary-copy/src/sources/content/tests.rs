#![expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges, of which some have one"
)]

use super::*;
use crate::told::observer::Unobserved;

/// Content with bad ranges and holes.
struct Fake {
    len: u64,
    bad: Vec<Range<u64>>,
    holes: Vec<Range<u64>>,
    /// Whether it can tell its holes.
    tells: bool,
    reads: u32,
    asked: u32,
}

impl Fake {
    fn new(len: u64, bad: &[Range<u64>]) -> Self {
        let bad = bad.to_vec();
        Self {
            len,
            bad,
            holes: Vec::new(),
            tells: true,
            reads: 0,
            asked: 0,
        }
    }

    fn is_hole(&self, at: u64) -> bool {
        self.holes.iter().any(|hole| hole.contains(&at))
    }
}

impl Bytes for Fake {
    fn read(&mut self, offset: u64, room: &mut [u8]) -> Result<usize, Unread> {
        self.reads += 1;
        let end = self.len.min(offset + room.len() as u64);
        let n = usize::try_from(end.saturating_sub(offset)).unwrap();
        let is_bad = |bad: &Range<u64>| bad.start < end && bad.end > offset;
        if self.bad.iter().any(is_bad) {
            return Err(Unread::Damage("bad".into()));
        }
        room[..n].fill(b'x');
        for (byte, at) in room.iter_mut().zip(offset..end) {
            if self.is_hole(at) {
                *byte = 0;
            }
        }
        Ok(n)
    }

    fn holes(&mut self, range: Range<u64>) -> Option<Vec<(Range<u64>, bool)>> {
        self.asked += 1;
        let here = |h: &&Range<u64>| h.start < range.end && h.end > range.start;
        let cut = |h: &Range<u64>| (h.start.max(range.start)..h.end.min(range.end), true);
        let all = || self.holes.iter().filter(here).map(cut).collect();
        self.tells.then(all)
    }

    fn place(&self) -> String {
        "fake".into()
    }
}

/// Returns the copy of a file: its content, its holes, the number of reads, and the result.
fn copy(fake: Fake, allocated: u64) -> (Vec<u8>, Vec<Range<u64>>, u32, Done) {
    let report = Report::new(&Unobserved);
    let len = fake.len;
    let mut content = Content::new(fake, len, allocated, &report);
    let (mut all, mut holes, mut room) = (Vec::new(), Vec::<Range<u64>>::new(), vec![0; 10_000]);
    loop {
        let at = all.len() as u64;
        match content.next(at, &mut room).unwrap() {
            Piece::Data(n) => all.extend_from_slice(&room[..n]),
            Piece::Hole(n) => {
                match holes.last_mut().filter(|hole| hole.end == at) {
                    Some(hole) => hole.end += n,
                    None => holes.push(at..at + n),
                }
                all.resize(all.len() + usize::try_from(n).unwrap(), 0);
            }
            Piece::End => break,
        }
    }
    let ended = content.ended();
    (all, holes, content.bytes.reads, ended)
}

#[test]
fn all_but_the_bad_sectors_is_delivered() {
    let (all, holes, _, ended) = copy(Fake::new(100_000, &[5000..5001, 70_000..71_000]), 100_000);
    assert_eq!(all.len(), 100_000);
    assert_eq!(holes, [4608..5120, 69_632..71_168]);
    assert_eq!(all.iter().filter(|b| **b == 0).count(), 512 + 1536);
    assert!(ended.is_ok());
}

#[test]
fn what_is_bad_to_the_end_is_read_in_larger_pieces() {
    let (all, holes, reads, _) = copy(Fake::new(10_000_000, &[512..10_000_000]), 10_000_000);
    assert_eq!((all.len(), holes), (10_000_000, vec![512..10_000_000]));
    assert!(reads < 10_000_000 / 2048, "{reads}");
}

#[test]
fn zeros_alone_are_no_copy() {
    let (.., ended) = copy(Fake::new(9_000, &[0..9_000]), 9_000);
    let line = ended.unwrap_err().to_string();
    assert_eq!(line, "fake: nothing of it can be read; left out: bad");
}

#[test]
fn holes_that_are_told_of_are_not_read() {
    let mut fake = Fake::new(5_010_000, &[]);
    fake.holes = vec![8192..5_000_000];
    let (all, holes, reads, _) = copy(fake, 4096);
    assert_eq!((all.len(), holes), (5_010_000, vec![8192..5_000_000]));
    assert!(reads < 10, "{reads}");
}

#[test]
fn a_hole_without_end_is_asked_for_in_ever_larger_parts() {
    let len = 1 << 60;
    let mut fake = Fake::new(len, &[]);
    fake.holes = vec![0..len];
    let report = Report::new(&Unobserved);
    let mut content = Content::new(fake, len, 0, &report);
    assert_eq!(content.data_len(), Some(0));
    assert!(content.bytes.asked < 2000, "{}", content.bytes.asked);
}

#[test]
fn where_nothing_is_told_of_holes_blocks_of_zeros_are() {
    let mut fake = Fake::new(50_000, &[]);
    fake.holes = vec![8192..40_000];
    fake.tells = false;
    let (all, holes, ..) = copy(fake, 4096);
    assert_eq!((all.len(), holes), (50_000, vec![8192..36_864]));
}

/// Content that lies in a host's file as a whole.
struct InHostFile;

impl Bytes for InHostFile {
    fn read(&mut self, _: u64, room: &mut [u8]) -> Result<usize, Unread> {
        Ok(room.len())
    }
    fn holes(&mut self, _: Range<u64>) -> Option<Vec<(Range<u64>, bool)>> {
        None
    }
    fn host_range(&mut self, _: Range<u64>) -> Option<HostRange> {
        Some(HostRange::nowhere())
    }
    fn place(&self) -> String {
        "fake".into()
    }
}

#[test]
fn where_less_is_copied_than_lies_there_the_rest_is_read() {
    let report = Report::new(&Unobserved);
    let mut content = Content::new(InHostFile, LONG, LONG, &report);
    let whole = content.host_range(0).unwrap().len();
    content.copied(whole);
    assert!(content.host_range(whole).is_some());
    content.copied(whole - 1);
    assert!(content.host_range(2 * whole - 1).is_none());
    // There is no range past the end, nor in a short file.
    assert!(
        Content::new(InHostFile, LONG, LONG, &report)
            .host_range(LONG)
            .is_none()
    );
    assert!(
        Content::new(InHostFile, LONG - 1, LONG, &report)
            .host_range(0)
            .is_none()
    );
}
