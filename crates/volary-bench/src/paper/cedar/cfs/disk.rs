//! A disk whose sectors have labels: the Trident interface of the paper's section 2.

use anyhow::{Result, bail, ensure};
use std::collections::BTreeMap;
use volary_sim::{Preset, SECTOR, Timed};

/// The time after which the sector behind a label or a header has begun to go past, in microseconds: what was found is
/// looked at before the next request. Data goes on without a pause, as the microcode checks labels.
const PAST: f64 = 1.0;

/// What a sector is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Type {
    /// It belongs to no file.
    #[default]
    Free,
    Header,
    Data,
}

/// What stands in a sector's label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) uid: u32,
    pub(super) page: u32,
    pub(super) of: Type,
}

impl Label {
    /// The label of all free sectors.
    pub(super) const FREE: Self = Self {
        uid: 0,
        page: 0,
        of: Type::Free,
    };

    /// Returns the label of the sector that is `pages` further on.
    fn further(self, pages: usize) -> Self {
        match self.of {
            Type::Free => self,
            _ => Self {
                page: self.page + pages as u32,
                ..self
            },
        }
    }
}

/// What was asked of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
}

impl Done {
    /// Returns all requests.
    pub(crate) fn all(self) -> u64 {
        self.reads + self.writes
    }

    /// Returns what was asked since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
        }
    }
}

/// The disk. It has a Trident's sectors. Each method is one request.
pub(super) struct Disk {
    data: BTreeMap<u64, [u8; SECTOR]>,
    labels: Vec<Label>,
    disk: Box<dyn Timed>,
    done: Done,
}

impl Disk {
    /// Returns one whose requests take the time of `disk`.
    pub(super) fn new(disk: &Preset) -> Self {
        let sectors = (Preset::T300.capacity() / SECTOR as u64) as usize;
        Self {
            data: BTreeMap::new(),
            labels: vec![Label::FREE; sectors],
            disk: disk.disk(),
            done: Done::default(),
        }
    }

    pub(super) fn sectors(&self) -> u64 {
        self.labels.len() as u64
    }

    pub(super) fn done(&self) -> Done {
        self.done
    }

    pub(super) fn now(&self) -> f64 {
        self.disk.now()
    }

    pub(super) fn wait(&mut self, time: f64) {
        self.disk.wait(time);
    }

    /// Looks at what was read.
    pub(super) fn pause(&mut self) {
        self.disk.wait(PAST);
    }

    fn pass(&mut self, first: u64, count: usize, is_write: bool) -> Result<()> {
        let fits = first + count as u64 <= self.sectors();
        ensure!(
            fits && count > 0,
            "sector {first} and {count} are not there"
        );
        let (at, len) = (first * SECTOR as u64, (count * SECTOR) as u64);
        match is_write {
            true => {
                self.done.writes += 1;
                self.disk.write(at, len);
            }
            false => {
                self.done.reads += 1;
                self.disk.read(at, len);
            }
        }
        Ok(())
    }

    /// Reads the labels of sectors.
    pub(super) fn labels(&mut self, first: u64, count: usize) -> Result<&[Label]> {
        self.pass(first, count, false)?;
        self.pause();
        Ok(&self.labels[first as usize..][..count])
    }

    /// Writes the labels of sectors, page after page from `label` on.
    pub(super) fn write_labels(&mut self, first: u64, label: Label, count: usize) -> Result<()> {
        self.pass(first, count, true)?;
        self.pause();
        let labels = &mut self.labels[first as usize..][..count];
        for (i, of) in labels.iter_mut().enumerate() {
            *of = label.further(i);
        }
        Ok(())
    }

    /// Fails at the first sector that has another label.
    fn check(&self, first: u64, label: Label, count: usize) -> Result<()> {
        let found = &self.labels[first as usize..][..count];
        for (i, found) in found.iter().enumerate() {
            let label = label.further(i);
            if *found != label {
                let at = first + i as u64;
                bail!("the label of sector {at} is {found:?}, not {label:?}");
            }
        }
        Ok(())
    }

    /// Reads whole sectors with these labels.
    pub(super) fn read(&mut self, first: u64, label: Label, into: &mut [u8]) -> Result<()> {
        let count = into.len() / SECTOR;
        self.pass(first, count, false)?;
        self.check(first, label, count)?;
        for (sector, bytes) in (first..).zip(into.chunks_exact_mut(SECTOR)) {
            match self.data.get(&sector) {
                Some(data) => bytes.copy_from_slice(data),
                None => bytes.fill(0),
            }
        }
        Ok(())
    }

    /// Writes whole sectors with these labels. Nothing is written where a label is another.
    pub(super) fn write(&mut self, first: u64, label: Label, from: &[u8]) -> Result<()> {
        let count = from.len() / SECTOR;
        self.pass(first, count, true)?;
        self.check(first, label, count)?;
        for (sector, bytes) in (first..).zip(from.chunks_exact(SECTOR)) {
            // Zeros take no memory.
            if volary_core::is_zero(bytes) {
                self.data.remove(&sector);
                continue;
            }
            let mut data = [0; SECTOR];
            data.copy_from_slice(bytes);
            self.data.insert(sector, data);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_sector_of_another_file_is_caught_and_not_done() {
        let mut disk = Disk::new(&Preset::T300);
        let label = |uid| Label {
            uid,
            page: 0,
            of: Type::Data,
        };
        disk.write_labels(5, label(1), 2).unwrap();
        disk.write(5, label(1), &[7; 1024]).unwrap();
        assert!(disk.write(5, label(2), &[8; 512]).is_err());
        assert!(disk.write(6, label(1), &[8; 512]).is_err());
        let mut bytes = [0; 1024];
        disk.read(5, label(1), &mut bytes).unwrap();
        assert_eq!(bytes, [7; 1024]);
        assert_eq!(disk.labels(4, 1).unwrap(), [Label::FREE]);
        assert_eq!((disk.done().reads, disk.done().writes), (2, 4));
        assert!(disk.labels(disk.sectors(), 1).is_err());
    }
}
