//! [`Guesses`]: delays logons after wrong passwords, over all connections.
//!
//! A wrong guess delays the next logon from the same address, and each logon as the same user. The
//! delay doubles with each guess, up to `Limits::failed_logon_delay`. The weight of a guess halves
//! every half minute. Logons from an address that guessed are processed one by one, so that many
//! connections guess no faster than one.
//!
//! A logon from an address without wrong guesses waits a quarter of the longest delay at most, so
//! that users are not locked out of their own accounts. A right password never counts as a wrong
//! guess, however late it comes.

use crate::clock::now;
use parking_lot::{Condvar, Mutex};
use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use volary_session::network_of;

/// The most addresses that are remembered, and the most names of unknown users.
const KEPT_MAX: usize = 4096;
/// The time after which a guess counts half.
const HALF: Duration = Duration::from_secs(30);
/// The first wrong guess costs the longest delay divided by two this many times.
const DOUBLINGS: u32 = 4;
/// How often a waiting logon checks that its client is still there.
const LOOK: Duration = Duration::from_secs(1);

/// Wrong guesses by address and by user.
#[derive(Debug)]
pub(crate) struct Guesses {
    /// The longest delay.
    longest: Duration,
    /// The secret key for hashing names.
    secret: [u8; 16],
    state: Mutex<State>,
    /// Signals that a waiting logon may no longer have to wait.
    woken: Condvar,
}

#[derive(Debug)]
struct State {
    addresses: Table,
    /// Configured users, by their index.
    users: Vec<Record>,
    /// Unknown users.
    unknown: Table,
}

/// A bounded set of records, in which the oldest one is replaced.
#[derive(Debug, Default)]
struct Table(HashMap<u128, Record>);

#[derive(Clone, Copy, Debug)]
struct Record {
    /// The number of wrong guesses, of which earlier ones weigh less.
    level: f32,
    /// The number of guesses that came from addresses without earlier ones.
    strangers: f32,
    /// The time for which the numbers are valid.
    since: Instant,
    /// No logon is processed before this time.
    next: Instant,
}

/// A logon that is being processed. It is needed to report the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    address: u128,
    user: Named,
    is_stranger: bool,
    /// The earliest time for the address's next logon, as it was before this one.
    before: Instant,
}

/// A user by the name that a client gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Known(usize),
    Unknown(u128),
}

impl Guesses {
    /// Returns a table for `users` configured users, without any guesses.
    pub(crate) fn new(users: usize, longest: Duration) -> Self {
        let now = now();
        let state = State {
            addresses: Table::default(),
            users: vec![Record::new(now); users],
            unknown: Table::default(),
        };
        Self {
            longest,
            secret: crate::crypto::random(),
            state: Mutex::new(state),
            woken: Condvar::new(),
        }
    }

    /// Waits until a user's logon may be processed. The user is the one at `place` in the
    /// configuration, or an unknown one called `name`. Returns `None` if `is_over` says that nobody
    /// waits for the result any more. `waits` is called once before waiting.
    pub(crate) fn await_turn(
        &self,
        peer: IpAddr,
        place: Option<usize>,
        name: &str,
        waits: impl FnOnce(),
        is_over: impl Fn() -> bool,
    ) -> Option<Attempt> {
        let user = place.map_or_else(|| Named::Unknown(self.hash(name)), Named::Known);
        let address = network(peer);
        let mut waits = Some(waits);
        let begun = now();
        loop {
            let mut state = self.state.lock();
            let now = now();
            let until = match state.turn(address, user, begun, now, self.longest) {
                Ok(attempt) => return Some(attempt),
                Err(until) => until,
            };
            if let Some(waits) = waits.take() {
                drop(state);
                waits();
                continue;
            }
            if is_over() {
                return None;
            }
            self.woken.wait_until(&mut state, until.min(now + LOOK));
        }
    }

    /// Reports that the password was right.
    pub(crate) fn right(&self, attempt: Attempt) {
        let mut state = self.state.lock();
        if let Some(record) = state.addresses.0.get_mut(&attempt.address) {
            record.next = attempt.before;
        }
        drop(state);
        self.woken.notify_all();
    }

