//! Changes that may have to wait for a commit.
//!
//! A driver that orders its writes cannot do every change at once. A sector might have to be
//! written both before and after another, or freed space may be unusable until the disk knows that
//! it is free. Such a change ends with [`Stop::Commit`] and changes nothing. [`with_commits`]
//! commits and tries it again.

use volary_core::{Error, Kind, Result};

/// Why a part of a change ended early. It has changed nothing, except what it remembers itself.
#[derive(Debug)]
pub enum Stop {
    /// The change is possible after a commit.
    Commit,
    /// The change failed.
    Error(Error),
}

impl Stop {
    /// Turns `NoSpace` into a request for a commit, if `gives_room` says that one would free space.
    #[must_use]
    pub fn or_commit(self, gives_room: impl FnOnce() -> bool) -> Self {
        match self {
            Self::Error(e) if e == Kind::NoSpace && gives_room() => Self::Commit,
            stop => stop,
        }
    }
}

impl From<Error> for Stop {
    fn from(e: Error) -> Self {
        Self::Error(e)
    }
}

impl From<Kind> for Stop {
    fn from(k: Kind) -> Self {
        Self::Error(k.into())
    }
}

/// The result of a part of a change.
pub type Step<T> = std::result::Result<T, Stop>;

/// How often a change is tried. A rename on FAT needs at most four commits, one on FFS two, if no
/// other change interferes.
pub const TRIES: u32 = 6;

/// Runs `attempt`, which changes `state` wholly or not at all. If it asks for a commit, runs
/// `commit` and tries again.
///
/// # Errors
/// Those of `attempt` and `commit`; `NoSpace` if commits do not help.
pub fn with_commits<S: ?Sized, R>(
    state: &mut S,
    mut attempt: impl FnMut(&mut S) -> Step<R>,
    mut commit: impl FnMut(&mut S) -> Result<()>,
) -> Result<R> {
    for _ in 0..TRIES {
        match attempt(state) {
            Ok(done) => return Ok(done),
            Err(Stop::Error(e)) => return Err(e),
            Err(Stop::Commit) => commit(state)?,
        }
    }
    Err(Kind::NoSpace.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what was done: `a`ttempts and `c`ommits.
    fn run(
        answers: Vec<Step<u32>>,
        commit: &Result<()>,
    ) -> (std::result::Result<u32, Kind>, String) {
        let mut answers = answers.into_iter();
        let mut done = String::new();
        let result = with_commits(
            &mut done,
            |done| {
                done.push('a');
                answers.next().unwrap_or(Err(Stop::Commit))
            },
            |done| {
                done.push('c');
                commit.as_ref().map(|&()| ()).map_err(|e| e.kind().into())
            },
        );
        (result.map_err(|e| e.kind()), done)
    }

    #[test]
    fn a_change_that_wants_a_commit_is_begun_anew() {
        let commit = || Err(Stop::Commit);
        assert_eq!(run(vec![Ok(1)], &Ok(())), (Ok(1), "a".into()));
        let answers = vec![commit(), commit(), Ok(2)];
        assert_eq!(run(answers, &Ok(())), (Ok(2), "acaca".into()));
    }

    #[test]
    fn a_failure_ends_it() {
        let answers = vec![Err(Stop::Commit), Err(Kind::Exists.into()), Ok(1)];
        assert_eq!(run(answers, &Ok(())), (Err(Kind::Exists), "aca".into()));
        let failed = Err(Kind::Io.into());
        assert_eq!(run(Vec::new(), &failed), (Err(Kind::Io), "ac".into()));
    }

    #[test]
    fn it_is_not_begun_for_ever() {
        let (answer, done) = run(Vec::new(), &Ok(()));
        assert_eq!((answer, done.len()), (Err(Kind::NoSpace), 12));
    }

    #[test]
    fn only_want_of_room_that_a_commit_gives_waits() {
        let full = || Stop::from(Kind::NoSpace);
        assert!(matches!(full().or_commit(|| true), Stop::Commit));
        assert!(matches!(full().or_commit(|| false), Stop::Error(e) if e == Kind::NoSpace));
        let io = Stop::from(Kind::Io);
        assert!(matches!(io.or_commit(|| true), Stop::Error(e) if e == Kind::Io));
        assert!(matches!(Stop::Commit.or_commit(|| false), Stop::Commit));
    }
}
