use super::*;
use volary_testkit::rng::Rng;
use volary_testkit::suite::replay_command;

const BYTES: u64 = 24;
const OWNERS: u64 = 3;

/// What one owner holds, byte by byte: nothing, a shared or an exclusive lock.
type Bytes = [Option<bool>; BYTES as usize];

fn owner(number: u64) -> LockOwner {
    LockOwner {
        client: None,
        number,
    }
}

fn lock(number: u64, first: u64, last: u64, exclusive: bool) -> HeldLock {
    HeldLock {
        owner: owner(number),
        range: Range { first, last },
        exclusive,
        exact: false,
    }
}

fn held(holding: &Holding) -> Vec<(u64, u64, u64, bool)> {
    let all = holding.iter();
    all.map(|l| (l.owner.number, l.range.first, l.range.last, l.exclusive))
        .collect()
}

/// Returns the locks of one owner, byte by byte. Asserts that they are in order, and that none of
/// one kind touch.
fn bytes_of(holding: &Holding, number: u64) -> Bytes {
    let mut bytes = Bytes::default();
    let mut before: Option<&HeldLock> = None;
    for lock in holding.iter().filter(|l| l.owner == owner(number)) {
        assert!(lock.range.first <= lock.range.last);
        if let Some(before) = before {
            assert!(before.range.last < lock.range.first, "{before:?} {lock:?}");
            let apart = before.range.last + 1 < lock.range.first;
            assert!(apart || before.exclusive != lock.exclusive);
        }
        for byte in lock.range.first..=lock.range.last {
            bytes[byte as usize] = Some(lock.exclusive);
        }
        before = Some(lock);
    }
    bytes
}

fn follow_the_bytes(seed: u64, steps: u32) {
    let mut rng = Rng::new(seed);
    let mut holding = Holding::default();
    let mut model = [Bytes::default(); OWNERS as usize];
    for _ in 0..steps {
        let number = rng.below(OWNERS);
        let (a, b) = (rng.below(BYTES), rng.below(BYTES));
        let range = Range {
            first: a.min(b),
            last: a.max(b),
        };
        let part = &mut model[number as usize][range.first as usize..=range.last as usize];
        if rng.one_in(3) {
            holding.clear(owner(number), range);
            part.fill(None);
        } else {
            let exclusive = rng.one_in(2);
            let gives_up = part.contains(&Some(true)) && !exclusive;
            let lowers = holding.set(lock(number, range.first, range.last, exclusive));
            assert_eq!(lowers, gives_up);
            part.fill(Some(exclusive));
        }
        for number in 0..OWNERS {
            assert_eq!(bytes_of(&holding, number), model[number as usize]);
        }
        assert!(holding.iter().is_sorted_by_key(|l| l.range.first));
    }
    for number in 0..OWNERS {
        holding.clear(owner(number), Range::ALL);
    }
    assert!(holding.is_empty());
}

#[test]
fn ranges_agree_with_an_array_of_bytes() {
    let one = std::env::var("VOLARY_SEED").ok();
    let one = one.map(|seed| seed.parse().unwrap());
    let seeds = one.map_or(0..300, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let run = || follow_the_bytes(seed, 300);
        if std::panic::catch_unwind(run).is_err() {
            panic!(
                "to replay: {}",
                replay_command("VOLARY_SEED", &seed.to_string())
            );
        }
    }
}

#[test]
fn unlocking_the_middle_splits_and_locking_it_again_joins() {
    let mut holding = Holding::default();
    holding.set(lock(1, 0, 99, true));
    holding.clear(owner(1), Range::new(40, 20));
    assert_eq!(held(&holding), [(1, 0, 39, true), (1, 60, 99, true)]);
    holding.set(lock(1, 40, 59, true));
    assert_eq!(held(&holding), [(1, 0, 99, true)]);
}

#[test]
fn changing_the_kind_of_a_part_splits() {
    let mut holding = Holding::default();
    holding.set(lock(1, 0, u64::MAX, false));
    assert!(!holding.set(lock(1, 10, 19, true)));
    assert_eq!(
        held(&holding),
        [
            (1, 0, 9, false),
            (1, 10, 19, true),
            (1, 20, u64::MAX, false)
        ]
    );
    assert!(holding.set(lock(1, 5, 30, false)));
    assert_eq!(held(&holding), [(1, 0, u64::MAX, false)]);
}

#[test]
fn ranges_at_the_end_of_all_that_there_can_be_do_not_overflow() {
    assert_eq!(Range::new(5, 0).last, u64::MAX);
    assert_eq!(Range::new(u64::MAX, 7), Range::new(u64::MAX, 1));
    assert_eq!(Range::new(u64::MAX, 1).lock_len(), 0);
    assert_eq!(Range::new(7, 3).lock_len(), 3);
    let mut holding = Holding::default();
    holding.set(lock(1, u64::MAX, u64::MAX, true));
    holding.set(lock(1, 0, 0, true));
    assert_eq!(held(&holding).len(), 2);
    holding.clear(owner(1), Range::ALL);
    assert!(holding.is_empty());
}
