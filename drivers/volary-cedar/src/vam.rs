//! The allocation map: which pages are in use. It is kept in memory, and logged
//! (`logged_map`); or saved when the volume is left or idle, and rebuilt from the
//! name table when what was saved is not of the last commit (paper, section 5.5).
//!
//! Small files lie from the low end on, big ones from the high end (section
//! 5.6); the areas are hints.

use crate::mistakes::{Mistake, made};
use crate::ondisk::{HEADER, Header, PageType, get_u64, put, seal};
use crate::runs::Run;
use crate::volume::{DATA_START, Layout};
use std::ops::Range;

/// Files of up to so many pages are small.
pub(crate) const SMALL: u32 = 8;
/// Pages for a new piece of a big file and for what it grows by, at least: as many as the
/// file has, so that one that is written bit by bit has few pieces.
const ROOM_TO_GROW: u32 = 64;

/// The map.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Vam {
    words: Vec<u64>,
    areas: [Range<u32>; 2],
    table: Range<u32>,
    free: u32,
    table_free: u32,
}

impl Vam {
    /// A map in which everything but the data areas and the name table's pages
    /// is in use, as a rebuild starts from.
    pub(crate) fn empty(layout: &Layout) -> Self {
        let mut vam = Self {
            words: vec![u64::MAX; (layout.pages as usize).div_ceil(64)],
            areas: [
                DATA_START..layout.table_a,
                layout.middle_end()..layout.pages - 1,
            ],
            table: layout.table_a..layout.table_a + layout.table_len,
            free: 0,
            table_free: 0,
        };
        let areas = vam.areas.clone();
        for area in areas.iter().chain([&layout_table(layout)]) {
            vam.mark(area.start, area.end - area.start, false);
        }
        vam
    }

    /// Pages that files can have.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// Pages that the name table can have.
    pub(crate) fn table_free(&self) -> u32 {
        self.table_free
    }

    /// Whether a page is in use.
    pub(crate) fn is_used(&self, page: u32) -> bool {
        let word = self.words.get(page as usize / 64);
        word.is_none_or(|w| w >> (page % 64) & 1 == 1)
    }

    /// Whether none of the run is in use.
    pub(crate) fn is_free(&self, run: Run) -> bool {
        self.is_all(run, false)
    }

    /// Whether all of the run is, or is not, in use.
    pub(crate) fn is_all(&self, run: Run, used: bool) -> bool {
        self.next(run.start, run.start.saturating_add(run.len), !used)
            .is_none()
    }

    /// A bit for each page, as stored.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Marks a run. Pages that are already so stay so; there are none past the map's end,
    /// whatever a damaged volume says.
    pub(crate) fn mark(&mut self, start: u32, len: u32, used: bool) {
        let pages = u32::try_from(self.words.len() * 64).unwrap_or(u32::MAX);
        for page in start..start.saturating_add(len).min(pages) {
            if self.is_used(page) == used {
                continue;
            }
            if let Some(word) = self.words.get_mut(page as usize / 64) {
                *word ^= 1 << (page % 64);
            }
            let count = match self.table.contains(&page) {
                true => &mut self.table_free,
                false => &mut self.free,
            };
            *count = if used {
                count.saturating_sub(1)
            } else {
                *count + 1
            };
        }
    }

