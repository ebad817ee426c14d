//! Attributes of a node before and after a change (weak cache consistency).
//!
//! A client keeps its cached data of a node if the attributes before a change are those that it
//! knows: then nobody else has changed the node in between. So no other change may come between
//! reading the attributes and the change. Changes by NFS are kept out by one of many locks, chosen
//! by the node's number. Changes by others (FUSE, SMB, the driver's reports) are seen as events of
//! the session. If one came meanwhile, the attributes from before are left out, which the protocol
//! allows.
//!
//! A change by others may take effect within the operation and be reported after it. It then goes
//! unseen, but it still changes the `ctime`, which the next look shows.
//!
//! # Lock order
//!
//! Two nodes' locks are taken in the order of their stripes. They are held over calls to the
//! session.

use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Attr, NodeId};
use volary_session::Session;

const STRIPES: usize = 1024;

/// The locks of one volume's nodes, and how often others have changed them.
pub(crate) struct Order(Box<[Stripe]>);

#[derive(Default)]
struct Stripe {
    lock: Mutex<()>,
    foreign: AtomicU64,
}

/// A node that is about to be changed, with its attributes before that.
pub(crate) struct Before<'a> {
    stripe: &'a Stripe,
    node: NodeId,
    attr: Option<Attr>,
    foreign: u64,
}

/// The attributes of a node before and after a change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wcc {
    pub(crate) before: Option<Attr>,
    pub(crate) after: Option<Attr>,
}

/// Keeps other changes by NFS out while it lives.
pub(crate) struct Alone<'a> {
    _locks: (MutexGuard<'a, ()>, Option<MutexGuard<'a, ()>>),
}

impl Default for Order {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| Stripe::default()).collect())
    }
}

impl Order {
    fn place(node: NodeId) -> usize {
        // Multiplied, so that neighbouring numbers get distant stripes.
        (node.ino.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % STRIPES
    }

    fn stripe(&self, node: NodeId) -> &Stripe {
        // A place is always below `STRIPES`.
        #[expect(clippy::indexing_slicing, reason = "a place is below STRIPES")]
        &self.0[Self::place(node)]
    }

    /// Notes that somebody other than NFS has changed the node.
    pub(crate) fn note_foreign(&self, node: NodeId) {
        self.stripe(node).foreign.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that somebody other than NFS may have changed any node.
    pub(crate) fn note_foreign_all(&self) {
        for stripe in &self.0 {
            stripe.foreign.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Keeps other changes by NFS from these nodes, until the result is dropped.
    pub(crate) fn alone(&self, node: NodeId, other: Option<NodeId>) -> Alone<'_> {
        let (here, there) = (Self::place(node), other.map(Self::place));
        let _locks = match (there, other) {
            (Some(place), Some(other)) if place != here => {
                let (first, second) = if here < place {
                    (node, other)
                } else {
                    (other, node)
                };
                let first = self.stripe(first).lock.lock();
                (first, Some(self.stripe(second).lock.lock()))
            }
            _ => (self.stripe(node).lock.lock(), None),
        };
        Alone { _locks }
    }

    /// Reads a node's attributes before a change, with [`alone`](Self::alone) held.
    pub(crate) fn before(&self, session: &Session, node: NodeId) -> Before<'_> {
        let stripe = self.stripe(node);
        let foreign = stripe.foreign.load(Ordering::Acquire);
        Before {
            stripe,
            node,
            attr: session.getattr(node).ok(),
            foreign,
        }
    }
}

impl Before<'_> {
    /// Reads the node's attributes after the change.
    pub(crate) fn after(self, session: &Session) -> Wcc {
        let after = session.getattr(self.node).ok();
        let told = self.stripe.foreign.load(Ordering::Acquire) != self.foreign;
        Wcc {
            before: self.attr.filter(|_| !told),
            after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_locked_without_a_deadlock() {
        let order = Order::default();
        let node = |n: u64| NodeId::new(n, 0).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let order = &order;
                scope.spawn(move || {
                    for n in 1..2000u64 {
                        let (a, b) = (node(n % 7 + 1), node((n + thread) % 5 + 1));
                        drop(order.alone(a, Some(b)));
                        drop(order.alone(b, Some(a)));
                    }
                });
            }
        });
    }
}
