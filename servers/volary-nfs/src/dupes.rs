//! Calls that must not be done twice: the answers that were given, kept for a
//! client that did not get them and asks again.

use crate::timer;
use parking_lot::Mutex;
use siphasher::sip::SipHasher13;
use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How many calls are remembered.
const CALLS_MAX: usize = 2048;
/// Longer answers are not kept; those of calls that change names are shorter.
const ANSWER_MAX: usize = 1024;
/// How long.
const AGE_MAX: Duration = Duration::from_secs(120);

/// One call: who sent it (a client comes back from the same port), its number,
/// and a checksum of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId {
    peer: SocketAddr,
    xid: u32,
    sum: u64,
}

impl CallId {
    pub(crate) fn new(peer: SocketAddr, xid: u32, call: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(call);
        let sum = hasher.finish();
        Self { peer, xid, sum }
    }
}

/// What to do with a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is new: do it, and [`Dupes::answered`].
    New,
    /// It is being done: say nothing.
    Working,
    /// It was done, with this answer.
    Answer(Box<[u8]>),
}

/// The calls that are remembered.
#[derive(Default)]
pub(crate) struct Dupes(Mutex<State>);

#[derive(Default)]
struct State {
    calls: HashMap<CallId, Option<Box<[u8]>>>,
    order: VecDeque<(Instant, CallId)>,
}

impl Dupes {
    pub(crate) fn look(&self, id: CallId) -> Seen {
        let mut state = self.0.lock();
        match state.calls.get(&id) {
            Some(None) => Seen::Working,
            Some(Some(answer)) => Seen::Answer(answer.clone()),
            None => {
                state.forget(CALLS_MAX - 1, AGE_MAX);
                state.calls.insert(id, None);
                state.order.push_back((timer::now(), id));
                Seen::New
            }
        }
    }

    /// Keeps the answer of a call that was new.
    pub(crate) fn answered(&self, id: CallId, answer: &[u8]) {
        let mut state = self.0.lock();
        if answer.len() > ANSWER_MAX {
            state.calls.remove(&id);
        } else if let Some(place) = state.calls.get_mut(&id) {
            *place = Some(answer.into());
        }
    }
}

impl State {
    /// Forgets what is more than `max` or older than `age`.
    fn forget(&mut self, max: usize, age: Duration) {
        while let Some((since, id)) = self.order.front() {
            if self.order.len() <= max && since.elapsed() < age {
                return;
            }
            self.calls.remove(id);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(port: u16, xid: u32, call: &[u8]) -> CallId {
        CallId::new(SocketAddr::from(([127, 0, 0, 1], port)), xid, call)
    }

    #[test]
    fn a_call_is_done_once_and_answered_as_often_as_asked() {
        let dupes = Dupes::default();
        let call = id(1, 2, b"call");
        assert_eq!(dupes.look(call), Seen::New);
        assert_eq!(dupes.look(call), Seen::Working);
        dupes.answered(call, b"done");
        assert_eq!(dupes.look(call), Seen::Answer(b"done"[..].into()));
        for other in [id(2, 2, b"call"), id(1, 3, b"call"), id(1, 2, b"cull")] {
            assert_eq!(dupes.look(other), Seen::New);
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let dupes = Dupes::default();
        for xid in 0..3 * CALLS_MAX as u32 {
            let call = id(1, xid, b"");
            assert_eq!(dupes.look(call), Seen::New);
            dupes.answered(call, &[0; 100]);
        }
        let state = dupes.0.lock();
        assert_eq!(state.calls.len(), CALLS_MAX);
        assert_eq!(state.order.len(), CALLS_MAX);
        drop(state);
        let long = id(1, u32::MAX, b"");
        assert_eq!(dupes.look(long), Seen::New);
        dupes.answered(long, &[0; ANSWER_MAX + 1]);
        assert_eq!(dupes.look(long), Seen::New);
    }
}
