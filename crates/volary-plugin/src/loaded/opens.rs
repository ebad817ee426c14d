//! Opens, numbered here: what was closed is stale, whatever numbers the plug-in gives.

use crate::abi::{VOLARY_WRITE, VolaryOpen};
use parking_lot::Mutex;
use std::collections::HashMap;
use volary_core::{Kind, OpenId, Result};

/// Opens that a volume can have: as many as a session lets it.
const OPENS_MAX: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Opens(Mutex<State>);

#[derive(Default)]
struct State {
    last: u64,
    open: HashMap<u64, VolaryOpen>,
}

impl Opens {
    /// # Errors
    /// `TooManyOpen`.
    pub(super) fn check_room(&self) -> Result<()> {
        match self.0.lock().open.len() < OPENS_MAX {
            true => Ok(()),
            false => Err(Kind::TooManyOpen.into()),
        }
    }

    pub(super) fn add(&self, open: VolaryOpen) -> OpenId {
        let mut state = self.0.lock();
        state.last += 1;
        let id = state.last;
        state.open.insert(id, open);
        OpenId(id)
    }

    /// # Errors
    /// `Stale`.
    pub(super) fn get(&self, id: OpenId) -> Result<VolaryOpen> {
        let found = self.0.lock().open.get(&id.0).copied();
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns an open that takes changes.
    ///
    /// # Errors
    /// `Stale`; `Invalid` for one that is for reading.
    pub(super) fn to_write(&self, id: OpenId) -> Result<VolaryOpen> {
        let open = self.get(id)?;
        match open.mode & VOLARY_WRITE {
            0 => Err(Kind::Invalid.into()),
            _ => Ok(open),
        }
    }

    /// # Errors
    /// `Stale`.
    pub(super) fn remove(&self, id: OpenId) -> Result<VolaryOpen> {
        let found = self.0.lock().open.remove(&id.0);
        found.ok_or_else(|| Kind::Stale.into())
    }

    pub(super) fn take_all(&self) -> Vec<VolaryOpen> {
        self.0.lock().open.drain().map(|(_, open)| open).collect()
    }
}
