//! Opens, numbered by the host. An id that was closed is stale, whatever handles the plug-in
//! returns.

use crate::abi::{VOLARY_WRITE, VolaryOpen};
use parking_lot::Mutex;
use std::collections::HashMap;
use volary_core::{Kind, OpenId, Result};

/// The most opens of a volume, which is also the most of a session.
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

    /// Returns an open that was opened for writing.
    ///
    /// # Errors
    /// `Stale`; `Invalid` if the open is for reading only.
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
