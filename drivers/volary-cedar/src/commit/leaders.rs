//! Leaders whose newest image is in the log only.

use crate::disk::runs::Run;
use crate::name_table::page::Image;
use std::collections::BTreeMap;

/// Leaders that have yet to go home, by their pages.
#[derive(Default)]
pub(crate) struct Leaders {
    pending: BTreeMap<u32, Pending>,
}

/// One of them, and the third of the log that it is in.
struct Pending {
    image: Image,
    third: u8,
}

impl Leaders {
    pub(crate) fn get(&self, page: u32) -> Option<&Image> {
        self.pending.get(&page).map(|pending| &pending.image)
    }

    /// Notes that a record in a third has the newest image.
    pub(crate) fn logged(&mut self, page: u32, image: Image, third: u8) {
        self.pending.insert(page, Pending { image, third });
    }

    /// Forgets those in a run: it is free, and may have another use by the time they went home.
    pub(crate) fn forget(&mut self, run: Run) {
        let end = run.start.saturating_add(run.len);
        let gone: Vec<u32> = self
            .pending
            .range(run.start..end)
            .map(|(page, _)| *page)
            .collect();
        for page in gone {
            self.pending.remove(&page);
        }
    }

    /// Returns what is due of a third.
    pub(crate) fn due(&self, third: u8) -> BTreeMap<u32, Image> {
        let due = self.pending.iter().filter(|(_, p)| p.third == third);
        due.map(|(page, p)| (*page, p.image.clone())).collect()
    }

    /// Notes that what was due of a third is home.
    pub(crate) fn came_home(&mut self, third: u8) {
        self.pending.retain(|_, pending| pending.third != third);
    }
}
