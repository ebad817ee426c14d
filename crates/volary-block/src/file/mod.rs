//! A device in a file or block device of the host.

mod direct;
mod lock;
mod open;
mod sys;
#[cfg(test)]
mod tests;

use crate::range::check_range;
use direct::Direct;
use lock::Locked;
pub(crate) use open::open_locked;
use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
pub use sys::cached_pages;
pub(crate) use sys::data_in;
#[cfg(feature = "qcow2")]
pub(crate) use sys::read_exact_at;
use volary_core::{
    BlockDevice, Error, Geometry, HostFile, Kind, Read, Result, escape, host_file, zero_by_writing,
};

/// How to open a [`FileDevice`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Refuse writes, and open the file so that none can happen.
    pub read_only: bool,
    /// Bypass the host's page cache (`O_DIRECT`), if the host can.
    pub direct: bool,
    /// Do not lock the file. Others may then write it at the same time.
    pub unlocked: bool,
}

/// A regular file or a block device of the host. It is locked while it is open (`flock`): many
/// processes may read it, or one may write it. A block device to write is opened exclusively
/// (`O_EXCL`).
///
/// If another process removes or truncates the file meanwhile, writes are lost. From then on,
/// [`flush`](BlockDevice::flush) returns `Io`.
pub struct FileDevice {
    file: Arc<Locked>,
    direct: Option<Direct>,
    geometry: Geometry,
    /// Whether the file had a name when it was opened.
    is_named: bool,
}

impl FileDevice {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Each is one line, without the path: `NotFound`; `IsDir`; `Access`; `Unsupported` if it is
    /// neither a file nor a block device; `Busy` if another process still has it open after two
    /// seconds, or to write what the host has mounted; `Unsupported` if it is empty; `Io`.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let (file, is_block) = open_locked(path.as_ref(), options)?;
        Self::from_file(file, is_block, options)
    }

    /// Creates a file of `size` zero bytes that takes no space yet, and opens it for reading and
    /// writing.
    ///
    /// # Errors
    /// `Exists`; `Invalid` for a size of 0; `NotFound` if its directory does not exist;
    /// `Access`; `TooBig`; `Io`.
    pub fn create(path: impl AsRef<Path>, size: u64) -> Result<Self> {
        if size == 0 {
            return Err(Error::note(
                Kind::Invalid,
                "an image of 0 bytes; give a size such as 64M",
            ));
        }
        let path = path.as_ref();
        let made = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = made.map_err(|e| not_made(&e))?;
        file.set_len(size).map_err(|e| {
            // A file that could not be completed is not left behind.
            let _ = std::fs::remove_file(path);
            not_made(&e)
        })?;
        drop(file);
        Self::open(path, OpenOptions::default())
    }

    fn from_file(mut file: File, is_block: bool, options: OpenOptions) -> Result<Self> {
        let size = file
            .seek(SeekFrom::End(0))
            .map_err(|e| Error::note(Kind::Io, format!("its size cannot be found: {e}")))?;
        if size == 0 {
            let words = "empty; make a volume on it with: volary mkfs --size 64M IMAGE";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let sector = match is_block {
            true => sys::sector_size(&file),
            false => 512,
        };
        let direct = options
            .direct
            .then(|| Direct::new(&file, size, options.read_only));
        let had = file.metadata();
        Ok(Self {
            direct: direct.flatten(),
            is_named: had.is_ok_and(|had| had.is_file() && sys::names(&had) > 0),
            file: Arc::new(Locked::new(file)),
            geometry: Geometry {
                size,
                sector: sector.next_power_of_two().max(512),
                read_only: options.read_only,
            },
        })
    }

    /// Returns whether I/O bypasses the host's page cache.
    pub fn is_direct(&self) -> bool {
        self.direct.is_some()
    }

    fn check_write(&self, offset: u64, len: usize) -> Result<()> {
        if self.geometry.read_only {
            return Err(Kind::ReadOnly.into());
        }
        check_range(offset, len, self.geometry.size).map(drop)
    }

    /// Makes a hole in the file, which reads as zeros. Returns false if the host cannot. The inner
    /// error is the host's.
    fn punch(&self, offset: u64, len: u64) -> Result<std::io::Result<bool>> {
        self.check_write(offset, bytes_of(len))?;
        Ok(match len {
            0 => Ok(true),
            len => sys::punch(&self.file, offset, len),
        })
    }

    /// Checks that the file still exists in full, so that writes are not lost.
    fn check_there(&self) -> std::io::Result<()> {
        let now = self.file.metadata()?;
        if self.is_named && sys::names(&now) == 0 {
            return Err(std::io::Error::other("the file was removed"));
        }
        if now.is_file() && now.len() < self.geometry.size {
            let words = format!("the file was cut to {} bytes", now.len());
            return Err(std::io::Error::other(words));
        }
        Ok(())
    }
}

