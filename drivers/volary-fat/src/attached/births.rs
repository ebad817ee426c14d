//! Which stamps the entries made in this attachment were given, so that no two
//! nodes get the same id.
//!
//! A node's id is its place and the stamp of its entry. What the place held
//! before is mostly still there to differ from, as a deleted entry; but another
//! node may have moved in and out meanwhile, and a directory's place is a
//! cluster, which holds no trace of the last one that began there.

use crate::volume::ondisk::DirEntry;
use parking_lot::Mutex;
use std::collections::VecDeque;
use volary_ondisk::NumberMap;

/// How many are remembered. Those that were given longer ago than it takes to
/// make so many have other times of birth.
const RECENT_MAX: usize = 8192;

/// The last entry that was made at each of the places used of late.
#[derive(Default)]
pub(crate) struct Births {
    recent: Mutex<Recent>,
    /// How many nodes have left a place, by its key, where the entry itself
    /// has no room for a generation.
    left: Mutex<NumberMap<u32>>,
}

#[derive(Default)]
struct Recent {
    entries: NumberMap<DirEntry>,
    order: VecDeque<u64>,
}

impl Births {
    /// Returns the entry that was last made at this place.
    pub(crate) fn last(&self, place: u64) -> Option<DirEntry> {
        self.recent.lock().entries.get(&place).copied()
    }

    /// Remembers an entry that is made at this place.
    pub(crate) fn note(&self, place: u64, entry: &DirEntry) {
        let mut recent = self.recent.lock();
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

    /// Returns the generation of a node at `key` in a layout that keeps none: true
    /// only while the volume is attached.
    pub(crate) fn generation_at(&self, key: u64) -> u32 {
        self.left.lock().get(&key).copied().unwrap_or(0)
    }

    /// Notes that the node at `key` has left it, in such a layout.
    pub(crate) fn leave(&self, key: u64) {
        *self.left.lock().entry(key).or_insert(0) += 1;
    }
}
