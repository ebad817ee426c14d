//! Verifiers of files that were made exclusively: a client that did not get the
//! answer asks again with the same verifier, and the file is its own.
//!
//! They are kept here and not in the file's times, which some clients never set
//! afterwards. A retransmission after a restart of the server finds the file and
//! no verifier: `NFS3ERR_EXIST`.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{HashMap, VecDeque};
use volary_core::NodeId;

/// How many are kept.
const VERIFIERS_MAX: usize = 4096;

/// What a client chooses.
pub(crate) type Verifier = [u8; 8];

/// The verifiers of one volume.
#[derive(Default)]
pub(crate) struct Verifiers(Mutex<Made>);

/// The verifiers, locked: while a file is made and its verifier noted, as one step.
#[derive(Default)]
pub(crate) struct Made {
    of: HashMap<NodeId, Verifier>,
    order: VecDeque<NodeId>,
}

impl Verifiers {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Made> {
        self.0.lock()
    }
}

impl Made {
    pub(crate) fn note(&mut self, node: NodeId, verifier: Verifier) {
        if self.of.insert(node, verifier).is_none() {
            self.order.push_back(node);
        }
        if self.order.len() > VERIFIERS_MAX
            && let Some(first) = self.order.pop_front()
        {
            self.of.remove(&first);
        }
    }

    pub(crate) fn is(&self, node: NodeId, verifier: Verifier) -> bool {
        self.of.get(&node) == Some(&verifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thousands_are_kept() {
        let verifiers = Verifiers::default();
        let node = |n| NodeId::new(n, 0).unwrap();
        let mut made = verifiers.lock();
        for n in 1..=VERIFIERS_MAX as u64 + 1 {
            made.note(node(n), n.to_be_bytes());
        }
        assert!(!made.is(node(1), 1u64.to_be_bytes()));
        assert!(made.is(node(2), 2u64.to_be_bytes()));
        assert!(!made.is(node(2), 3u64.to_be_bytes()));
        assert_eq!(made.of.len(), VERIFIERS_MAX);
    }
}
