//! A device that keeps what is not zero: files of zeros take no memory on it, their volume does.

use std::sync::{Mutex, MutexGuard, PoisonError};
use volary_core::{BlockDevice, Geometry, Kind, Result, is_zero};

/// Bytes in the unit of which memory is taken.
const PAGE: usize = 4096;

/// The pages of a device, as far as they are kept.
type Pages = Vec<Option<Box<[u8]>>>;

/// A device in memory. Pages to which only zeros were written take none.
pub(super) struct Hollow {
    size: u64,
    pages: Mutex<Pages>,
}

impl Hollow {
    /// Returns a device of `size` zero bytes.
    pub(super) fn new(size: u64) -> Self {
        Self {
            size,
            pages: Mutex::new(vec![None; size.div_ceil(PAGE as u64) as usize]),
        }
    }

    fn pages(&self, offset: u64, len: usize) -> Result<MutexGuard<'_, Pages>> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= self.size => {
                Ok(self.pages.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => Err(Kind::Invalid.into()),
        }
    }
}

/// Returns the page, the place in it, and how many of `rest` bytes are in it.
fn place(offset: u64, rest: usize) -> (usize, usize, usize) {
    let at = (offset % PAGE as u64) as usize;
    ((offset / PAGE as u64) as usize, at, rest.min(PAGE - at))
}

impl BlockDevice for Hollow {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            sector: 512,
            read_only: false,
        }
    }

    fn read_at(&self, mut offset: u64, mut buf: &mut [u8]) -> Result<()> {
        let pages = self.pages(offset, buf.len())?;
        while !buf.is_empty() {
            let (page, at, len) = place(offset, buf.len());
            let (part, rest) = buf.split_at_mut(len);
            match &pages[page] {
                Some(held) => part.copy_from_slice(&held[at..at + len]),
                None => part.fill(0),
            }
            (offset, buf) = (offset + len as u64, rest);
        }
        Ok(())
    }

    fn write_at(&self, mut offset: u64, mut data: &[u8]) -> Result<()> {
        let mut pages = self.pages(offset, data.len())?;
        while !data.is_empty() {
            let (page, at, len) = place(offset, data.len());
            let (part, rest) = data.split_at(len);
            match &mut pages[page] {
                Some(held) => held[at..at + len].copy_from_slice(part),
                None if is_zero(part) => {}
                None => {
                    let mut held = vec![0; PAGE].into_boxed_slice();
                    held[at..at + len].copy_from_slice(part);
                    pages[page] = Some(held);
                }
            }
            (offset, data) = (offset + len as u64, rest);
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
    fn what_is_written_is_read_and_zeros_take_nothing() {
        let dev = Hollow::new(3 * PAGE as u64);
        dev.write_at(0, &[0; 2 * PAGE]).unwrap();
        assert!(dev.pages(0, 0).unwrap().iter().all(Option::is_none));
        let data: Vec<u8> = (1..=200).collect();
        dev.write_at(PAGE as u64 - 100, &data).unwrap();
        dev.write_at(PAGE as u64, &[0; 10]).unwrap();
        let mut read = [9; 202];
        dev.read_at(PAGE as u64 - 101, &mut read).unwrap();
        assert_eq!(read[1..101], data[..100]);
        assert_eq!(read[101..111], [0; 10]);
        assert_eq!(read[111..201], data[110..]);
        assert_eq!((read[0], read[201]), (0, 0));
        assert!(dev.write_at(3 * PAGE as u64 - 1, &[1; 2]).is_err());
    }
}
