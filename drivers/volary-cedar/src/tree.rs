//! The file name table as a B-tree of pages. The root is page 0.
//!
//! Keys are unique. An inner page's cell has the least key that may be under it
//! (the first has none) and the child's number. A page that becomes too full is
//! cut in two; one that holds little is joined with a neighbour.

use crate::core::Core;
use crate::page::{self, Cell, Image};
use volary_core::{Error, Kind, Result};

/// Height of the greatest tree.
pub(crate) const LEVELS_MAX: u8 = 8;

/// A page on the way to a leaf, and which of its cells was taken.
struct Step {
    index: u32,
    image: Image,
    at: usize,
}

/// The way to a leaf: the pages above it, the leaf, and the least key past it.
struct Way {
    above: Vec<Step>,
    index: u32,
    leaf: Image,
    end: Option<Vec<u8>>,
}

/// Cells found by [`Core::scan`] go to this; false ends the scan.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> bool;

impl Core {
    fn way(&mut self, key: &[u8]) -> Result<Way> {
        let (mut index, mut above, mut end) = (0, Vec::new(), None);
        let mut image = self.page(0)?;
        if page::level(&image) > LEVELS_MAX {
            return Err(self.bad_tree(0, "too high"));
        }
        while page::level(&image) > 0 {
            let mut found = None;
            for (at, (least, value)) in page::cells(&image).enumerate() {
                if least > key {
                    end = Some(least.to_vec());
                    break;
                }
                found = Some((at, page::child(value)));
            }
            let (at, child) = found.ok_or_else(|| self.bad_tree(index, "no first child"))?;
            let level = page::level(&image);
            above.push(Step { index, image, at });
            image = self.page(child)?;
            if page::level(&image) + 1 != level {
                return Err(self.bad_tree(child, "of a level that does not fit"));
            }
            index = child;
        }
        Ok(Way {
            above,
            index,
            leaf: image,
            end,
        })
    }

    fn bad_tree(&self, index: u32, words: &str) -> Error {
        let offset = self.layout.offset(self.layout.table_a + index);
        Error::corrupt("name table page", offset, words, "a tree")
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let way = self.way(key)?;
        let found = page::cells(&way.leaf).find(|(k, _)| *k >= key);
        Ok(found.filter(|(k, _)| *k == key).map(|(_, v)| v.to_vec()))
    }

