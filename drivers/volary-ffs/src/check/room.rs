//! Finds free room for copies of blocks with two owners.

use super::inodes::Inodes;
use crate::groups::cg::Group;
use crate::inodes::blocks::Reader;
use std::collections::BTreeMap;

/// Finds free fragments, and gives out each one only once.
pub(super) struct Room<'a> {
    reader: Reader<'a>,
    /// Where the next search starts, by the number of fragments and whether the maps must agree.
    next: BTreeMap<(u64, bool), u64>,
    /// The group whose map was looked at last, by its number.
    group: Option<(u64, Option<Group>)>,
}

impl<'a> Room<'a> {
    pub(super) fn new(reader: &Reader<'a>) -> Self {
        Self {
            reader: *reader,
            next: BTreeMap::new(),
            group: None,
        }
    }

    /// Promises `count` fragments of a block that no inode has. Prefers those that are free in the
    /// map too, so that blocks behind a damaged pointer stay untouched as long as possible. Returns
    /// `None` if there is no such room, or it may belong to unknown blocks.
    pub(super) fn take(&mut self, inodes: &mut Inodes, count: u64) -> Option<u64> {
        let mut found = self.search(inodes, count, true);
        if found.is_none() && !inodes.is_partial {
            found = self.search(inodes, count, false);
        }
        let first = found?;
        inodes.promised.extend(first..first + count);
        Some(first)
    }

    fn search(&mut self, inodes: &Inodes, count: u64, mapped: bool) -> Option<u64> {
        let (frag, size) = (self.reader.volume.frag, self.reader.volume.size);
        let from = self.next.get(&(count, mapped)).copied().unwrap_or(0);
        let mut first = from;
        let found = loop {
            if first + count > size {
                break None;
            }
            // The fragments must lie within one block.
            if first % frag + count > frag {
                first = (first / frag + 1) * frag;
                continue;
            }
            match (first..first + count).find(|&fragment| !self.is_free(inodes, fragment, mapped)) {
                None => break Some(first),
                Some(taken) => first = taken + 1,
            }
        };
        self.next
            .insert((count, mapped), found.map_or(size, |first| first + count));
        found
    }

    fn is_free(&mut self, inodes: &Inodes, fragment: u64, mapped: bool) -> bool {
        if inodes.is_taken(fragment) || inodes.promised.contains(&fragment) {
            return false;
        }
        !mapped || self.is_free_in_map(fragment)
    }

    fn is_free_in_map(&mut self, fragment: u64) -> bool {
        let volume = self.reader.volume;
        let number = volume.group_of(fragment);
        if self
            .group
            .as_ref()
            .is_none_or(|(known, _)| *known != number)
        {
            self.group = Some((number, Group::read(&self.reader, number).ok()));
        }
        let group = self.group.as_ref().and_then(|(_, group)| group.as_ref());
        group.is_some_and(|group| group.is_free(fragment - volume.base(number)))
    }
}
