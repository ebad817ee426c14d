//! Pages of the file name table: sorted cells of a key and a value.

use crate::disk::ondisk::{HEADER, Header, PageType, get_u16};
use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// A page as it is shared.
#[derive(Clone, Debug)]
pub(crate) struct Image(Arc<Indexed>);

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Image {}

/// The bytes of a page, and where its cells begin, once that was asked for.
#[derive(Debug)]
struct Indexed {
    bytes: Box<[u8]>,
    starts: OnceLock<Box<[u16]>>,
}

impl Deref for Image {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl From<Vec<u8>> for Image {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Indexed {
            bytes: bytes.into(),
            starts: OnceLock::new(),
        }))
    }
}

impl From<&[u8]> for Image {
    fn from(bytes: &[u8]) -> Self {
        bytes.to_vec().into()
    }
}

impl Image {
    /// Returns where the cells begin. Pages have at most 64 KiB.
    fn starts(&self) -> &[u16] {
        self.0.starts.get_or_init(|| {
            let mut at = HEADER;
            let each = cells(self).map(|(key, value)| {
                let start = at as u16;
                at += CELL + key.len() + value.len();
                start
            });
            each.collect()
        })
    }

    /// Returns a cell, by its place among them.
    pub(crate) fn cell(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let start = usize::from(*self.starts().get(at)?);
        let left = 1;
        let rest = self.get(start..)?;
        Cells { rest, left }.next()
    }

    /// Returns where a key is among the cells, or would be.
    pub(crate) fn seek(&self, key: &[u8]) -> Result<usize, usize> {
        let key_at = |start: &u16| {
            let at = usize::from(*start);
            let len = usize::from(get_u16(self, at));
            self.get(at + CELL..at + CELL + len).unwrap_or_default()
        };
        self.starts()
            .binary_search_by(|start| key_at(start).cmp(key))
    }

    /// Returns where the bytes of a cell begin, or, for the place past the last, of what is free.
    fn start_of(&self, at: usize) -> usize {
        match self.starts().get(at) {
            Some(start) => usize::from(*start),
            None => self.end(),
        }
    }

    /// Returns bytes that its cells take.
    pub(crate) fn used(&self) -> usize {
        self.end() - HEADER
    }

    /// Returns where the last cell ends.
    fn end(&self) -> usize {
        let last = self.starts().last().map(|start| usize::from(*start));
        last.map_or(HEADER, |at| {
            at + CELL + usize::from(get_u16(self, at)) + usize::from(get_u16(self, at + 2))
        })
    }

    /// Returns the page with `new` at `at`, in place of the cell there if `replaces`; with no
    /// `new`, that cell goes only. None if it does not fit. It has this page's stamp still.
    pub(crate) fn spliced(
        &self,
        at: usize,
        replaces: bool,
        new: Option<(&[u8], &[u8])>,
    ) -> Option<Self> {
        let (from, to) = (self.start_of(at), self.start_of(at + usize::from(replaces)));
        let new_len = new.map_or(0, |(key, value)| CELL + key.len() + value.len());
        let end = self.end();
        if end - (to - from) + new_len > self.len() {
            return None;
        }
        let starts = self.moved(at, replaces, from..to, new_len);
        let mut page = Vec::with_capacity(self.len());
        page.extend_from_slice(self.get(..from)?);
        if let Some((key, value)) = new {
            page.extend_from_slice(&(key.len() as u16).to_le_bytes());
            page.extend_from_slice(&(value.len() as u16).to_le_bytes());
            page.extend_from_slice(key);
            page.extend_from_slice(value);
        }
        page.extend_from_slice(self.get(to..end)?);
        page.resize(self.len(), 0);
        crate::disk::ondisk::put(&mut page, 6, &(starts.len() as u16).to_le_bytes());
        let image = Self::from(page);
        let _ = image.0.starts.set(starts);
        Some(image)
    }

    /// Returns where cells begin once `new_len` bytes are in place of the bytes `old`.
    fn moved(&self, at: usize, replaces: bool, old: Range<usize>, new_len: usize) -> Box<[u16]> {
        let (before, behind) = self.starts().split_at(at);
        let new = (new_len > 0).then_some(old.start as u16);
        let behind = behind.iter().skip(usize::from(replaces));
        let shifted =
            behind.map(|start| (usize::from(*start) - old.end + old.start + new_len) as u16);
        before.iter().copied().chain(new).chain(shifted).collect()
    }
}

/// Bytes that a cell takes beside its key and value.
pub(crate) const CELL: usize = 4;

/// A cell: key and value, in a page or new.
pub(crate) type Cell<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Returns the most bytes that key and value of a cell may have in pages of `len`
/// bytes: then every page that is too full can be cut in two.
pub(crate) const fn cell_max(len: usize) -> usize {
    (len - HEADER) / 2 - CELL
}

/// The cells of a page, in order, borrowed.
pub(crate) struct Cells<'a> {
    rest: &'a [u8],
    left: u16,
}

/// Returns the cells of a page that was checked.
pub(crate) fn cells(page: &[u8]) -> Cells<'_> {
    Cells {
        rest: page.get(HEADER..).unwrap_or_default(),
        left: get_u16(page, 6),
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let key_len = usize::from(get_u16(self.rest, 0));
        let value_len = usize::from(get_u16(self.rest, 2));
        let key = self.rest.get(CELL..CELL + key_len)?;
        let value = self.rest.get(CELL + key_len..CELL + key_len + value_len)?;
        self.rest = self.rest.get(CELL + key_len + value_len..)?;
        Some((key, value))
    }
}

