//! What can go wrong: ordinary answers, device errors, damage.

use std::fmt;

/// The result of every operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, in terms that a caller can act on. Servers map each of
/// these to a code of their protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// There is no such entry.
    NotFound,
    /// The name is taken.
    Exists,
    /// Not a directory.
    NotDir,
    /// A directory, where it must not be one.
    IsDir,
    /// The directory has entries.
    NotEmpty,
    /// The request makes no sense.
    Invalid,
    /// A name or a symlink's target is longer than the format can keep.
    NameTooLong,
    /// The node has as many links as the format can count.
    TooManyLinks,
    /// Too many symlinks on the way.
    SymlinkLoop,
    /// Larger than the format can keep.
    TooBig,
    /// The volume, or a directory of fixed size, is full.
    NoSpace,
    /// The caller has used up their quota.
    Quota,
    /// The volume does not take changes.
    ReadOnly,
    /// The mode bits forbid it (EACCES).
    Access,
    /// Only the owner or root may do this (EPERM).
    NotPermitted,
    /// The node or open is gone.
    Stale,
    /// Somebody holds a lock that is in the way.
    Locked,
    /// Waiting for this lock would never end.
    Deadlock,
    /// Another open does not share the file in that way.
    Sharing,
    /// The node is deleted with its last open, and cannot be opened any more.
    DeletePending,
    /// The node is open or in use in a way that forbids it.
    Busy,
    /// Too many files are open: of the volume, of its user, or of this process.
    TooManyOpen,
    /// The caller lost interest.
    Interrupted,
    /// The volume cannot do this.
    Unsupported,
    /// There is no such extended attribute.
    NoXattr,
    /// From one volume to another.
    CrossVolume,
    /// The device failed.
    Io,
    /// The volume contradicts itself or its format.
    Corrupt,
}

impl Kind {
    /// Every kind, for tables that must have a row for each.
    pub const ALL: [Self; 28] = [
        Self::NotFound,
        Self::Exists,
        Self::NotDir,
        Self::IsDir,
        Self::NotEmpty,
        Self::Invalid,
        Self::NameTooLong,
        Self::TooManyLinks,
        Self::SymlinkLoop,
        Self::TooBig,
        Self::NoSpace,
        Self::Quota,
        Self::ReadOnly,
        Self::Access,
        Self::NotPermitted,
        Self::Stale,
        Self::Locked,
        Self::Deadlock,
        Self::Sharing,
        Self::DeletePending,
        Self::Busy,
        Self::TooManyOpen,
        Self::Interrupted,
        Self::Unsupported,
        Self::NoXattr,
        Self::CrossVolume,
        Self::Io,
        Self::Corrupt,
    ];

    /// Returns the kind in a few words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotFound => "no such file or directory",
            Self::Exists => "already exists",
            Self::NotDir => "not a directory",
            Self::IsDir => "is a directory",
            Self::NotEmpty => "directory not empty",
            Self::Invalid => "invalid argument",
            Self::NameTooLong => "name too long",
            Self::TooManyLinks => "too many links",
            Self::SymlinkLoop => "too many levels of symbolic links",
            Self::TooBig => "file too large",
            Self::NoSpace => "no space left on the volume",
            Self::Quota => "quota exceeded",
            Self::ReadOnly => "volume is read-only",
            Self::Access => "permission denied",
            Self::NotPermitted => "operation not permitted",
            Self::Stale => "the file is gone",
            Self::Locked => "locked by another",
            Self::Deadlock => "waiting would never end",
            Self::Sharing => "open elsewhere in a way that forbids it",
            Self::DeletePending => "about to be deleted",
            Self::Busy => "in use",
            Self::TooManyOpen => "too many files are open",
            Self::Interrupted => "interrupted",
            Self::Unsupported => "this volume cannot do that",
            Self::NoXattr => "no such extended attribute",
            Self::CrossVolume => "source and target are on different volumes",
            Self::Io => "input/output error",
            Self::Corrupt => "the volume is damaged",
        }
    }
}

