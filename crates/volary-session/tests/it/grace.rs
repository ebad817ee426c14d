//! Times of grace: who is given locks, and who is kept out.

use crate::leases::{RH, RHW, key, obedient, open as open_under};
use crate::{Make, kind, root, volume};
use std::sync::Arc;
use volary_core::{Cancel, Kind, Mode, OpenId};
use volary_session::{Beside, LockKind, OpenHow, Range, Rights, Session, Share, Volume, Wait};

const S: LockKind = LockKind::Shared;
const X: LockKind = LockKind::Exclusive;

static NEVER: Cancel = Cancel::new();

fn scene() -> (Arc<Volume>, Session, OpenId) {
    let volume = volume();
    let s = root(&volume);
    let (_, open) = s.open_file(s.root(), "f");
    (volume, s, open)
}

#[test]
fn only_claims_are_given_and_all_others_find_every_byte_locked() {
    let (volume, s, open) = scene();
    let before = Range::new(100, 10);
    s.lock(open, 9, before, X, Wait::No).unwrap();
    let grace = volume.grace();
    for range in [Range::ALL, Range::new(5, 1), before] {
        for how in [S, X] {
            let locked = Some(Kind::Locked);
            assert_eq!(kind(s.lock(open, 1, range, how, Wait::No)), locked);
            assert_eq!(kind(s.lock_exact(open, range, how, Wait::No)), locked);
        }
    }
    let found = s.test_lock(open, 1, Range::new(5, 1), S).unwrap().unwrap();
    assert_eq!((found.range, found.exclusive), (Range::ALL, true));
    let found = s.test_lock(open, 1, Range::new(105, 1), S).unwrap();
    assert_eq!(found.unwrap().range, before, "a real one goes first");
    let claimer = s.clone().claiming();
    claimer
        .lock(open, 1, Range::new(0, 10), X, Wait::No)
        .unwrap();
    let other = claimer.lock(open, 2, Range::new(9, 1), S, Wait::No);
    assert_eq!(kind(other), Some(Kind::Locked), "of what is claimed");
    assert_eq!(
        claimer.test_lock(open, 2, Range::new(10, 1), X).unwrap(),
        None
    );
    // What was there stays, and is given back as ever; whole files are no ranges.
    s.unlock(open, 9, before).unwrap();
    s.flock(open, X, Wait::No).unwrap();
    drop(grace);
    s.lock(open, 2, Range::new(10, 1), X, Wait::No).unwrap();
    let claimed = s.lock(open, 2, Range::new(9, 1), S, Wait::No);
    assert_eq!(kind(claimed), Some(Kind::Locked));
}

#[test]
fn one_who_waits_has_the_lock_when_the_last_grace_is_over() {
    let (volume, s, open) = scene();
    let (one, two) = (volume.grace(), volume.grace());
    std::thread::scope(|scope| {
        let ranges = [(1, Range::new(0, 5)), (2, Range::new(5, 5))];
        let waiting = ranges.map(|(owner, range)| {
            let s = &s;
            scope.spawn(move || s.lock(open, owner, range, X, Wait::Yes(&NEVER)))
        });
        while volume.waiting_count() < 2 {
            std::thread::yield_now();
        }
        drop(one);
        // Claimed meanwhile: the first waits on.
        let claimer = s.clone().claiming();
        claimer
            .lock(open, 3, Range::new(0, 1), X, Wait::No)
            .unwrap();
        assert!(waiting.iter().all(|thread| !thread.is_finished()));
        drop(two);
        let [first, second] = waiting;
        second.join().unwrap().unwrap();
        assert!(!first.is_finished());
        s.unlock(open, 3, Range::ALL).unwrap();
        first.join().unwrap().unwrap();
    });
    assert_eq!(s.locks(open).unwrap().len(), 2);
}

#[test]
fn nobody_is_left_to_lock_by_itself() {
    let (volume, s, open) = scene();
    s.close(open).unwrap();
    let node = s.find(s.root(), "f").unwrap();
    let ask = || {
        let open = open_under(&s, node, key(1, 1));
        let lease = s.lease(open, key(1, 1), RHW, obedient(&volume)).unwrap();
        s.close(open).unwrap();
        lease.granted
    };
    let grace = volume.grace();
    assert_eq!(ask(), RH);
    drop(grace);
    assert_eq!(ask(), RHW);
}

#[test]
fn a_claim_comes_through_an_open_that_minds_no_other() {
    let (volume, s, open) = scene();
    s.close(open).unwrap();
    let node = s.find(s.root(), "f").unwrap();
    let alone = Share {
        wants: Rights::ALL,
        allows: Rights::NONE,
    };
    let other = s.clone().with_client(volume.client());
    let others = other.open(node, OpenHow::from(Mode::ReadWrite).with_share(alone));
    let others = others.unwrap();
    assert_eq!(kind(s.open(node, Mode::Write)), Some(Kind::Sharing));
    let how = OpenHow::from(Mode::Write).beside(Beside::All);
    let open = s.open(node, how).unwrap();
    other.close(others).unwrap();
    let again = other.open(node, OpenHow::from(Mode::Read).with_share(alone));
    assert_eq!(kind(again), Some(Kind::Sharing), "it is there for others");
    s.close(open).unwrap();
}
