//! The checks of a rename, in the order of [`FileSystem::rename`](volary_core::FileSystem::rename).
//!
//! A driver takes these steps:
//!
//! 1. It finds both names, and that the new directory has not been removed (`NotFound`).
//! 2. For a directory, [`lies_in`] tells whether it would move into itself (`Invalid`).
//! 3. [`task`] returns what to do, or why it is refused (`Exists`, `NotDir`, `IsDir`).
//! 4. For [`Task::Replace`] of a directory, the driver tests whether it is empty (`NotEmpty`). For
//!    [`Task::Move`], it tests whether the new name can be made.

use volary_core::{Error, Kind, RenameFlags, Result};

/// The node that the new name leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Both names are the same entry: they differ in case at most.
    pub is_same_entry: bool,
    /// Both names lead to one node.
    pub is_same_node: bool,
    /// The node is a directory.
    pub is_dir: bool,
}

/// What a rename has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Do nothing: both names lead to one node.
    Nothing,
    /// Store the entry's name in its new spelling.
    Respell,
    /// Move the entry to a free name.
    Move,
    /// Move the entry onto another, and replace it.
    Replace,
    /// Swap the two entries.
    Swap,
}

/// Returns what a rename has to do. `is_dir` is true if the moved entry is a directory;
/// `is_same_name`, if the new name equals the old one byte by byte.
///
/// # Errors
/// `NotFound` for a swap with a free name; with [`RenameFlags::KEEP`], `Exists`; `NotDir` for a
/// directory onto something else, `IsDir` for the reverse.
pub fn task(
    flags: RenameFlags,
    is_dir: bool,
    is_same_name: bool,
    target: Option<Target>,
) -> Result<Task> {
    let keeps = flags == RenameFlags::KEEP;
    match target {
        None if flags == RenameFlags::SWAP => Err(Kind::NotFound.into()),
        None => Ok(Task::Move),
        Some(_) if flags == RenameFlags::SWAP => Ok(Task::Swap),
        Some(new) if new.is_same_entry && !(keeps && is_same_name) => Ok(Task::Respell),
        Some(_) if keeps => Err(Kind::Exists.into()),
        Some(new) if new.is_same_node => Ok(Task::Nothing),
        Some(new) => match (is_dir, new.is_dir) {
            (true, false) => Err(Kind::NotDir.into()),
            (false, true) => Err(Kind::IsDir.into()),
            _ => Ok(Task::Replace),
        },
    }
}

/// Returns whether the directory `dir` is `node` or lies below it. `above` returns the parent of a
/// directory, or `None` for the root.
///
/// # Errors
/// Those of `above`; `Corrupt` if a directory is its own ancestor.
pub fn lies_in<N: Copy + Eq, E: From<Error>>(
    dir: N,
    node: N,
    mut above: impl FnMut(N) -> std::result::Result<Option<N>, E>,
) -> std::result::Result<bool, E> {
    let (mut at, mut circle) = (dir, Circle::new(dir));
    while at != node {
        let Some(next) = above(at)? else {
            return Ok(false);
        };
        circle.check(next)?;
        at = next;
    }
    Ok(true)
}

/// Notices that a way leads round in a circle, after three times its length at most, without a
///memory of all that it passed (R. P. Brent, "An Improved Monte Carlo Factorization Algorithm",
/// 1980).
#[derive(Clone, Copy, Debug)]
pub struct Circle<N> {
    /// The node that was reached when the number of steps was last a power of two.
    landmark: N,
    steps: u64,
}

impl<N: Copy + Eq> Circle<N> {
    /// Returns a path that begins at `start`.
    pub fn new(start: N) -> Self {
        Self {
            landmark: start,
            steps: 0,
        }
    }

