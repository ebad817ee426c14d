//! How the program ends: exit codes, and errors as one line.

use std::fmt;
use volary::{Error, Kind};

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
    /// The code that the shell sees.
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

    /// What it means, for the man page.
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
        Self {
            exit,
            line: format!("{place}: {error}{}", advice(error, &"VOLUME")),
        }
    }

    /// The volume on `source` could not be opened.
    pub(crate) fn opening(source: impl fmt::Display, error: &Error) -> Self {
        let exit = match error.kind() {
            Kind::Corrupt => Exit::Damaged,
            _ => Exit::NotOpened,
        };
        Self {
            exit,
            line: format!("{source}: {error}{}", advice(error, &source)),
        }
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

    /// The user stopped it.
    pub(crate) fn stopped() -> Self {
        Self::new(Exit::Stopped, "stopped")
    }

    /// Something of the host could not be done.
    pub(crate) fn host(place: impl fmt::Display, error: impl Into<std::io::Error>) -> Self {
        Self::new(Exit::Failed, format!("{place}: {}", words(&error.into())))
    }

    /// Prints the line, if there is one.
    pub(crate) fn report(&self) {
        if !self.line.is_empty() {
            warn(&self.line);
        }
    }
}

impl From<std::io::Error> for Fail {
    /// An error of standard output. A closed pipe is how `| head` ends: no
    /// more is wanted, and nothing is said.
    fn from(e: std::io::Error) -> Self {
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Done, "");
        }
        Self::host("standard output", e)
    }
}

/// Prints one line of an error to standard error.
pub(crate) fn warn(line: &str) {
    use std::io::Write;
    // Where standard error is closed there is nobody to tell.
    let _ = std::io::stderr().write_all(format!("volary: {line}\n").as_bytes());
}

/// What to do about it, where the error does not say so itself.
fn advice(error: &Error, source: &dyn fmt::Display) -> String {
    match error.kind() {
        Kind::Corrupt => format!("; check the volume: volary fsck -n {source}"),
        Kind::NoSpace => "; delete something, or make a larger volume".into(),
        Kind::Io if error.is_host_full() => {
            format!(", then check the volume: volary fsck -p {source}")
        }
        _ => String::new(),
    }
}

/// An error of the host without the number that Rust adds to it.
pub(crate) fn words(e: &std::io::Error) -> String {
    let text = e.to_string();
    let cut = text.find(" (os error").unwrap_or(text.len());
    let mut words = text.get(..cut).unwrap_or_default().to_string();
    if let Some(first) = words.get(..1).map(str::to_lowercase) {
        words.replace_range(..1, &first);
    }
    words
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
