//! The system's clock, which a [`Vol`](crate::Vol) uses unless its user sets another.

use volary_core::Time;

/// Returns the current time.
#[expect(clippy::disallowed_methods, reason = "the façade's user has a clock")]
pub(super) fn system() -> Time {
    std::time::SystemTime::now().into()
}

/// Returns a clock that tells the time since now.
#[cfg(feature = "bulk")]
#[expect(clippy::disallowed_methods, reason = "the façade's user has a clock")]
pub(super) fn stopwatch() -> volary_bulk::Clock {
    let begin = std::time::Instant::now();
    std::sync::Arc::new(move || begin.elapsed())
}