    /// Gives `visit` the cells from `from` on, in order, until it says that it
    /// is enough or there are no more.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn scan(&mut self, from: &[u8], visit: Visit<'_>) -> Result<()> {
        let mut from = from.to_vec();
        loop {
            let way = self.way(&from)?;
            for (key, value) in page::cells(&way.leaf).skip_while(|(k, _)| *k < from.as_slice()) {
                if !visit(key, value) {
                    return Ok(());
                }
            }
            match way.end {
                Some(end) => from = end,
                None => return Ok(()),
            }
        }
    }

    /// The first cell whose key begins with `prefix`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn first(&mut self, prefix: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let mut found = None;
        self.scan(prefix, &mut |key, value| {
            if key.starts_with(prefix) {
                found = Some((key.to_vec(), value.to_vec()));
            }
            false
        })?;
        Ok(found)
    }

    /// Puts a cell, in place of one of the same key if there is one.
    ///
    /// # Errors
    /// `NoSpace` if the table is full; `TooBig` for a cell that no page can
    /// hold; `Corrupt`, `Io`.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() + value.len() > page::cell_max(self.layout.page_len()) {
            return Err(Kind::TooBig.into());
        }
        let way = self.way(key)?;
        let mut cells = page::to_change(&way.leaf);
        let at = cells.partition_point(|(k, _)| **k < *key);
        let cell = (key.into(), value.into());
        match cells.get_mut(at) {
            Some(old) if *old.0 == *key => *old = cell,
            _ => cells.insert(at, cell),
        }
        self.store(way.above, way.index, 0, cells, at)
    }

    /// Stores the cells of a page that has one more at `at`, or a longer one.
    fn store(
        &mut self,
        mut above: Vec<Step>,
        index: u32,
        level: u8,
        mut cells: Vec<Cell<'_>>,
        at: usize,
    ) -> Result<()> {
        if self.fits(&cells) {
            return self.set(index, level, &cells);
        }
        if index == 0 && level >= LEVELS_MAX {
            return Err(Kind::NoSpace.into());
        }
        let cut = self.cut(&cells, at);
        let mut right = cells.split_off(cut);
        let least = right.first().map(|c| c.0.clone()).unwrap_or_default();
        if level > 0
            && let Some(first) = right.first_mut()
        {
            first.0 = (&[]).into();
        }
        let new = self.take_page()?;
        self.set(new, level, &right)?;
        let Some(step) = above.pop() else {
            let left = self.take_page()?;
            self.set(left, level, &cells)?;
            let child = |index: u32| index.to_le_bytes().to_vec().into();
            let inner = [((&[]).into(), child(left)), (least, child(new))];
            return self.set(0, level + 1, &inner);
        };
        self.set(index, level, &cells)?;
        let mut parent = page::to_change(&step.image);
        parent.insert(step.at + 1, (least, new.to_le_bytes().to_vec().into()));
        self.store(above, step.index, level + 1, parent, step.at + 1)
    }

    fn fits(&self, cells: &[Cell<'_>]) -> bool {
        page::used(cells) + crate::ondisk::HEADER <= self.layout.page_len()
    }

    /// Where to cut the cells of a page that is too full: in the middle, or, if
    /// what is new is at the end, just before it, so that pages filled in order
    /// are full.
    fn cut(&self, cells: &[Cell<'_>], at: usize) -> usize {
        if at + 1 == cells.len() && at > 0 {
            return at;
        }
        let room = self.layout.page_len() - crate::ondisk::HEADER;
        let total = page::used(cells);
        let mut left = 0;
        let mut best = (usize::MAX, 1);
        for (i, (k, v)) in cells.iter().enumerate().skip(1) {
            left += cells
                .get(i - 1)
                .map_or(0, |(k, v)| page::CELL + k.len() + v.len());
            let _ = (k, v);
            let right = total - left;
            if left <= room && right <= room {
                best = best.min((left.abs_diff(right), i));
            }
        }
        best.1
    }

    fn set(&mut self, index: u32, level: u8, cells: &[Cell<'_>]) -> Result<()> {
        if !self.fits(cells) {
            return Err(self.bad_tree(index, "cells that do not fit"));
        }
        let image = page::build(
            index,
            level,
            self.layout.nonce,
            self.layout.page_len(),
            cells,
        );
        self.txn.pages.insert(index, image);
        Ok(())
    }

    /// Takes a cell away; false if there is none.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let way = self.way(key)?;
        let mut cells = page::to_change(&way.leaf);
        let Some(at) = cells.iter().position(|(k, _)| **k == *key) else {
            return Ok(false);
        };
        cells.remove(at);
        self.shrink(way.above, way.index, 0, cells)?;
        Ok(true)
    }

    /// Stores the cells of a page that has one fewer, and joins it with a
    /// neighbour if little is left.
    fn shrink(
        &mut self,
        mut above: Vec<Step>,
        index: u32,
        level: u8,
        mut cells: Vec<Cell<'_>>,
    ) -> Result<()> {
        if level > 0
            && let Some(first) = cells.first_mut()
        {
            first.0 = (&[]).into();
        }
        let Some(step) = above.pop() else {
            return self.shrink_root(level, &cells);
        };
        let room = self.layout.page_len() - crate::ondisk::HEADER;
        if page::used(&cells) > room / 3 {
            return self.set(index, level, &cells);
        }
        let mut parent = page::to_change(&step.image);
        if cells.is_empty() {
            self.free_page(index);
            parent.remove(step.at);
            return self.shrink(above, step.index, level + 1, parent);
        }
        // The neighbour to the right, or, at the end, the one to the left.
        let left_at = if step.at + 1 < parent.len() {
            step.at
        } else {
            step.at.wrapping_sub(1)
        };
        let pair = (
            parent.get(left_at).map(|c| page::child(&c.1)),
            parent.get(left_at.wrapping_add(1)),
        );
        let (Some(left), Some((least, right))) = pair else {
            return self.set(index, level, &cells);
        };
        let right = page::child(right);
        let other = self.page(if left == index { right } else { left })?;
        if page::level(&other) != level {
            return Err(self.bad_tree(index, "of a level that does not fit"));
        }
        let (mut joined, mut tail) = match left == index {
            true => (cells.clone(), page::to_change(&other)),
            false => (page::to_change(&other), cells.clone()),
        };
        if level > 0
            && let Some(first) = tail.first_mut()
        {
            first.0.clone_from(least);
        }
        joined.extend(tail);
        if !self.fits(&joined) {
            return self.set(index, level, &cells);
        }
        self.set(left, level, &joined)?;
        self.free_page(right);
        parent.remove(left_at + 1);
        self.shrink(above, step.index, level + 1, parent)
    }

    /// Stores the root; while it has one child only, that takes its place.
    fn shrink_root(&mut self, level: u8, cells: &[Cell<'_>]) -> Result<()> {
        match cells {
            [] => self.set(0, 0, &[]),
            [(_, only)] if level > 0 => {
                let child = page::child(only);
                let image = self.page(child)?;
                self.free_page(child);
                self.shrink_root(page::level(&image), &page::to_change(&image))
            }
            _ => self.set(0, level, cells),
        }
    }
}
