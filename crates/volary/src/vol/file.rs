//! [`VolFile`]: an open file, with the interface of files of the host.

use super::error::{VolError, VolResult};
use super::held::{Held, whatever_goes_meanwhile};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use volary_core::{Attr, Create, Error, Kind, Mode, OpenId, Result, SetAttr};
use volary_session::{Follow, OpenHow};

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileHow {
    mode: Mode,
    /// What to do if the file exists or does not; `None` opens an existing one.
    create: Option<Create>,
    append: bool,
}

impl FileHow {
    /// To read an existing file: `r` of fopen(3).
    pub const READ: Self = Self::of(Mode::Read, None);
    /// To write a file, which is made, or emptied if it exists: `w`.
    pub const WRITE: Self = Self::of(Mode::Write, Some(Create::Truncate));
    /// To write a new file, which must not exist: `wx`.
    pub const NEW: Self = Self::of(Mode::Write, Some(Create::New));
    /// To read and write an existing file: `r+`.
    pub const UPDATE: Self = Self::of(Mode::ReadWrite, None);
    /// To read and write a file, which is made if it does not exist.
    pub const UPDATE_OR_NEW: Self = Self::of(Mode::ReadWrite, Some(Create::Open));
    /// To append to a file, which is made if it does not exist: `a`. Each write goes to the current
    /// end.
    pub const APPEND: Self = Self {
        append: true,
        ..Self::of(Mode::Write, Some(Create::Open))
    };

    const fn of(mode: Mode, create: Option<Create>) -> Self {
        Self {
            mode,
            create,
            append: false,
        }
    }
}

/// An open file of a volume. It outlives its name, and keeps the volume open.
///
/// Reading and writing go straight to the volume: wrap the file in a
/// [`BufReader`](std::io::BufReader) or [`BufWriter`](std::io::BufWriter) for small pieces.
/// [`close`](Self::close) returns late errors; dropping does not.
pub struct VolFile {
    held: Arc<Held>,
    path: Vec<u8>,
    open: OpenId,
    /// The offset of the next read or write.
    at: u64,
    is_open: bool,
}

impl VolFile {
    pub(super) fn open(held: &Arc<Held>, path: &[u8], how: FileHow) -> VolResult<Self> {
        let opened = whatever_goes_meanwhile(|| open(held, path, how));
        let open = opened.map_err(|e| held.failed_at("open", path, e))?;
        Ok(Self {
            held: Arc::clone(held),
            path: path.to_vec(),
            open,
            at: 0,
            is_open: true,
        })
    }

    /// Reads at byte `offset`, and returns the number of bytes read: less than asked for only at
    /// the end of the file. Does not move the position of [`Read`].
    ///
    /// # Errors
    /// `Access` if the file was opened for writing only; `Corrupt`; `Io`.
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> VolResult<usize> {
        let read = self.held.session.read(self.open, offset, buf);
        read.map_err(|e| self.failed("read", e))
    }

    /// Writes all of `bytes` at byte `offset`, or at the end if the file was opened to append.
    ///
    /// # Errors
    /// `Access` if the file was opened for reading only; `TooBig`, `NoSpace`, `Io`.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> VolResult<()> {
        self.put_at(offset, bytes).map(drop)
    }

    fn put_at(&self, offset: u64, bytes: &[u8]) -> VolResult<u64> {
        let written = self.held.session.write(self.open, Some(offset), bytes);
        written.map_err(|e| self.failed("write", e))
    }

    /// Writes all of `bytes` at the current position.
    pub(super) fn put(&mut self, bytes: &[u8]) -> VolResult<()> {
        self.at = self.put_at(self.at, bytes)?;
        Ok(())
    }

    /// Returns the file's attributes.
    ///
    /// # Errors
    /// None of its own.
    pub fn metadata(&self) -> VolResult<Attr> {
        let attr = self.held.session.getattr_open(self.open);
        attr.map_err(|e| self.failed("look at", e))
    }

    /// Truncates the file to `len` bytes, or extends it to them with zeros.
    ///
    /// # Errors
    /// `Access` if the file was opened for reading only; `TooBig`, `NoSpace`.
    pub fn set_len(&self, len: u64) -> VolResult<()> {
        let set = SetAttr::size(len);
        let set = self.held.session.setattr_open(self.open, &set);
        set.map(drop)
            .map_err(|e| self.failed("set the length of", e))
    }

    /// Makes earlier writes durable.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub fn sync(&self) -> VolResult<()> {
        let synced = self.held.session.fsync(self.open, false);
        synced.map_err(|e| self.failed("sync", e))
    }

    /// Closes the file.
    ///
    /// # Errors
    /// Those of earlier writes. The file is closed all the same.
    pub fn close(mut self) -> VolResult<()> {
        self.is_open = false;
        let closed = self.held.session.close(self.open);
        closed.map_err(|e| self.failed("close", e))
    }

    fn failed(&self, doing: &'static str, e: Error) -> VolError {
        self.held.failed_at(doing, &self.path, e)
    }
}

/// Opens the file at a path, or makes it.
fn open(held: &Held, path: &[u8], how: FileHow) -> Result<OpenId> {
    let open = OpenHow {
        append: how.append,
        ..how.mode.into()
    };
    let session = &held.session;
    let found = held.walk(path, Follow::Yes);
    match (found, how.create) {
        (Ok(_), Some(Create::New)) => Err(Kind::Exists.into()),
        (Ok(found), create) => {
            if found.attr.kind == volary_core::FileKind::Dir {
                return Err(Kind::IsDir.into());
            }
            let truncate = create == Some(Create::Truncate);
            session.open_seen(&found.attr, None, OpenHow { truncate, ..open })
        }
        (Err(e), Some(create)) if e.kind() == Kind::NotFound => {
            let (dir, name) = held.parent(path)?;
            let made = session.create(dir, &name, create, open, &held.new_file());
            made.map(|(_, open)| open)
        }
        (Err(e), _) => Err(e),
    }
}

impl Drop for VolFile {
    fn drop(&mut self) {
        if self.is_open {
            // To see this error, a program calls `close`.
            let _ = self.held.session.close(self.open);
        }
    }
}

impl fmt::Debug for VolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VolFile")
            .field("path", &volary_core::escape(&self.path).to_string())
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Read for VolFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(self.at, buf)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Write for VolFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.put(buf)?;
        Ok(buf.len())
    }

    /// Does nothing, as writes are not buffered. [`sync`](Self::sync) makes them durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for VolFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let sought = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.metadata()?.size.checked_add_signed(by),
        };
        let words = "a place before the beginning of the file";
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, words);
        self.at = sought.ok_or_else(invalid)?;
        Ok(self.at)
    }
}
