//! [`Budget`]: what a user has in use, on all connections together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A user's counts.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    pub(crate) opens: Tally,
    pub(crate) watches: Tally,
    /// Connections on which the user has logged on.
    pub(crate) connections: Tally,
    pub(crate) trees: Tally,
    pub(crate) pipes: Tally,
    /// Waiting requests, and the bytes of their messages.
    pub(crate) waiting: Tally,
    pub(crate) waiting_bytes: Tally,
}

/// A count of one kind of resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// Takes one more, until the result is dropped. Returns `None` if there are `max` already.
    pub(crate) fn take(&self, max: usize) -> Option<Taken> {
        self.take_many(1, max)
    }

    /// Takes `n` more, until the result is dropped. Returns `None` if there would be more than
    /// `max`.
    pub(crate) fn take_many(&self, n: usize, max: usize) -> Option<Taken> {
        let more = |count: usize| count.checked_add(n).filter(|sum| *sum <= max);
        let count = &self.0;
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()
            .map(|_| Taken(Arc::clone(count), n))
    }
}

/// A share of what a [`Tally`] counts.
#[derive(Debug)]
pub(crate) struct Taken(Arc<AtomicUsize>, usize);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
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
        let three = tally.take_many(3, 4);
        assert!(tally.take_many(2, 4).is_none() && tally.take(4).is_some());
        drop(three);
        assert!(tally.take_many(5, 4).is_none() && tally.take_many(4, 4).is_some());
    }
}
