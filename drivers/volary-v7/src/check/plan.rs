//! What a round is to mend.

use crate::disk::ondisk::ENTRY_LEN;
use std::collections::{BTreeMap, BTreeSet};

/// Entries, and addresses, that are mended in a round at most.
const EACH_MAX: usize = 1 << 20;

/// What an address becomes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Put {
    /// It leads nowhere.
    Hole,
    /// It leads to a copy of this block; nowhere, if there is no room for one.
    Copy(u32),
}

/// What is to become of an inode.
#[derive(Default)]
pub(super) struct Fix {
    pub(super) free: bool,
    pub(super) mode: Option<u16>,
    pub(super) size: Option<u64>,
    pub(super) links: Option<u16>,
    pub(super) addresses: BTreeMap<usize, Put>,
    /// The directory that holds it, for one without a first block.
    pub(super) dots: Option<u32>,
}

/// What is to be mended: of these, the first that there is in a round.
#[derive(Default)]
pub(super) struct Plan {
    /// Addresses and sizes.
    pub(super) pointers: bool,
    pub(super) inodes: BTreeMap<u32, Fix>,
    /// Addresses in indirect blocks, by their places.
    pub(super) addresses: Vec<(u64, Put)>,
    /// Entries, by their places.
    pub(super) entries: Vec<(u64, [u8; ENTRY_LEN])>,
    /// The free list, the list of free inodes, totals.
    pub(super) lists: bool,
    /// What gets a name in `lost+found`.
    pub(super) lost: BTreeSet<u32>,
}

impl Plan {
    pub(super) fn inode(&mut self, ino: u32) -> &mut Fix {
        self.inodes.entry(ino).or_default()
    }

    /// Notes what an entry becomes. What is too much for a round is found again in the next.
    pub(super) fn entry(&mut self, place: u64, bytes: [u8; ENTRY_LEN]) {
        if self.entries.len() < EACH_MAX {
            self.entries.push((place, bytes));
        }
    }

    /// Notes what an address in an indirect block becomes, in the same way.
    pub(super) fn address(&mut self, place: u64, put: Put) {
        if self.addresses.len() < EACH_MAX {
            self.addresses.push((place, put));
        }
    }

    /// Returns whether the plan changes inodes, addresses or entries.
    pub(super) fn has_structures(&self) -> bool {
        !self.inodes.is_empty() || !self.addresses.is_empty() || !self.entries.is_empty()
    }
}
