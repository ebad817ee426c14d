//! The duplicate request cache: replies to calls that must not be executed twice, kept for a client
//! that did not get the reply and sends the call again.

use super::recent::{Bounds, Recent};
use parking_lot::Mutex;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::net::SocketAddr;
use std::time::Duration;
use volary_session::Party;

const BOUNDS: Bounds = Bounds {
    all: 2048,
    of_party: 1024,
    age: Duration::from_secs(120),
};
/// Longer replies are not kept; those of calls that change names are shorter.
const ANSWER_MAX: usize = 1024;

/// Identifies one call by its party, its port (a client reconnects from the same one), its number,
/// and a checksum of all of it. If another user gets the port, the party differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CallId {
    party: Party,
    peer: SocketAddr,
    xid: u32,
    sum: u64,
}

impl CallId {
    pub(crate) fn new(party: Party, peer: SocketAddr, xid: u32, call: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(call);
        let sum = hasher.finish();
        Self {
            party,
            peer,
            xid,
            sum,
        }
    }
}

/// What to do with a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// It is new: execute it, and call [`Dupes::answered`].
    New,
    /// It is in progress: send no reply.
    Working,
    /// It was executed, with this reply.
    Answer(Box<[u8]>),
}

/// The remembered calls; those in progress have no reply yet.
pub(crate) struct Dupes(Mutex<Recent<CallId, Option<Box<[u8]>>>>);

impl Default for Dupes {
    fn default() -> Self {
        Self(Mutex::new(Recent::new(BOUNDS)))
    }
}

impl Dupes {
    pub(crate) fn look(&self, id: CallId) -> Seen {
        let mut calls = self.0.lock();
        match calls.get(&id) {
            Some(None) => Seen::Working,
            Some(Some(answer)) => Seen::Answer(answer.clone()),
            None => {
                calls.insert(id.party, id, None);
                Seen::New
            }
        }
    }

    /// Forgets a call that was new and not accepted.
    pub(crate) fn forget(&self, id: CallId) {
        self.0.lock().remove(id.party, &id);
    }

    /// Keeps the reply to a call that was new.
    pub(crate) fn answered(&self, id: CallId, answer: &[u8]) {
        let mut calls = self.0.lock();
        if answer.len() > ANSWER_MAX {
            calls.remove(id.party, &id);
        } else if let Some(place) = calls.get_mut(&id) {
            *place = Some(answer.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(user: u32, port: u16, xid: u32, call: &[u8]) -> CallId {
        let peer = SocketAddr::from(([127, 0, 0, 1], port));
        CallId::new(Party::User(user), peer, xid, call)
    }

    fn id(port: u16, xid: u32, call: &[u8]) -> CallId {
        id_of(0, port, xid, call)
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
    fn a_call_that_is_forgotten_is_new_again() {
        let dupes = Dupes::default();
        let refused = id(1, 2, b"call");
        assert_eq!(dupes.look(refused), Seen::New);
        dupes.forget(refused);
        assert_eq!(dupes.look(refused), Seen::New);
    }

    #[test]
    fn long_answers_are_not_kept() {
        let dupes = Dupes::default();
        let long = id(1, u32::MAX, b"");
        assert_eq!(dupes.look(long), Seen::New);
        dupes.answered(long, &[0; ANSWER_MAX + 1]);
        assert_eq!(dupes.look(long), Seen::New);
    }

    #[test]
    fn one_user_s_calls_leave_another_s_remembered() {
        let dupes = Dupes::default();
        let mine = id_of(7, 1, 1, b"remove");
        assert_eq!(dupes.look(mine), Seen::New);
        dupes.answered(mine, b"done");
        for user in 0..4 {
            for xid in 0..2 * BOUNDS.all as u32 {
                dupes.look(id_of(user, 2, xid, b"other"));
            }
        }
        assert_eq!(dupes.look(mine), Seen::Answer(b"done"[..].into()));
    }

    #[test]
    fn a_user_is_not_told_what_another_was_answered_at_the_same_port() {
        let dupes = Dupes::default();
        let mine = id_of(1, 1000, 1, b"create");
        assert_eq!(dupes.look(mine), Seen::New);
        dupes.answered(mine, b"a handle");
        assert_eq!(dupes.look(id_of(2, 1000, 1, b"create")), Seen::New);
    }
}
