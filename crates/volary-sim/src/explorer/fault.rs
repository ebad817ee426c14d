//! Sectors that went bad on a disk at rest, and a kit of such faults.

use crate::disks::disk::{Disk, SECTOR, Sector};
use crate::disks::trace::{geometry, in_range};
use crate::explorer::cut::garbage;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use volary_core::{BlockDevice, Error, Geometry, Result};

/// What happened to a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be read.
    Unreadable,
    /// It holds zeros.
    Zeroed,
    /// It holds bytes that nobody wrote.
    Random,
    /// It holds its content from an older disk.
    Stale,
    /// It holds the content of the sector after it.
    Misdirected,
}

impl Fault {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Unreadable,
        Self::Zeroed,
        Self::Random,
        Self::Stale,
        Self::Misdirected,
    ];
}

/// A disk with some bad sectors.
#[derive(Clone, Debug)]
pub struct Damaged {
    /// The readable content.
    pub disk: Disk,
    /// The sectors that cannot be read.
    pub unreadable: BTreeSet<u64>,
}

/// Damages `count` sectors from `first` on in one way. `older` has the content for
/// [`Fault::Stale`].
pub fn damage(disk: &Disk, older: &Disk, fault: Fault, first: u64, count: u64) -> Damaged {
    let mut damaged = Damaged {
        disk: disk.clone(),
        unreadable: BTreeSet::new(),
    };
    for number in first..first.saturating_add(count).min(disk.sectors()) {
        let content = match fault {
            Fault::Unreadable => {
                damaged.unreadable.insert(number);
                continue;
            }
            Fault::Zeroed => Sector::new(&[0; SECTOR]),
            Fault::Random => garbage(number),
            Fault::Stale => older.sector(number),
            Fault::Misdirected => disk.sector(number + 1),
        };
        damaged.disk.put(number, content);
    }
    damaged
}

/// A device of a damaged disk. A sector that is overwritten as a whole can be read again: the disk
/// remaps it.
pub struct Worn(Mutex<Damaged>);

impl Worn {
    /// Returns the device.
    pub fn new(damaged: Damaged) -> Self {
        Self(Mutex::new(damaged))
    }

    /// Returns the disk as it is now.
    pub fn disk(&self) -> Disk {
        self.0.lock().disk.clone()
    }
}

fn touched(offset: u64, len: u64) -> std::ops::Range<u64> {
    let sector = SECTOR as u64;
    offset / sector..(offset + len).div_ceil(sector)
}

impl BlockDevice for Worn {
    fn geometry(&self) -> Geometry {
        geometry(&self.0.lock().disk)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let state = self.0.lock();
        let len = buf.len() as u64;
        in_range(&state.disk, offset, len)?;
        if let Some(bad) = state.unreadable.range(touched(offset, len)).next() {
            let at = bad * SECTOR as u64;
            return Err(Error::io("read", at, SECTOR as u64, "the sector is bad"));
        }
        state.disk.read(offset, buf);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.0.lock();
        let len = data.len() as u64;
        in_range(&state.disk, offset, len)?;
        let written = state.disk.written(offset, &[data]);
        for (number, content) in written {
            let start = number * SECTOR as u64;
            if offset <= start && start + SECTOR as u64 <= offset + len {
                state.unreadable.remove(&number);
            }
            state.disk.put(number, content);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_does_what_it_says_to_one_or_two_sectors() {
        let image: Vec<u8> = (0..6 * SECTOR).map(|i| (i / SECTOR) as u8 + 1).collect();
        let (disk, older) = (Disk::new(image), Disk::new(vec![9; 6 * SECTOR]));
        for (fault, expected) in [
            (Fault::Zeroed, [2, 0, 0, 5]),
            (Fault::Stale, [2, 9, 9, 5]),
            (Fault::Misdirected, [2, 4, 5, 5]),
            (Fault::Unreadable, [2, 3, 4, 5]),
        ] {
            let damaged = damage(&disk, &older, fault, 2, 2);
            let image = damaged.disk.to_vec();
            assert_eq!(
                [1, 2, 3, 4].map(|n| image[n * SECTOR]),
                expected,
                "{fault:?}"
            );
        }
        let random = damage(&disk, &older, Fault::Random, 2, 1).disk.to_vec();
        assert_ne!(random[2 * SECTOR..2 * SECTOR + 4], [3; 4]);
    }

    #[test]
    fn an_unreadable_sector_is_read_again_once_it_was_written_as_a_whole() {
        let disk = Disk::new(vec![1; 6 * SECTOR]);
        let dev = Worn::new(damage(&disk, &disk, Fault::Unreadable, 2, 2));
        let mut buf = [0; 4 * SECTOR];
        assert_eq!(
            dev.read_at(512, &mut buf)
                .unwrap_err()
                .as_io()
                .unwrap()
                .offset,
            1024
        );
        dev.read_at(0, &mut buf[..1024]).unwrap();
        dev.write_at(1024, &[7; 600]).unwrap();
        dev.read_at(1024, &mut buf[..512]).unwrap();
        assert!(dev.read_at(1536, &mut buf[..1]).is_err());
        dev.write_at(1536, &[7; 512]).unwrap();
        dev.read_at(0, &mut buf).unwrap();
        assert_eq!(dev.disk().to_vec()[1024..2048], [7; 1024]);
    }
}
