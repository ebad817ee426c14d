//! Shared parts of the file systems that are clients of a server.

use parking_lot::Mutex;
use std::collections::HashMap;
use volary_core::{Kind, OpenId, Result};

/// The state of a volume until it is detached.
pub(crate) struct Attached<S>(Mutex<Option<S>>);

impl<S> Attached<S> {
    pub(crate) fn new(state: S) -> Self {
        Self(Mutex::new(Some(state)))
    }

    /// # Errors
    /// `Stale` once the volume is detached.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut S) -> Result<T>) -> Result<T> {
        match &mut *self.0.lock() {
            Some(state) => work(state),
            None => Err(Kind::Stale.into()),
        }
    }

    pub(crate) fn detach(&self) {
        self.0.lock().take();
    }
}

/// The opens, by ids that are assigned here.
pub(crate) struct Opens<H> {
    held: HashMap<OpenId, H>,
    next: u64,
}

impl<H> Opens<H> {
    pub(crate) fn new() -> Self {
        Self {
            held: HashMap::new(),
            next: 1,
        }
    }

    pub(crate) fn add(&mut self, held: H) -> OpenId {
        let open = OpenId(self.next);
        self.next += 1;
        self.held.insert(open, held);
        open
    }

    /// # Errors
    /// `Stale` if the open is unknown.
    pub(crate) fn get(&mut self, open: OpenId) -> Result<&mut H> {
        Ok(self.held.get_mut(&open).ok_or(Kind::Stale)?)
    }

    /// # Errors
    /// `Stale` if the open is unknown.
    pub(crate) fn end(&mut self, open: OpenId) -> Result<H> {
        Ok(self.held.remove(&open).ok_or(Kind::Stale)?)
    }
}
