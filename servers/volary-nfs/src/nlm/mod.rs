//! NLM version 4: byte-range locks of NFS clients. They are in the session's table, together with
//! those of FUSE and SMB clients of the same volume. May use `rpc` and `exports`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `state` | lets locks outlive the server: records which clients have any |
//! | `wanted` | a requested lock, and its file |
//! | `lock_file` | a file with locks, and the opens that they need |
//! | `waiter`, `table` | a waiting request; all lock owners and files |
//! | `sharing` | all share modes |
//! | `granted` | tells a client that it now has a lock |
//! | `waiting` | requests that wait for a lock |
//! | `shares` | SHARE and UNSHARE, as SMB clients have them |
//! | `nsm` | ends the locks of a client that says it has restarted |
//! | `notify` | tells clients of a restart, so that they reclaim their locks |
//!
//! Without a [`LockState`] clients are not told of a restart, there is no grace period, and a
//! reclaimed lock is treated as any other. With one, the grace period is that of the volumes, and
//! refuses new locks of all servers' clients. The procedures that answer by a call of their own
//! (`…_MSG`) are not implemented.

pub(crate) mod nsm;

mod granted;
mod lock_file;
mod notify;
mod shares;
mod sharing;
mod state;
mod table;
mod waiter;
mod waiting;
mod wanted;

pub use state::LockState;

use crate::exports::export::Export;
use crate::exports::resolve::Exports;
use crate::rpc::call::Call;
use crate::rpc::message::Refusal;
use crate::status::{LockStatus, Status};
use lock_file::LockFile;
use parking_lot::Mutex;
use sharing::Shares;
use state::Client;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use table::Locks;
use volary_rpc::{Decoded, Input, Output};
use volary_session::{Grace, HeldLock, LockKind, Wait};
use wanted::{OBJECT_MAX, Place, Wanted};

pub(crate) const PROGRAM: u32 = 100_021;
pub(crate) const VERSION: u32 = 4;

/// The lock procedure of clients that are not told of a restart.
const NM_LOCK: u32 = 22;

/// The lock manager: all that NFS clients have locked and shared.
pub(crate) struct Nlm {
    exports: Arc<Exports>,
    locks: Locks,
    shares: Shares,
    state: Option<Arc<LockState>>,
    /// Refuses new locks on all exports while it lasts.
    grace: Mutex<Vec<Grace>>,
    /// The port on which a client's portmapper is asked for its programs.
    client_portmap: u16,
}

impl Nlm {
    /// Returns the lock manager of these exports. In the grace period, it only lets clients reclaim
    /// locks.
    pub(crate) fn new(
        exports: &Arc<Exports>,
        state: Option<Arc<LockState>>,
        client_portmap: u16,
    ) -> Arc<Self> {
        let has_grace = state.as_ref().is_some_and(|state| state.is_grace());
        let held = exports.iter().filter(|_| has_grace);
        let grace = held.map(|export| export.volume.grace()).collect();
        Arc::new(Self {
            exports: Arc::clone(exports),
            locks: Locks::default(),
            shares: Shares::default(),
            state,
            grace: Mutex::new(grace),
            client_portmap,
        })
    }

    /// Does the work that is due once a second.
    pub(crate) fn tick(&self) {
        self.is_grace();
        self.sweep_lock_state();
    }

    /// Ends all locks and shares, and the grace period.
    pub(crate) fn shut(&self) {
        self.locks.shut();
        self.shares.shut();
        self.end_grace();
    }

    /// Waits until no request waits for a lock any more, or for this long.
    pub(crate) fn wait_ended(&self, most: Duration) {
        self.locks.wait_ended(most);
    }

    /// Returns how many files have locks.
    pub(crate) fn file_count(&self) -> usize {
        self.locks.file_count()
    }

    /// Ends the grace period.
    fn end_grace(&self) {
        let over = std::mem::take(&mut *self.grace.lock());
        drop(over);
    }