    /// Reports that the password was wrong.
    pub(crate) fn wrong(&self, attempt: Attempt) {
        let now = now();
        let mut state = self.state.lock();
        let record = state.addresses.get(attempt.address, now);
        record.fails(now, attempt.is_stranger);
        record.next = record.next.max(now + record.delay(self.longest));
        let record = match attempt.user {
            Named::Known(place) => state.users.get_mut(place),
            Named::Unknown(hash) => Some(state.unknown.get(hash, now)),
        };
        if let Some(record) = record {
            record.fails(now, attempt.is_stranger);
        }
    }

    /// Wakes all waiting logons, so that they check again.
    pub(crate) fn wake(&self) {
        drop(self.state.lock());
        self.woken.notify_all();
    }

    fn hash(&self, name: &str) -> u128 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        volary_core::fold(name.as_bytes()).hash(&mut hasher);
        hasher.finish().into()
    }
}

impl State {
    /// Lets a logon that has waited since `begun` be processed, or returns until when it must wait.
    fn turn(
        &mut self,
        address: u128,
        user: Named,
        begun: Instant,
        now: Instant,
        longest: Duration,
    ) -> Result<Attempt, Instant> {
        let of_user = match user {
            Named::Known(place) => self.users.get(place),
            Named::Unknown(hash) => self.unknown.0.get(&hash),
        };
        let of_user = of_user.map(|record| record.decayed(now));
        let record = self.addresses.get(address, now);
        let is_stranger = !record.counts(now);
        let wait = of_user.map_or(Duration::ZERO, |user| match is_stranger {
            true => user.stranger_delay(longest),
            false => user.delay(longest),
        });
        let until = record.next.max(begun + wait);
        if now < until {
            return Err(until);
        }
        let before = record.next;
        // Until the result is known, others are delayed as if it were wrong.
        let mut wrong = *record;
        wrong.fails(now, is_stranger);
        record.next = now + wrong.delay(longest);
        Ok(Attempt {
            address,
            user,
            is_stranger,
            before,
        })
    }
}

impl Table {
    /// Returns a record, and creates it if necessary. If there are too many, the oldest one is
    /// replaced.
    fn get(&mut self, key: u128, now: Instant) -> &mut Record {
        if self.0.len() >= KEPT_MAX && !self.0.contains_key(&key) {
            self.0.retain(|_, record| record.counts(now));
            let oldest = self.0.iter().min_by_key(|(_, record)| record.since);
            if let Some(oldest) = oldest.map(|(key, _)| *key)
                && self.0.len() >= KEPT_MAX
            {
                self.0.remove(&oldest);
            }
        }
        self.0.entry(key).or_insert_with(|| Record::new(now))
    }
}

impl Record {
    fn new(now: Instant) -> Self {
        Self {
            level: 0.0,
            strangers: 0.0,
            since: now,
            next: now,
        }
    }

    /// Halves the count for each half-life that has passed.
    fn decayed(&self, now: Instant) -> Self {
        let halves = now.duration_since(self.since).as_secs_f32() / HALF.as_secs_f32();
        let rest = (-halves).exp2();
        Self {
            level: self.level * rest,
            strangers: self.strangers * rest,
            since: now,
            ..*self
        }
    }

    /// Returns whether it still delays any logon.
    fn counts(&self, now: Instant) -> bool {
        self.decayed(now).level >= 0.5 || self.next > now
    }

    fn fails(&mut self, now: Instant, by_stranger: bool) {
        let max = DOUBLINGS as f32 + 1.0;
        *self = self.decayed(now);
        self.level = (self.level + 1.0).min(max);
        if by_stranger {
            self.strangers = (self.strangers + 1.0).min(8.0);
        }
    }

    /// Returns the delay of the next logon.
    fn delay(&self, longest: Duration) -> Duration {
        let count = self.level.round();
        if count < 1.0 {
            return Duration::ZERO;
        }
        longest.mul_f32((count - 1.0 - DOUBLINGS as f32).min(0.0).exp2())
    }

    /// Returns the delay for a logon from an address without wrong guesses. It is 1/32 of the
    /// longest one for each address that guessed at this user, up to a quarter.
    fn stranger_delay(&self, longest: Duration) -> Duration {
        longest.mul_f32(self.strangers.round().min(8.0) / 32.0)
    }
}