/// The cause of an [`Error::host_full`].
const HOST_FULL: &str = "the host's disk is full; free some of it";

/// An error: a [`Kind`], and if it helps, what exactly went wrong and where. It is two words long,
/// so that a result without an error costs little.
#[derive(Clone)]
pub struct Error {
    kind: Kind,
    detail: Option<Box<Detail>>,
}

#[derive(Clone, Debug)]
enum Detail {
    Io(IoDetail),
    Corrupt(Corrupt),
    Note(String),
}

/// What the device reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoDetail {
    /// The operation that failed: `read`, `write`, `flush`, `open`.
    pub doing: &'static str,
    /// Byte offset on the device.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// The cause, in the system's words.
    pub cause: String,
}

/// A contradiction found on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The structure and field, in the specification's words: `BPB_SecPerClus`.
    pub what: &'static str,
    /// Byte offset of the structure on the device.
    pub offset: u64,
    /// The value found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

impl Error {
    /// Returns the kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns an error with a sentence that says what is wrong and, if possible, what to do.
    pub fn note(kind: Kind, words: impl Into<String>) -> Self {
        Self {
            kind,
            detail: Some(Box::new(Detail::Note(words.into()))),
        }
    }

    /// Returns a device error.
    pub fn io(doing: &'static str, offset: u64, len: u64, cause: impl Into<String>) -> Self {
        let io = IoDetail {
            doing,
            offset,
            len,
            cause: cause.into(),
        };
        Self {
            kind: Kind::Io,
            detail: Some(Box::new(Detail::Io(io))),
        }
    }

    /// Returns the `Io` of a device whose storage on the host is full. The volume itself is not
    /// full.
    pub fn host_full(doing: &'static str, offset: u64, len: u64) -> Self {
        Self::io(doing, offset, len, HOST_FULL)
    }

    /// Returns whether the error is a [`host_full`](Self::host_full).
    pub fn is_host_full(&self) -> bool {
        self.as_io().is_some_and(|io| io.cause == HOST_FULL)
    }

    /// Returns the error for damage in the structure `what` at byte `offset`.
    pub fn corrupt(
        what: &'static str,
        offset: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let c = Corrupt {
            what,
            offset,
            found: found.into(),
            expected: expected.into(),
        };
        Self {
            kind: Kind::Corrupt,
            detail: Some(Box::new(Detail::Corrupt(c))),
        }
    }

    /// Returns what the device reported, for an `Io` that came from one.
    pub fn as_io(&self) -> Option<&IoDetail> {
        match self.detail.as_deref() {
            Some(Detail::Io(io)) => Some(io),
            _ => None,
        }
    }

    /// Returns what was found and expected, for an error made by [`corrupt`](Self::corrupt).
    pub fn as_corrupt(&self) -> Option<&Corrupt> {
        match self.detail.as_deref() {
            Some(Detail::Corrupt(c)) => Some(c),
            _ => None,
        }
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self { kind, detail: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_deref() {
            None => f.write_str(self.kind.words()),
            Some(Detail::Note(words)) => f.write_str(words),
            Some(Detail::Io(io)) if io.len == 0 => {
                write!(f, "{} failed: {}", io.doing, io.cause)
            }
            Some(Detail::Io(io)) => {
                write!(
                    f,
                    "{} of {} bytes at byte {} failed: {}",
                    io.doing, io.len, io.offset, io.cause
                )
            }
            Some(Detail::Corrupt(c)) => {
                write!(
                    f,
                    "damaged: {} at byte {} is {}, expected {}",
                    c.what, c.offset, c.found, c.expected
                )
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.kind)?;
        match self.detail {
            Some(_) => write!(f, " ({self})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// Two errors are the same if their kinds are: the detail is for people.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl PartialEq<Kind> for Error {
    fn eq(&self, other: &Kind) -> bool {
        self.kind == *other
    }
}

const _: () = assert!(size_of::<Error>() == 16);