fn bytes_of(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX)
}

/// Returns the error for a file that cannot be created, with advice.
pub(crate) fn not_made(e: &std::io::Error) -> Error {
    use std::io::ErrorKind;
    let (kind, words) = match e.kind() {
        ErrorKind::AlreadyExists => (Kind::Exists, "already there"),
        ErrorKind::NotFound => (Kind::NotFound, "its directory does not exist"),
        ErrorKind::PermissionDenied => (Kind::Access, "no permission to make it there"),
        ErrorKind::ReadOnlyFilesystem => (
            Kind::ReadOnly,
            "its directory is on a file system that is mounted read-only",
        ),
        ErrorKind::FileTooLarge | ErrorKind::InvalidInput => {
            (Kind::TooBig, "larger than a file can be there")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => return Error::host_full("make", 0, 0),
        _ => return Error::note(Kind::Io, e.to_string()),
    };
    Error::note(kind, words)
}

/// Returns the error of the device for an error of the host.
pub(crate) fn io_error(doing: &'static str, offset: u64, len: usize, e: &std::io::Error) -> Error {
    match e.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::host_full(doing, offset, len as u64)
        }
        ErrorKind::UnexpectedEof => Error::io(doing, offset, len as u64, "the file ends before"),
        _ => {
            let why = e.to_string();
            Error::io(
                doing,
                offset,
                len as u64,
                escape(why.as_bytes()).to_string(),
            )
        }
    }
}

impl BlockDevice for FileDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.geometry.size)?;
        let len = buf.len();
        match &self.direct {
            Some(direct) => direct.read(offset, buf),
            None => sys::read_exact_at(&self.file, buf, offset),
        }
        .map_err(|e| io_error("read", offset, len, &e))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check_write(offset, data.len())?;
        match &self.direct {
            Some(direct) => direct.write(offset, data),
            None => sys::write_all_at(&self.file, data, offset),
        }
        .map_err(|e| io_error("write", offset, data.len(), &e))
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let len = parts.iter().map(|p| p.len()).sum();
        self.check_write(offset, len)?;
        match &self.direct {
            Some(direct) => direct.write(offset, &parts.concat()),
            None => sys::write_parts(&self.file, parts, offset),
        }
        .map_err(|e| io_error("write", offset, len, &e))
    }

    fn flush(&self) -> Result<()> {
        if self.geometry.read_only {
            return Ok(());
        }
        self.file
            .sync_data()
            .and_then(|()| self.check_there())
            .map_err(|e| io_error("flush", 0, 0, &e))
    }

    /// Makes a hole, if the host can, to free the space. The range then reads as zeros.
    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        let punched = self.punch(offset, len)?;
        punched.map_err(|e| io_error("discard", offset, bytes_of(len), &e))?;
        Ok(())
    }

    /// Makes a hole, if the host can, because this is fast and takes no space. Otherwise writes
    /// zeros.
    fn zero(&self, offset: u64, len: u64) -> Result<()> {
        match self.punch(offset, len)? {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => zero_by_writing(self, offset, len),
        }
    }

    fn is_cached(&self) -> bool {
        self.direct.is_none()
    }

    /// Reopens the file to bypass the page cache, if that has less than a quarter of the file. The
    /// sector size is the alignment at which requests need no extra buffer.
    fn past_cache(&self) -> Option<Arc<dyn BlockDevice>> {
        let size = self.geometry.size;
        let (cached, all) = cached_pages(&**self.file, 0, size)?;
        if self.direct.is_some() || !self.geometry.read_only || cached > all / 4 {
            return None;
        }
        let direct = Direct::new(&self.file, size, true)?;
        let sector = self.geometry.sector.max(direct.align());
        Some(Arc::new(Self {
            direct: Some(direct),
            file: Arc::clone(&self.file),
            geometry: Geometry {
                sector,
                ..self.geometry
            },
            ..*self
        }))
    }

    /// Asks the host to read the range into its page cache.
    fn will_read(&self, offset: u64, len: u64) {
        if self.direct.is_none() {
            sys::will_read(&self.file, offset, len);
        }
    }

    fn in_host_file(&self, offset: u64, len: u64) -> Option<(HostFile<'_>, u64)> {
        check_range(offset, usize::try_from(len).ok()?, self.geometry.size).ok()?;
        // A device that bypasses the page cache must not fill it.
        let is_cached = self.direct.is_none();
        is_cached.then(|| (host_file(&self.file), offset))
    }

    /// Announces all ranges to the host, which fetches them in parallel, and then reads them one by
    /// one.
    fn read_batch(&self, reads: &mut [Read<'_>]) {
        if reads.len() > 1 {
            for r in reads.iter() {
                self.will_read(r.offset, r.buf.len() as u64);
            }
        }
        for r in reads {
            r.result = self.read_at(r.offset, r.buf);
        }
    }
}