/// The height of a page above the leaves.
pub(crate) fn level(page: &[u8]) -> u8 {
    page.get(5).copied().unwrap_or(0)
}

/// Returns the cells of a page, to be changed.
pub(crate) fn to_change(page: &[u8]) -> Vec<Cell<'_>> {
    // One more is put among them.
    let mut all = Vec::with_capacity(usize::from(get_u16(page, 6)) + 1);
    all.extend(cells(page).map(|(k, v)| (k.into(), v.into())));
    all
}

/// Returns bytes that cells take in a page.
pub(crate) fn used(cells: &[Cell<'_>]) -> usize {
    cells.iter().map(|(k, v)| CELL + k.len() + v.len()).sum()
}

/// Returns a page of these cells, which must fit; not sealed.
pub(crate) fn build(index: u32, level: u8, nonce: u64, len: usize, cells: &[Cell<'_>]) -> Image {
    let header = Header {
        kind: PageType::Table,
        level,
        count: cells.len() as u16,
        nonce,
        page: index,
        epoch: 0,
        seq: 0,
    };
    let mut page = header.page(len);
    let mut at = HEADER;
    for (key, value) in cells {
        crate::disk::ondisk::put(&mut page, at, &(key.len() as u16).to_le_bytes());
        crate::disk::ondisk::put(&mut page, at + 2, &(value.len() as u16).to_le_bytes());
        crate::disk::ondisk::put(&mut page, at + CELL, key);
        crate::disk::ondisk::put(&mut page, at + CELL + key.len(), value);
        at += CELL + key.len() + value.len();
    }
    page.into()
}

/// Returns the child that a value of an inner page names.
pub(crate) fn child(value: &[u8]) -> u32 {
    crate::disk::ondisk::get_u32(value, 0)
}

/// Holds a page that came from the device to what a page of the table is.
/// `table_len` is the number of pages that there are.
///
/// # Errors
/// In words, what is wrong.
pub(crate) fn check(page: &[u8], table_len: u32) -> Result<(), &'static str> {
    let count = usize::from(get_u16(page, 6));
    let is_inner = level(page) > 0;
    let mut seen = 0;
    let mut last: Option<&[u8]> = None;
    let mut found = cells(page);
    for (key, value) in found.by_ref() {
        if last.is_some_and(|last| last >= key) {
            return Err("keys out of order");
        }
        if is_inner && (value.len() != 4 || child(value) == 0 || child(value) >= table_len) {
            return Err("a child that is no page of the table");
        }
        if key.len() + value.len() > cell_max(page.len()) {
            return Err("a cell that is too long");
        }
        last = Some(key);
        seen += 1;
    }
    if seen != count {
        return Err("cells past the end of the page");
    }
    if is_inner && cells(page).next().is_none_or(|(key, _)| !key.is_empty()) {
        return Err("no first child");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const LEN: usize = 512;

    fn built(of: &BTreeMap<Vec<u8>, Vec<u8>>) -> Image {
        let cells: Vec<Cell<'_>> = of.iter().map(|(k, v)| (k.into(), v.into())).collect();
        build(3, 0, 77, LEN, &cells)
    }

    /// Numbers in no order, the same each time.
    fn numbers() -> impl Iterator<Item = usize> {
        let mut state = 1_u64;
        std::iter::repeat_with(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 40) as usize
        })
    }

    #[test]
    fn a_page_that_was_spliced_is_the_page_that_is_built_of_its_cells() {
        let mut cells = BTreeMap::new();
        let mut page = built(&cells);
        let mut numbers = numbers();
        let mut next = |most: usize| numbers.next().unwrap() % most;
        let (mut full, mut gone) = (0, 0);
        for _ in 0..3000 {
            let key = vec![b'a' + next(20) as u8; 1 + next(4)];
            let value = vec![next(256) as u8; next(90)];
            let found = page.seek(&key);
            let (Ok(at) | Err(at)) = found;
            assert_eq!(at, cells.range(..key.clone()).count());
            assert_eq!(found.is_ok(), cells.contains_key(&key));
            if found.is_ok() && next(3) == 0 {
                page = page.spliced(at, true, None).unwrap();
                cells.remove(&key);
                gone += 1;
            } else if let Some(new) = page.spliced(at, found.is_ok(), Some((&key, &value))) {
                page = new;
                cells.insert(key, value);
            } else {
                let mut with = cells.clone();
                with.insert(key, value);
                let len = with.iter().map(|(k, v)| CELL + k.len() + v.len());
                assert!(HEADER + len.sum::<usize>() > LEN);
                full += 1;
            }
            assert_eq!(page, built(&cells));
            assert_eq!(page.used(), built(&cells).used());
            let all = (0..).map_while(|at| page.cell(at));
            assert!(all.eq(cells.iter().map(|(k, v)| (k.as_slice(), v.as_slice()))));
        }
        assert!(full > 100 && gone > 100, "{full} {gone}");
    }

    #[test]
    fn cells_past_the_end_of_a_page_are_none() {
        let one = BTreeMap::from([(b"key".to_vec(), b"value".to_vec())]);
        let mut bytes = built(&one).to_vec();
        crate::disk::ondisk::put(&mut bytes, 6, &9_u16.to_le_bytes());
        crate::disk::ondisk::put(&mut bytes, HEADER + 12, &u16::MAX.to_le_bytes());
        let page = Image::from(bytes);
        assert_eq!(page.cell(0), Some((&b"key"[..], &b"value"[..])));
        assert_eq!(page.cell(1), None);
    }
}
