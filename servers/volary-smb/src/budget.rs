//! [`Budget`]: what a user may have at a time, on all connections together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One user's.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    pub(crate) opens: Tally,
    pub(crate) watches: Tally,
}

/// How many of one thing there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// Takes one more, for as long as what is returned lives; `None` if there are `max`.
    pub(crate) fn take(&self, max: usize) -> Option<Taken> {
        let more = |count: usize| (count < max).then(|| count.saturating_add(1));
        let count = &self.0;
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| Taken(Arc::clone(count)))
    }
}

/// One of what a [`Tally`] counts.
#[derive(Debug)]
pub(crate) struct Taken(Arc<AtomicUsize>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let tally = Tally::default();
        let two = [tally.take(2).unwrap(), tally.take(2).unwrap()];
        assert!(tally.take(2).is_none());
        drop(two);
        assert!(tally.take(1).is_some());
    }
}
