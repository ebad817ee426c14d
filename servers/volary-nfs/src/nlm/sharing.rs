//! [`Shares`]: the share modes of clients. The table's lock is a leaf: no session is called while
//! it is held.

use super::state::Client;
use super::table::check_may_lock;
use super::wanted::{OBJECT_MAX, Place};
use crate::rpc::call::Call;
use crate::status::LockStatus;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use volary_core::{Mode, NodeId, OpenId};
use volary_rpc::{Decoded, Garbage, Input};
use volary_session::{Beside, LockKind, OpenHow, Party, Rights, Session, Share};

/// How many shares there can be in all.
const SHARES_MAX: usize = 4096;
/// How many of them one party can have.
const SHARES_OF_PARTY: usize = 1024;

/// All shares.
#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<ShareId, Shared>>);

/// Identifies a share: an owner has at most one of each file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShareId {
    export: u32,
    node: NodeId,
    owner: Sharer,
}

/// The owner of a share, as the client names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sharer {
    pub(super) client: Client,
    name: Box<[u8]>,
}

/// An open with a share mode, closed when dropped.
pub(super) struct Shared {
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
    /// Opens the node with the requested share mode. The open `former`, which it will replace, does
    /// not conflict.
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
            party: asked.owner.client.counts_for(session.cred().uid),
        })
    }
}

/// A decoded `nlm4_share`.
pub(super) struct Asked<'a> {
    pub(super) fh: &'a [u8],
    pub(super) owner: Sharer,
    share: Share,
}

impl<'a> Asked<'a> {
    pub(super) fn read(input: &mut Input<'a>, call: &Call) -> Decoded<Self> {
        let client = Client::read(input, call)?;
        let fh = input.opaque(crate::exports::fh::LEN_MAX)?;
        let name = input.opaque(OBJECT_MAX)?.into();
        // The access that is denied to others comes first.
        let (denies, wants) = (rights(input.u32()?)?, rights(input.u32()?)?);
        Ok(Self {
            fh,
            owner: Sharer { client, name },
            share: Share {
                wants,
                allows: Rights(Rights::ALL.0 & !denies.0),
            },
        })
    }

    pub(super) fn id(&self, place: &Place<'_>) -> ShareId {
        ShareId {
            export: place.export.id,
            node: place.node,
            owner: self.owner.clone(),
        }
    }
}

/// Returns the rights that an `fsh4_mode` or `fsh4_access` stands for; both have the same numbers.
fn rights(number: u32) -> Decoded<Rights> {
    Ok(match number {
        0 => Rights::NONE,
        1 => Rights::READ,
        2 => Rights::WRITE,
        3 => Rights::READ | Rights::WRITE,
        _ => return Err(Garbage),
    })
}

impl Shares {
    /// Opens a file with a share mode, beside the owner's former share, which it may replace.
    ///
    /// # Errors
    /// `READ_ONLY`; `FAILED` for a node that is not a file. `DENIED` for callers that may neither
    /// own, read nor write it, that may not open it in this mode, or if another's open is
    /// incompatible.
    pub(super) fn open(&self, place: &Place<'_>, asked: &Asked<'_>) -> Result<Shared, LockStatus> {
        if place.export.options.read_only && asked.share.wants.has(Rights::WRITE) {
            return Err(LockStatus::READ_ONLY);
        }
        check_may_lock(place, LockKind::Shared)?;
        let id = asked.id(place);
        // Another thread may take it out of the table and close it: then the new share replaces
        // none.
        let former = self.0.lock().get(&id).map(|shared| shared.open);
        Ok(Shared::new(&place.session, place.node, asked, former)?)
    }

    /// Puts a share in the place of the owner's former one. The former share stays if this one is
    /// refused.
    ///
    /// # Errors
    /// `NO_LOCKS` if there are too many, of this party or in all.
    pub(super) fn put(&self, id: ShareId, shared: Shared) -> Result<(), LockStatus> {
        let mut shares = self.0.lock();
        let theirs = || shares.values().filter(|s| s.party == shared.party).count();
        let too_many = || shares.len() >= SHARES_MAX || theirs() >= SHARES_OF_PARTY;
        if !shares.contains_key(&id) && too_many() {
            drop(shares);
            let address = id.owner.client.peer;
            tracing::warn!(target: "NFS", limit = "share modes", %address, "limit reached");
            drop(shared);
            return Err(LockStatus::NO_LOCKS);
        }
        let former = shares.insert(id, shared);
        drop(shares);
        drop(former);
        Ok(())
    }

    pub(super) fn remove(&self, id: &ShareId) -> Option<Shared> {
        self.0.lock().remove(id)
    }

    /// Ends the shares of a client.
    pub(super) fn end_client(&self, client: &Client) {
        let mut shares = self.0.lock();
        let ended: Vec<_> = shares
            .extract_if(|id, _| id.owner.client == *client)
            .collect();
        drop(shares);
        drop(ended);
    }

    /// Returns the clients that have shares.
    pub(super) fn clients(&self) -> HashSet<Client> {
        let shares = self.0.lock();
        shares.keys().map(|id| id.owner.client.clone()).collect()
    }

    /// Ends all shares.
    pub(crate) fn shut(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        drop(all);
    }
}
