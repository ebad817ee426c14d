//! The host's clock, for how long a client may take.

use std::time::Instant;

/// Now.
#[expect(
    clippy::disallowed_methods,
    reason = "what a client may take is told by the host's clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Lets time pass, for tests of who is slow.
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test of time takes time")]
pub(crate) fn rest(time: std::time::Duration) {
    std::thread::sleep(time);
}
