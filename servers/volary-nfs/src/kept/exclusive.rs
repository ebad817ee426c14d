//! Verifiers of files that were created exclusively. A client that did not get the reply
//! retransmits with the same verifier, and the existing file counts as its own.
//!
//! Verifiers are kept here and not in the file's times, which some clients never set afterwards. A
//! retransmission after a restart of the server finds the file and no verifier: `NFS3ERR_EXIST`.

use super::recent::{Bounds, Recent};
use parking_lot::{Mutex, MutexGuard};
use std::time::Duration;
use volary_core::NodeId;
use volary_session::Party;

const BOUNDS: Bounds = Bounds {
    all: 4096,
    of_party: 2048,
    age: Duration::MAX,
};

/// A verifier, chosen by the client.
pub(crate) type Verifier = [u8; 8];

/// The verifiers of one volume.
pub(crate) struct Verifiers(Mutex<Made>);

impl Default for Verifiers {
    fn default() -> Self {
        Self(Mutex::new(Made(Recent::new(BOUNDS))))
    }
}

/// The verifiers, locked: making a file and noting its verifier must be one step.
pub(crate) struct Made(Recent<NodeId, (Party, Verifier)>);

impl Verifiers {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Made> {
        self.0.lock()
    }
}

impl Made {
    pub(crate) fn note(&mut self, party: Party, node: NodeId, verifier: Verifier) {
        self.0.insert(party, node, (party, verifier));
    }

    /// Returns whether this party created the node, with this verifier.
    pub(crate) fn is(&self, party: Party, node: NodeId, verifier: Verifier) -> bool {
        self.0.get(&node) == Some(&(party, verifier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thousands_are_kept_and_those_of_others() {
        let verifiers = Verifiers::default();
        let (one, other) = (Party::User(1), Party::User(2));
        let node = |n| NodeId::new(n, 0).unwrap();
        let mut made = verifiers.lock();
        let theirs = node(u64::MAX);
        made.note(other, theirs, [9; 8]);
        for n in 1..=BOUNDS.of_party as u64 + 1 {
            made.note(one, node(n), n.to_be_bytes());
        }
        assert!(!made.is(one, node(1), 1u64.to_be_bytes()));
        assert!(made.is(one, node(2), 2u64.to_be_bytes()));
        assert!(!made.is(one, node(2), 3u64.to_be_bytes()));
        assert!(made.is(other, theirs, [9; 8]));
        assert!(!made.is(one, theirs, [9; 8]), "another's file");
    }
}
