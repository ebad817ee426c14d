//! Block devices: the bytes below a driver.

use crate::Result;
use std::fs::File;
use std::sync::Arc;

/// A borrowed handle of an open file, as the host's system names one.
#[cfg(unix)]
pub type HostFile<'a> = std::os::fd::BorrowedFd<'a>;
/// A borrowed handle of an open file, as the host's system names one.
#[cfg(windows)]
pub type HostFile<'a> = std::os::windows::io::BorrowedHandle<'a>;

/// Returns a file in the form that [`BlockDevice::in_host_file`] returns.
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
/// 1. A read returns what was last written there. If nothing was, it returns what the device was
///    made with.
/// 2. A write that has returned is seen by every later read. It is durable
///    only after a [`flush`](Self::flush) that began after it returned.
/// 3. When power fails before that, any subset of the sectors that were
///    written since the last flush may have reached the disk, each sector
///    (of [`Geometry::sector`] bytes) whole or not at all.
///
/// Reads and writes at the same time are allowed; overlapping ones mix by sector. Offsets and
/// lengths are in bytes and need not be aligned: a device that needs alignment takes care of it.
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
    /// `ReadOnly`; `Invalid` past the end; `Io`. If the storage behind the device is full, the `Io`
    /// is [`host_full`](crate::Error::host_full), as `NoSpace` means that the volume is full.
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
    /// `Io`. What was written since the last successful flush may then be lost, even if a later
    /// flush succeeds.
    fn flush(&self) -> Result<()>;

    /// Hints that the range is not needed. What it reads as afterwards is undefined. Default: does
    /// nothing.
    ///
    /// # Errors
    /// `Io`.
    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let _ = (offset, len);
        Ok(())
    }

    /// Fills the range with zeros. A device that can do so without writing frees the range's space.
    /// Default: reads the range, and writes zeros where it reads anything else or cannot read.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        zero_by_writing(self, offset, len)
    }

    /// Returns whether the host caches what was read and written, and reads ahead. Small requests
    /// are then cheap, and a cache of the same bytes above gains nothing. Constant. Default: false.
    fn is_cached(&self) -> bool {
        false
    }

    /// Returns a device with the same bytes whose reads bypass the host's [cache](Self::is_cached).
    /// Large reads then cost less and evict nothing. `None`, the default, if there is no such way,
    /// or if much of the device is cached already.
    fn past_cache(&self) -> Option<Arc<dyn BlockDevice>> {
        None
    }

    /// Hints that the range will be read soon. The device may begin to fetch it, without waiting
    /// for it. Default: does nothing.
    fn will_read(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Returns the host's file that holds the range byte for byte, and the range's offset in it.
    /// The file's bytes must equal the device's at every moment, so that the host can copy them
    /// itself. `None`, the default, if they do not, or if the device must see each read.
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

/// How many bytes [`zero_by_writing`] compares and writes at a time.
const ZEROS: usize = 1 << 20;

/// Fills a range with zeros by reading it, and writing where it reads anything else. So holes of a
/// sparse device stay holes.
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
    /// The unit of atomic writes, in bytes: a power of two, at least 512.
    pub sector: u32,
    /// Whether writes are refused.
    pub read_only: bool,
}

/// One of many reads; see [`BlockDevice::read_batch`].
#[derive(Debug)]
pub struct Read<'a> {
    /// Byte offset.
    pub offset: u64,
    /// The buffer to fill.
    pub buf: &'a mut [u8],
    /// The result of the read.
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
