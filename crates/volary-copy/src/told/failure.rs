//! [`Failure`]: why something was not copied, or not whole.

use std::borrow::Cow;
use std::fmt;
use std::io;
use volary_core::{Error, Kind};

/// The result of a step of a copy.
pub(crate) type Done<T = ()> = Result<T, Failure>;

/// Why something was not copied, or not whole, and where.
#[derive(Debug)]
pub struct Failure {
    place: String,
    why: Why,
    and: Option<And>,
    stops: bool,
}

/// What went wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Why {
    /// An error of the volume.
    Volume(Error),
    /// The volume is full. This many files were copied before.
    Full(u64),
    /// An error of the host.
    Host(io::Error),
    /// An error of the output that is copied to.
    Output(io::Error),
    /// It is a directory, and the copy is not recursive.
    Directory,
    /// It is a symlink, which the target cannot store.
    Symlink,
    /// It is a device; those are made only if owners and modes are kept.
    Device,
    /// The directory is in another place of this volume too. The volume is damaged.
    Twice(String),
    /// With this file, more than this many bytes would be copied.
    TooMuch(u64),
    /// The target of several origins is not an existing directory.
    NoDirectory,
    /// A directory cannot be copied into itself.
    IntoItself,
    /// The source has no name for the copy.
    NoName,
    /// Something else, in words.
    Words(Cow<'static, str>),
    /// The observer stopped the copy.
    Stopped,
    /// Another failure, which was reported before.
    Told,
}

/// An addition to a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum And {
    /// The target is left incomplete.
    NotWhole,
    /// It was copied without its extended attributes.
    WithoutXattrs,
}

impl And {
    /// Returns the addition in a few words, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NotWhole => "what is there of it now is not whole",
            Self::WithoutXattrs => "extended attributes left out",
        }
    }
}

impl Failure {
    pub(crate) fn new(place: impl Into<String>, why: Why) -> Self {
        let stops = match &why {
            Why::Full(_) | Why::TooMuch(_) | Why::Stopped | Why::Told => true,
            Why::Volume(e) => e.kind() == Kind::Interrupted,
            Why::Output(e) => e.kind() == io::ErrorKind::BrokenPipe,
            _ => false,
        };
        Self {
            place: place.into(),
            why,
            and: None,
            stops,
        }
    }

    pub(crate) fn at(place: &dyn fmt::Display, e: Error) -> Self {
        Self::new(place.to_string(), Why::Volume(e))
    }

    pub(crate) fn host(place: impl Into<String>, e: impl Into<io::Error>) -> Self {
        Self::new(place, Why::Host(e.into()))
    }

    pub(crate) fn words(place: impl Into<String>, words: impl Into<Cow<'static, str>>) -> Self {
        Self::new(place, Why::Words(words.into()))
    }

    pub(crate) fn stopped() -> Self {
        Self::new("", Why::Stopped)
    }

    pub(crate) fn and(mut self, and: And) -> Self {
        self.and = Some(and);
        self
    }

    /// Makes this failure end the copy.
    pub(crate) fn stopping(mut self) -> Self {
        self.stops = true;
        self
    }

    /// Returns where it happened, as people write it: a path of the host, `disk.img:/a`.
    /// Unprintable bytes are escaped. Empty if there is no place.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns what went wrong.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// Returns the addition, if there is one.
    pub fn more(&self) -> Option<And> {
        self.and
    }

    /// Returns whether the failure ends the copy.
    pub fn stops(&self) -> bool {
        self.stops
    }

    /// Returns the kind of error, for programs.
    pub fn kind(&self) -> Kind {
        match &self.why {
            Why::Volume(e) => e.kind(),
            Why::Full(_) => Kind::NoSpace,
            Why::Host(e) | Why::Output(e) => kind_of(e),
            Why::Directory => Kind::IsDir,
            Why::Symlink | Why::Device => Kind::Unsupported,
            Why::Twice(_) => Kind::Corrupt,
            Why::TooMuch(_) => Kind::TooBig,
            Why::NoDirectory => Kind::NotDir,
            Why::IntoItself | Why::NoName | Why::Words(_) => Kind::Invalid,
            Why::Stopped | Why::Told => Kind::Interrupted,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        self.why.fmt(f)?;
        match self.and {
            Some(and) => write!(f, "; {}", and.words()),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Volume(e) => return e.fmt(f),
            Self::Full(files) => {
                return write!(
                    f,
                    "no space left on the volume; stopped, with {files} files copied"
                );
            }
            Self::Host(e) | Self::Output(e) => return f.write_str(&words(e)),
            Self::Directory => "is a directory",
            Self::Twice(_) => "this directory is in another place too; the volume is damaged",
            Self::Symlink => "a symlink, which this volume cannot keep; left out",
            Self::Device => "a device; left out",
            Self::TooMuch(max) => {
                return write!(
                    f,
                    "stopped before it: with it, more than {max} bytes would be copied"
                );
            }
            Self::NoDirectory => "not a directory that is there; several go into one",
            Self::IntoItself => "a directory cannot be copied into itself",
            Self::NoName => "has no name",
            Self::Words(words) => words,
            Self::Stopped => "stopped",
            Self::Told => "the other side has ended",
        })
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.why {
            Why::Volume(e) => Some(e),
            Why::Host(e) | Why::Output(e) => Some(e),
            _ => None,
        }
    }
}

/// Returns an error of the host in the style of our messages: in lower case, without its number.
pub fn words(e: &io::Error) -> String {
    let mut words = e.to_string();
    if let Some(at) = words.find(" (os error") {
        let end = words.get(at..).and_then(|rest| rest.find(')'));
        words.replace_range(at..end.map_or(words.len(), |end| at + end + 1), "");
    }
    if let Some(first) = words.get(..1).map(str::to_lowercase) {
        words.replace_range(..1, &first);
    }
    words
}

/// Returns the kind of an error of the host.
fn kind_of(e: &io::Error) -> Kind {
    match e.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        io::ErrorKind::PermissionDenied => Kind::Access,
        io::ErrorKind::AlreadyExists => Kind::Exists,
        io::ErrorKind::NotADirectory => Kind::NotDir,
        io::ErrorKind::IsADirectory => Kind::IsDir,
        io::ErrorKind::StorageFull => Kind::NoSpace,
        io::ErrorKind::QuotaExceeded => Kind::Quota,
        io::ErrorKind::ReadOnlyFilesystem => Kind::ReadOnly,
        io::ErrorKind::FileTooLarge => Kind::TooBig,
        io::ErrorKind::InvalidInput => Kind::Invalid,
        io::ErrorKind::InvalidFilename => Kind::NameTooLong,
        io::ErrorKind::TooManyLinks => Kind::TooManyLinks,
        io::ErrorKind::Interrupted => Kind::Interrupted,
        _ => Kind::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_host_read_like_ours() {
        let e = io::Error::from_raw_os_error(2);
        assert_eq!(words(&e), "no such file or directory");
        let failure = Failure::host("/a", e).and(And::NotWhole);
        let line = "/a: no such file or directory; what is there of it now is not whole";
        assert_eq!(failure.to_string(), line);
        assert_eq!(failure.kind(), Kind::NotFound);
    }

    #[test]
    fn a_closed_pipe_and_a_full_volume_stop_a_copy() {
        let closed = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(Failure::new("-", Why::Output(closed())).stops());
        assert!(!Failure::host("/a", closed()).stops());
        assert!(Failure::new("/a", Why::Full(1)).stops());
        assert!(Failure::at(&"/a", Kind::Interrupted.into()).stops());
        assert!(!Failure::at(&"/a", Kind::Io.into()).stops());
    }
}
