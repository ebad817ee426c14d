//! Locks: who waits for whom, and when locks end.

use crate::{Make, kind, root, volume};
use std::sync::Arc;
use volary_core::{Cancel, Kind, Mode, NodeId, OpenId};
use volary_session::{HeldLock, LockKind, Range, Session, Volume, Wait};

const S: LockKind = LockKind::Shared;
const X: LockKind = LockKind::Exclusive;

static NEVER: Cancel = Cancel::new();

fn scene() -> (Arc<Volume>, Session, NodeId, OpenId) {
    let volume = volume();
    let s = root(&volume);
    let (node, open) = s.open_file(s.root(), "f");
    (volume, s, node, open)
}

fn held(s: &Session, open: OpenId) -> Vec<(u64, u64, u64, bool)> {
    let all = s.locks(open).unwrap().into_iter();
    all.map(|l| (l.owner.number, l.range.first, l.range.last, l.exclusive))
        .collect()
}

/// Runs `waiting` in a thread, and `then` once it waits.
fn while_it_waits<T: Send, U>(
    volume: &Volume,
    waiting: impl FnOnce() -> T + Send,
    then: impl FnOnce() -> U,
) -> (T, U) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(waiting);
        while volume.waiting_count() == 0 {
            assert!(!thread.is_finished(), "it did not wait");
            std::thread::yield_now();
        }
        let after = then();
        (thread.join().unwrap(), after)
    })
}

#[test]
fn shared_locks_go_together_and_exclusive_ones_with_none() {
    for (mine, theirs, together) in [(S, S, true), (S, X, false), (X, S, false), (X, X, false)] {
        let (_, s, _, open) = scene();
        s.lock(open, 1, Range::new(0, 10), mine, Wait::No).unwrap();
        let got = s.lock(open, 2, Range::new(9, 10), theirs, Wait::No);
        assert_eq!(kind(got), (!together).then_some(Kind::Locked));
        s.lock(open, 2, Range::new(10, 10), theirs, Wait::No)
            .unwrap();
        s.lock(open, 1, Range::new(0, 10), theirs, Wait::No)
            .unwrap_or_else(|_| assert!(together));
    }
}

#[test]
fn a_test_names_the_lock_in_the_way() {
    let (_, s, _, open) = scene();
    s.lock(open, 1, Range::new(5, 5), X, Wait::No).unwrap();
    s.lock(open, 1, Range::new(100, 0), S, Wait::No).unwrap();
    let test = |owner, range, kind| s.test_lock(open, owner, range, kind).unwrap();
    let found: HeldLock = test(2, Range::ALL, S).unwrap();
    assert_eq!((found.owner.number, found.range), (1, Range::new(5, 5)));
    assert!(found.exclusive);
    let found = test(2, Range::new(50, 0), X).unwrap();
    assert_eq!(found.range.last, u64::MAX);
    assert_eq!(test(2, Range::new(50, 0), S), None);
    assert_eq!(test(1, Range::ALL, X), None);
    assert_eq!(held(&s, open).len(), 2);
}

#[test]
fn owners_of_two_clients_are_two_even_with_one_number() {
    let (volume, s, _, open) = scene();
    let one = s.clone().with_client(volume.client());
    let two = s.clone().with_client(volume.client());
    one.lock(open, 1, Range::ALL, X, Wait::No).unwrap();
    let got = two.lock(open, 1, Range::ALL, X, Wait::No);
    assert_eq!(kind(got), Some(Kind::Locked));
    two.unlock_owner(open, 1).unwrap();
    assert_eq!(held(&s, open).len(), 1);
}

#[test]
fn a_lock_needs_an_open_for_what_it_is_to_protect() {
    let (_, s, node, open) = scene();
    let reads = s.open(node, Mode::Read).unwrap();
    let writes = s.open(node, Mode::Write).unwrap();
    let try_lock = |open, how| kind(s.lock(open, 1, Range::ALL, how, Wait::No));
    assert_eq!(try_lock(reads, S), None);
    assert_eq!(try_lock(reads, X), Some(Kind::Access));
    assert_eq!(try_lock(writes, X), None);
    assert_eq!(try_lock(writes, S), Some(Kind::Access));
    assert_eq!(try_lock(open, S), None);
    assert_eq!(try_lock(OpenId(0), S), Some(Kind::Stale));
    let upside_down = Range { first: 2, last: 1 };
    let refused = s.lock(open, 1, upside_down, S, Wait::No);
    assert_eq!(kind(refused), Some(Kind::Invalid));
}

#[test]
fn one_who_waits_gets_the_lock_when_it_is_given_back() {
    let (volume, s, _, open) = scene();
    s.lock(open, 1, Range::ALL, X, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(open, 2, Range::new(5, 5), S, Wait::Yes(&NEVER)),
        || s.unlock(open, 1, Range::new(4, 7)).unwrap(),
    );
    got.unwrap();
    let max = u64::MAX;
    assert_eq!(
        held(&s, open),
        [(1, 0, 3, true), (2, 5, 9, false), (1, 11, max, true)]
    );
}

