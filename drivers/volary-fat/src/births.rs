//! Which stamps the entries made in this attachment were given, so that no two
//! nodes get the same id.
//!
//! A node's id is its place and the stamp of its entry. What the place held
//! before is mostly still there to differ from, as a deleted entry; but another
//! node may have moved in and out meanwhile, and a directory's place is a
//! cluster, which holds no trace of the last one that began there.

use crate::attached::{Attached, Unix};
use crate::entries::Slots;
use crate::node::dir_ino;
use crate::ondisk::{DirEntry, ENTRY_LEN};
use crate::short::DOT;
use crate::slots::entry_at;
use parking_lot::Mutex;
use std::collections::VecDeque;
use volary_core::Result;
use volary_ondisk::NumberMap;

/// How many are remembered. Those that were given longer ago than it takes to
/// make so many have other times of birth.
const RECENT_MAX: usize = 8192;

/// The last entry that was made at each of the places used of late.
#[derive(Default)]
pub(crate) struct Births(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    entries: NumberMap<DirEntry>,
    order: VecDeque<u64>,
}

impl Births {
    /// The entry that was last made at this place.
    pub(crate) fn last(&self, place: u64) -> Option<DirEntry> {
        self.0.lock().entries.get(&place).copied()
    }

    /// Remembers an entry that is made at this place.
    pub(crate) fn note(&self, place: u64, entry: &DirEntry) {
        let mut recent = self.0.lock();
        if recent.entries.insert(place, *entry).is_some() {
            return;
        }
        recent.order.push_back(place);
        if recent.order.len() > RECENT_MAX
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.entries.remove(&oldest);
        }
    }
}

impl Attached {
    /// Gives a new directory, which begins at `first`, a stamp that no earlier
    /// one that began there had: both in the planned entry and in `like`, which
    /// its dot entries are made from.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn renew_dir(
        &self,
        first: u32,
        slots: &mut Slots,
        like: &mut DirEntry,
    ) -> Result<()> {
        let place = dir_ino(first);
        let old = match self.births.last(place) {
            Some(old) => Some(old),
            None => self.old_dot(first)?,
        };
        if let Some(old) = old {
            slots.renew(self, &old);
            self.renew_stamp(like, &old);
        }
        self.births.note(place, like);
        Ok(())
    }

    /// The dot entry of the directory that the cluster was before. Times tell
    /// directories of different attachments apart; only generations need it.
    fn old_dot(&self, first: u32) -> Result<Option<DirEntry>> {
        if self.unix != Unix::Today {
            return Ok(None);
        }
        let mut raw = [0; ENTRY_LEN];
        self.cache
            .read(self.layout.cluster_offset(first), &mut raw)?;
        let itself =
            |e: &DirEntry| e.DIR_Name == DOT && e.first_cluster(self.layout.is_fat32()) == first;
        Ok(entry_at(&raw).filter(itself))
    }
}
