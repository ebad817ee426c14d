//! The clock of deadlines.

use std::time::Instant;

/// Returns the time for deadlines. These belong to connections, not to volumes, so they use a clock
/// that is never set.
#[expect(clippy::disallowed_methods, reason = "deadlines of sockets")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
