//! Checks the tree of a directory: the order of its entries, and that each block is reached exactly
//! once.

use super::path::path;
use super::records::All;
use crate::directory::dir::can_be_asked_for;
use crate::directory::index::{Entries, Entry, Index};
use crate::disk::names::wtf8;
use crate::disk::ondisk::{Reference, fflag, number};
use crate::files::node::NameOf;
use crate::store::Store;
use std::cmp::Ordering;
use volary_core::{Error, Finding, Result};
use volary_ondisk::Bits;
use volary_ondisk::reporter::{Reporter, damage, ends, met};

/// The most levels of a valid index.
const DEPTH_MAX: u32 = 32;

/// The check of one directory's index.
pub(super) struct Tree<'a, 'f> {
    pub(super) store: &'a Store,
    pub(super) all: &'a mut All,
    pub(super) findings: &'a mut Reporter<'f>,
    pub(super) index: &'a Index,
    pub(super) dir: u64,
    /// The blocks that the tree has reached so far.
    met: Bits,
    before: Option<Vec<u16>>,
    is_whole: bool,
    /// For progress: the number of directories checked so far, and the total.
    done: u64,
    count: u64,
}

impl<'a, 'f> Tree<'a, 'f> {
    pub(super) fn new(
        store: &'a Store,
        all: &'a mut All,
        findings: &'a mut Reporter<'f>,
        index: &'a Index,
        done: u64,
        count: u64,
    ) -> Self {
        Self {
            store,
            all,
            findings,
            index,
            dir: index.number,
            met: Bits::default(),
            before: None,
            is_whole: true,
            done,
            count,
        }
    }

    /// Checks the whole index.
    ///
    /// # Errors
    /// `Interrupted`; `Io`.
    pub(super) fn check(&mut self) -> Result<()> {
        match self.index.root() {
            Ok(root) => self.entries(&root, 0)?,
            Err(e) => self.bad(e)?,
        }
        if !self.is_whole {
            self.all.is_partial = true;
            return Ok(());
        }
        for block in 0..self.index.blocks() {
            let is_used = self.index.is_used(self.store.mft(), block)?;
            let words = match (is_used, self.met.has(block)) {
                (true, false) => {
                    format!("block {block} is in use, and the tree does not lead to it")
                }
                (false, true) => format!("block {block} is of the tree, and not marked as in use"),
                _ => continue,
            };
            self.tell("index-bitmap", 0, &words, None);
        }
        Ok(())
    }

    fn tell(&mut self, code: &'static str, at: u64, words: &str, name: Option<&[u8]>) {
        let path = path(self.store.mft(), self.all, self.dir, name);
        self.findings.tell(&Finding {
            code,
            path: Some(path),
            ..damage(at, format!("directory {}: {words}", self.dir))
        });
    }

    fn bad(&mut self, e: Error) -> Result<()> {
        self.is_whole = false;
        if ends(&e) {
            return Err(e);
        }
        let path = path(self.store.mft(), self.all, self.dir, None);
        self.findings.tell(&Finding {
            code: "index",
            path: Some(path),
            ..met(&e)
        });
        Ok(())
    }

    fn entries(&mut self, entries: &Entries, depth: u32) -> Result<()> {
        let mut at = entries.start();
        loop {
            let entry = match entries.entry(at) {
                Ok(Some(entry)) => entry,
                Ok(None) => {
                    self.is_whole = false;
                    self.tell("index", entries.at, "the entries have no end", None);
                    return Ok(());
                }
                Err(e) => return self.bad(e),
            };
            if let Some(vcn) = entry.below() {
                self.below(entries, vcn, depth)?;
            }
            if entry.is_last() {
                return Ok(());
            }
            self.entry(entries, &entry)?;
            at = entry.end;
        }
    }

    fn below(&mut self, entries: &Entries, vcn: u64, depth: u32) -> Result<()> {
        let block = self.index.block_of(vcn);
        let is_new = block.is_some_and(|block| self.met.insert(block));
        let Some(block) = block.filter(|_| is_new && depth < DEPTH_MAX) else {
            self.is_whole = false;
            let words = format!("the tree leads to {vcn} wrongly");
            self.tell("index", entries.at, &words, None);
            return Ok(());
        };
        self.findings
            .progress("directories", self.done, self.count)?;
        match self.index.entries(self.store.mft(), block) {
            Ok(below) => self.entries(&below, depth + 1),
            Err(e) => self.bad(e),
        }
    }

    fn entry(&mut self, entries: &Entries, entry: &Entry<'_>) -> Result<()> {
        let at = entries.at_of(entry);
        let Some(name) = NameOf::of(entry.key()) else {
            self.is_whole = false;
            self.tell("index", at, "an entry has no name", None);
            return Ok(());
        };
        let shown = wtf8(&name.name);
        if let (Some(before), Ok(upcase)) = (&self.before, self.store.upcase())
            && upcase.full(before, &name.name) != Ordering::Less
        {
            self.tell(
                "order",
                at,
                "the entry is not behind the one before it",
                Some(&shown),
            );
        }
        self.before = Some(name.name.clone());
        let to = Reference::from(entry.raw.reference.get());
        // The root has an entry `.` for itself.
        if to.number != number::ROOT && !can_be_asked_for(&shown) {
            let words = "nothing can be called that; it is not shown";
            self.tell("name", at, words, Some(&shown));
        }
        let Some(seen) = self.all.list(self.dir, to, &name) else {
            if !self.all.is_partial || self.all.records.has(to.number) {
                let words = format!(
                    "leads to record {} of sequence {}, which is not in use",
                    to.number, to.sequence
                );
                self.tell("gone", at, &words, Some(&shown));
            }
            return Ok(());
        };
        let is_told_dir = name.flags & fflag::DIRECTORY != 0;
        if is_told_dir != seen.is_dir && to.number >= number::FIRST_USER {
            self.tell(
                "type",
                at,
                "the entry's type is not the file's",
                Some(&shown),
            );
        }
        Ok(())
    }
}
