//! The host's clock, for time limits of clients.

use std::time::Instant;

/// Returns the current time.
#[expect(
    clippy::disallowed_methods,
    reason = "what a client may take is told by the host's clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Sleeps, for tests of slow clients.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test of time takes time")]
pub(crate) fn rest(time: std::time::Duration) {
    std::thread::sleep(time);
}
