//! The content of files, block by block.

use super::blocks::{self, BLOCK, HEAD, STORED};
use super::keys::Keys;
use chacha20poly1305::XChaCha20Poly1305;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use volary_core::{Ctx, Error, Fs, Kind, NodeId, OpenId, Result, SetAttr};

/// The cipher of a file, once its header was read. Read-locked while the file is read, write-locked
/// while it changes.
pub(super) type Cipher = RwLock<Option<Arc<XChaCha20Poly1305>>>;

/// An open file below, with all that reading and writing it needs.
pub(super) struct Content<'a> {
    pub(super) fs: &'a Fs,
    pub(super) keys: &'a Keys,
    pub(super) cx: &'a Ctx<'a>,
    pub(super) node: NodeId,
    pub(super) open: OpenId,
    pub(super) cipher: &'a Cipher,
}

/// How many blocks are read below with one call.
const RUN: u64 = 16;

type Reading<'a> = RwLockReadGuard<'a, Option<Arc<XChaCha20Poly1305>>>;
type Writing<'a> = RwLockWriteGuard<'a, Option<Arc<XChaCha20Poly1305>>>;

impl Content<'_> {
    fn size(&self) -> Result<u64> {
        let stored = self.fs.getattr(self.cx, self.node)?.size;
        Ok(blocks::size_of(stored))
    }

    /// Reads `len` bytes from below, or fewer at the end of the file.
    fn read_below(&self, offset: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(len).map_err(|_| Kind::TooBig)?];
        let got = self.fs.read(self.cx, self.open, offset, &mut bytes)?;
        bytes.truncate(got);
        Ok(bytes)
    }

    /// Reads the file's header to get its cipher, unless it is known.
    fn load(&self, cipher: &mut Writing<'_>) -> Result<Arc<XChaCha20Poly1305>> {
        if let Some(known) = &**cipher {
            return Ok(known.clone());
        }
        let id = blocks::id_of(&self.read_below(0, HEAD)?)?;
        let loaded = Arc::new(self.keys.of_file(&id)?);
        **cipher = Some(loaded.clone());
        Ok(loaded)
    }

    /// Read-locks the file, and returns its cipher.
    fn reading(&self) -> Result<(Reading<'_>, Arc<XChaCha20Poly1305>)> {
        let held = self.cipher.read();
        if let Some(known) = &*held {
            let known = known.clone();
            return Ok((held, known));
        }
        drop(held);
        let mut held = self.cipher.write();
        let known = self.load(&mut held)?;
        Ok((RwLockWriteGuard::downgrade(held), known))
    }

    /// # Errors
    /// `Corrupt` for a block that is not what was written.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        if buf.is_empty() || offset >= self.size()? {
            return Ok(0);
        }
        let (_held, cipher) = self.reading()?;
        // The file may have been truncated since.
        let size = self.size()?;
        let end = offset.saturating_add(buf.len() as u64).min(size);
        let (mut at, mut done) = (offset, 0);
        while at < end {
            let first = at / BLOCK;
            let count = (end.div_ceil(BLOCK) - first).min(RUN);
            let stored = self.read_below(blocks::place(first), count * STORED)?;
            for (n, sealed) in (first..).zip(stored.chunks(STORED as usize)) {
                let last = (n + 1).saturating_mul(BLOCK) >= size;
                let plain = blocks::open(&cipher, n, last, sealed)?.plain;
                let skip = (at - n * BLOCK) as usize;
                let part = plain.get(skip..).unwrap_or_default();
                let room = buf.get_mut(done..).unwrap_or_default();
                let len = part.len().min(room.len()).min((end - at) as usize);
                if len == 0 {
                    return Ok(done);
                }
                copy(room, part, len);
                (at, done) = (at + len as u64, done + len);
                if at >= end {
                    break;
                }
            }
            if stored.is_empty() {
                break;
            }
        }
        Ok(done)
    }

    /// Writes at `offset`, or at the end; returns the offset after the data.
    pub(super) fn write(&self, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let mut held = self.cipher.write();
        let size = self.size()?;
        let offset = offset.unwrap_or(size);
        let end = offset.checked_add(data.len() as u64).ok_or(Kind::TooBig)?;
        if data.is_empty() {
            return Ok(end);
        }
        if blocks::stored_size(end) > self.fs.caps().size_max {
            return Err(Kind::TooBig.into());
        }
        let undo = self.undo(size)?;
        let cipher = self.ready(&mut held, size)?;
        let written = self
            .pad(&cipher, size, offset)
            .and_then(|()| self.write_blocks(&cipher, size.max(end), offset, data, size));
        if written.is_err() {
            self.put_back(&mut held, size, &undo);
        }
        written.map(|()| end)
    }

    /// Returns the cipher for a change. An empty file gets a new header first.
    fn ready(&self, held: &mut Writing<'_>, size: u64) -> Result<Arc<XChaCha20Poly1305>> {
        if size > 0 {
            return self.load(held);
        }
        let id = self.keys.nonce();
        let header = blocks::header(&id);
        self.fs.write(self.cx, self.open, Some(0), &header)?;
        let cipher = Arc::new(self.keys.of_file(&id)?);
        **held = Some(cipher.clone());
        Ok(cipher)
    }

    /// Returns the last block as it is stored, to restore it if a change fails.
    fn undo(&self, size: u64) -> Result<Vec<u8>> {
        match size.checked_sub(1) {
            None => Ok(Vec::new()),
            Some(last) => self.read_below(blocks::place(last / BLOCK), STORED),
        }
    }

    /// Restores the end of the file after a failed change; errors are ignored.
    fn put_back(&self, held: &mut Writing<'_>, size: u64, last: &[u8]) {
        let stored = SetAttr::size(blocks::stored_size(size));
        if let Some(at) = size.checked_sub(1) {
            let place = blocks::place(at / BLOCK);
            let _ = self.fs.write(self.cx, self.open, Some(place), last);
        } else {
            **held = None;
        }
        let _ = self.fs.setattr(self.cx, self.node, &stored);
    }

    /// Pads a partial last block to its full length, if the file is to continue behind it at `to`.
    fn pad(&self, cipher: &XChaCha20Poly1305, size: u64, to: u64) -> Result<()> {
        let n = size / BLOCK;
        if size.is_multiple_of(BLOCK) || to <= size || to / BLOCK == n {
            return Ok(());
        }
        let opened = self.block(cipher, n, true)?;
        let mut plain = opened.plain;
        plain.resize(BLOCK as usize, 0);
        self.put(cipher, n, true, &plain)
    }

    fn block(&self, cipher: &XChaCha20Poly1305, n: u64, last: bool) -> Result<blocks::Opened> {
        let sealed = self.read_below(blocks::place(n), STORED)?;
        blocks::open(cipher, n, last, &sealed)
    }

    fn put(&self, cipher: &XChaCha20Poly1305, n: u64, last: bool, plain: &[u8]) -> Result<()> {
        let sealed = blocks::seal(self.keys, cipher, n, last, plain)?;
        let place = blocks::place(n);
        self.fs.write(self.cx, self.open, Some(place), &sealed)?;
        Ok(())
    }

    /// Writes `data` with one call below, into a file of `had` bytes that will have `size`.
    fn write_blocks(
        &self,
        cipher: &XChaCha20Poly1305,
        size: u64,
        offset: u64,
        data: &[u8],
        had: u64,
    ) -> Result<()> {
        let end = offset + data.len() as u64;
        let (first, last) = (offset / BLOCK, (end - 1) / BLOCK);
        let mut out = Vec::with_capacity(data.len() + data.len() / 64 + 2 * STORED as usize);
        for n in first..=last {
            let start = n * BLOCK;
            let len = (size - start).min(BLOCK);
            let (from, to) = (offset.max(start), end.min(start + BLOCK));
            let whole = from == start && to == start + len;
            let mut plain = if whole || start >= had {
                Vec::new()
            } else {
                let was_last = start + BLOCK >= had;
                self.block(cipher, n, was_last)?.plain
            };
            plain.resize(len as usize, 0);
            let source = data.get((from - offset) as usize..).unwrap_or_default();
            let room = plain.get_mut((from - start) as usize..).unwrap_or_default();
            copy(room, source, (to - from) as usize);
            let is_last = start + BLOCK >= size;
            out.extend(blocks::seal(self.keys, cipher, n, is_last, &plain)?);
        }
        let place = blocks::place(first);
        self.fs.write(self.cx, self.open, Some(place), &out)?;
        Ok(())
    }

    /// Sets the size below, and all other attributes in `set`.
    pub(super) fn resize(&self, to: u64, set: &SetAttr) -> Result<volary_core::Attr> {
        let mut held = self.cipher.write();
        let size = self.size()?;
        let set = SetAttr {
            size: Some(blocks::stored_size(to)),
            ..*set
        };
        if to == 0 || to == size {
            let attr = self.fs.setattr(self.cx, self.node, &set)?;
            if to == 0 {
                *held = None;
            }
            return Ok(attr);
        }
        if blocks::stored_size(to) > self.fs.caps().size_max {
            return Err(Kind::TooBig.into());
        }
        let (undo, cut) = (self.undo(size)?, self.undo(to.min(size))?);
        let cipher = self.ready(&mut held, size)?;
        let done = self
            .prepare(&cipher, size, to)
            .and_then(|()| self.fs.setattr(self.cx, self.node, &set));
        if done.is_err() {
            if to < size {
                let place = blocks::place((to - 1) / BLOCK);
                let _ = self.fs.write(self.cx, self.open, Some(place), &cut);
            }
            self.put_back(&mut held, size, &undo);
        }
        done
    }

    /// Before a change of size, seals the block at the new end as the last one, or pads the block
    /// at the old end.
    fn prepare(&self, cipher: &XChaCha20Poly1305, size: u64, to: u64) -> Result<()> {
        if to > size {
            if size.is_multiple_of(BLOCK) {
                return Ok(());
            }
            let n = size / BLOCK;
            let mut plain = self.block(cipher, n, true)?.plain;
            plain.resize((to - n * BLOCK).min(BLOCK) as usize, 0);
            return self.put(cipher, n, true, &plain);
        }
        let n = (to - 1) / BLOCK;
        let opened = self.block(cipher, n, (n + 1) * BLOCK >= size)?;
        let mut plain = opened.plain;
        let len = (to - n * BLOCK) as usize;
        if opened.can_be_last && len == plain.len() {
            return Ok(());
        }
        plain.truncate(len);
        self.put(cipher, n, true, &plain)
    }

    /// Turns the range into a hole; the size stays.
    pub(super) fn punch(&self, offset: u64, len: u64) -> Result<()> {
        let mut held = self.cipher.write();
        let size = self.size()?;
        let end = offset.saturating_add(len).min(size);
        if offset >= end {
            return Ok(());
        }
        let cipher = self.load(&mut held)?;
        // Blocks that lie wholly in the range, the last one by its own length.
        let first = offset.div_ceil(BLOCK);
        let after = if end == size {
            end.div_ceil(BLOCK)
        } else {
            end / BLOCK
        };
        if first >= after {
            return self.zero(&cipher, offset, end, size);
        }
        self.zero(&cipher, offset, (first * BLOCK).min(end), size)?;
        self.zero(&cipher, (after * BLOCK).min(end), end, size)?;
        let (start, stop) = (blocks::place(first), blocks::place(after));
        let stop = stop.min(blocks::stored_size(size));
        self.fs
            .allocate(self.cx, self.open, start, stop - start, true)
    }

    fn zero(&self, cipher: &XChaCha20Poly1305, offset: u64, end: u64, size: u64) -> Result<()> {
        if offset >= end {
            return Ok(());
        }
        let zeros = vec![0; (end - offset) as usize];
        self.write_blocks(cipher, size, offset, &zeros, size)
    }
}

fn copy(to: &mut [u8], from: &[u8], len: usize) {
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}

/// # Errors
/// `Unsupported`, for calls that make no sense on ciphertext.
pub(super) fn refused<T>() -> Result<T> {
    Err(Error::from(Kind::Unsupported))
}