#[test]
fn a_lock_made_shared_lets_those_in_who_wait_to_share() {
    let (volume, s, _, open) = scene();
    s.lock(open, 1, Range::ALL, X, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(open, 2, Range::ALL, S, Wait::Yes(&NEVER)),
        || s.lock(open, 1, Range::ALL, S, Wait::No).unwrap(),
    );
    got.unwrap();
    assert_eq!(held(&s, open).len(), 2);
}

#[test]
fn one_who_loses_interest_is_sent_away() {
    let (volume, s, _, open) = scene();
    let cancel = Cancel::new();
    s.lock(open, 1, Range::ALL, X, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(open, 2, Range::ALL, X, Wait::Yes(&cancel)),
        || {
            cancel.set();
            volume.wake_waiting();
        },
    );
    assert_eq!(kind(got), Some(Kind::Interrupted));
    assert_eq!(volume.waiting_count(), 0);
    s.unlock_owner(open, 1).unwrap();
    // A lock that is free is had even so.
    s.lock(open, 2, Range::ALL, X, Wait::Yes(&cancel)).unwrap();
}

#[test]
fn two_who_would_wait_for_each_other_are_told() {
    let (volume, s, _, open) = scene();
    let (_, other) = s.open_file(s.root(), "g");
    s.lock(open, 1, Range::ALL, X, Wait::No).unwrap();
    s.lock(other, 2, Range::ALL, X, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(open, 2, Range::ALL, X, Wait::Yes(&NEVER)),
        || {
            let refused = s.lock(other, 1, Range::ALL, S, Wait::Yes(&NEVER));
            assert_eq!(kind(refused), Some(Kind::Deadlock));
            assert_eq!(held(&s, open).len(), 1);
            s.unlock_owner(open, 1).unwrap();
        },
    );
    got.unwrap();
}

#[test]
fn two_who_share_and_both_want_it_alone_are_told() {
    let (volume, s, _, open) = scene();
    s.lock(open, 1, Range::ALL, S, Wait::No).unwrap();
    s.lock(open, 2, Range::ALL, S, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(open, 1, Range::ALL, X, Wait::Yes(&NEVER)),
        || {
            let refused = s.lock(open, 2, Range::ALL, X, Wait::Yes(&NEVER));
            assert_eq!(kind(refused), Some(Kind::Deadlock));
            // What it held it still holds.
            assert_eq!(held(&s, open).len(), 2);
            s.unlock_owner(open, 2).unwrap();
        },
    );
    got.unwrap();
    assert_eq!(held(&s, open), [(1, 0, u64::MAX, true)]);
}

#[test]
fn a_ring_of_many_is_found_and_a_queue_is_none() {
    const MANY: u64 = 6;
    let (volume, s, _, open) = scene();
    let byte = |n| Range::new(n, 1);
    for n in 0..MANY {
        s.lock(open, n, byte(n), X, Wait::No).unwrap();
    }
    std::thread::scope(|scope| {
        // Each waits for the next one's byte: a queue, until the last one
        // wants the first one's.
        let waiting: Vec<_> = (0..MANY - 1)
            .map(|n| {
                let s = s.clone();
                scope.spawn(move || s.lock(open, n, byte(n + 1), X, Wait::Yes(&NEVER)))
            })
            .collect();
        while volume.waiting_count() < waiting.len() {
            std::thread::yield_now();
        }
        let closing = s.lock(open, MANY - 1, byte(0), S, Wait::Yes(&NEVER));
        assert_eq!(kind(closing), Some(Kind::Deadlock));
        s.unlock_owner(open, MANY - 1).unwrap();
        for (n, thread) in waiting.into_iter().enumerate().rev() {
            thread.join().unwrap().unwrap();
            s.unlock_owner(open, n as u64).unwrap();
        }
    });
    assert_eq!(held(&s, open), []);
}

#[test]
fn a_close_ends_the_locks_of_those_who_locked_through_the_open() {
    let (volume, s, node, first) = scene();
    let second = s.open(node, Mode::ReadWrite).unwrap();
    s.lock(first, 1, Range::new(0, 10), X, Wait::No).unwrap();
    s.lock(second, 1, Range::new(20, 10), X, Wait::No).unwrap();
    s.lock(second, 2, Range::new(40, 10), S, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(second, 3, Range::new(25, 1), X, Wait::Yes(&NEVER)),
        || s.close(first).unwrap(),
    );
    got.unwrap();
    assert_eq!(held(&s, second), [(3, 25, 25, true), (2, 40, 49, false)]);
    s.close(second).unwrap();
    let again = s.open(node, Mode::Read).unwrap();
    assert_eq!(held(&s, again), []);
}

