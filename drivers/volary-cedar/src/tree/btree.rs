//! The file name table as a B-tree of pages. The root is page 0.
//!
//! Keys are unique. An inner page's cell has the least key that may be under it
//! (the first has none) and the child's number. A page that becomes too full is
//! cut in two; one that holds little is joined with a neighbour.

use crate::commit::core::Core;
use crate::name_table::page::{self, Cell, Image};
use volary_core::{Error, Kind, Result};

/// Height of the greatest tree.
pub(crate) const LEVELS_MAX: u8 = 8;

/// A page on the way to a leaf, and which of its cells was taken.
struct Step {
    index: u32,
    image: Image,
    at: usize,
}

/// The way to a leaf: the pages above it, and the leaf.
struct Way {
    above: Vec<Step>,
    index: u32,
    leaf: Image,
}

impl Way {
    /// Returns the least key that may be past the leaf; none if it is the last.
    fn end(&self) -> Option<&[u8]> {
        let next = |step: &'_ Step| step.image.cell(step.at + 1).is_some();
        let step = self.above.iter().rev().find(|step| next(step))?;
        step.image.cell(step.at + 1).map(|(least, _)| least)
    }
}

/// A leaf, from a key on.
pub(crate) struct Leaf {
    way: Way,
    from: usize,
}

impl Leaf {
    /// Returns its cells from that key on.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (self.from..).map_while(|at| self.way.leaf.cell(at))
    }

    /// Returns where the next one begins, if there is one.
    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.way.end()
    }
}

/// Cells found by [`Tree::scan`] go to this; false ends the scan.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> bool;

/// The name table as a tree, over the pages of the volume.
pub(crate) struct Tree<'a> {
    pub(crate) core: &'a mut Core,
}

impl<'a> Tree<'a> {
    pub(crate) fn of(core: &'a mut Core) -> Self {
        Self { core }
    }

    fn way(&mut self, key: &[u8]) -> Result<Way> {
        let (mut index, mut above) = (0, Vec::new());
        let mut image = self.core.page(0)?;
        if page::level(&image) > LEVELS_MAX {
            return Err(self.bad_tree(0, "too high"));
        }
        while page::level(&image) > 0 {
            let at = match image.seek(key) {
                Ok(at) => Some(at),
                Err(at) => at.checked_sub(1),
            };
            let found = at.and_then(|at| Some((at, page::child(image.cell(at)?.1))));
            let (at, child) = found.ok_or_else(|| self.bad_tree(index, "no first child"))?;
            let level = page::level(&image);
            above.push(Step { index, image, at });
            image = self.core.page(child)?;
            if page::level(&image) + 1 != level {
                return Err(self.bad_tree(child, "of a level that does not fit"));
            }
            index = child;
        }
        Ok(Way {
            above,
            index,
            leaf: image,
        })
    }

    fn bad_tree(&self, index: u32, words: &str) -> Error {
        let offset = self.core.layout.offset(self.core.layout.table_a + index);
        Error::corrupt("name table page", offset, words, "a tree")
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_as(key, <[u8]>::to_vec)
    }

    /// Returns what `read` makes of the value of a key.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn get_as<T>(
        &mut self,
        key: &[u8],
        read: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>> {
        let way = self.way(key)?;
        let found = way.leaf.seek(key).ok().and_then(|at| way.leaf.cell(at));
        Ok(found.map(|(_, value)| read(value)))
    }

