//! [`VolError`]: what was tried, where, and what went wrong.

use std::fmt;
use std::io;
use volary_core::{Error, Kind};

/// The result of an operation of a [`Vol`](crate::Vol).
pub type VolResult<T> = Result<T, VolError>;

/// An error with what was tried and where: `cannot read disk.img:/a: no such file or directory`.
#[derive(Debug)]
pub struct VolError(Box<Parts>);

#[derive(Debug)]
struct Parts {
    doing: &'static str,
    place: String,
    error: Error,
}

impl VolError {
    pub(crate) fn new(doing: &'static str, place: impl fmt::Display, error: Error) -> Self {
        let place = place.to_string();
        Self(Box::new(Parts {
            doing,
            place,
            error,
        }))
    }

    /// Returns the kind of error, for programs.
    pub fn kind(&self) -> Kind {
        self.0.error.kind()
    }

    /// Returns what was tried, as a verb: `read`.
    pub fn doing(&self) -> &'static str {
        self.0.doing
    }

    /// Returns the volume or the place in it, as people write it: `disk.img:/a`. Unprintable bytes
    /// are escaped.
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// Returns the error, with its details.
    pub fn error(&self) -> &Error {
        &self.0.error
    }
}

impl fmt::Display for VolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts {
            doing,
            place,
            error,
        } = &*self.0;
        write!(f, "cannot {doing} {place}: {error}")
    }
}

impl std::error::Error for VolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0.error)
    }
}

impl From<VolError> for io::Error {
    fn from(e: VolError) -> Self {
        Self::new(io_kind(e.kind()), e)
    }
}

/// Returns the standard library's kind for a kind.
fn io_kind(kind: Kind) -> io::ErrorKind {
    match kind {
        Kind::NotFound => io::ErrorKind::NotFound,
        Kind::Exists => io::ErrorKind::AlreadyExists,
        Kind::NotDir => io::ErrorKind::NotADirectory,
        Kind::IsDir => io::ErrorKind::IsADirectory,
        Kind::NotEmpty => io::ErrorKind::DirectoryNotEmpty,
        Kind::Invalid => io::ErrorKind::InvalidInput,
        Kind::NameTooLong => io::ErrorKind::InvalidFilename,
        Kind::TooManyLinks => io::ErrorKind::TooManyLinks,
        Kind::TooBig => io::ErrorKind::FileTooLarge,
        Kind::NoSpace => io::ErrorKind::StorageFull,
        Kind::Quota => io::ErrorKind::QuotaExceeded,
        Kind::ReadOnly => io::ErrorKind::ReadOnlyFilesystem,
        Kind::Access | Kind::NotPermitted => io::ErrorKind::PermissionDenied,
        Kind::Stale => io::ErrorKind::StaleNetworkFileHandle,
        Kind::Locked | Kind::Sharing | Kind::DeletePending | Kind::Busy => {
            io::ErrorKind::ResourceBusy
        }
        Kind::Deadlock => io::ErrorKind::Deadlock,
        Kind::Interrupted => io::ErrorKind::Interrupted,
        Kind::Unsupported => io::ErrorKind::Unsupported,
        Kind::CrossVolume => io::ErrorKind::CrossesDevices,
        Kind::Corrupt => io::ErrorKind::InvalidData,
        Kind::SymlinkLoop | Kind::TooManyOpen | Kind::NoXattr | Kind::Io => io::ErrorKind::Other,
    }
}