#[test]
fn one_whose_open_is_closed_while_it_waits_does_not_keep_the_lock() {
    let (volume, s, node, first) = scene();
    let second = s.open(node, Mode::ReadWrite).unwrap();
    s.lock(first, 1, Range::ALL, X, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.lock(second, 2, Range::ALL, X, Wait::Yes(&NEVER)),
        || {
            s.close(second).unwrap();
            s.unlock_owner(first, 1).unwrap();
        },
    );
    assert_eq!(kind(got), Some(Kind::Stale));
    assert_eq!(held(&s, first), []);
}

#[test]
fn whole_file_locks_belong_to_opens_and_not_to_owners() {
    let (volume, s, node, first) = scene();
    let second = s.open(node, Mode::Read).unwrap();
    s.flock(first, X, Wait::No).unwrap();
    s.flock(first, X, Wait::No).unwrap();
    let refused = s.flock(second, S, Wait::No);
    assert_eq!(kind(refused), Some(Kind::Locked));
    // Byte ranges are another matter.
    s.lock(second, 9, Range::ALL, S, Wait::No).unwrap();
    let (got, ()) = while_it_waits(
        &volume,
        || s.flock(second, X, Wait::Yes(&NEVER)),
        || s.funlock(first).unwrap(),
    );
    got.unwrap();
    assert_eq!(kind(s.flock(first, S, Wait::No)), Some(Kind::Locked));
    s.close(second).unwrap();
    s.flock(first, S, Wait::No).unwrap();
}

#[test]
fn a_whole_file_lock_changes_its_kind_by_being_given_back_first() {
    let (volume, s, node, first) = scene();
    let second = s.open(node, Mode::Read).unwrap();
    s.flock(first, S, Wait::No).unwrap();
    s.flock(second, S, Wait::No).unwrap();
    // Both want it alone, and neither waits for what the other held before.
    let (got, ()) = while_it_waits(
        &volume,
        || s.flock(first, X, Wait::Yes(&NEVER)),
        || {
            let got = s.flock(second, X, Wait::No);
            assert!(got.is_ok() || got == Err(Kind::Locked.into()));
            s.funlock(second).unwrap();
        },
    );
    got.unwrap();
    assert_eq!(kind(s.flock(second, S, Wait::No)), Some(Kind::Locked));
}

#[test]
fn locks_on_a_file_are_bounded_by_taking_and_by_giving_back() {
    const MAX: u64 = 1 << 12;
    let (_, s, _, open) = scene();
    let lock = |byte| s.lock(open, 1, Range::new(byte, 1), X, Wait::No);
    for i in 0..MAX {
        lock(2 * i).unwrap();
    }
    assert_eq!(kind(lock(2 * MAX)), Some(Kind::Quota));
    s.unlock(open, 1, Range::new(0, 1)).unwrap();
    lock(2 * MAX).unwrap();

    s.unlock_owner(open, 1).unwrap();
    s.lock(open, 1, Range::ALL, X, Wait::No).unwrap();
    let refused = (0..=MAX).find_map(|i| s.unlock(open, 1, Range::new(2 * i + 1, 1)).err());
    assert_eq!(refused, Some(Kind::Quota.into()));
    assert_eq!(held(&s, open).len() as u64, MAX);
    s.unlock(open, 1, Range::ALL).unwrap();
    assert_eq!(held(&s, open), []);
}

/// Every thread takes and gives back locks at random; whoever has an exclusive
/// lock on a byte is alone there.
#[test]
fn many_who_wait_exclude_each_other() {
    use std::sync::atomic::{AtomicU32, Ordering};
    use volary_testkit::rng::Rng;
    let (_, s, _, open) = scene();
    let inside: [AtomicU32; 8] = Default::default();
    std::thread::scope(|scope| {
        for owner in 0..4_u64 {
            let (s, inside) = (s.clone(), &inside);
            scope.spawn(move || {
                let mut rng = Rng::new(owner);
                for _ in 0..300 {
                    let byte = rng.below(8);
                    let range = Range::new(byte, 1);
                    let exclusive = rng.one_in(2);
                    let how = if exclusive { X } else { S };
                    s.lock(open, owner, range, how, Wait::Yes(&NEVER)).unwrap();
                    let here = &inside[byte as usize];
                    let weight = if exclusive { 100 } else { 1 };
                    let before = here.fetch_add(weight, Ordering::SeqCst);
                    assert!(if exclusive { before == 0 } else { before < 100 });
                    std::thread::yield_now();
                    here.fetch_sub(weight, Ordering::SeqCst);
                    s.unlock(open, owner, range).unwrap();
                }
            });
        }
    });
    assert_eq!(held(&s, open), []);
}
