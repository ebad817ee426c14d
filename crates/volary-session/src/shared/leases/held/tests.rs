use super::*;

struct Nobody {
    oplock: bool,
}

impl LeaseSink for Nobody {
    fn broken(&self, _: &LeaseBreak) {}
    fn is_oplock(&self) -> bool {
        self.oplock
    }
}

const NONE: LeaseBits = LeaseBits::NONE;
const R: LeaseBits = LeaseBits::READ;
const RH: LeaseBits = LeaseBits(3);
const RW: LeaseBits = LeaseBits(5);
const RHW: LeaseBits = LeaseBits::ALL;

fn held(granted: LeaseBits) -> Held {
    lease(granted, false)
}

fn lease(granted: LeaseBits, oplock: bool) -> Held {
    let key = LeaseKey {
        client: [1; 16],
        key: [2; 16],
    };
    Held::new(key, granted, Arc::new(Nobody { oplock }), OpenId(1), false)
}

fn told(from: LeaseBits, to: LeaseBits) -> Option<Told> {
    let must_ack = from.has_any(LeaseBits(6));
    Some(Told { from, to, must_ack })
}

#[test]
fn each_operation_takes_away_what_its_row_says() {
    let rows = [
        (Impact::READ, [None, None, told(RW, R), told(RHW, RH)]),
        (
            Impact::WRITE,
            [
                told(R, NONE),
                told(RH, NONE),
                told(RW, NONE),
                told(RHW, NONE),
            ],
        ),
        (Impact::NAME, [None, told(RH, R), None, told(RHW, RW)]),
        (
            Impact::CHANGED,
            [
                told(R, NONE),
                told(RH, NONE),
                told(RW, NONE),
                told(RHW, NONE),
            ],
        ),
    ];
    for (impact, expected) in rows {
        for (granted, expected) in [R, RH, RW, RHW].into_iter().zip(expected) {
            let mut lease = held(granted);
            assert_eq!(
                lease.is_hit(impact),
                expected.is_some(),
                "{granted:?} {impact:?}"
            );
            assert_eq!(lease.break_for(impact), expected, "{granted:?} {impact:?}");
            let waits = expected.is_some() && granted.has_any(impact.awaits);
            assert_eq!(lease.is_awaited(impact), waits, "{granted:?} {impact:?}");
            let epoch = 1 + u16::from(expected.is_some());
            assert_eq!(lease.state().epoch, epoch);
        }
    }
}

#[test]
fn an_oplock_breaks_to_level_two_or_nothing() {
    let rows = [
        (RHW, Impact::READ, told(RHW, R)),
        (RHW, Impact::NAME, told(RHW, R)),
        (RW, Impact::READ, told(RW, R)),
        (RW, Impact::NAME, None),
        (R, Impact::READ, None),
        (R, Impact::WRITE, told(R, NONE)),
    ];
    for (granted, impact, expected) in rows {
        assert_eq!(
            lease(granted, true).break_for(impact),
            expected,
            "{granted:?} {impact:?}"
        );
    }
}

#[test]
fn reading_alone_is_gone_at_once() {
    let mut lease = held(R);
    lease.break_for(Impact::WRITE);
    assert_eq!((lease.granted(), lease.state().breaking), (NONE, false));
    assert_eq!(lease.acknowledge(NONE).unwrap_err(), Kind::Invalid);
}

#[test]
fn what_was_offered_or_less_is_acknowledged() {
    for (bits, taken) in [
        (RHW, false),
        (RW, false),
        (RH, true),
        (R, true),
        (NONE, true),
    ] {
        let mut lease = held(RHW);
        lease.break_for(Impact::READ);
        assert_eq!(lease.granted(), RHW);
        let answer = lease.acknowledge(bits);
        assert_eq!(answer.is_ok(), taken, "{bits:?}");
        let after = if taken { bits } else { RHW };
        assert_eq!((lease.granted(), lease.state().breaking), (after, !taken));
        // Only the first acknowledgement counts.
        assert_eq!(taken, lease.acknowledge(NONE).is_err());
    }
}

#[test]
fn more_is_taken_away_in_steps() {
    let mut lease = held(RHW);
    assert_eq!(lease.break_for(Impact::READ), told(RHW, RH));
    assert_eq!(lease.break_for(Impact::WRITE), None);
    assert!(lease.is_awaited(Impact::WRITE));
    assert_eq!(lease.acknowledge(RH), Ok(told(RH, R)));
    assert!(!lease.is_awaited(Impact::WRITE));
    assert_eq!(lease.acknowledge(R), Ok(told(R, NONE)));
    assert_eq!((lease.granted(), lease.state().breaking), (NONE, false));
    assert_eq!(lease.state().epoch, 2);
}

#[test]
fn who_gives_up_all_is_told_no_more() {
    let mut lease = held(RHW);
    lease.break_for(Impact::READ);
    lease.break_for(Impact::WRITE);
    assert_eq!(lease.acknowledge(NONE), Ok(None));
    assert!(!lease.state().breaking);
}

#[test]
fn names_wait_for_a_second_break_of_the_same_lease() {
    let mut lease = held(RHW);
    lease.break_for(Impact::READ);
    lease.break_for(Impact::NAME);
    assert_eq!(lease.acknowledge(RH), Ok(told(RH, R)));
    assert!(lease.is_awaited(Impact::NAME));
    assert_eq!(lease.acknowledge(R), Ok(None));
    assert_eq!(lease.granted(), R);
}

#[test]
fn it_grows_if_that_includes_what_is_held() {
    let all = [NONE, R, RH, RW, RHW];
    for first in all {
        for asked in all {
            let mut lease = held(first);
            lease.ask(asked, asked, Arc::new(Nobody { oplock: false }), OpenId(2));
            let expected = if asked.has(first) { asked } else { first };
            let epoch = if expected == first { 1 } else { 2 };
            let state = lease.state();
            assert_eq!(
                (state.granted, state.epoch),
                (expected, epoch),
                "{first:?} {asked:?}"
            );
        }
    }
}

#[test]
fn while_it_breaks_it_does_not_grow() {
    let mut lease = held(RW);
    lease.break_for(Impact::READ);
    lease.ask(RHW, RHW, Arc::new(Nobody { oplock: false }), OpenId(2));
    let state = lease.state();
    assert_eq!((state.granted, state.breaking), (RW, true));
}

#[test]
fn who_is_late_has_nothing() {
    let mut lease = held(RHW);
    assert!(!lease.expire());
    assert_eq!(lease.granted(), RHW);
    lease.break_for(Impact::NAME);
    assert!(lease.expire());
    assert_eq!((lease.granted(), lease.state().breaking), (NONE, false));
    assert_eq!(lease.acknowledge(NONE).unwrap_err(), Kind::Invalid);
}
