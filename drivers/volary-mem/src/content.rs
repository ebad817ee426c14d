//! The bytes of a file.

use std::collections::BTreeMap;
use std::ops::Range;

/// The size of a page of content, in bytes.
pub(crate) const PAGE: u64 = 4096;

/// The bytes of a file, in pages. Where there is no page, the bytes are zero. Bytes of a page past
/// the size are zero too.
#[derive(Default)]
pub(crate) struct Content {
    size: u64,
    pages: BTreeMap<u64, Box<[u8]>>,
}

/// The part of one page that a range touches.
struct Span {
    page: u64,
    /// Bytes within the page.
    inside: Range<usize>,
    /// The same bytes within the range.
    part: Range<usize>,
}

fn spans(offset: u64, len: u64) -> impl Iterator<Item = Span> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done;
        let start = at % PAGE;
        let step = (PAGE - start).min(len - done);
        let span = Span {
            page: at / PAGE,
            inside: start as usize..(start + step) as usize,
            part: done as usize..(done + step) as usize,
        };
        done += step;
        Some(span)
    })
}

/// Returns the numbers of the pages that the range touches.
fn pages_of(offset: u64, len: u64) -> Range<u64> {
    offset / PAGE..(offset + len).div_ceil(PAGE)
}

impl Content {
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the room that the content takes, in bytes. Without `holes`, all pages up to its size
    /// count.
    pub(crate) fn room(&self, holes: bool) -> u64 {
        room(self.pages.len() as u64, self.size, holes)
    }

    /// Returns the room that the content would take, if every page of the range existed and the
    /// size were at least `size`.
    pub(crate) fn room_with(&self, offset: u64, len: u64, size: u64, holes: bool) -> u64 {
        let range = pages_of(offset, len);
        let there = if len == 0 {
            0
        } else {
            self.pages.range(range.clone()).count() as u64
        };
        let new = if len == 0 {
            0
        } else {
            range.end - range.start - there
        };
        room(self.pages.len() as u64 + new, size.max(self.size), holes)
    }

    /// Reads bytes up to the size. Returns how many.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let len = self.size.saturating_sub(offset).min(buf.len() as u64);
        for span in spans(offset, len) {
            let Some(to) = buf.get_mut(span.part) else {
                break;
            };
            match self.pages.get(&span.page).and_then(|p| p.get(span.inside)) {
                Some(from) => to.copy_from_slice(from),
                None => to.fill(0),
            }
        }
        len as usize
    }

    /// Writes all of `data`, and grows to hold it.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        for span in spans(offset, data.len() as u64) {
            let to = self.page(span.page).get_mut(span.inside);
            if let (Some(to), Some(from)) = (to, data.get(span.part)) {
                to.copy_from_slice(from);
            }
        }
        if !data.is_empty() {
            self.size = self.size.max(offset + data.len() as u64);
        }
    }

    /// Truncates the content to `size`, or extends it with zeros.
    pub(crate) fn resize(&mut self, size: u64) {
        if size < self.size {
            self.pages.split_off(&size.div_ceil(PAGE));
            let tail = (size % PAGE) as usize;
            if tail != 0
                && let Some(cut) = self
                    .pages
                    .get_mut(&(size / PAGE))
                    .and_then(|p| p.get_mut(tail..))
            {
                cut.fill(0);
            }
        }
        self.size = size;
    }

    /// Makes a hole of the range: it reads as zeros, and whole pages are freed.
    pub(crate) fn punch(&mut self, offset: u64, len: u64) {
        let first_whole = offset.div_ceil(PAGE);
        let end_whole = (offset + len) / PAGE;
        if first_whole < end_whole {
            self.pages
                .retain(|page, _| !(first_whole..end_whole).contains(page));
        }
        let (first, last) = (offset / PAGE, (offset + len) / PAGE);
        for page in [first, last] {
            let start = page * PAGE;
            let cut = offset.clamp(start, start + PAGE) - start
                ..(offset + len).clamp(start, start + PAGE) - start;
            if let Some(part) = self
                .pages
                .get_mut(&page)
                .and_then(|p| p.get_mut(cut.start as usize..cut.end as usize))
            {
                part.fill(0);
            }
        }
    }

    /// Allocates all pages of the range.
    pub(crate) fn fill(&mut self, offset: u64, len: u64) {
        for page in pages_of(offset, len) {
            self.page(page);
        }
    }

    fn page(&mut self, number: u64) -> &mut [u8] {
        self.pages
            .entry(number)
            .or_insert_with(|| vec![0; PAGE as usize].into())
    }
}

fn room(pages: u64, size: u64, holes: bool) -> u64 {
    let kept = pages * PAGE;
    if holes {
        kept
    } else {
        kept.max(size.div_ceil(PAGE).saturating_mul(PAGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content: &Content) -> Vec<u8> {
        let mut buf = vec![0xff; content.size() as usize];
        assert_eq!(content.read(0, &mut buf), buf.len());
        buf
    }

    #[test]
    fn what_was_cut_off_reads_as_zeros_when_the_file_grows_again() {
        let mut content = Content::default();
        content.write(0, &[7; 5000]);
        content.resize(4500);
        content.resize(9000);
        let bytes = all(&content);
        assert!(bytes[..4500].iter().all(|&b| b == 7));
        assert!(bytes[4500..].iter().all(|&b| b == 0));
    }

    #[test]
    fn a_hole_reads_as_zeros_and_gives_back_whole_pages() {
        let mut content = Content::default();
        content.write(0, &[7; 5 * 4096]);
        content.punch(100, 3 * 4096);
        let bytes = all(&content);
        assert!(bytes[..100].iter().all(|&b| b == 7));
        assert!(bytes[100..100 + 3 * 4096].iter().all(|&b| b == 0));
        assert!(bytes[100 + 3 * 4096..].iter().all(|&b| b == 7));
        assert_eq!(content.room(true), 3 * PAGE);
        assert_eq!(content.room(false), 5 * PAGE);
    }

    #[test]
    fn a_write_far_out_takes_one_page() {
        let mut content = Content::default();
        let room = content.room_with(1 << 40, 10, (1 << 40) + 10, true);
        content.write(1 << 40, &[1; 10]);
        assert_eq!(content.room(true), PAGE);
        assert_eq!(room, PAGE);
        let mut buf = [9; 20];
        assert_eq!(content.read((1 << 40) - 10, &mut buf), 20);
        assert_eq!(
            buf,
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
        );
    }
}
