//! What stands after the end of a directory.

use super::disk::Rank;
use super::findings as code;
use super::mend::Mender;
use super::twins::Marks;
use super::volume::{Dir, NONE};
use super::walk::{Problem, What};
use crate::volume::ondisk::FREE;
use volary_core::Result;

/// Mends directories that have entries after their end.
pub(super) struct AfterEnd<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
}

impl<'m, 'a, 'r> AfterEnd<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self { mender }
    }

    /// Tells of entries after the end mark, and mends it.
    pub(super) fn mend(&mut self, problem: &Problem) -> Result<()> {
        let What::AfterEnd { end, torn, sound } = problem.what else {
            return Ok(());
        };
        let dir = self.mender.dir(problem.dir);
        let words = format!("entries stand after the end of the directory in slot {end}");
        let (code, repair) = match (torn, sound) {
            (true, _) => (
                code::AFTER_END_TORN,
                "moves the end behind them, and frees those whose names are taken",
            ),
            (false, true) => (code::AFTER_END, "moves the end behind them"),
            (false, false) => (code::AFTER_END, "frees them, as they make no sense"),
        };
        let own = Problem {
            slot: NONE,
            ..*problem
        };
        if !self.mender.tell(code, &own, words, repair)? {
            return Ok(());
        }
        if !sound {
            return self.free_tail(&dir, end);
        }
        self.mender.free_ends(&dir, end, problem.first)?;
        if torn {
            self.free_later_twins(&dir, problem.first)?;
        }
        Ok(())
    }

    /// Frees the records from a slot on that share a name with an earlier one.
    ///
    /// What a power cut left after the end was in no directory yet, so that the
    /// sectors before it may still have what had the name then. They are free
    /// on the device before the end is moved, which would show both.
    fn free_later_twins(&mut self, dir: &Dir, from: u32) -> Result<()> {
        let mut marks = self.names(dir)?;
        for (_, slot) in marks.pairs(self.mender.vol, dir)? {
            if slot < from {
                continue;
            }
            for slot in self.mender.vol.first_slot(dir, slot)?..=slot {
                if let Some(offset) = self.mender.vol.slot_offset(dir, slot)? {
                    self.mender.vol.disk.edit(offset, &[FREE], Rank::Early)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the names of a directory.
    fn names(&mut self, dir: &Dir) -> Result<Marks> {
        let mut marks = Marks::default();
        self.mender.vol.records(dir, |names, record| {
            if !record.short.is_label() {
                marks.add(names, record);
            }
        })?;
        Ok(marks)
    }

    /// Frees all that is live from a slot on.
    fn free_tail(&mut self, dir: &Dir, from: u32) -> Result<()> {
        for slot in from..self.mender.vol.slot_count(dir) {
            if !matches!(
                self.mender.vol.raw(dir, slot)?.first(),
                None | Some(&(0 | FREE))
            ) {
                self.mender.vol.free_slots(dir, slot, slot)?;
            }
        }
        Ok(())
    }
}