/// Returns the key of a client's network: [`network_of`] as a number.
fn network(peer: IpAddr) -> u128 {
    match network_of(peer) {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(8);

    fn peer(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn state() -> (State, Instant) {
        let guesses = Guesses::new(2, LONGEST);
        (guesses.state.into_inner(), now())
    }

    /// Makes `times` wrong guesses, each as early as permitted. Returns when the last one was.
    fn guess(state: &mut State, from: u8, user: usize, begun: Instant, times: u32) -> Instant {
        let (address, user) = (network(peer(from)), Named::Known(user));
        let mut at = begun;
        for _ in 0..times {
            let attempt = match state.turn(address, user, at, at, LONGEST) {
                Ok(attempt) => attempt,
                Err(until) => {
                    at = until;
                    state.turn(address, user, begun, at, LONGEST).unwrap()
                }
            };
            state
                .addresses
                .get(address, at)
                .fails(at, attempt.is_stranger);
            let record = state.addresses.get(address, at);
            record.next = at + record.delay(LONGEST);
            if let Named::Known(place) = user {
                state.users[place].fails(at, attempt.is_stranger);
            }
        }
        at
    }

    fn waits(state: &mut State, from: u8, user: usize, at: Instant) -> Duration {
        let address = network(peer(from));
        match state.turn(address, Named::Known(user), at, at, LONGEST) {
            Ok(attempt) => {
                state.addresses.get(address, at).next = attempt.before;
                Duration::ZERO
            }
            Err(until) => until - at,
        }
    }

    #[test]
    fn each_guess_costs_more_and_what_is_long_ago_nothing() {
        let (mut state, begun) = state();
        let took = guess(&mut state, 1, 0, begun, 8) - begun;
        // 0.5 + 1 + 2 + 4 + 8 + 8 + 8, less the decay meanwhile.
        assert!((15.0..32.0).contains(&took.as_secs_f32()), "{took:?}");
        let at = begun + took;
        assert!(waits(&mut state, 1, 0, at) > Duration::from_secs(3));
        assert!(waits(&mut state, 1, 1, at) > Duration::from_secs(3));
        let later = at + Duration::from_secs(300);
        assert_eq!(waits(&mut state, 1, 0, later), Duration::ZERO);
    }

    #[test]
    fn who_comes_from_elsewhere_waits_little() {
        let (mut state, begun) = state();
        let at = guess(&mut state, 1, 0, begun, 8);
        let waited = waits(&mut state, 2, 0, at);
        assert!(waited <= Duration::from_millis(300), "{waited:?}");
        assert_eq!(waits(&mut state, 2, 1, at), Duration::ZERO);
        // Many addresses guess once each, as an attacker with a network may do.
        for from in 3..200 {
            guess(&mut state, from, 0, at, 1);
        }
        let waited = waits(&mut state, 2, 0, at);
        assert_eq!(waited, LONGEST / 4);
    }

    #[test]
    fn a_guess_at_a_user_slows_guesses_from_other_addresses_that_guess() {
        let (mut state, begun) = state();
        let at = guess(&mut state, 1, 0, begun, 8);
        guess(&mut state, 2, 1, at, 1);
        assert!(waits(&mut state, 2, 0, at) >= Duration::from_secs(2));
    }

    #[test]
    fn the_tables_are_bounded() {
        let (mut state, begun) = state();
        for key in 0..KEPT_MAX as u128 + 100 {
            state.addresses.get(key, begun).fails(begun, true);
        }
        assert_eq!(state.addresses.0.len(), KEPT_MAX);
    }

    #[test]
    fn a_right_password_costs_nobody_anything() {
        let guesses = Guesses::new(1, Duration::from_millis(160));
        let turn = |place| {
            guesses
                .await_turn(peer(1), place, "x", || {}, || false)
                .unwrap()
        };
        guesses.wrong(turn(None));
        guesses.right(turn(Some(0)));
        let begun = now();
        guesses.right(turn(Some(0)));
        assert!(begun.elapsed() < LONGEST);
        assert_eq!(guesses.state.lock().users[0].level, 0.0);
        guesses.wrong(turn(Some(0)));
        // A logon whose client is gone does not take a turn.
        let gone = guesses.await_turn(peer(1), Some(0), "x", || {}, || true);
        assert!(gone.is_none());
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("fd00::1:2"), of("fd00::ffff:0:0:1"));
        assert_ne!(of("fd00::1"), of("fd00:0:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }

    /// A program on this host can call from 16 million addresses.
    #[test]
    fn this_host_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        for own in ["127.0.0.2", "127.200.3.4", "::1", "::ffff:127.0.0.9"] {
            assert_eq!(of(own), of("127.0.0.1"), "{own}");
        }
    }
}