    /// Returns the leaf with the first cells from `from` on.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn leaf(&mut self, from: &[u8]) -> Result<Leaf> {
        let way = self.way(from)?;
        let (Ok(at) | Err(at)) = way.leaf.seek(from);
        Ok(Leaf { way, from: at })
    }

    /// Gives `visit` the cells from `from` on, in order, until it says that it
    /// is enough or there are no more.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn scan(&mut self, from: &[u8], visit: Visit<'_>) -> Result<()> {
        let mut leaf = self.leaf(from)?;
        loop {
            if !leaf.cells().all(|(key, value)| visit(key, value)) {
                return Ok(());
            }
            match leaf.end() {
                Some(end) => leaf = self.leaf(end)?,
                None => return Ok(()),
            }
        }
    }

    /// Returns the first cell whose key begins with `prefix`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn first(&mut self, prefix: &[u8]) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        self.first_as(prefix, |key, value| (key.to_vec(), value.to_vec()))
    }

    /// Returns what `read` makes of the first cell whose key begins with `prefix`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn first_as<T>(
        &mut self,
        prefix: &[u8],
        read: impl FnOnce(&[u8], &[u8]) -> T,
    ) -> Result<Option<T>> {
        let mut leaf = self.leaf(prefix)?;
        loop {
            if let Some((key, value)) = leaf.cells().next() {
                return Ok(key.starts_with(prefix).then(|| read(key, value)));
            }
            match leaf.end() {
                Some(end) => leaf = self.leaf(end)?,
                None => return Ok(None),
            }
        }
    }

    /// Puts a cell, in place of one of the same key if there is one.
    ///
    /// # Errors
    /// `NoSpace` if the table is full; `TooBig` for a cell that no page can
    /// hold; `Corrupt`, `Io`.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() + value.len() > page::cell_max(self.core.layout.page_len()) {
            return Err(Kind::TooBig.into());
        }
        let way = self.way(key)?;
        let found = way.leaf.seek(key);
        let (Ok(at) | Err(at)) = found;
        if let Some(image) = way.leaf.spliced(at, found.is_ok(), Some((key, value))) {
            self.core.txn.put_page(way.index, image);
            return Ok(());
        }
        let mut cells = page::to_change(&way.leaf);
        let cell = (key.into(), value.into());
        match cells.get_mut(at) {
            Some(old) if found.is_ok() => *old = cell,
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
        let new = self.core.take_page()?;
        self.set(new, level, &right)?;
        let Some(step) = above.pop() else {
            let left = self.core.take_page()?;
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
        page::used(cells) + crate::disk::ondisk::HEADER <= self.core.layout.page_len()
    }

    /// Returns where to cut the cells of a page that is too full: in the middle, or, if
    /// what is new is at the end, just before it, so that pages filled in order
    /// are full.
    fn cut(&self, cells: &[Cell<'_>], at: usize) -> usize {
        if at + 1 == cells.len() && at > 0 {
            return at;
        }
        let room = self.core.layout.page_len() - crate::disk::ondisk::HEADER;
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
            self.core.layout.nonce,
            self.core.layout.page_len(),
            cells,
        );
        self.core.txn.put_page(index, image);
        Ok(())
    }

    /// Takes a cell away; false if there is none.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let way = self.way(key)?;
        let Ok(at) = way.leaf.seek(key) else {
            return Ok(false);
        };
        let less = way.leaf.spliced(at, true, None);
        if let Some(image) = less.filter(|image| way.above.is_empty() || !self.is_low(image.used()))
        {
            self.core.txn.put_page(way.index, image);
            return Ok(true);
        }
        let mut cells = page::to_change(&way.leaf);
        cells.remove(at);
        self.shrink(way.above, way.index, 0, cells)?;
        Ok(true)
    }

    /// Returns whether cells of so many bytes are so few that the page is to be joined with another.
    fn is_low(&self, used: usize) -> bool {
        used <= (self.core.layout.page_len() - crate::disk::ondisk::HEADER) / 3
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
        if !self.is_low(page::used(&cells)) {
            return self.set(index, level, &cells);
        }
        let mut parent = page::to_change(&step.image);
        if cells.is_empty() {
            self.core.txn.free_page(index);
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
        let other = self.core.page(if left == index { right } else { left })?;
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
        self.core.txn.free_page(right);
        parent.remove(left_at + 1);
        self.shrink(above, step.index, level + 1, parent)
    }

    /// Stores the root; while it has one child only, that takes its place.
    fn shrink_root(&mut self, level: u8, cells: &[Cell<'_>]) -> Result<()> {
        match cells {
            [] => self.set(0, 0, &[]),
            [(_, only)] if level > 0 => {
                let child = page::child(only);
                let image = self.core.page(child)?;
                self.core.txn.free_page(child);
                self.shrink_root(page::level(&image), &page::to_change(&image))
            }
            _ => self.set(0, level, cells),
        }
    }
}
