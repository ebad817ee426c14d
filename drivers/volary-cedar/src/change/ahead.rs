//! Reading ahead of small files that are read in the order in which they lie.

use std::ops::Range;

/// Pages between two files that are still read in order.
const NEAR: u32 = 8;
/// Pages that are read ahead at first.
const FIRST: u32 = 8;

/// Where small files were read, and how far ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    /// The first page past the last file.
    read: u32,
    /// The first page that was not read ahead.
    until: u32,
    /// Pages of the last request.
    pages: u32,
}

impl Ahead {
    /// Notes that a file is read, and returns how many pages to request from its first on; `None` if all of it was
    /// read ahead. Twice as much with each request, up to `most` pages.
    pub(crate) fn pages(&mut self, file: Range<u32>, most: u32) -> Option<u32> {
        let near = self.read..self.read.saturating_add(NEAR);
        let follows = near.contains(&file.start);
        self.read = file.end;
        if follows && file.end <= self.until {
            return None;
        }
        let more = match follows {
            true => (self.pages * 2).max(FIRST),
            false => 0,
        };
        self.pages = more.min(most);
        let pages = self.pages.max(file.end - file.start);
        self.until = file.start.saturating_add(pages);
        Some(pages)
    }
}
