//! A device in memory.

use crate::range::check_range;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use volary_core::{BlockDevice, Geometry, Result, is_zero};

/// The unit in which memory is allocated, in bytes.
const CHUNK: usize = 64 * 1024;

/// The number of locks. Consecutive chunks have different ones, so that threads at different places
/// do not wait for each other.
const SHARDS: usize = 16;

type Chunks = BTreeMap<u64, Box<[u8]>>;

/// A device in memory. Chunks to which only zeros were written take no memory. Discarded parts read
/// as zeros, and their memory is freed.
pub struct MemDevice {
    size: u64,
    sector: u32,
    shards: [RwLock<Chunks>; SHARDS],
}

impl MemDevice {
    /// Returns a device of `size` zero bytes, in sectors of 512 bytes.
    pub fn new(size: u64) -> Self {
        Self {
            size,
            sector: 512,
            shards: Default::default(),
        }
    }

    /// Returns a device that holds `bytes`.
    #[expect(clippy::needless_pass_by_value, reason = "what a caller has is a Vec")]
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        let dev = Self::new(bytes.len() as u64);
        for (i, chunk) in bytes.chunks(CHUNK).enumerate() {
            if !is_zero(chunk) {
                dev.put(i as u64, 0, chunk);
            }
        }
        dev
    }

    /// Sets the sector size in bytes.
    #[must_use]
    pub fn with_sector(mut self, sector: u32) -> Self {
        self.sector = sector;
        self
    }

    /// Returns a copy of the whole content.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut all = vec![0; usize::try_from(self.size).unwrap_or(usize::MAX)];
        for (i, part) in all.chunks_mut(CHUNK).enumerate() {
            self.get(i as u64, 0, part);
        }
        all
    }

    /// Returns the bytes of memory that the content takes.
    pub fn allocated(&self) -> u64 {
        let chunks: usize = self.shards.iter().map(|s| s.read().len()).sum();
        (chunks * CHUNK) as u64
    }

    fn shard(&self, chunk: u64) -> Option<&RwLock<Chunks>> {
        self.shards.get((chunk % SHARDS as u64) as usize)
    }

    fn get(&self, chunk: u64, at: usize, out: &mut [u8]) {
        let found = self.shard(chunk).map(|s| s.read());
        let held = found.as_ref().and_then(|s| s.get(&chunk));
        match held.and_then(|c| c.get(at..at + out.len())) {
            Some(bytes) => out.copy_from_slice(bytes),
            None => out.fill(0),
        }
    }

    fn put(&self, chunk: u64, at: usize, data: &[u8]) {
        let Some(shard) = self.shard(chunk) else {
            return;
        };
        let mut chunks = shard.write();
        if is_zero(data) && !chunks.contains_key(&chunk) {
            return;
        }
        let held = chunks
            .entry(chunk)
            .or_insert_with(|| vec![0; CHUNK].into_boxed_slice());
        if let Some(part) = held.get_mut(at..at + data.len()) {
            part.copy_from_slice(data);
        }
    }

    /// Zeroes a range of one chunk.
    fn clear(&self, chunk: u64, at: usize, len: usize) {
        let Some(shard) = self.shard(chunk) else {
            return;
        };
        let mut chunks = shard.write();
        if len == CHUNK {
            chunks.remove(&chunk);
        } else if let Some(part) = chunks.get_mut(&chunk).and_then(|c| c.get_mut(at..at + len)) {
            part.fill(0);
        }
    }
}

/// Splits a range at the borders of chunks: chunk, offset in it, length.
fn pieces(offset: u64, len: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = offset;
    let end = offset + len;
    std::iter::from_fn(move || {
        let within = (at % CHUNK as u64) as usize;
        let n = (end - at).min((CHUNK - within) as u64) as usize;
        let piece = (at / CHUNK as u64, within, n);
        at += n as u64;
        (n > 0).then_some(piece)
    })
}

impl BlockDevice for MemDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            sector: self.sector,
            read_only: false,
        }
    }

    fn read_at(&self, offset: u64, mut buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.size)?;
        for (chunk, at, n) in pieces(offset, buf.len() as u64) {
            if let Some((part, rest)) = std::mem::take(&mut buf).split_at_mut_checked(n) {
                self.get(chunk, at, part);
                buf = rest;
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, mut data: &[u8]) -> Result<()> {
        check_range(offset, data.len(), self.size)?;
        for (chunk, at, n) in pieces(offset, data.len() as u64) {
            if let Some((part, rest)) = data.split_at_checked(n) {
                self.put(chunk, at, part);
                data = rest;
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        check_range(
            offset,
            usize::try_from(len).unwrap_or(usize::MAX),
            self.size,
        )?;
        for (chunk, at, n) in pieces(offset, len) {
            self.clear(chunk, at, n);
        }
        Ok(())
    }

    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        self.discard(offset, len)
    }

    fn is_cached(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_core::Kind;

    #[test]
    fn what_was_written_reads_back_across_chunks() {
        let dev = MemDevice::new(200_000);
        let data: Vec<u8> = (0..150_000_u32).map(|i| (i % 251) as u8).collect();
        dev.write_at(33_333, &data).unwrap();
        let mut back = vec![0; data.len()];
        dev.read_at(33_333, &mut back).unwrap();
        assert!(back == data);
        assert!(dev.to_vec()[..33_333].iter().all(|&b| b == 0));
        assert!(MemDevice::from_vec(dev.to_vec()).to_vec() == dev.to_vec());
    }

    #[test]
    fn untouched_and_discarded_parts_take_no_memory() {
        let dev = MemDevice::new(1 << 42);
        assert_eq!(dev.allocated(), 0);
        dev.write_at(1 << 41, &[1; 100]).unwrap();
        assert_eq!(dev.allocated(), CHUNK as u64);
        dev.discard(1 << 41, CHUNK as u64).unwrap();
        assert_eq!(dev.allocated(), 0);
        let mut b = [7; 100];
        dev.read_at(1 << 41, &mut b).unwrap();
        assert_eq!(b, [0; 100]);
    }

    #[test]
    fn past_the_end_is_invalid_and_changes_nothing() {
        let dev = MemDevice::new(1000);
        assert_eq!(dev.write_at(999, &[1, 2]).unwrap_err(), Kind::Invalid);
        assert_eq!(
            dev.read_at(u64::MAX, &mut [0; 2]).unwrap_err(),
            Kind::Invalid
        );
        assert_eq!(dev.discard(900, 101).unwrap_err(), Kind::Invalid);
        assert_eq!(dev.allocated(), 0);
        assert!(dev.read_at(1000, &mut []).is_ok());
    }
}
