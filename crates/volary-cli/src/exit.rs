//! How the program ends: exit codes, and errors as one line.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use volary::{Error, Kind, Source, escape};

/// What the program ends with. The man page of each command lists these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All of it was done.
    Done,
    /// Some of it, or all, could not be done.
    Failed,
    /// The command line makes no sense; nothing was done.
    Usage,
    /// The volume could not be opened; nothing was done.
    NotOpened,
    /// The volume is damaged.
    Damaged,
    /// The user stopped it.
    Stopped,
    /// `fsck`: there was damage, and all of it was mended.
    Mended,
    /// `fsck`: damage is left.
    Left,
    /// `fsck`: the check could not be done.
    CheckFailed,
    /// `fsck`: the command line makes no sense.
    CheckUsage,
    /// `fsck`: the user stopped it.
    CheckStopped,
}

impl Exit {
    /// Returns the code that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Mended => 1,
            Self::Usage => 2,
            Self::NotOpened => 3,
            Self::Damaged | Self::Left => 4,
            Self::Stopped => 130,
            Self::CheckFailed => 8,
            Self::CheckUsage => 16,
            Self::CheckStopped => 32,
        }
    }

    /// Returns what it means, for the man page.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Done => "Done.",
            Self::Failed => "Some of it, or all, could not be done; each part has its line.",
            Self::Usage | Self::CheckUsage => "The command line makes no sense. Nothing was done.",
            Self::NotOpened => {
                "The volume could not be opened: the image is missing, empty, a directory, of \
                 another format, in use or without permission, or has no such partition. \
                 Nothing was changed."
            }
            Self::Damaged => "The volume is damaged: see volary fsck.",
            Self::Stopped => "Stopped by the user. What was done until then is kept.",
            Self::Mended => "There was damage, and all of it was mended.",
            Self::Left => "Damage is left.",
            Self::CheckFailed => "The check could not be done.",
            Self::CheckStopped => "Stopped by the user.",
        }
    }

    /// Those of most commands.
    pub(crate) const COMMON: [Self; 6] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotOpened,
        Self::Damaged,
        Self::Stopped,
    ];

    /// Those of `fsck`, as fsck(8) has them.
    pub(crate) const FSCK: [Self; 6] = [
        Self::Done,
        Self::Mended,
        Self::Left,
        Self::CheckFailed,
        Self::CheckUsage,
        Self::CheckStopped,
    ];
}

/// Why a command, or a part of one, was not done.
#[derive(Debug)]
pub(crate) struct Fail {
    /// What the program ends with.
    pub(crate) exit: Exit,
    /// `PATH: what, what to do`; empty when there is nothing to say (a closed
    /// pipe, a user who knows why).
    pub(crate) line: String,
}

/// A command's result.
pub(crate) type Done<T = ()> = std::result::Result<T, Fail>;

impl Fail {
    /// Something at `place` could not be done.
    pub(crate) fn at(place: impl fmt::Display, error: &Error) -> Self {
        let exit = match error.kind() {
            Kind::Corrupt => Exit::Damaged,
            Kind::Interrupted => Exit::Stopped,
            _ => Exit::Failed,
        };
        let words = without_number(error.to_string());
        Self {
            exit,
            line: format!("{place}: {words}{}", advice(error, &"VOLUME")),
        }
    }

    /// Returns what `source` names could not be opened; or how, in the options, makes no sense.
    pub(crate) fn opening(source: impl fmt::Display, error: &Error) -> Self {
        let exit = match error.kind() {
            Kind::Corrupt => Exit::Damaged,
            Kind::Invalid => Exit::Usage,
            _ => Exit::NotOpened,
        };
        let error_words = without_number(error.to_string());
        Self {
            exit,
            line: format!("{source}: {error_words}{}", advice(error, &source)),
        }
    }

