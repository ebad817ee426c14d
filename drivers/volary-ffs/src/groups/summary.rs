//! The summary of cylinder groups (`fs_csaddr`): what is free in each group and in total.

use crate::disk::ondisk::Stored;
use crate::disk::volume::Volume;
use crate::inodes::blocks::Reader;
use std::collections::BTreeSet;
use volary_block::Stage;
use volary_core::Result;

/// Directories, free blocks, free inodes, free fragments.
pub(crate) type Sums = [i64; 4];

/// Bytes of a group's sums, as stored.
const STORED: usize = 16;

/// The summary in memory.
pub(crate) struct Summary {
    groups: Vec<Sums>,
    total: Sums,
    /// Groups whose sums differ from those on the disk.
    changed: BTreeSet<u64>,
}

impl Summary {
    /// Reads the summary.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Self> {
        let volume = reader.volume;
        let count = usize::try_from(volume.ncg).unwrap_or(0);
        let mut bytes = vec![0; count * STORED];
        reader
            .cache
            .read(volume.csaddr * volume.fsize, &mut bytes)?;
        let groups: Vec<Sums> = bytes
            .chunks_exact(STORED)
            .map(|sums| <[i32; 4]>::get(volume.order, sums, 0).map(|n| i64::from(n.max(0))))
            .collect();
        let mut total = [0; 4];
        for sums in &groups {
            add(&mut total, sums);
        }
        Ok(Self {
            groups,
            total,
            changed: BTreeSet::new(),
        })
    }

    /// Returns the sums over all groups.
    pub(crate) fn total(&self) -> Sums {
        self.total
    }

    /// Returns a group's sums.
    pub(crate) fn of(&self, group: u64) -> Sums {
        let at = usize::try_from(group).unwrap_or(usize::MAX);
        self.groups.get(at).copied().unwrap_or_default()
    }

    /// Adds a change to a group's sums and to the total.
    pub(crate) fn add(&mut self, group: u64, delta: &Sums) {
        add(&mut self.total, delta);
        let at = usize::try_from(group).unwrap_or(usize::MAX);
        if let Some(sums) = self.groups.get_mut(at) {
            add(sums, delta);
            self.changed.insert(group);
        }
    }

    /// Returns a group for another section of a file: the next one from `start` on with at least
    /// the average of free blocks.
    pub(crate) fn roomy_group(&self, volume: &Volume, start: u64) -> u64 {
        let average = self.total[1] / groups(volume);
        let mut all = (0..volume.ncg).map(|i| (start + i) % volume.ncg);
        all.find(|&group| self.of(group)[1] >= average)
            .unwrap_or(start % volume.ncg)
    }

    /// Returns the group for a new directory. Among the groups with at least the average of free
    /// inodes, it has the fewest directories.
    pub(crate) fn group_for_directory(&self, volume: &Volume) -> u64 {
        let average = self.total[2] / groups(volume);
        let fit = (0..volume.ncg).filter(|&group| self.of(group)[2] >= average);
        fit.min_by_key(|&group| self.of(group)[0]).unwrap_or(0)
    }

    /// Writes the sums that differ from those on the disk.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write(&mut self, reader: &Reader<'_>) -> Result<()> {
        let volume = reader.volume;
        for number in std::mem::take(&mut self.changed) {
            let mut bytes = [0; STORED];
            let sums = self.of(number);
            sums.map(|n| i32::try_from(n).unwrap_or(0))
                .put(volume.order, &mut bytes, 0);
            let at = volume.csaddr * volume.fsize + number * STORED as u64;
            reader.cache.write(at, &bytes, Stage::DATA)?;
        }
        Ok(())
    }
}

fn add(sums: &mut Sums, delta: &Sums) {
    for (sum, change) in sums.iter_mut().zip(delta) {
        *sum = sum.saturating_add(*change).max(0);
    }
}

/// Returns the number of groups as a divisor, at least 1.
fn groups(volume: &Volume) -> i64 {
    i64::try_from(volume.ncg).unwrap_or(1).max(1)
}
