//! What of a logged map has yet to go home.

use crate::disk::runs::Run;
use crate::disk::volume::Layout;
use std::ops::RangeInclusive;

/// All thirds of the log.
pub(crate) const ALL: u8 = 0b111;

/// What of the map has yet to go home.
pub(crate) struct MapHome {
    /// For each page of the map the thirds of the log in which records begin that
    /// changed it since it went home: a bit each.
    pub(crate) due: Vec<u8>,
    /// Whether records tell of the map. They do not while a check mends: what
    /// it finds is known at its end only.
    pub(crate) tells: bool,
}

impl MapHome {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            due: vec![0; layout.map_len as usize],
            tells: true,
        }
    }

    /// Schedules all of the map to be written home, before the log is begun or left.
    pub(crate) fn all_due(&mut self) {
        self.due.fill(ALL);
    }

    /// Pages of the map that are not home in both copies.
    pub(crate) fn pages_due(&self) -> usize {
        self.due.iter().filter(|due| **due != 0).count()
    }

    pub(crate) fn changed(&mut self, layout: &Layout, run: Run, thirds: u8) {
        for index in pages_of_map(layout, run) {
            if let Some(due) = self.due.get_mut(index as usize) {
                *due |= thirds;
            }
        }
    }

    /// All that was due is home, and the log is about to be left: the map is as
    /// right as can be.
    pub(crate) fn left(&mut self) {
        self.tells = true;
    }

    /// What is due of some thirds is home.
    pub(crate) fn came_home(&mut self, thirds: u8) {
        for due in self.due.iter_mut().filter(|due| **due & thirds != 0) {
            *due = 0;
        }
    }
}

/// Returns the pages of the map that have a run.
pub(crate) fn pages_of_map(layout: &Layout, run: Run) -> RangeInclusive<u32> {
    let last = run.start.saturating_add(run.len.saturating_sub(1));
    run.start / layout.map_bits()..=last / layout.map_bits()
}
