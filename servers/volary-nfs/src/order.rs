//! Attributes of a node from before and after a change (weak cache consistency).
//!
//! A client keeps what it has cached of a node if the attributes from before a
//! change are those that it knows: then nobody else has changed it in between.
//! So nothing may come between the attributes and the change. Changes by NFS are
//! kept out by a lock, one of many, that the node's number picks; of changes by
//! others (FUSE, SMB, the driver's own news) the session tells, and if one was told
//! meanwhile, the attributes from before are left out, which the protocol allows.
//! A change by others that takes effect within the operation and is told after it
//! goes unseen: it still moves the time of last change, and the next look shows it.
//!
//! # Lock order
//!
//! Two nodes' locks are taken in the order of their places. They are held over
//! calls to the session.

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

/// A node that is about to be changed.
pub(crate) struct Before<'a> {
    stripe: &'a Stripe,
    node: NodeId,
    attr: Option<Attr>,
    foreign: u64,
}

/// The attributes of a node from before and after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wcc {
    pub(crate) before: Option<Attr>,
    pub(crate) after: Option<Attr>,
}

/// Keeps other changes by NFS out.
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
        // Neighbours lie apart.
        (node.ino.get().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % STRIPES
    }

    fn stripe(&self, node: NodeId) -> &Stripe {
        // There are as many as places.
        #[expect(clippy::indexing_slicing, reason = "a place is below STRIPES")]
        &self.0[Self::place(node)]
    }

    /// Notes that others have changed the node.
    pub(crate) fn note_foreign(&self, node: NodeId) {
        self.stripe(node).foreign.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that others may have changed any.
    pub(crate) fn note_foreign_all(&self) {
        for stripe in &self.0 {
            stripe.foreign.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Keeps other changes by NFS from these nodes.
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

    /// Looks at a node before it is changed. Within [`alone`](Self::alone).
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
    /// Looks at the node again.
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
