//! The clock of deadlines.

use std::time::Instant;

/// Deadlines are of the connection, not of a volume: they run on a clock that
/// nobody sets.
#[expect(clippy::disallowed_methods, reason = "deadlines of sockets")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
