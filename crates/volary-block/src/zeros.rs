//! Whether a device holds anything at all, in bounded time.

use crate::Skipping;
use crate::file::data_in;
use std::ops::Range;
use volary_core::{BlockDevice, Result, is_zero};

/// A device with so few bytes that are not holes is read in full.
const WHOLE: u64 = 64 << 20;
/// How much is read at the beginning and at the end of a larger one.
const HEAD: u64 = 8 << 20;
const TAIL: u64 = 1 << 20;
/// How many places of a larger one are read, and how much at each. A disk does so in some seconds.
const PLACES: u64 = 256;
const STRETCH: u64 = 64 << 10;
/// How many stretches of data are asked of the host.
const RANGES: usize = 1024;
/// How much is read at once.
const CHUNK: u64 = 1 << 20;
/// Where copies of superblocks are kept: those of ext2 to ext4 with blocks of 1, 2 and 4 KiB, and
/// that of Btrfs.
const COPIES: [u64; 5] = [8193 << 10, 32 << 20, 96 << 20, 128 << 20, 64 << 20];

/// What was found on a device that begins with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// It holds nothing but zeros.
    All,
    /// It is too large to be read in full. So many bytes were read, all over it, and are zeros.
    Sampled(u64),
    /// It holds something. The sector of this offset is the first that was found.
    Until(u64),
}

impl Zeros {
    /// Looks for anything but zeros on a device. Holes of an image are not read. What is left is
    /// read in full up to 64 MiB; of more, the beginning, the end, and many places.
    ///
    /// # Errors
    /// As those of reading `dev`.
    pub fn on(dev: &Skipping<'_>) -> Result<Self> {
        let size = dev.geometry().size;
        let data = data_of(dev.device(), size);
        let known = data.unwrap_or_else(|| std::iter::once(0..size).collect());
        let known = known.as_slice();
        let count: u64 = known.iter().map(|range| range.end - range.start).sum();
        if count <= WHOLE {
            let found = first_in(dev, known)?;
            return Ok(found.map_or(Self::All, Self::Until));
        }
        let places = places(size, known);
        let found = first_in(dev, &places)?;
        let read = places.iter().map(|range| range.end - range.start).sum();
        Ok(found.map_or(Self::Sampled(read), Self::Until))
    }
}

/// Returns the parts of a device that are not holes, if its host tells.
fn data_of(dev: &dyn BlockDevice, size: u64) -> Option<Vec<Range<u64>>> {
    let (file, at) = dev.in_host_file(0, size)?;
    let found = data_in(file, at..at.checked_add(size)?, RANGES)?;
    Some(
        found
            .iter()
            .map(|range| range.start - at..range.end - at)
            .collect(),
    )
}

/// Returns the places of a large device to read: in order, and none of it twice. `known` is where it
/// has data.
fn places(size: u64, known: &[Range<u64>]) -> Vec<Range<u64>> {
    let begins = known.iter().map(|range| range.start);
    let apart = size / PLACES / STRETCH * STRETCH;
    let stretches = (0..PLACES)
        .map(|i| i * apart)
        .chain(COPIES)
        .chain(begins)
        .map(|at| at..at.saturating_add(STRETCH));
    let mut all: Vec<Range<u64>> = [0..HEAD, size.saturating_sub(TAIL)..size]
        .into_iter()
        .chain(stretches)
        .collect();
    all.sort_by_key(|range| range.start);
    let mut done = 0;
    for range in &mut all {
        range.start = range.start.max(done);
        range.end = range.end.min(size).max(range.start);
        done = range.end;
    }
    all.retain(|range| !range.is_empty());
    all
}

/// Returns the offset of the first sector in these ranges that is not zeros.
fn first_in(dev: &dyn BlockDevice, ranges: &[Range<u64>]) -> Result<Option<u64>> {
    const SECTOR: usize = 512;
    let mut buf = Vec::new();
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let len = CHUNK.min(range.end - at);
            buf.resize(len as usize, 0);
            dev.read_at(at, &mut buf)?;
            if let Some(sector) = buf.chunks(SECTOR).position(|sector| !is_zero(sector)) {
                return Ok(Some(at + (sector * SECTOR) as u64));
            }
            at += len;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileDevice, MemDevice, OpenOptions};

    fn on(dev: &dyn BlockDevice) -> Zeros {
        Zeros::on(&Skipping::new(dev)).unwrap()
    }

    #[test]
    fn a_small_device_is_read_in_full() {
        let dev = MemDevice::new(10 << 20);
        assert_eq!(on(&dev), Zeros::All);
        dev.write_at(9_999_999, &[1]).unwrap();
        assert_eq!(on(&dev), Zeros::Until(9_999_999 / 512 * 512));
    }

    #[test]
    fn a_large_device_is_sampled_and_its_beginning_end_and_copies_are_read() {
        let size = 1 << 30;
        let places = places(size, std::slice::from_ref(&(0..size)));
        assert!(places.is_sorted_by(|a, b| a.end <= b.start));
        let dev = MemDevice::new(size);
        let Zeros::Sampled(read) = on(&dev) else {
            panic!("not sampled");
        };
        assert!((20 << 20..40 << 20).contains(&read), "{read}");
        for at in [5 << 20, size - 512, 128 << 20, 8193 << 10, 500 << 20] {
            let dev = MemDevice::new(size);
            dev.write_at(at, &[1]).unwrap();
            assert_eq!(on(&dev), Zeros::Until(at));
        }
    }

    #[test]
    fn the_holes_of_a_large_image_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        let dev = FileDevice::create(&path, 1 << 40).unwrap();
        assert_eq!(on(&dev), Zeros::All);
        let at = (1 << 39) + 12_345 * 512;
        dev.write_at(at, &[1]).unwrap();
        drop(dev);
        let dev = FileDevice::open(&path, OpenOptions::default()).unwrap();
        assert_eq!(on(&dev), Zeros::Until(at));
    }
}