    /// Returns the volume on `source` could not be opened. Says what a name was perhaps meant for.
    pub(crate) fn volume(source: &Source, error: &Error) -> Self {
        let fail = Self::opening(source, error);
        let Source::Image { path, .. } = source else {
            return fail;
        };
        let shown = escape(path.as_os_str().as_bytes());
        let line = match error.kind() {
            Kind::IsDir => format!("{source}: is a directory; as a volume it is host:{shown}"),
            Kind::NotFound if path.as_os_str() == "-" => {
                "-: no such image; a volume is not read from standard input".into()
            }
            Kind::NotFound => match image_before_colon(path) {
                Some((image, rest)) => format!(
                    "{source}: no such image; a path in a volume begins with a slash: {}:/{}",
                    escape(image),
                    escape(rest)
                ),
                None if is_of_no_host(path) => {
                    format!("{source}: no such image; in a volume it is VOLUME:{shown}")
                }
                None => return fail,
            },
            _ => return fail,
        };
        Self { line, ..fail }
    }

    /// In words of our own.
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self {
            exit,
            line: line.into(),
        }
    }

    /// Arguments that make no sense.
    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    /// Returns the user stopped it.
    pub(crate) fn stopped() -> Self {
        Self::new(Exit::Stopped, "stopped")
    }

    /// Something of the host could not be done.
    pub(crate) fn host(place: impl fmt::Display, error: impl Into<std::io::Error>) -> Self {
        Self::new(Exit::Failed, format!("{place}: {}", words(&error.into())))
    }
}

impl From<std::io::Error> for Fail {
    /// Returns an error of standard output. A closed pipe is how `| head` ends: no
    /// more is wanted, and nothing is said.
    fn from(e: std::io::Error) -> Self {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Done, "");
        }
        Self::host("standard output", e)
    }
}

/// Returns an image that is there, and what follows on it after a colon.
fn image_before_colon(path: &Path) -> Option<(&[u8], &[u8])> {
    let bytes = path.as_os_str().as_bytes();
    let at = bytes.iter().position(|&b| b == b':')?;
    let (image, rest) = (bytes.get(..at)?, bytes.get(at + 1..)?);
    Path::new(OsStr::from_bytes(image))
        .is_file()
        .then_some((image, rest))
}

/// Returns whether the host has no directory of the root that a path starts with. It is usually a path in a volume.
fn is_of_no_host(path: &Path) -> bool {
    let mut parts = path.components();
    let first = parts.nth(1).filter(|_| path.is_absolute());
    first.is_some_and(|first| !Path::new("/").join(first).exists())
}

/// Returns what to do about it, where the error does not say so itself.
fn advice(error: &Error, source: &dyn fmt::Display) -> String {
    match error.kind() {
        // An image in a format of its own is not what a check of the volume mends.
        Kind::Corrupt if error.to_string().contains("; see: ") => String::new(),
        Kind::Corrupt => format!("; check the volume: volary fsck -n {source}"),
        // A full directory is not a full volume.
        Kind::NoSpace if error.to_string().contains("; ") => String::new(),
        Kind::NoSpace => "; delete something, or make a larger volume".into(),
        Kind::Io if error.is_host_full() => {
            format!(", then check the volume: volary fsck -p {source}")
        }
        _ => String::new(),
    }
}

/// Returns an error of the host in words like ours.
pub(crate) use volary::copy::words;

/// Without the number of an error of the host.
fn without_number(mut text: String) -> String {
    if let Some(at) = text.find(" (os error") {
        let end = text.get(at..).and_then(|rest| rest.find(')'));
        text.replace_range(at..end.map_or(text.len(), |end| at + end + 1), "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_within_a_table_differ() {
        for table in [Exit::COMMON, Exit::FSCK] {
            let mut codes: Vec<u8> = table.iter().map(|e| e.code()).collect();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), table.len());
        }
    }

    #[test]
    fn words_of_the_host_read_like_ours() {
        let e = std::io::Error::from_raw_os_error(2);
        assert_eq!(words(&e), "no such file or directory");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let fail = Fail::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!((fail.exit, fail.line.as_str()), (Exit::Done, ""));
    }
}
