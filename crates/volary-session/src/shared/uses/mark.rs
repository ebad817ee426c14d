//! [`Mark`]: identifies an open among those of its node.

/// Identifies an open among the uses of its node; [`PLAIN`] for an open that is only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

/// An open that allows all and has no place or key: a POSIX caller's.
pub(crate) const PLAIN: Mark = Mark(0);

/// An open that is not even counted: see [`OpenHow::momentary`](crate::OpenHow).
pub(crate) const MOMENTARY: Mark = Mark(u64::MAX);
