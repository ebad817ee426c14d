//! Going through the whole name table: to rebuild the allocation map, to check,
//! to draw a picture.

use crate::disk::runs::{Run, Runs};
use crate::mistakes::{Mistake, made};
use crate::name_table::entry::{Entry, Place, is_of_runs, part_of_key};
use crate::name_table::page;
use crate::space::vam::Vam;
use crate::tree::btree::LEVELS_MAX;
use crate::tree::btree::Tree;
use volary_core::{Error, Result};

/// Is told what a walk comes across; an error ends the walk.
pub(crate) trait Visitor {
    /// A page of the table.
    ///
    /// # Errors
    /// Ends the walk.
    fn page(&mut self, index: u32, image: &page::Image) -> Result<()>;

    /// A cell of a leaf.
    ///
    /// # Errors
    /// Ends the walk.
    fn cell(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// A page that is not what leads to it says; what it leads to is passed over.
    ///
    /// # Errors
    /// Ends the walk.
    fn bad(&mut self, lost: Lost, error: Error) -> Result<()>;
}

/// A page that is lost, and the keys of what it had or led to.
pub(crate) struct Lost {
    pub(crate) index: u32,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Lost {
    /// Returns whether it had, or led to, a key.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        key >= self.from.as_slice() && self.to.as_ref().is_none_or(|to| key < to.as_slice())
    }
}

/// A page still to be looked at, and what its keys must be.
struct Todo {
    index: u32,
    level: Option<u8>,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
}

impl Todo {
    fn lost(self) -> Lost {
        Lost {
            index: self.index,
            from: self.from,
            to: self.to,
        }
    }
}

impl Tree<'_> {
    /// Goes through the table in the order of keys. Each page is seen once,
    /// whatever leads to it.
    ///
    /// # Errors
    /// The visitor's.
    pub(crate) fn walk(&mut self, visitor: &mut dyn Visitor) -> Result<()> {
        let mut seen = vec![false; self.core.layout.table_len as usize];
        let mut todo = vec![Todo {
            index: 0,
            level: None,
            from: Vec::new(),
            to: None,
        }];
        while let Some(next) = todo.pop() {
            let image = match self.core.page(next.index) {
                Ok(image) => image,
                Err(e) => {
                    visitor.bad(next.lost(), e)?;
                    continue;
                }
            };
            let twice = seen
                .get_mut(next.index as usize)
                .is_none_or(|s| std::mem::replace(s, true));
            if let Some(words) = misplaced(&next, &image, twice) {
                let at = self
                    .core
                    .layout
                    .offset(self.core.layout.table_a + next.index);
                visitor.bad(
                    next.lost(),
                    Error::corrupt("name table page", at, words, "a tree"),
                )?;
                continue;
            }
            visitor.page(next.index, &image)?;
            if page::level(&image) == 0 {
                for (key, value) in page::cells(&image) {
                    visitor.cell(key, value)?;
                }
                continue;
            }
            todo.extend(children(&next, &image));
        }
        Ok(())
    }
}

/// Returns the children of an inner page, the last first.
fn children(of: &Todo, image: &[u8]) -> Vec<Todo> {
    let mut out: Vec<Todo> = Vec::new();
    let mut to = of.to.clone();
    let cells: Vec<_> = page::cells(image).collect();
    for (at, (key, value)) in cells.iter().enumerate().rev() {
        let from = if at == 0 {
            of.from.clone()
        } else {
            key.to_vec()
        };
        out.push(Todo {
            index: page::child(value),
            level: page::level(image).checked_sub(1),
            from: from.clone(),
            to: to.replace(from),
        });
    }
    out
}

/// Why a page does not belong where it was found.
fn misplaced(todo: &Todo, image: &[u8], twice: bool) -> Option<&'static str> {
    if twice {
        return Some("there twice");
    }
    let level = page::level(image);
    if level > LEVELS_MAX || todo.level.is_some_and(|l| l != level) {
        return Some("of a level that does not fit");
    }
    let mut keys = page::cells(image).map(|(k, _)| k);
    let outside = keys.any(|k| {
        let low = k < todo.from.as_slice() && !(level > 0 && k.is_empty());
        low || todo.to.as_ref().is_some_and(|to| k >= to.as_slice())
    });
    outside.then_some("with keys that belong elsewhere")
}

/// Builds the map from what the table says is in use.
struct Rebuild<'a> {
    core_layout: &'a crate::disk::volume::Layout,
    vam: Vam,
    /// Whether what makes no sense is passed over.
    lenient: bool,
}

impl Rebuild<'_> {
    fn take(&mut self, run: Run) -> Result<()> {
        let at = self.core_layout.offset(run.start);
        if !self.core_layout.is_data_run(run.start, run.len) {
            return Err(Error::corrupt(
                "run",
                at,
                format!("{} pages", run.len),
                "pages for files",
            ));
        }
        if !self.vam.is_free(run) {
            return Err(Error::corrupt(
                "run",
                at,
                "pages of two files",
                "pages of one file",
            ));
        }
        self.vam.mark(run.start, run.len, true);
        Ok(())
    }
}

impl Rebuild<'_> {
    /// Marks what of a run is on the volume.
    fn take_some(&mut self, run: Run) {
        let len = run
            .len
            .min(self.core_layout.pages.saturating_sub(run.start));
        self.vam.mark(run.start, len, true);
    }
}

impl Visitor for Rebuild<'_> {
    fn page(&mut self, index: u32, _: &page::Image) -> Result<()> {
        self.vam.mark_table(index, true);
        Ok(())
    }

    fn cell(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        for run in runs_of_cell(key, value) {
            match self.take(run) {
                Err(_) if self.lenient => self.take_some(run),
                taken => taken?,
            }
        }
        Ok(())
    }

    fn bad(&mut self, lost: Lost, error: Error) -> Result<()> {
        self.vam.mark_table(lost.index, true);
        match self.lenient {
            true => Ok(()),
            false => Err(error),
        }
    }
}

/// Returns the runs that a cell names.
pub(crate) fn runs_of_cell(key: &[u8], value: &[u8]) -> Vec<Run> {
    if Place::of_key(key).is_some() {
        return match Entry::decode(value) {
            Some(Entry::Head(head)) => head.runs,
            _ => Vec::new(),
        };
    }
    match part_of_key(key) {
        Some((_, kind, _)) if is_of_runs(kind) && !made(Mistake::MapWithoutParts) => {
            Runs::decode(value).collect()
        }
        _ => Vec::new(),
    }
}

impl Tree<'_> {
    /// Returns the allocation map as the name table has it.
    ///
    /// # Errors
    /// `Corrupt` if the table contradicts itself; `Io`.
    pub(crate) fn rebuild_map(&mut self) -> Result<Vam> {
        self.map_by_walk(false)
    }

    /// Returns the allocation map of a table that is damaged: all that any of it says
    /// is in use.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn rebuild_map_as_far_as_it_goes(&mut self) -> Result<Vam> {
        self.map_by_walk(true)
    }

    fn map_by_walk(&mut self, lenient: bool) -> Result<Vam> {
        let layout = self.core.layout.clone();
        let mut rebuild = Rebuild {
            vam: Vam::empty(&layout),
            core_layout: &layout,
            lenient,
        };
        self.walk(&mut rebuild)?;
        Ok(rebuild.vam)
    }
}