    /// The first page in `from..to` that is, or is not, in use.
    fn next(&self, from: u32, to: u32, used: bool) -> Option<u32> {
        let mut page = from;
        while page < to {
            let word = self.words.get(page as usize / 64).copied()?;
            let word = if used { word } else { !word } >> (page % 64);
            if word != 0 {
                let found = page + word.trailing_zeros();
                return (found < to).then_some(found);
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }

    /// The last page in `from..to` that is, or is not, in use.
    fn prev(&self, from: u32, to: u32, used: bool) -> Option<u32> {
        let mut end = to;
        while end > from {
            let page = end - 1;
            let word = self.words.get(page as usize / 64).copied()?;
            let word = if used { word } else { !word } << (63 - page % 64);
            if word != 0 {
                let found = page - word.leading_zeros();
                return (found >= from).then_some(found);
            }
            end = page / 64 * 64;
        }
        None
    }

    /// The free run that begins at `start`, of at most `most` pages.
    fn free_from(&self, start: u32, most: u32) -> Option<Run> {
        let area = self.areas.iter().find(|a| a.contains(&start))?;
        let to = area.end.min(start.saturating_add(most));
        let end = self.next(start, to, true).unwrap_or(to);
        (end > start).then_some(Run {
            start,
            len: end - start,
        })
    }

    /// The first free run of at least `len` pages, from the low end; or the
    /// longest.
    fn fit_low(&self, len: u32) -> Option<Run> {
        let mut best: Option<Run> = None;
        for area in &self.areas {
            let mut at = area.start;
            while let Some(start) = self.next(at, area.end, false) {
                let run = self.free_from(start, u32::MAX)?;
                if run.len >= len {
                    return Some(Run { start, len });
                }
                if best.is_none_or(|b| run.len > b.len) {
                    best = Some(run);
                }
                at = start + run.len;
            }
        }
        best
    }

    /// A free run of at least `len` pages from the high end, with room behind
    /// it for a file of `total`; or the longest.
    fn fit_high(&self, len: u32, total: u32) -> Option<Run> {
        let mut best: Option<Run> = None;
        for area in self.areas.iter().rev() {
            let mut end = area.end;
            while let Some(last) = self.prev(area.start, end, false) {
                let start = self
                    .prev(area.start, last, true)
                    .map_or(area.start, |p| p + 1);
                let run = Run {
                    start,
                    len: last + 1 - start,
                };
                if run.len >= len {
                    let wanted = len.saturating_mul(4).max(total).max(ROOM_TO_GROW);
                    let room = wanted.min(run.len);
                    let start = run.start + (run.len - room);
                    return Some(Run { start, len });
                }
                if best.is_none_or(|b| run.len > b.len) {
                    best = Some(run);
                }
                end = start;
            }
        }
        best
    }

    /// Takes `len` pages for a file that will have `total`: behind `near` where
    /// that is free, else in the area for files of that size. None if there are
    /// not so many; nothing is taken then.
    pub(crate) fn take(&mut self, len: u32, near: Option<u32>, total: u32) -> Option<Vec<Run>> {
        if len > self.free {
            return None;
        }
        let mut left = len;
        let mut taken = Vec::new();
        let mut near = near.and_then(|at| self.free_from(at, len));
        while left > 0 {
            let found = near.take().or_else(|| match total <= SMALL {
                true => self.fit_low(left),
                false => self.fit_high(left, total),
            })?;
            let run = Run {
                start: found.start,
                len: found.len.min(left),
            };
            self.mark(run.start, run.len, true);
            left -= run.len;
            taken.push(run);
        }
        Some(taken)
    }

    /// Takes a page of the name table: its number within a copy.
    pub(crate) fn take_table(&mut self) -> Option<u32> {
        let page = self.next(self.table.start, self.table.end, false)?;
        self.mark(page, 1, true);
        Some(page - self.table.start)
    }

    /// Marks a page of the name table.
    pub(crate) fn mark_table(&mut self, index: u32, used: bool) {
        self.mark(self.table.start.saturating_add(index), 1, used);
    }

    /// Free runs of the data areas, in order.
    pub(crate) fn free_runs(&self) -> impl Iterator<Item = Run> + '_ {
        self.areas.iter().flat_map(move |area| {
            let mut at = area.start;
            std::iter::from_fn(move || {
                let start = self.next(at, area.end, false)?;
                let run = self.free_from(start, u32::MAX)?;
                at = start + run.len;
                Some(run)
            })
        })
    }

    /// The pages of a saved map, as of commit `seq`.
    pub(crate) fn encode(&self, layout: &Layout, first: u32, epoch: u32, seq: u64) -> Vec<u8> {
        let mut parts = self.words.chunks(layout.map_bits() as usize / 64);
        let numbers = first..first + layout.map_len;
        let pages =
            numbers.map(|number| page(layout, number, parts.next().unwrap_or(&[]), epoch, seq));
        pages.collect::<Vec<_>>().concat()
    }

    /// The map in the pages of a saved one, if all are whole and of commit `seq`.
    pub(crate) fn decode(layout: &Layout, first: u32, bytes: &[u8], seq: u64) -> Option<Self> {
        let pages: Vec<&[u8]> = bytes.chunks(layout.page_len()).collect();
        for (page, number) in pages.iter().zip(first..) {
            let header = Header::read(page)?;
            let own = header.kind == PageType::Map
                && header.nonce == layout.nonce
                && header.page == number;
            if !own || header.seq != seq && !made(Mistake::OldMap) {
                return None;
            }
        }
        Some(Self::of_pages(layout, &pages))
    }

    /// The map in the pages of a saved one.
    pub(crate) fn of_pages(layout: &Layout, pages: &[impl AsRef<[u8]>]) -> Self {
        let mut found = Self::empty(layout);
        let words = layout.map_bits() as usize / 64;
        for (i, page) in pages.iter().map(AsRef::as_ref).enumerate() {
            let part = found.words.iter_mut().skip(i * words).take(words);
            for (at, word) in part.enumerate() {
                // What is never free stays in use, whatever the page says.
                let said = get_u64(page, HEADER + at * 8);
                *word |= said;
            }
        }
        found.count();
        found
    }

    fn count(&mut self) {
        let free = |range: &Range<u32>| range.clone().filter(|p| !self.is_used(*p)).count() as u32;
        let (data, table) = (self.areas.iter().map(free).sum(), free(&self.table));
        self.free = data;
        self.table_free = table;
    }
}

/// A page of a saved map, as of commit `seq`.
pub(crate) fn page(layout: &Layout, number: u32, words: &[u64], epoch: u32, seq: u64) -> Vec<u8> {
    let header = Header {
        kind: PageType::Map,
        level: 0,
        count: 0,
        nonce: layout.nonce,
        page: number,
        epoch,
        seq,
    };
    let mut page = header.page(layout.page_len());
    for (at, word) in words.iter().enumerate() {
        put(&mut page, HEADER + at * 8, &word.to_le_bytes());
    }
    seal(&mut page);
    page
}

fn layout_table(layout: &Layout) -> Range<u32> {
    layout.table_a..layout.table_a + layout.table_len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::Wanted;

    fn layout() -> Layout {
        let wanted = Wanted {
            page: 512,
            pages: 1400,
            table: 16,
            third: 116,
            logs_map: false,
        };
        Layout::plan(wanted, 1, 0, "").unwrap()
    }

    #[test]
    fn what_is_past_the_end_is_not_marked() {
        let mut vam = Vam::empty(&layout());
        let free = vam.free();
        vam.mark(1408, u32::MAX, false);
        assert_eq!(vam.free(), free);
        vam.mark(layout().middle_end(), u32::MAX, true);
        assert!(vam.free() < free);
    }

    #[test]
    fn small_files_lie_low_and_big_ones_high() {
        let mut vam = Vam::empty(&layout());
        assert_eq!(vam.free(), layout().data_pages());
        let small = vam.take(2, None, 2).unwrap();
        assert_eq!(
            small,
            [Run {
                start: DATA_START,
                len: 2
            }]
        );
        let big = vam.take(20, None, 20).unwrap();
        assert!(big[0].start > layout().middle_end());
        let more = vam.take(5, Some(big[0].start + 20), 25).unwrap();
        assert_eq!(more[0].start, big[0].start + 20);
    }

    #[test]
    fn a_big_file_that_grows_bit_by_bit_has_few_pieces() {
        let mut vam = Vam::empty(&layout());
        let mut pieces: Vec<Run> = Vec::new();
        for total in (10..=500).step_by(10) {
            let near = pieces.last().map(|run| run.start + run.len);
            for run in vam.take(10, near, total).unwrap() {
                match pieces.last_mut() {
                    Some(last) if last.start + last.len == run.start => last.len += run.len,
                    _ => pieces.push(run),
                }
            }
        }
        assert!(pieces.len() <= 5, "{pieces:?}");
    }

    #[test]
    fn all_pages_can_be_taken_and_given_back() {
        let mut vam = Vam::empty(&layout());
        let fresh = vam.clone();
        let all = vam.take(vam.free(), None, 1000).unwrap();
        assert_eq!(vam.free(), 0);
        assert_eq!(vam.take(1, None, 1), None);
        assert_eq!(vam.free_runs().count(), 0);
        assert!(all.iter().all(|r| layout().is_data_run(r.start, r.len)));
        for run in all {
            vam.mark(run.start, run.len, false);
        }
        assert!(vam == fresh);
    }

    #[test]
    fn a_saved_map_is_believed_only_whole_and_of_its_commit() {
        let layout = layout();
        let mut vam = Vam::empty(&layout);
        vam.take(30, None, 30).unwrap();
        vam.take_table().unwrap();
        let bytes = vam.encode(&layout, layout.map, 1, 9);
        let back = Vam::decode(&layout, layout.map, &bytes, 9).unwrap();
        assert!(back == vam);
        assert!(Vam::decode(&layout, layout.map, &bytes, 8).is_none());
        let mut torn = bytes;
        torn[200] ^= 1;
        assert!(Vam::decode(&layout, layout.map, &torn, 9).is_none());
    }
}
