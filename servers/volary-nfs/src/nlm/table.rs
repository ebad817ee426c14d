//! The owners of locks, and the files they lock.
//!
//! The table's lock is a leaf: no session is called while it is held.

use super::lock_file::{FileId, LockFile};
use super::state::Client;
use super::waiter::Waiter;
use super::wanted::{Owner, Place, Wanted};
use crate::status::LockStatus;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tracing::warn;
use volary_core::{Access, FileKind, Kind};
use volary_session::{LockKind, is_this_host};

/// How many owners there can be in all.
const OWNERS_MAX: usize = 8192;
/// How many owners one user of a client can have, so that others find room.
const OWNERS_OF_USER: usize = 1024;
/// How many owners another host can have, whichever users it names.
const OWNERS_OF_PEER: usize = 2048;

/// All that is locked by NFS clients.
#[derive(Default)]
pub(crate) struct Locks {
    pub(super) state: Mutex<State>,
    /// Notified when a thread of a waiter or notifier ends, and at the end.
    pub(super) ended: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    numbers: HashMap<Owner, Known>,
    next: u64,
    files: HashMap<FileId, Arc<LockFile>>,
    pub(super) waiters: Vec<Arc<Waiter>>,
    /// Threads that wait or notify, and have not ended yet.
    pub(super) threads: usize,
    pub(super) shut: bool,
}

/// What the table keeps of an owner.
struct Known {
    /// The owner's number in the session.
    number: u64,
    /// How many files use it.
    uses: usize,
    /// The user of the first request of this owner.
    uid: u32,
}

impl Locks {
    /// Returns the file, and the owner's number; both are kept until [`settle`](Self::settle).
    ///
    /// # Errors
    /// `DENIED` for a caller who neither owns the file nor may read or write it; `FAILED` for a
    /// node that is not a file; `READ_ONLY`; `NO_LOCKS`.
    pub(super) fn file(
        &self,
        place: &Place<'_>,
        owner: &Owner,
        kind: LockKind,
    ) -> std::result::Result<(Arc<LockFile>, u64), LockStatus> {
        check_may_lock(place, kind)?;
        let mut state = self.state.lock();
        if state.shut {
            return Err(LockStatus::NO_LOCKS);
        }
        let number = state.number(owner, place.session.cred().uid)?;
        let id = (place.export.id, place.node);
        let file = state
            .files
            .entry(id)
            .or_insert_with(|| Arc::new(LockFile::new(place)));
        let file = Arc::clone(file);
        let mut owners = file.owners.lock();
        if !owners.contains(&number) {
            owners.push(number);
            state.use_number(owner);
        }
        drop(owners);
        Ok((file, number))
    }

    /// Returns the file and the owner's number, if the owner may have locks on it already.
    pub(super) fn held_file(
        &self,
        place: &Place<'_>,
        owner: &Owner,
    ) -> Option<(Arc<LockFile>, u64)> {
        let state = self.state.lock();
        let number = state.numbers.get(owner)?.number;
        let file = state.files.get(&(place.export.id, place.node))?;
        Some((Arc::clone(file), number))
    }

    /// Returns the owner with this number.
    pub(super) fn owner(&self, number: u64) -> Option<Owner> {
        let state = self.state.lock();
        let found = state
            .numbers
            .iter()
            .find(|(_, known)| known.number == number);
        found.map(|(owner, _)| owner.clone())
    }

    /// Forgets the owner and the file if they have no more locks and waiters.
    pub(super) fn settle(&self, file: &Arc<LockFile>, number: u64) {
        if file.is_held_by(number) {
            return;
        }
        let mut state = self.state.lock();
        if state.waits(file, number) {
            return;
        }
        let mut owners = file.owners.lock();
        if let Some(at) = owners.iter().position(|n| *n == number) {
            owners.swap_remove(at);
            state.drop_number(number);
        }
        let unused = owners.is_empty();
        drop(owners);
        // The two references are the table's and the caller's: no other thread is about to lock the
        // file.
        let gone = if unused && Arc::strong_count(file) <= 2 {
            state.files.remove(&file.id)
        } else {
            None
        };
        drop(state);
        drop(gone);
    }

