//! Byte-range locks as SMB has them, and reads and writes that they forbid.

use crate::{Make, kind, root, volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use volary_core::{Cancel, Kind, Mode, Time};
use volary_session::{LockKind, Range, Session, Wait};

const SHARED: LockKind = LockKind::Shared;
const EXCLUSIVE: LockKind = LockKind::Exclusive;

fn bytes(offset: u64, len: u64) -> Range {
    Range::new(offset, len)
}

#[test]
fn an_open_conflicts_with_itself_where_it_would_hold_alone() {
    let volume = volume();
    let s = root(&volume);
    let (node, one) = s.open_file(s.root(), "f");
    let two = s.open(node, Mode::ReadWrite).unwrap();
    let take = |open, range, kind| crate::kind(s.lock_exact(open, range, kind, Wait::No));
    assert_eq!(take(one, bytes(0, 10), EXCLUSIVE), None);
    assert_eq!(take(one, bytes(5, 10), EXCLUSIVE), Some(Kind::Locked));
    assert_eq!(take(one, bytes(5, 10), SHARED), None);
    assert_eq!(take(one, bytes(12, 10), EXCLUSIVE), Some(Kind::Locked));
    assert_eq!(take(two, bytes(9, 1), SHARED), Some(Kind::Locked));
    assert_eq!(take(two, bytes(10, 5), SHARED), None);
    // As it was taken, and no part of it.
    assert_eq!(kind(s.unlock_exact(one, bytes(0, 5))), Some(Kind::NotFound));
    s.unlock_exact(one, bytes(0, 10)).unwrap();
    assert_eq!(
        kind(s.unlock_exact(one, bytes(0, 10))),
        Some(Kind::NotFound)
    );
    assert_eq!(take(two, bytes(0, 5), EXCLUSIVE), None);
    s.close(one).unwrap();
    assert_eq!(s.locks(two).unwrap().len(), 2);
}

#[test]
fn locks_on_the_same_bytes_count_one_by_one() {
    let volume = volume();
    let s = root(&volume);
    let (_, open) = s.open_file(s.root(), "f");
    let take = |kind| s.lock_exact(open, bytes(3, 3), kind, Wait::No);
    take(EXCLUSIVE).unwrap();
    take(SHARED).unwrap();
    take(SHARED).unwrap();
    s.unlock_exact(open, bytes(3, 3)).unwrap();
    assert!(s.locks(open).unwrap().iter().all(|held| !held.exclusive));
    s.unlock_exact(open, bytes(3, 3)).unwrap();
    assert_eq!(s.locks(open).unwrap().len(), 1);
}

#[test]
fn an_empty_lock_conflicts_within_another_but_not_at_its_ends() {
    let volume = volume();
    let s = root(&volume);
    let (node, one) = s.open_file(s.root(), "f");
    let two = s.open(node, Mode::ReadWrite).unwrap();
    s.lock_exact(one, bytes(10, 10), EXCLUSIVE, Wait::No)
        .unwrap();
    let empty = |at| Range::empty_at(at).unwrap();
    let take = |at| kind(s.lock_exact(two, empty(at), EXCLUSIVE, Wait::No));
    assert_eq!(take(10), None);
    assert_eq!(take(20), None);
    assert_eq!(take(20), None);
    assert_eq!(take(11), Some(Kind::Locked));
    assert_eq!(take(19), Some(Kind::Locked));
    s.unlock_exact(two, empty(20)).unwrap();
    assert_eq!(Range::empty_at(0), None);
}

#[test]
fn they_and_posix_locks_see_each_other() {
    let volume = volume();
    let s = root(&volume).with_client(volume.client());
    let (node, one) = s.open_file(s.root(), "f");
    let two = s.open(node, Mode::ReadWrite).unwrap();
    s.lock_exact(one, bytes(0, 10), EXCLUSIVE, Wait::No)
        .unwrap();
    let posix = s.lock(two, one.0, bytes(0, 1), SHARED, Wait::No);
    assert_eq!(kind(posix), Some(Kind::Locked));
    s.lock(two, 1, bytes(20, 5), SHARED, Wait::No).unwrap();
    let exact = s.lock_exact(one, bytes(20, 1), EXCLUSIVE, Wait::No);
    assert_eq!(kind(exact), Some(Kind::Locked));
}

#[test]
fn mandatory_locks_forbid_what_they_conflict_with() {
    let volume = volume();
    let s = root(&volume).with_client(volume.client());
    let other = root(&volume).with_client(volume.client());
    let (node, one) = s.open_file(s.root(), "f");
    let two = s.open(node, Mode::ReadWrite).unwrap();
    let check = |s: &Session, open, at, writes| kind(s.check_io(open, bytes(at, 1), writes, 7));
    assert_eq!(check(&s, one, 0, true), None);
    s.lock_exact(one, bytes(0, 1), EXCLUSIVE, Wait::No).unwrap();
    s.lock_exact(one, bytes(1, 1), SHARED, Wait::No).unwrap();
    other
        .lock(two, 7, bytes(2, 1), EXCLUSIVE, Wait::No)
        .unwrap();
    other.lock(two, 7, bytes(3, 1), SHARED, Wait::No).unwrap();
    let locked = Some(Kind::Locked);
    // Byte, then: the open of the exact locks and another, reading and writing.
    let expected = [
        [None, None, locked, locked],
        [None, locked, None, locked],
        [locked, locked, locked, locked],
        [None, locked, None, locked],
        [None, None, None, None],
    ];
    for (at, row) in (0..).zip(expected) {
        let got = [
            check(&s, one, at, false),
            check(&s, one, at, true),
            check(&s, two, at, false),
            check(&s, two, at, true),
        ];
        assert_eq!(got, row, "byte {at}");
    }
    // The owner of the POSIX locks is not kept from what it locked.
    assert_eq!(check(&other, two, 2, true), None);
    assert_eq!(check(&other, two, 3, true), None);
}

#[test]
fn before_a_wait_the_hook_is_called_once() {
    let volume = volume();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let hook = Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let s = root(&volume);
    let (node, one) = s.open_file(s.root(), "f");
    let two = s.open(node, Mode::ReadWrite).unwrap();
    let (mine, outer) = (Cancel::new(), Arc::new(Cancel::new()));
    let waiter = s.clone().with_wait_hook(hook).with_cancel(outer.clone());
    waiter
        .lock_exact(one, Range::ALL, EXCLUSIVE, Wait::Yes(&mine))
        .unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| waiter.lock_exact(two, bytes(0, 1), SHARED, Wait::Yes(&mine)));
        while volume.waiting_count() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(calls.load(Ordering::SeqCst), 1);
        // The session's own cancel ends it as well.
        outer.set();
        volume.wake_waiting();
        assert_eq!(kind(waiting.join().unwrap()), Some(Kind::Interrupted));
    });
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn a_deadline_ends_a_wait() {
    let volume = volume();
    let s = root(&volume);
    let (_, open) = s.open_file(s.root(), "f");
    s.lock(open, 1, Range::ALL, EXCLUSIVE, Wait::No).unwrap();
    let never = Cancel::new();
    let late = s.with_deadline(Time::from_secs(1));
    let waited = late.lock(open, 2, Range::ALL, EXCLUSIVE, Wait::Yes(&never));
    assert_eq!(kind(waited), Some(Kind::Interrupted));
}
