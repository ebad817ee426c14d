//! The allocation map: which pages are in use. It is kept in memory, and logged
//! (`logged_map`); or saved when the volume is left or idle, and rebuilt from the
//! name table when what was saved is not of the last commit (paper, section 5.5).
//!
//! Small files lie from the low end on, big ones from the high end (section
//! 5.6); the areas are hints.

use crate::disk::ondisk::{HEADER, Header, PageType, get_u64, put, seal};
use crate::disk::runs::Run;
use crate::disk::volume::{DATA_START, Layout};
use crate::mistakes::{Mistake, made};
use crate::space::reserve::{Reservation, Reservations, SMALL, pages_ahead};
use std::ops::Range;

/// Pages for a new piece of a big file and for what it grows by, at least: as many as the
/// file has, so that one that is written bit by bit has few pieces.
const ROOM_TO_GROW: u32 = 64;
/// Free runs that are looked at for one with room to grow.
const LOOKED_AT: usize = 64;

/// Room that is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// How many pages.
    pub(crate) len: u32,
    /// Where the file ends so far.
    pub(crate) near: Option<u32>,
    /// Pages that the file will have.
    pub(crate) total: u32,
    /// The file, if room is to be kept for what it grows by next.
    pub(crate) grows: Option<u64>,
}

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
    /// Returns a map in which everything but the data areas and the name table's pages
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

    /// Returns whether a page is in use.
    pub(crate) fn is_used(&self, page: u32) -> bool {
        let word = self.words.get(page as usize / 64);
        word.is_none_or(|w| w >> (page % 64) & 1 == 1)
    }

    /// Returns whether none of the run is in use.
    pub(crate) fn is_free(&self, run: Run) -> bool {
        self.is_all(run, false)
    }

    /// Returns whether all of the run is, or is not, in use.
    pub(crate) fn is_all(&self, run: Run, used: bool) -> bool {
        self.next(run.start, run.start.saturating_add(run.len), !used)
            .is_none()
    }

    /// Returns a bit for each page, as stored.
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

    /// Returns the first page in `from..to` that is, or is not, in use.
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

    /// Returns the last page in `from..to` that is, or is not, in use.
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

    /// Returns the first page in `from..to` that anyone may take.
    fn next_open(&self, mut from: u32, to: u32, kept: &Reservations) -> Option<u32> {
        loop {
            let page = self.next(from, to, false)?;
            match kept.holding(page) {
                Some(run) => from = run.start.saturating_add(run.len),
                None => return Some(page),
            }
        }
    }

    /// Returns the last page in `from..to` that anyone may take.
    fn prev_open(&self, from: u32, mut to: u32, kept: &Reservations) -> Option<u32> {
        loop {
            let page = self.prev(from, to, false)?;
            match kept.holding(page) {
                Some(run) => to = run.start,
                None => return Some(page),
            }
        }
    }

    /// Returns the run from `start` on that anyone may take, of at most `most` pages.
    fn open_from(&self, start: u32, most: u32, kept: &Reservations) -> Option<Run> {
        let area = self.areas.iter().find(|a| a.contains(&start))?;
        let to = area.end.min(start.saturating_add(most));
        let end = self.next(start, to, true).unwrap_or(to);
        let end = kept.next(start, end).unwrap_or(end);
        (end > start).then_some(Run {
            start,
            len: end - start,
        })
    }

    /// Returns the first free run from the low end of at least `len` pages and `ahead` more; of the
    /// first that were looked at the longest, if it has `len`; or the longest of all.
    fn fit_low(&self, len: u32, ahead: u32, kept: &Reservations) -> Option<Run> {
        let (mut best, mut looked) = (None::<Run>, 0);
        for area in &self.areas {
            let mut at = area.start;
            while let Some(start) = self.next_open(at, area.end, kept) {
                let run = self.open_from(start, u32::MAX, kept)?;
                if best.is_none_or(|b| run.len > b.len) {
                    best = Some(run);
                }
                looked += 1;
                if best.is_some_and(|b| is_enough(b, len, ahead, looked)) {
                    return best;
                }
                at = start + run.len;
            }
        }
        best
    }

    /// Returns a free run from the high end as [`fit_low`](Self::fit_low) finds one from the low:
    /// where it ends with room for `wanted` pages, `len` of them.
    fn fit_high(&self, len: u32, wanted: u32, ahead: u32, kept: &Reservations) -> Option<Run> {
        let (mut best, mut looked) = (None::<Run>, 0);
        'all: for area in self.areas.iter().rev() {
            let mut end = area.end;
            while let Some(last) = self.prev_open(area.start, end, kept) {
                let used = self.prev(area.start, last, true);
                let start = used.max(kept.prev(area.start, last));
                let start = start.map_or(area.start, |p| p + 1);
                let run = Run {
                    start,
                    len: last + 1 - start,
                };
                if best.is_none_or(|b| run.len > b.len) {
                    best = Some(run);
                }
                looked += 1;
                if best.is_some_and(|b| is_enough(b, len, ahead, looked)) {
                    break 'all;
                }
                end = start;
            }
        }
        best.map(|run| Run {
            start: run.start + (run.len - wanted.max(len).min(run.len)),
            len: run.len.min(len),
        })
    }

    /// Takes pages for a file: behind `near` where that is free, else in the area for
    /// files of that size. None if there are not so many; nothing is taken then. What is
    /// kept for other files is passed over, and is given back if the rest of the room would
    /// not do in one piece.
    pub(crate) fn take(&mut self, want: &Want, kept: &mut Reservations) -> Option<Vec<Run>> {
        let (len, total) = (want.len, want.total);
        if len > self.free {
            return None;
        }
        let own = want.grows.and_then(|uid| kept.give_back(uid));
        let ahead = want.grows.map_or(0, |_| {
            pages_ahead(total.saturating_sub(len), total, self.free - len)
        });
        let mut left = len;
        let mut taken: Vec<Run> = Vec::new();
        let mut near = want.near.and_then(|at| self.open_from(at, len, kept));
        while left > 0 {
            let found = near.take().or_else(|| {
                let fit = match total <= SMALL {
                    true => self.fit_low(left, ahead, kept),
                    false => {
                        let room = left.saturating_mul(4).max(total).max(ROOM_TO_GROW);
                        self.fit_high(left, room.max(left.saturating_add(ahead)), ahead, kept)
                    }
                };
                fit.filter(|run| run.len >= left || kept.is_empty())
            });
            let Some(found) = found else {
                if kept.is_empty() {
                    taken.iter().for_each(|r| self.mark(r.start, r.len, false));
                    return None;
                }
                // Room is short: what is kept is for all.
                kept.give_all_back();
                continue;
            };
            let run = Run {
                start: found.start,
                len: found.len.min(left),
            };
            self.mark(run.start, run.len, true);
            left -= run.len;
            taken.push(run);
        }
        self.keep_behind(want, &taken, own, ahead, kept);
        Some(taken)
    }

    /// Keeps room behind what was taken: what is left of the file's own, or else
    /// `ahead` pages as far as they are free.
    fn keep_behind(
        &self,
        want: &Want,
        taken: &[Run],
        own: Option<Run>,
        ahead: u32,
        kept: &mut Reservations,
    ) {
        let Some((uid, last)) = want.grows.zip(taken.last()) else {
            return;
        };
        let end = last.start + last.len;
        let own_end = own.map_or(0, |own| own.start + own.len);
        let goes_on = own.is_some_and(|own| (own.start..own_end).contains(&end));
        let most = if goes_on { own_end - end } else { ahead };
        if let Some(run) = self.open_from(end, most, kept) {
            kept.reserve(Reservation { uid, run });
        }
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
                let len = self.next(start, area.end, true).unwrap_or(area.end) - start;
                at = start + len;
                Some(Run { start, len })
            })
        })
    }

    /// Returns the pages of a saved map, as of commit `seq`.
    pub(crate) fn encode(&self, layout: &Layout, first: u32, epoch: u32, seq: u64) -> Vec<u8> {
        let mut parts = self.words.chunks(layout.map_bits() as usize / 64);
        let numbers = first..first + layout.map_len;
        let pages =
            numbers.map(|number| page(layout, number, parts.next().unwrap_or(&[]), epoch, seq));
        pages.collect::<Vec<_>>().concat()
    }

    /// Returns the map in the pages of a saved one, if all are whole and of commit `seq`.
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

    /// Returns the map in the pages of a saved one.
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

