//! The host's clock: how long a server may take, and how long what it said is
//! believed. Times of the volume are the server's; this one is in none of them.

use std::time::Instant;

/// Now.
#[expect(
    clippy::disallowed_methods,
    reason = "how long another machine takes is told by the host's clock"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
