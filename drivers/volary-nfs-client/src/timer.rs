//! The host's clock, for time limits of the server and the age of cached data. Times on the volume
//! are the server's, and never come from this clock.

use std::time::Instant;

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "how long another machine takes is told by the host's clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