/// Returns whether the longest of the free runs that were looked at will do.
fn is_enough(best: Run, len: u32, ahead: u32, looked: usize) -> bool {
    best.len >= len.saturating_add(ahead) || looked >= LOOKED_AT && best.len >= len
}

/// Returns a page of a saved map, as of commit `seq`.
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
    use crate::disk::volume::Wanted;

    impl Vam {
        /// Takes pages, and keeps none for later.
        fn get(&mut self, len: u32, near: Option<u32>, total: u32) -> Option<Vec<Run>> {
            let want = Want {
                len,
                near,
                total,
                grows: None,
            };
            self.take(&want, &mut Reservations::default())
        }
    }

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
        let small = vam.get(2, None, 2).unwrap();
        assert_eq!(
            small,
            [Run {
                start: DATA_START,
                len: 2
            }]
        );
        let big = vam.get(20, None, 20).unwrap();
        assert!(big[0].start > layout().middle_end());
        let more = vam.get(5, Some(big[0].start + 20), 25).unwrap();
        assert_eq!(more[0].start, big[0].start + 20);
    }

    #[test]
    fn a_big_file_that_grows_bit_by_bit_has_few_pieces() {
        let mut vam = Vam::empty(&layout());
        let mut pieces: Vec<Run> = Vec::new();
        for total in (10..=500).step_by(10) {
            let near = pieces.last().map(|run| run.start + run.len);
            for run in vam.get(10, near, total).unwrap() {
                match pieces.last_mut() {
                    Some(last) if last.start + last.len == run.start => last.len += run.len,
                    _ => pieces.push(run),
                }
            }
        }
        assert!(pieces.len() <= 5, "{pieces:?}");
    }

    /// Returns a large volume, its map and what is kept.
    fn large(pages: u32) -> (Vam, Reservations) {
        let wanted = Wanted {
            page: 4096,
            pages,
            table: 1024,
            third: 512,
            logs_map: true,
        };
        let layout = Layout::plan(wanted, 1, 0, "").unwrap();
        (Vam::empty(&layout), Reservations::default())
    }

    /// Files that grow in turns, each by `piece` pages until it has `total`: its runs.
    fn grow_in_turns(
        vam: &mut Vam,
        kept: &mut Reservations,
        files: u64,
        piece: u32,
        total: u32,
    ) -> Vec<crate::disk::runs::Runs> {
        let mut all = vec![crate::disk::runs::Runs::default(); files as usize];
        while all.iter().any(|runs| runs.pages() < total) {
            for (uid, runs) in (1..).zip(&mut all) {
                // The first write needs a page for the leader too.
                let len = piece + u32::from(runs.0.is_empty());
                let want = Want {
                    len,
                    near: runs.0.last().map(|r| r.start + r.len),
                    total: runs.pages() + len,
                    grows: Some(uid),
                };
                let taken = vam.take(&want, kept).unwrap();
                taken.into_iter().for_each(|run| runs.push(run));
            }
        }
        all
    }

    #[test]
    fn files_that_grow_in_turns_lie_in_eight_runs_at_most() {
        // 200 pieces of a page; 300 MB in pieces of 64 KiB, and of 4 KiB; with little room.
        for (pages, piece, total) in [
            (1 << 19, 1, 200),
            (1 << 19, 16, 73_250),
            (1 << 19, 1, 73_250),
            (1 << 18, 16, 73_250),
        ] {
            let (mut vam, mut kept) = large(pages);
            let all = grow_in_turns(&mut vam, &mut kept, 3, piece, total);
            let runs: Vec<usize> = all.iter().map(|runs| runs.0.len()).collect();
            println!("{pages} pages, by {piece} to {total}: {runs:?} runs");
            assert!(runs.iter().all(|n| *n <= 8), "{piece} to {total}: {runs:?}");
        }
    }

    #[test]
    fn what_is_kept_is_free_and_is_given_to_whoever_needs_it() {
        let (mut vam, mut kept) = large(1 << 14);
        let all = vam.free();
        grow_in_turns(&mut vam, &mut kept, 3, 4, 200);
        assert!(!kept.is_empty());
        let taken: u32 = 3 * 201;
        assert_eq!(vam.free(), all - taken);
        let rest = vam.free();
        let want = Want {
            len: rest,
            near: None,
            total: rest,
            grows: None,
        };
        vam.take(&want, &mut kept).unwrap();
        assert_eq!(vam.free(), 0);
        assert!(kept.is_empty());
    }

    #[test]
    fn all_pages_can_be_taken_and_given_back() {
        let mut vam = Vam::empty(&layout());
        let fresh = vam.clone();
        let all = vam.get(vam.free(), None, 1000).unwrap();
        assert_eq!(vam.free(), 0);
        assert_eq!(vam.get(1, None, 1), None);
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
        vam.get(30, None, 30).unwrap();
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