    /// Answers one call of NLM.
    pub(crate) fn answer(
        self: &Arc<Self>,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Result<(), Refusal> {
        match call.procedure {
            0 => {}
            1 => self.lock_test(call, input, out)?,
            2 | NM_LOCK => self.lock(call, input, out)?,
            3 => self.lock_cancel(call, input, out)?,
            4 => self.unlock(call, input, out)?,
            20 => self.share(call, input, out)?,
            21 => self.unshare(call, input, out)?,
            23 => self.free_all(call, input)?,
            _ => return Err(Refusal::NoProcedure),
        }
        Ok(())
    }

    fn lock_test(
        self: &Arc<Self>,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let kind = kind(input.bool()?);
        let want = Wanted::read(input, call)?;
        let tested = self.place_now(call, &want.fh, false).and_then(|place| {
            let (file, number) = self.locks.file(&place, &want.owner, kind)?;
            let open = file.open(&place, kind);
            let held = open.and_then(|open| {
                let session = &place.session;
                session.test_lock(open, number, want.range(), kind)
            });
            self.locks.settle(&file, number);
            Ok(held?.map(|held| (place.export, held)))
        });
        out.opaque(cookie);
        match tested {
            Ok(None) => out.u32(LockStatus::GRANTED.0),
            Ok(Some((export, held))) => {
                out.u32(LockStatus::DENIED.0);
                self.write_holder(call, out, export, &held);
            }
            // A DENIED would have to be followed by a holder.
            Err(LockStatus::DENIED) => out.u32(LockStatus::FAILED.0),
            Err(status) => out.u32(status.0),
        }
        Ok(())
    }

    /// Writes the holder of a conflicting lock. Only the holder's own party is told its process and
    /// name.
    fn write_holder(&self, call: &Call, out: &mut Output, export: &Export, held: &HeldLock) {
        let owner = (held.owner.client == Some(export.client))
            .then(|| self.locks.owner(held.owner.number))
            .flatten()
            .filter(|owner| owner.client.party == call.party);
        out.bool(held.exclusive);
        out.u32(owner.as_ref().map_or(0, |o| o.process));
        out.opaque(owner.as_ref().map_or(&[][..], |o| &o.name));
        out.u64(held.range.first);
        out.u64(match held.range.last {
            u64::MAX => 0,
            last => last - held.range.first + 1,
        });
    }

    fn lock(self: &Arc<Self>, call: &Call, input: &mut Input<'_>, out: &mut Output) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let (waits, kind) = (input.bool()?, kind(input.bool()?));
        let want = Wanted::read(input, call)?;
        let reclaims = input.bool()?;
        // The client's NSM state is ignored.
        input.u32()?;
        let done = self.place_now(call, &want.fh, reclaims).and_then(|place| {
            let (file, number) = self.locks.file(&place, &want.owner, kind)?;
            let noted = match call.procedure {
                NM_LOCK => Ok(()),
                _ => self.note_client(&want.owner.client, want.server),
            };
            let status =
                noted.and_then(|()| self.lock_in(&file, &place, number, &want, kind, waits));
            self.locks.settle(&file, number);
            status
        });
        out.opaque(cookie);
        out.u32(done.err().unwrap_or(LockStatus::GRANTED).0);
        Ok(())
    }

    fn lock_in(
        self: &Arc<Self>,
        file: &Arc<LockFile>,
        place: &Place<'_>,
        number: u64,
        want: &Wanted,
        kind: LockKind,
        waits: bool,
    ) -> Result<(), LockStatus> {
        let open = file.open(place, kind)?;
        let session = &place.session;
        let take = || session.lock(open, number, want.range(), kind, Wait::No);
        let taken = match self.locks.waiter(want) {
            Some(waiter) => waiter.claim(take),
            None => take(),
        };
        match taken {
            Ok(()) => Ok(()),
            Err(e) if e == volary_core::Kind::Locked && waits => {
                self.wait_for(file, session, open, number, want, kind);
                Err(LockStatus::BLOCKED)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn lock_cancel(&self, call: &Call, input: &mut Input<'_>, out: &mut Output) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        input.bool()?;
        input.bool()?;
        let want = Wanted::read(input, call)?;
        let found = self.locks.cancel(&want);
        self.exports.iter().for_each(|e| e.volume.wake_waiting());
        out.opaque(cookie);
        out.u32(if found {
            LockStatus::GRANTED.0
        } else {
            LockStatus::DENIED.0
        });
        Ok(())
    }

    fn unlock(
        self: &Arc<Self>,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let want = Wanted::read(input, call)?;
        let done = self.place(call, &want.fh).and_then(|place| {
            let held = self.locks.held_file(&place, &want.owner);
            let Some((file, number)) = held else {
                return Ok(());
            };
            let given_back = match file.any_open() {
                Some(open) => place.session.unlock(open, number, want.range()),
                None => Ok(()),
            };
            self.locks.settle(&file, number);
            Ok(given_back?)
        });
        out.opaque(cookie);
        out.u32(done.err().unwrap_or(LockStatus::GRANTED).0);
        Ok(())
    }

    fn free_all(&self, call: &Call, input: &mut Input<'_>) -> Decoded<()> {
        let client = Client::read(input, call)?;
        input.u32()?;
        self.end_client(&client);
        Ok(())
    }

    /// Ends the locks and shares of a client.
    fn end_client(&self, client: &Client) {
        self.locks.end_client(client);
        self.shares.end_client(client);
        self.exports.iter().for_each(|e| e.volume.wake_waiting());
    }

    /// Returns the file of a lock that is new, or that a client reclaims after a restart.
    ///
    /// # Errors
    /// `GRACE` for a new lock in the grace period, and for a reclaimed one after it: others may
    /// have had the lock since.
    fn place_now(&self, call: &Call, fh: &[u8], reclaims: bool) -> Result<Place<'_>, LockStatus> {
        if self.state.as_deref().is_some() && self.is_grace() != reclaims {
            return Err(LockStatus::GRACE);
        }
        let place = self.place(call, fh)?;
        if !self.is_grace() {
            return Ok(place);
        }
        Ok(Place {
            session: place.session.claiming(),
            claims: true,
            ..place
        })
    }

    /// Returns whether the grace period lasts. Once it is over, lets all new locks in.
    fn is_grace(&self) -> bool {
        let is_grace = self.state.as_deref().is_some_and(LockState::is_grace);
        if !is_grace {
            self.end_grace();
        }
        is_grace
    }

    /// Records a client, which called the address `server`, so that it is told of a restart.
    ///
    /// # Errors
    /// `NO_LOCKS` if that fails.
    fn note_client(&self, client: &Client, server: IpAddr) -> Result<(), LockStatus> {
        let Some(state) = self.state.as_deref() else {
            return Ok(());
        };
        let noted = state.note(client, server);
        noted.map_err(|_| LockStatus::NO_LOCKS)
    }

    /// Forgets clients that have had no locks for long. To be called once a second.
    fn sweep_lock_state(&self) {
        if let Some(state) = self.state.as_deref() {
            let mut theirs = self.locks.clients();
            theirs.extend(self.shares.clients());
            state.sweep(|client| theirs.contains(client));
        }
    }

    fn place(&self, call: &Call, fh: &[u8]) -> Result<Place<'_>, LockStatus> {
        let at = self.exports.at(call, fh).map_err(|status| match status {
            Status::STALE | Status::BADHANDLE => LockStatus::STALE,
            _ => LockStatus::DENIED,
        })?;
        Ok(Place {
            export: at.export,
            session: at.session,
            node: at.node,
            claims: false,
        })
    }
}

const fn kind(exclusive: bool) -> LockKind {
    if exclusive {
        LockKind::Exclusive
    } else {
        LockKind::Shared
    }
}