    /// Ends the locks of a client.
    pub(super) fn end_client(&self, client: &Client) {
        let state = self.state.lock();
        let theirs = |owner: &Owner| owner.client == *client;
        let numbers: Vec<u64> = state
            .numbers
            .iter()
            .filter(|(owner, _)| theirs(owner))
            .map(|(_, known)| known.number)
            .collect();
        let files: Vec<_> = state.files.values().cloned().collect();
        for waiter in state.waiters.iter().filter(|w| theirs(&w.want.owner)) {
            waiter.cancel();
        }
        drop(state);
        for file in files {
            for &number in &numbers {
                if file.owners.lock().contains(&number) {
                    file.end(number);
                    self.settle(&file, number);
                }
            }
        }
    }

    /// Returns the clients that have locks or wait for some.
    pub(super) fn clients(&self) -> HashSet<Client> {
        let state = self.state.lock();
        let owners = state.numbers.keys();
        owners.map(|owner| owner.client.clone()).collect()
    }

    /// Returns how many files have locks.
    pub(crate) fn file_count(&self) -> usize {
        self.state.lock().files.len()
    }

    /// Ends all locks and waits.
    pub(crate) fn shut(&self) {
        let mut state = self.state.lock();
        state.shut = true;
        state.waiters.iter().for_each(|waiter| waiter.cancel());
        let files = std::mem::take(&mut state.files);
        state.numbers.clear();
        drop(state);
        self.ended.notify_all();
        drop(files);
    }

    /// Stops waiting for this lock. Returns whether a request was waiting for it.
    pub(super) fn cancel(&self, want: &Wanted) -> bool {
        let state = self.state.lock();
        let waiter = state.waiters.iter().find(|w| w.want == *want);
        waiter.inspect(|w| w.cancel()).is_some()
    }
}

impl State {
    /// # Errors
    /// `NO_LOCKS` if there are too many owners, of this user or client, or in all.
    fn number(&mut self, owner: &Owner, uid: u32) -> std::result::Result<u64, LockStatus> {
        if let Some(known) = self.numbers.get(owner) {
            return Ok(known.number);
        }
        let Client { peer, party, .. } = owner.client;
        let known = self.numbers.iter();
        let theirs = known.filter(|(o, _)| o.client.party == party);
        let of_user = theirs.clone().filter(|(_, known)| known.uid == uid).count();
        let too_many = !is_this_host(peer) && theirs.count() >= OWNERS_OF_PEER;
        if too_many || of_user >= OWNERS_OF_USER || self.numbers.len() >= OWNERS_MAX {
            let address = peer;
            warn!(target: "NFS", limit = "owners of locks", %address, uid, "limit reached");
            return Err(LockStatus::NO_LOCKS);
        }
        self.next += 1;
        let (number, uses) = (self.next, 0);
        self.numbers
            .insert(owner.clone(), Known { number, uses, uid });
        Ok(number)
    }

    fn use_number(&mut self, owner: &Owner) {
        if let Some(known) = self.numbers.get_mut(owner) {
            known.uses += 1;
        }
    }

    fn drop_number(&mut self, number: u64) {
        self.numbers.retain(|_, known| {
            if known.number == number {
                known.uses = known.uses.saturating_sub(1);
            }
            known.number != number || known.uses > 0
        });
    }

    fn waits(&self, file: &Arc<LockFile>, number: u64) -> bool {
        let mut waiters = self.waiters.iter();
        waiters.any(|w| w.number == number && Arc::ptr_eq(&w.file, file))
    }
}

/// Checks that the caller may lock a file: its owner may, and callers that may read or write it.
pub(super) fn check_may_lock(
    place: &Place<'_>,
    kind: LockKind,
) -> std::result::Result<(), LockStatus> {
    let attr = place.session.getattr(place.node)?;
    if attr.kind != FileKind::File {
        return Err(LockStatus::FAILED);
    }
    if place.export.options.read_only && kind == LockKind::Exclusive {
        return Err(LockStatus::READ_ONLY);
    }
    if attr.uid == place.session.cred().uid {
        return Ok(());
    }
    for access in [Access::READ, Access::WRITE] {
        match place.session.access(place.node, access) {
            Ok(()) => return Ok(()),
            Err(e) if matches!(e.kind(), Kind::Access | Kind::ReadOnly) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(LockStatus::DENIED)
}
