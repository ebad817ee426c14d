//! A device in a file of the host.

use crate::range::check_range;
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use volary_core::{BlockDevice, Error, Geometry, Kind, Result};

/// How to open a [`FileDevice`].
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Refuse writes, and open the file so that they cannot happen.
    pub read_only: bool,
    /// Past the host's page cache (`O_DIRECT`), where the host can.
    pub direct: bool,
}

/// A regular file or a block device of the host.
pub struct FileDevice {
    file: File,
    size: u64,
    read_only: bool,
}

impl FileDevice {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// One line each, naming the path: missing, a directory, without
    /// permission, empty.
    pub fn open(path: impl AsRef<Path>, options: OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(!options.read_only)
            .open(path)
            .map_err(|e| Error::note(Kind::Io, format!("{}: {e}", path.display())))?;
        let size = file
            .metadata()
            .map_err(|e| Error::note(Kind::Io, format!("{}: {e}", path.display())))?
            .len();
        Ok(Self {
            file,
            size,
            read_only: options.read_only,
        })
    }
}

fn io_error(doing: &'static str, offset: u64, len: usize, e: &std::io::Error) -> Error {
    match Errno::from_io_error(e) {
        Some(Errno::NOSPC | Errno::DQUOT) => Kind::NoSpace.into(),
        _ => Error::io(doing, offset, len as u64, e.to_string()),
    }
}

impl BlockDevice for FileDevice {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.size,
            sector: 512,
            read_only: self.read_only,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset, buf.len(), self.size)?;
        self.file
            .read_exact_at(buf, offset)
            .map_err(|e| io_error("read", offset, buf.len(), &e))
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        if self.read_only {
            return Err(Kind::ReadOnly.into());
        }
        check_range(offset, data.len(), self.size)?;
        self.file
            .write_all_at(data, offset)
            .map_err(|e| io_error("write", offset, data.len(), &e))
    }

    fn flush(&self) -> Result<()> {
        rustix::fs::fdatasync(self.file.as_fd())
            .map_err(|e| Error::io("flush", 0, self.size, e.to_string()))
    }
}
