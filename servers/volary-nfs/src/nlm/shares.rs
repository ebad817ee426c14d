//! SHARE and UNSHARE: what a client does with a file, and what it lets others do
//! meanwhile. Each is an open of the session with that share mode, so that SMB
//! clients' opens and these are in each other's way. What NFS clients read and
//! write, which names no owner, and what they lock is not in the way of any NFS
//! client's shares, nor these in theirs.
//!
//! The table's lock is a leaf: no session is called while it is held.

use super::state::Client;
use super::table::party_of;
use super::{OBJECT_MAX, Place};
use crate::programs::{Call, Programs};
use crate::status::LockStatus;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use volary_core::{Mode, NodeId, OpenId};
use volary_rpc::{Decoded, Garbage, Input, Output};
use volary_session::{Beside, OpenHow, Party, Rights, Session, Share};

/// How many shares there can be.
const SHARES_MAX: usize = 4096;
/// How many of them one party can have.
const SHARES_OF_PARTY: usize = 1024;

/// All shares.
#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<ShareId, Shared>>);

/// Whose share of what: an owner has one of each file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ShareId {
    export: u32,
    node: NodeId,
    owner: Sharer,
}

/// Who shares, in the client's own words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sharer {
    peer: IpAddr,
    machine: Box<[u8]>,
    name: Box<[u8]>,
}

/// An open with a share mode, closed when dropped.
struct Shared {
    open: OpenId,
    session: Session,
    party: Party,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Nothing was written through it.
        let _ = self.session.close(self.open);
    }
}

impl Shared {
    /// In the place of `former`, if there is one.
    fn new(
        session: &Session,
        node: NodeId,
        asked: &Asked<'_>,
        former: Option<OpenId>,
    ) -> volary_core::Result<Self> {
        let share = asked.share;
        let beside = former.map_or(Beside::Nobody, Beside::Open);
        let how = |mode: Mode| OpenHow::from(mode).with_share(share).beside(beside);
        let open = match (
            share.wants.has(Rights::READ),
            share.wants.has(Rights::WRITE),
        ) {
            (true, true) => session.open(node, how(Mode::ReadWrite)),
            (false, true) => session.open(node, how(Mode::Write)),
            (true, false) => session.open(node, how(Mode::Read)),
            (false, false) => {
                let attr = session.getattr(node)?;
                session.open_bare_seen(&attr, None, &how(Mode::Read))
            }
        };
        Ok(Self {
            open: open?,
            session: session.clone(),
            party: party_of(asked.owner.peer, session.cred().uid),
        })
    }
}

/// `nlm4_share`, as it came.
struct Asked<'a> {
    fh: &'a [u8],
    owner: Sharer,
    share: Share,
}

impl<'a> Asked<'a> {
    fn read(input: &mut Input<'a>, peer: IpAddr) -> Decoded<Self> {
        let machine = input.opaque(OBJECT_MAX)?.into();
        let fh = input.opaque(crate::fh::LEN_MAX)?;
        let name = input.opaque(OBJECT_MAX)?.into();
        // What is denied to others comes first.
        let (denies, wants) = (rights(input.u32()?)?, rights(input.u32()?)?);
        Ok(Self {
            fh,
            owner: Sharer {
                peer: peer.to_canonical(),
                machine,
                name,
            },
            share: Share {
                wants,
                allows: Rights(Rights::ALL.0 & !denies.0),
            },
        })
    }

    fn id(&self, place: &Place<'_>) -> ShareId {
        ShareId {
            export: place.export.id,
            node: place.node,
            owner: self.owner.clone(),
        }
    }
}

/// `fsh4_mode` and `fsh4_access`: both count alike.
fn rights(number: u32) -> Decoded<Rights> {
    Ok(match number {
        0 => Rights::NONE,
        1 => Rights::READ,
        2 => Rights::WRITE,
        3 => Rights::READ | Rights::WRITE,
        _ => return Err(Garbage),
    })
}

impl Programs {
    pub(super) fn share(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let asked = Asked::read(input, call.peer.ip())?;
        let reclaims = input.bool()?;
        let place = self.place_now(call, asked.fh, reclaims);
        let done = place.and_then(|place| {
            self.note_client(call, &place, &asked.owner.machine)?;
            self.shares().take(&place, &asked)
        });
        answer(out, cookie, done);
        Ok(())
    }

    pub(super) fn unshare(
        &self,
        call: &Call,
        input: &mut Input<'_>,
        out: &mut Output,
    ) -> Decoded<()> {
        let cookie = input.opaque(OBJECT_MAX)?;
        let asked = Asked::read(input, call.peer.ip())?;
        input.bool()?;
        let place = self.place(call, asked.fh);
        let done = place.map(|place| drop(self.shares().remove(&asked.id(&place))));
        answer(out, cookie, done);
        Ok(())
    }
}

/// `nlm4_shareres`.
fn answer(out: &mut Output, cookie: &[u8], done: Result<(), LockStatus>) {
    out.opaque(cookie);
    out.u32(done.err().unwrap_or(LockStatus::GRANTED).0);
    // No client looks at the sequence.
    out.u32(0);
}

impl Shares {
    /// Takes a share in place of the owner's former one, which is held until then,
    /// and stays if the new one cannot be had.
    ///
    /// # Errors
    /// `DENIED` if another's open does not go with it, and to who may not open
    /// the file so; `READ_ONLY`; `NO_LOCKS` if there are too many, of this party or at all.
    fn take(&self, place: &Place<'_>, asked: &Asked<'_>) -> Result<(), LockStatus> {
        if place.export.options.read_only && asked.share.wants.has(Rights::WRITE) {
            return Err(LockStatus::READ_ONLY);
        }
        let id = asked.id(place);
        // Closed by who takes it out of the table: then nothing is in its place.
        let former = self.0.lock().get(&id).map(|shared| shared.open);
        let shared = Shared::new(&place.session, place.node, asked, former)?;
        self.put(id, shared)
    }

    fn put(&self, id: ShareId, shared: Shared) -> Result<(), LockStatus> {
        let mut shares = self.0.lock();
        let theirs = || shares.values().filter(|s| s.party == shared.party).count();
        let too_many = || shares.len() >= SHARES_MAX || theirs() >= SHARES_OF_PARTY;
        if !shares.contains_key(&id) && too_many() {
            drop(shares);
            let address = id.owner.peer;
            tracing::warn!(target: "NFS", limit = "share modes", %address, "limit reached");
            drop(shared);
            return Err(LockStatus::NO_LOCKS);
        }
        let former = shares.insert(id, shared);
        drop(shares);
        drop(former);
        Ok(())
    }

    fn remove(&self, id: &ShareId) -> Option<Shared> {
        self.0.lock().remove(id)
    }

    /// Ends the shares of a machine.
    pub(super) fn end_machine(&self, peer: IpAddr, machine: &[u8]) {
        let mut shares = self.0.lock();
        let theirs = |id: &ShareId| id.owner.peer == peer && *id.owner.machine == *machine;
        let ended: Vec<_> = shares.extract_if(|id, _| theirs(id)).collect();
        drop(shares);
        drop(ended);
    }

    /// Who has shares.
    pub(super) fn machines(&self) -> HashSet<Client> {
        let shares = self.0.lock();
        let clients = shares.keys().map(|id| Client {
            peer: id.owner.peer,
            machine: id.owner.machine.clone(),
        });
        clients.collect()
    }

    /// Ends all.
    pub(crate) fn shut(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}
