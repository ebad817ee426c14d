//! Whose an event is, and when it is.

use std::time::Instant;

/// The target of this command's own events; servers' events have their names.
pub(super) const OURS: &str = "volary";
/// Reports that are printed as they are.
pub(super) const REPORT: &str = "report";

/// Returns the time.
#[expect(clippy::disallowed_methods, reason = "when something is written")]
pub(super) fn now() -> Instant {
    Instant::now()
}
