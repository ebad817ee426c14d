//! Block devices: the bytes below a driver.

use crate::Result;
use std::fs::File;
use std::sync::Arc;

/// An open file of the host, as its system names one.
#[cfg(unix)]
pub type HostFile<'a> = std::os::fd::BorrowedFd<'a>;
/// An open file of the host, as its system names one.
#[cfg(windows)]
pub type HostFile<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// Returns a file as [`BlockDevice::in_host_file`] gives it.
pub fn host_file(file: &File) -> HostFile<'_> {
    #[cfg(unix)]
    return std::os::fd::AsFd::as_fd(file);
    #[cfg(windows)]
    return std::os::windows::io::AsHandle::as_handle(file);
}

/// A block device, real or simulated, shared by its users.
///
/// # What a driver may assume, and no more
///
/// 1. A read gives what was last written there, or, where nothing was, what
///    the device was made with.
/// 2. A write that has returned is seen by every later read. It is durable
///    only after a [`flush`](Self::flush) that began after it returned.
/// 3. When power fails before that, any subset of the sectors that were
///    written since the last flush may have reached the disk, each sector
///    (of [`Geometry::sector`] bytes) whole or not at all.
///
/// Reads and writes at the same time are allowed; overlapping ones mix by
/// sector. Offsets and lengths are in bytes and need not be aligned: a device
/// that needs alignment sees to it itself.
pub trait BlockDevice: Send + Sync {
    /// Size and sectors. Constant.
    fn geometry(&self) -> Geometry;

    /// Fills `buf` from byte `offset` on.
    ///
    /// # Errors
    /// `Invalid` past the end; `Io`.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Writes `data` at byte `offset`. If it fails, any of the sectors may
    /// have been written.
    ///
    /// # Errors
    /// `ReadOnly`; `Invalid` past the end; `Io`, [`host_full`](crate::Error::host_full) when what
    /// backs the device is full: `NoSpace` is the volume's to say.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;

    /// Writes the parts one after the other from byte `offset` on, as one
    /// request where the device can.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let mut at = offset;
        for part in parts {
            self.write_at(at, part)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    /// Makes durable what was written before the call.
    ///
    /// # Errors
    /// `Io`. What was written since the last flush that succeeded may then be
    /// lost, and a later flush that succeeds does not mean that it is not.
    fn flush(&self) -> Result<()>;

    /// A hint that the range is not needed; what it reads as after is not
    /// said. Default: nothing.
    ///
    /// # Errors
    /// `Io`.
    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let _ = (offset, len);
        Ok(())
    }

    /// Makes the range zeros, as a write of zeros would. A device that can say
    /// so without writing takes no space for it. Default: reads, and writes
    /// where it finds anything else; what cannot be read is written.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        zero_by_writing(self, offset, len)
    }

    /// Returns whether what is below keeps in memory what was read and written, and
    /// reads ahead: then small requests cost little, and keeping the same
    /// bytes above gains nothing. Constant. Default: it does not.
    fn is_cached(&self) -> bool {
        false
    }

    /// Returns a device with the same bytes whose reads bypass the [cache](Self::is_cached) below. Reading large
    /// parts once costs less so, and evicts nothing. `None` if there is no such way, the default, or if much of the
    /// device is cached already.
    fn past_cache(&self) -> Option<Arc<dyn BlockDevice>> {
        None
    }

    /// Hints that the range will be read soon: the device may begin to fetch it, and does not wait for it.
    /// Default: nothing.
    fn will_read(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Returns the file of the host in which the range lies byte for byte, and where it begins there. Bytes of
    /// the file are those of the device at every moment, so the host can copy them itself. `None`
    /// where that is not so, and where whoever reads the device must see each read. Default: `None`.
    fn in_host_file(&self, offset: u64, len: u64) -> Option<(HostFile<'_>, u64)> {
        let _ = (offset, len);
        None
    }

    /// Reads many ranges. Each read has its own result. Default: one by one.
    fn read_batch(&self, reads: &mut [Read<'_>]) {
        for r in reads {
            r.result = self.read_at(r.offset, r.buf);
        }
    }
}

/// Returns whether all bytes are zeros. Compares whole blocks, which is faster than byte by byte.
pub fn is_zero(bytes: &[u8]) -> bool {
    static BLOCK: [u8; 4096] = [0; 4096];
    bytes
        .chunks(BLOCK.len())
        .all(|part| BLOCK.starts_with(part))
}

/// How much [`zero_by_writing`] looks at and writes at a time, in bytes.
const ZEROS: usize = 1 << 20;

/// Makes a range zeros by reading it, and writing where it is anything else:
/// what a device with holes does not hold stays a hole.
///
/// # Errors
/// As [`BlockDevice::write_at`].
pub fn zero_by_writing<D: BlockDevice + ?Sized>(dev: &D, offset: u64, len: u64) -> Result<()> {
    let most = usize::try_from(len).unwrap_or(ZEROS).min(ZEROS);
    let (zeros, mut found) = (vec![0; most], vec![0; most]);
    let mut done = 0;
    while done < len {
        let n = usize::try_from(len - done).unwrap_or(most).min(most);
        let (found, zeros) = (&mut found[..n], &zeros[..n]);
        let is_zero = dev.read_at(offset + done, found).is_ok() && *found == *zeros;
        if !is_zero {
            dev.write_at(offset + done, zeros)?;
        }
        done += n as u64;
    }
    Ok(())
}

/// Size and sectors of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size in bytes.
    pub size: u64,
    /// What is written whole or not at all, in bytes: a power of two, at least 512.
    pub sector: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// One of many reads; see [`BlockDevice::read_batch`].
#[derive(Debug)]
pub struct Read<'a> {
    /// Byte offset.
    pub offset: u64,
    /// What to fill.
    pub buf: &'a mut [u8],
    /// How it went.
    pub result: Result<()>,
}

impl<D: BlockDevice + ?Sized> BlockDevice for Arc<D> {
    fn geometry(&self) -> Geometry {
        (**self).geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        (**self).read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        (**self).write_at(offset, data)
    }
    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        (**self).write_gather(offset, parts)
    }
    fn flush(&self) -> Result<()> {
        (**self).flush()
    }
    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        (**self).discard(offset, len)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        (**self).zero(offset, len)
    }
    fn is_cached(&self) -> bool {
        (**self).is_cached()
    }
    fn past_cache(&self) -> Option<Arc<dyn BlockDevice>> {
        (**self).past_cache()
    }
    fn will_read(&self, offset: u64, len: u64) {
        (**self).will_read(offset, len);
    }
    fn in_host_file(&self, offset: u64, len: u64) -> Option<(HostFile<'_>, u64)> {
        (**self).in_host_file(offset, len)
    }
    fn read_batch(&self, reads: &mut [Read<'_>]) {
        (**self).read_batch(reads);
    }
}