    /// Takes a step to `next`.
    ///
    /// # Errors
    /// `Corrupt` if the path returns to a former node.
    pub fn check(&mut self, next: N) -> Result<()> {
        if next == self.landmark {
            let words = "directories hold each other in a circle";
            return Err(Error::note(Kind::Corrupt, words));
        }
        self.steps += 1;
        if self.steps.is_power_of_two() {
            self.landmark = next;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Target = Target {
        is_same_entry: false,
        is_same_node: false,
        is_dir: false,
    };
    const DIR: Target = Target {
        is_dir: true,
        ..FILE
    };
    /// A second name of the node.
    const LINK: Target = Target {
        is_same_node: true,
        ..FILE
    };
    /// The entry itself.
    const SELF: Target = Target {
        is_same_entry: true,
        ..LINK
    };

    fn ask(
        flags: RenameFlags,
        is_dir: bool,
        target: Option<Target>,
    ) -> std::result::Result<Task, Kind> {
        task(flags, is_dir, false, target).map_err(|e| e.kind())
    }

    #[test]
    fn a_name_that_is_free_is_moved_to() {
        for is_dir in [false, true] {
            assert_eq!(ask(RenameFlags::REPLACE, is_dir, None), Ok(Task::Move));
            assert_eq!(ask(RenameFlags::KEEP, is_dir, None), Ok(Task::Move));
            assert_eq!(ask(RenameFlags::SWAP, is_dir, None), Err(Kind::NotFound));
        }
    }

    #[test]
    fn only_the_same_kind_is_replaced() {
        let replace = RenameFlags::REPLACE;
        assert_eq!(ask(replace, false, Some(FILE)), Ok(Task::Replace));
        assert_eq!(ask(replace, true, Some(DIR)), Ok(Task::Replace));
        assert_eq!(ask(replace, true, Some(FILE)), Err(Kind::NotDir));
        assert_eq!(ask(replace, false, Some(DIR)), Err(Kind::IsDir));
    }

    #[test]
    fn exists_comes_before_the_kinds() {
        for target in [FILE, DIR, LINK] {
            for is_dir in [false, true] {
                let kept = ask(RenameFlags::KEEP, is_dir, Some(target));
                assert_eq!(kept, Err(Kind::Exists));
            }
        }
    }

    #[test]
    fn a_swap_minds_no_kinds() {
        for target in [FILE, DIR, LINK, SELF] {
            for is_dir in [false, true] {
                assert_eq!(ask(RenameFlags::SWAP, is_dir, Some(target)), Ok(Task::Swap));
            }
        }
    }

    #[test]
    fn two_names_of_one_node_stay() {
        assert_eq!(
            ask(RenameFlags::REPLACE, false, Some(LINK)),
            Ok(Task::Nothing)
        );
    }

    #[test]
    fn another_case_is_kept_and_the_same_name_exists() {
        for flags in [RenameFlags::REPLACE, RenameFlags::KEEP] {
            assert_eq!(ask(flags, false, Some(SELF)), Ok(Task::Respell));
        }
        let same = |flags| task(flags, false, true, Some(SELF)).map_err(|e| e.kind());
        assert_eq!(same(RenameFlags::REPLACE), Ok(Task::Respell));
        assert_eq!(same(RenameFlags::KEEP), Err(Kind::Exists));
    }

    /// Returns whether `dir` lies in `node`, if the parent of each directory is half its number.
    fn halves(dir: u32, node: u32) -> Result<bool> {
        lies_in(dir, node, |n| Ok((n > 1).then_some(n / 2)))
    }

    #[test]
    fn a_directory_lies_in_itself_and_in_all_above() {
        for node in [100, 50, 25, 12, 6, 3, 1] {
            assert!(halves(100, node).unwrap(), "{node}");
        }
        for node in [200, 101, 51, 2, 7] {
            assert!(!halves(100, node).unwrap(), "{node}");
        }
    }

    #[test]
    fn circles_of_any_length_are_noticed() {
        for tail in [0, 1, 2, 3, 10, 100] {
            for length in [1, 2, 3, 5, 64, 100] {
                let mut steps = 0;
                let found = lies_in(0, u32::MAX, |n| {
                    steps += 1;
                    let next = n + 1;
                    let end = tail + length;
                    Ok::<_, Error>(Some(if next == end { tail } else { next }))
                });
                assert_eq!(found.unwrap_err(), Kind::Corrupt);
                assert!(steps <= 3 * (tail + length) + 2, "{tail} {length}: {steps}");
            }
        }
    }

    #[test]
    fn what_is_above_may_fail() {
        let found = lies_in(1, 2, |_| Err::<Option<u32>, _>(Error::from(Kind::Io)));
        assert_eq!(found.unwrap_err(), Kind::Io);
    }
}
