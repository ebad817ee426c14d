//! The entries of a directory.

use std::collections::BTreeMap;
use volary_core::{Cookie, Kind, NodeId, Result};

/// One entry.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) name: Vec<u8>,
    pub(crate) node: NodeId,
}

/// Entries, by cookie and by name. A cookie numbers the entries in the order of their creation, and
/// is never reused. So a listing that continues after a cookie neither misses nor repeats an entry
/// that stays.
pub(crate) struct Dir {
    pub(crate) parent: NodeId,
    by_cookie: BTreeMap<u64, Slot>,
    /// Keys are names as [`key`](crate::state::State::key) makes them.
    by_key: BTreeMap<Vec<u8>, u64>,
    last_cookie: u64,
}

impl Dir {
    pub(crate) fn new(parent: NodeId) -> Self {
        Self {
            parent,
            by_cookie: BTreeMap::new(),
            by_key: BTreeMap::new(),
            last_cookie: Cookie::START.0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_cookie.is_empty()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<NodeId> {
        let cookie = self.by_key.get(key)?;
        self.by_cookie.get(cookie).map(|slot| slot.node)
    }

    /// Adds an entry whose key is not taken.
    pub(crate) fn insert(&mut self, key: Vec<u8>, name: Vec<u8>, node: NodeId) {
        self.last_cookie += 1;
        self.by_key.insert(key, self.last_cookie);
        self.by_cookie.insert(self.last_cookie, Slot { name, node });
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        if let Some(cookie) = self.by_key.remove(key) {
            self.by_cookie.remove(&cookie);
        }
    }

    /// Makes an existing entry lead to another node.
    pub(crate) fn redirect(&mut self, key: &[u8], node: NodeId) {
        if let Some(slot) = self.slot_mut(key) {
            slot.node = node;
        }
    }

    /// Changes the spelling of an existing entry's name. Returns false if there
    /// is no such entry, or its name is spelled so already.
    pub(crate) fn respell(&mut self, key: &[u8], name: Vec<u8>) -> bool {
        match self.slot_mut(key) {
            Some(slot) if slot.name != name => {
                slot.name = name;
                true
            }
            _ => false,
        }
    }

    /// Returns the entries after a cookie, each with its own cookie.
    ///
    /// # Errors
    /// `Invalid` for a cookie that was never given out.
    pub(crate) fn after(&self, from: Cookie) -> Result<impl Iterator<Item = (Cookie, &Slot)>> {
        if from.0 > self.last_cookie {
            return Err(Kind::Invalid.into());
        }
        let later = self.by_cookie.range(from.0 + 1..);
        Ok(later.map(|(cookie, slot)| (Cookie(*cookie), slot)))
    }

    fn slot_mut(&mut self, key: &[u8]) -> Option<&mut Slot> {
        let cookie = self.by_key.get(key)?;
        self.by_cookie.get_mut(cookie)
    }
}
