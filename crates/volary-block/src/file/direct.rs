//! I/O that bypasses the host's page cache: `O_DIRECT`, which takes only requests whose offset,
//! length and memory are aligned.
//!
//! Unaligned requests go through an aligned buffer. A read reads the blocks around it, and a write
//! first reads those at its ends. The bytes after the last whole block of a file cannot be reached
//! in this way. Only these go through the page cache.

use super::sys::{self, read_exact_at, write_all_at};
use parking_lot::{Mutex, RwLock};
use std::fs::File;
use std::io::Result;

/// The longest request that goes through a buffer.
const BOUNCE: usize = 1 << 20;

/// A file opened to bypass the page cache.
pub(super) struct Direct {
    file: File,
    /// The same file, opened with the page cache.
    buffered: File,
    /// The alignment of offsets, lengths and memory.
    align: usize,
    /// Where the last whole block ends.
    end: u64,
    /// Held shared by writes of whole blocks, and exclusively by those that read blocks first,
    /// because these could otherwise undo a concurrent write.
    ragged: RwLock<()>,
    /// Spare buffers for later reads.
    spare: Mutex<Vec<Bounce>>,
}

/// Buffers that are kept for the next reads.
const SPARE: usize = 8;

/// An aligned buffer.
struct Bounce {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Bounce {
    fn new(len: usize, align: usize) -> Self {
        let bytes = vec![0; len + align];
        let start = bytes.as_ptr().align_offset(align);
        Self { bytes, start, len }
    }
    /// Returns its capacity.
    fn room(&self) -> usize {
        self.bytes.len() - self.start
    }

    fn get(&mut self) -> &mut [u8] {
        self.bytes
            .get_mut(self.start..self.start + self.len)
            .unwrap_or_default()
    }
}

impl Direct {
    /// Reopens `file` to bypass the page cache, if the host can.
    pub(super) fn new(file: &File, size: u64, read_only: bool) -> Option<Self> {
        let opened = sys::past_cache(file, read_only)?;
        let found = [512, 4096].into_iter().find_map(|align| {
            let end = size - size % align as u64;
            let mut probe = Bounce::new(align, align);
            let works = end == 0 || read_exact_at(&opened, probe.get(), end - align as u64).is_ok();
            works.then_some((align, end))
        });
        let (align, end) = found?;
        Some(Self {
            file: opened,
            buffered: file.try_clone().ok()?,
            align,
            end,
            ragged: RwLock::default(),
            spare: Mutex::default(),
        })
    }

    /// Returns the alignment of offsets, lengths and memory.
    pub(super) fn align(&self) -> u32 {
        u32::try_from(self.align).unwrap_or(4096)
    }

    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (buf, tail) = buf.split_at_mut(self.before_end(offset, buf.len()));
        if self.is_aligned(offset, buf) {
            read_exact_at(&self.file, buf, offset)?;
        } else {
            let mut at = offset;
            for part in buf.chunks_mut(BOUNCE) {
                self.read_around(at, part)?;
                at += part.len() as u64;
            }
        }
        match tail.is_empty() {
            true => Ok(()),
            false => read_exact_at(&self.buffered, tail, offset + buf.len() as u64),
        }
    }

    /// Reads a part through a buffer.
    fn read_around(&self, offset: u64, part: &mut [u8]) -> Result<()> {
        let (first, len) = self.blocks(offset, part.len());
        let mut around = self.spare(len);
        let read = read_exact_at(&self.file, around.get(), first);
        let skip = (offset - first) as usize;
        if let (Ok(()), Some(bytes)) = (&read, around.get().get(skip..skip + part.len())) {
            part.copy_from_slice(bytes);
        }
        let mut spare = self.spare.lock();
        if spare.len() < SPARE {
            spare.push(around);
        }
        read
    }

    /// Returns a buffer of `len` bytes with unspecified content.
    fn spare(&self, len: usize) -> Bounce {
        let kept = {
            let mut spare = self.spare.lock();
            let at = spare.iter().position(|kept| kept.room() >= len);
            at.map(|at| spare.swap_remove(at))
        };
        match kept {
            Some(kept) => Bounce { len, ..kept },
            None => Bounce::new(len, self.align),
        }
    }

    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let (data, tail) = data.split_at(self.before_end(offset, data.len()));
        if self.is_aligned(offset, data) {
            let _whole = self.ragged.read();
            write_all_at(&self.file, data, offset)?;
        } else {
            let mut at = offset;
            for part in data.chunks(BOUNCE) {
                self.write_around(at, part)?;
                at += part.len() as u64;
            }
        }
        match tail.is_empty() {
            true => Ok(()),
            false => write_all_at(&self.buffered, tail, offset + data.len() as u64),
        }
    }

    /// Writes a part through a buffer. Blocks at its ends that are not wholly written are read
    /// first.
    fn write_around(&self, offset: u64, data: &[u8]) -> Result<()> {
        let (first, len) = self.blocks(offset, data.len());
        let mut around = Bounce::new(len, self.align);
        let skip = (offset - first) as usize;
        let whole = skip == 0 && data.len() == around.len;
        let (_shared, _alone) = match whole {
            true => (Some(self.ragged.read()), None),
            false => (None, Some(self.ragged.write())),
        };
        if !whole {
            read_exact_at(&self.file, around.get(), first)?;
        }
        if let Some(part) = around.get().get_mut(skip..skip + data.len()) {
            part.copy_from_slice(data);
        }
        write_all_at(&self.file, around.get(), first)
    }

    /// Returns where the blocks around a range begin, and their length.
    fn blocks(&self, offset: u64, len: usize) -> (u64, usize) {
        let align = self.align as u64;
        let first = offset - offset % align;
        let end = (offset + len as u64).next_multiple_of(align);
        (first, (end - first) as usize)
    }

    /// Returns how much of a range lies before the end of the last whole block.
    fn before_end(&self, offset: u64, len: usize) -> usize {
        usize::try_from(self.end.saturating_sub(offset))
            .unwrap_or(len)
            .min(len)
    }

    fn is_aligned(&self, offset: u64, bytes: &[u8]) -> bool {
        let memory = bytes.as_ptr().align_offset(self.align) == 0;
        memory && offset.is_multiple_of(self.align as u64) && bytes.len().is_multiple_of(self.align)
    }
}
