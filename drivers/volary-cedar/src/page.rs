//! Pages of the file name table: sorted cells of a key and a value.

use crate::ondisk::{HEADER, Header, PageType, get_u16};
use std::borrow::Cow;
use std::sync::Arc;

/// A page as it is shared.
pub(crate) type Image = Arc<[u8]>;

/// Bytes that a cell takes beside its key and value.
pub(crate) const CELL: usize = 4;

/// A cell: key and value, in a page or new.
pub(crate) type Cell<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The most bytes that key and value of a cell may have in pages of `len`
/// bytes: then every page that is too full can be cut in two.
pub(crate) const fn cell_max(len: usize) -> usize {
    (len - HEADER) / 2 - CELL
}

/// The cells of a page, in order, borrowed.
pub(crate) struct Cells<'a> {
    rest: &'a [u8],
    left: u16,
}

/// The cells of a page that was checked.
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

/// The cells of a page, to be changed.
pub(crate) fn to_change(page: &[u8]) -> Vec<Cell<'_>> {
    // One more is put among them.
    let mut all = Vec::with_capacity(usize::from(get_u16(page, 6)) + 1);
    all.extend(cells(page).map(|(k, v)| (k.into(), v.into())));
    all
}

/// Bytes that cells take in a page.
pub(crate) fn used(cells: &[Cell<'_>]) -> usize {
    cells.iter().map(|(k, v)| CELL + k.len() + v.len()).sum()
}

/// A page of these cells, which must fit; not sealed.
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
        crate::ondisk::put(&mut page, at, &(key.len() as u16).to_le_bytes());
        crate::ondisk::put(&mut page, at + 2, &(value.len() as u16).to_le_bytes());
        crate::ondisk::put(&mut page, at + CELL, key);
        crate::ondisk::put(&mut page, at + CELL + key.len(), value);
        at += CELL + key.len() + value.len();
    }
    page.into()
}

/// The child that a value of an inner page names.
pub(crate) fn child(value: &[u8]) -> u32 {
    crate::ondisk::get_u32(value, 0)
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
