//! [`Waits`]: the requests of a connection that are answered later. A cancellation finds them here
//! (MS-SMB2 3.3.5.16).

use crate::wire::Header;
use crate::wire::header::flags;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A request that waits or is parked.
pub(crate) trait Waiting: Send + Sync {
    /// Ends the request, because the client has cancelled it.
    fn cancel_now(&self);

    /// Ends the request, because its client is gone.
    fn end(&self);
}

/// The requests of a connection that wait or are parked.
#[derive(Default)]
pub(crate) struct Waits {
    ids: AtomicU64,
    all: Mutex<HashMap<u64, Entry>>,
}

struct Entry {
    wait: Arc<dyn Waiting>,
    message_id: u64,
    session: Option<u64>,
    bytes: usize,
}

impl Waits {
    /// Adds a request of a session, of which `bytes` bytes stay in memory. Returns its asynchronous
    /// id, or `None` if there are `max` already.
    pub(super) fn add(
        &self,
        wait: Arc<dyn Waiting>,
        request: &Header,
        session: Option<u64>,
        bytes: usize,
        max: usize,
    ) -> Option<u64> {
        let mut all = self.all.lock();
        if all.len() >= max {
            return None;
        }
        let id = self.ids.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let entry = Entry {
            wait,
            message_id: request.message_id,
            session,
            bytes,
        };
        all.insert(id, entry);
        Some(id)
    }

    /// Returns the bytes of the messages of all waiting requests.
    pub(super) fn bytes(&self) -> usize {
        self.all.lock().values().map(|entry| entry.bytes).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.lock().is_empty()
    }

    pub(super) fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// Cancels the request that a CANCEL of this session refers to, if it waits.
    pub(crate) fn cancel(&self, request: &Header, session: u64) {
        let is_meant = |(id, entry): &(&u64, &Entry)| {
            let by_id = if request.has(flags::ASYNC) {
                **id == request.async_id
            } else {
                entry.message_id == request.message_id
            };
            by_id && entry.session == Some(session)
        };
        let all = self.all.lock();
        let found = all.iter().find(is_meant);
        let found = found.map(|(_, entry)| Arc::clone(&entry.wait));
        drop(all);
        if let Some(wait) = found {
            wait.cancel_now();
        }
    }

    /// Ends all waiting requests, because the connection ends.
    pub(super) fn end_all(&self) {
        let waits = |entry: &Entry| Arc::clone(&entry.wait);
        let all: Vec<_> = self.all.lock().values().map(waits).collect();
        for wait in all {
            wait.end();
        }
    }
}
