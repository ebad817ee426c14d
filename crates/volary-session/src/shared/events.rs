//! Change events: who changed what.

use parking_lot::{Condvar, Mutex, RwLock};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use volary_core::NodeId;

/// One of a volume's users, such as a mount or a connection; made by
/// [`Volume::client`](crate::Volume::client).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub(crate) u64);

/// A change that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The client whose session made the change; `None` for a session without a client, and for
    /// changes made outside this volume.
    pub origin: Option<ClientId>,
    /// What changed.
    pub news: News,
}

/// What changed. Names are as the caller gave them; a case-insensitive volume may store the entry
/// in another case. If an entry is made, removed or renamed, the times, and maybe link counts, of
/// the directories and nodes in the event have changed too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A directory has a new entry.
    Made {
        /// The directory.
        dir: NodeId,
        /// The entry's name.
        name: Box<[u8]>,
        /// The node that it refers to.
        node: NodeId,
    },
    /// A directory has lost an entry.
    Removed {
        /// The directory.
        dir: NodeId,
        /// The entry's name.
        name: Box<[u8]>,
        /// The node that it referred to, if known.
        node: Option<NodeId>,
    },
    /// An entry has moved, or two have swapped places.
    Renamed {
        /// The directory that it was in.
        from: NodeId,
        /// Its name there.
        name: Box<[u8]>,
        /// The directory that it is in.
        to: NodeId,
        /// Its name now.
        new_name: Box<[u8]>,
        /// The node that the old name referred to, if known.
        node: Option<NodeId>,
        /// The node that the new name referred to before, if any.
        replaced: Option<NodeId>,
        /// Whether `replaced` took the old name.
        swapped: bool,
    },
    /// Content has changed, and with it times and maybe the size.
    Data(NodeId),
    /// Attributes have changed.
    Attr(NodeId),
    /// Entries of a directory have changed; which is not known.
    Entries(NodeId),
    /// A node has been removed.
    Gone(NodeId),
    /// Anything may have changed: more events occurred than could be kept or told.
    Everything,
}

/// Receives events.
///
/// Called by the thread that made the change, after it took effect and before the call returns,
/// with no lock of the volume held. Many threads may call at once. Events of two overlapping
/// changes may come in either order. A sink should only note the event; [`EventQueue`] is a sink
/// that does.
pub trait EventSink: Send + Sync {
    /// Receives one event.
    fn event(&self, event: &Event);
}

/// Keeps a subscription alive; dropping it ends the subscription. A call to the sink that is in
/// progress then may still finish.
#[must_use = "the subscription ends when this is dropped"]
pub struct Subscription {
    hub: Weak<Hub>,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.end(self.id);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The subscribers of one volume.
#[derive(Default)]
pub(crate) struct Hub {
    /// The number of subscribers, so that an event without any costs one load.
    count: AtomicUsize,
    ids: AtomicU64,
    subscribers: RwLock<Vec<Subscriber>>,
    /// The client whose changes all subscribers ignore; 0 if there is none.
    unheard: AtomicU64,
}

struct Subscriber {
    id: u64,
    /// The client whose changes it is not told of.
    deaf_to: Option<ClientId>,
    sink: Arc<dyn EventSink>,
}

impl Hub {
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        deaf_to: Option<ClientId>,
        sink: Arc<dyn EventSink>,
    ) -> Subscription {
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        let mut all = self.subscribers.write();
        all.push(Subscriber { id, deaf_to, sink });
        self.note(&all);
        Subscription {
            hub: Arc::downgrade(self),
            id,
        }
    }

    fn end(&self, id: u64) {
        let mut all = self.subscribers.write();
        all.retain(|other| other.id != id);
        self.note(&all);
    }

    fn note(&self, all: &[Subscriber]) {
        let deaf_to = |subscriber: &Subscriber| subscriber.deaf_to.map_or(0, |client| client.0);
        let first = all.first().map_or(0, deaf_to);
        let agree = all.iter().all(|other| deaf_to(other) == first);
        let unheard = if agree { first } else { 0 };
        self.unheard.store(unheard, Ordering::Release);
        self.count.store(all.len(), Ordering::Release);
    }

    /// Returns whether any subscriber wants changes of that origin.
    pub(crate) fn is_heard(&self, origin: Option<ClientId>) -> bool {
        let unheard = self.unheard.load(Ordering::Acquire);
        let is_unheard = origin.is_some_and(|client| client.0 == unheard);
        self.count.load(Ordering::Acquire) > 0 && !is_unheard
    }

    pub(crate) fn tell(&self, event: &Event) {
        let all = self.subscribers.read();
        let hears = |other: &&Subscriber| other.deaf_to.is_none() || other.deaf_to != event.origin;
        let sinks: Vec<_> = all.iter().filter(hears).map(|s| s.sink.clone()).collect();
        drop(all);
        for sink in sinks {
            sink.event(event);
        }
    }
}

/// A sink that keeps up to a limited number of events until they are taken. If more come, all are
/// discarded, and one [`News::Everything`] stands for them.
#[derive(Debug)]
pub struct EventQueue {
    state: Mutex<Waiting>,
    came: Condvar,
    limit: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<Event>,
    closed: bool,
}

/// How many events' worth of memory an empty queue keeps.
const ROOM_KEPT: usize = 1024;

impl Waiting {
    /// Returns the next event. When the queue becomes empty, frees the memory that a flood of
    /// events took.
    fn next(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if self.events.is_empty() {
            self.events.shrink_to(ROOM_KEPT);
        }
        event
    }
}

impl EventQueue {
    /// Returns a queue for at most `limit` events (and for at least one).
    pub fn new(limit: usize) -> Self {
        Self {
            state: Mutex::default(),
            came: Condvar::new(),
            limit: limit.max(1),
        }
    }

    /// Waits for the next event and returns it. `None` once the queue is closed and empty.
    pub fn take(&self) -> Option<Event> {
        let mut state = self.state.lock();
        loop {
            if let Some(event) = state.next() {
                return Some(event);
            }
            if state.closed {
                return None;
            }
            self.came.wait(&mut state);
        }
    }

    /// Returns the next event, if there is one now.
    pub fn try_take(&self) -> Option<Event> {
        self.state.lock().next()
    }

    /// Accepts no more events, and wakes all waiters.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.came.notify_all();
    }
}

impl EventSink for EventQueue {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        if state.events.len() < self.limit {
            state.events.push_back(event.clone());
        } else {
            state.events.clear();
            state.events.push_back(Event {
                origin: None,
                news: News::Everything,
            });
        }
        drop(state);
        self.came.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_events_leaves_no_room_behind() {
        let queue = EventQueue::new(1 << 16);
        let event = Event {
            origin: None,
            news: News::Everything,
        };
        for by_try in [true, false] {
            for _ in 0..20 * ROOM_KEPT {
                queue.event(&event);
            }
            for _ in 0..20 * ROOM_KEPT {
                let taken = if by_try {
                    queue.try_take()
                } else {
                    queue.take()
                };
                assert_eq!(taken.as_ref(), Some(&event));
            }
            let room = queue.state.lock().events.capacity();
            assert!(room <= 2 * ROOM_KEPT, "{room}");
        }
    }
}
