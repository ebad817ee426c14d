//! One exported volume, with the state that NFS keeps for it.

use super::options::ExportOptions;
use crate::kept::exclusive::Verifiers;
use crate::kept::opens::{Held, Opens};
use crate::kept::order::Order;
use crate::kept::stable::Stable;
use crate::rpc::owner::Caller;
use crate::status::Status;
use siphasher::sip::SipHasher13;
use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{Access, Attr, Caps, Cred, FileKind, Kind, Mode, NodeId, OpenId, Result};
use volary_session::{
    ClientId, Event, EventSink, News, OpenHow, Session, Subscription, Volume, is_this_host,
};

/// How long an open is kept, in seconds; see [`Export::sweep`].
const IDLE: u32 = 3;
/// How long an open of a directory is kept, in seconds, if its cookies end with the open.
const IDLE_LISTING: u32 = 60;

/// An exported volume.
pub(crate) struct Export {
    pub(crate) volume: Arc<Volume>,
    pub(crate) options: ExportOptions,
    /// Identifies the export in file handles: derived from its name, so that it is the same after a
    /// restart.
    pub(crate) id: u32,
    /// Goes into the seals of file handles; see [`crate::exports::fh`].
    pub(crate) epoch: u64,
    pub(crate) client: ClientId,
    pub(crate) verifiers: Verifiers,
    known: Arc<Known>,
    stable: Stable,
    /// How many syncs have failed.
    failed: AtomicU64,
    /// Identifies this run of the server.
    pub(crate) instance: u64,
    _news: Subscription,
}

/// The state that change events from the session affect.
struct Known {
    opens: Opens,
    listings: Opens,
    order: Order,
    client: ClientId,
}

impl EventSink for Known {
    fn event(&self, event: &Event) {
        let foreign = event.origin != Some(self.client);
        let note = |node: &NodeId| {
            if foreign {
                self.order.note_foreign(*node);
            }
        };
        let gone = |node: &NodeId| {
            note(node);
            self.opens.doom(*node);
            self.listings.doom(*node);
        };
        match &event.news {
            News::Made { dir, node, .. } => [dir, node].into_iter().for_each(note),
            News::Removed { dir, node, .. } => {
                note(dir);
                node.iter().for_each(gone);
            }
            News::Renamed {
                from,
                to,
                node,
                replaced,
                ..
            } => {
                [from, to].into_iter().chain(node).for_each(note);
                replaced.iter().for_each(gone);
            }
            News::Data(node) | News::Entries(node) => note(node),
            News::Attr(node) => {
                note(node);
                self.opens.doom(*node);
            }
            News::Gone(node) => gone(node),
            News::Everything => {
                self.order.note_foreign_all();
                self.opens.doom_all();
                self.listings.doom_all();
            }
        }
    }
}

impl Export {
    pub(crate) fn new(volume: Arc<Volume>, options: ExportOptions, instance: u64) -> Self {
        let client = volume.client();
        let known = Arc::new(Known {
            opens: Opens::default(),
            listings: Opens::default(),
            order: Order::default(),
            client,
        });
        let news = volume.subscribe(Arc::<Known>::clone(&known));
        let stable_ids = volume.caps().has(Caps::STABLE_IDS);
        Self {
            id: id_of(&options.name),
            epoch: if stable_ids {
                epoch_of(volume.session(Cred::root()).root())
            } else {
                instance
            },
            options,
            volume,
            client,
            verifiers: Verifiers::default(),
            known,
            stable: Stable::default(),
            failed: AtomicU64::new(0),
            instance,
            _news: news,
        }
    }

    /// Returns whether this client may use the export.
    pub(crate) fn admits(&self, peer: IpAddr) -> bool {
        is_this_host(peer) || self.options.clients.iter().any(|c| c.has(peer))
    }

    /// Returns a session for the caller.
    pub(crate) fn session(&self, caller: &Caller) -> Session {
        let cred = match caller {
            Caller::Said(cred) => self.options.caller(cred),
            Caller::Known(cred) => {
                let squash = self.options.squash;
                squash.apply(cred.clone(), &self.options.anonymous)
            }
            Caller::Nobody => self.options.anonymous.clone(),
        };
        self.volume.session(cred).with_client(self.client)
    }

    /// Returns a session for the server's own operations.
    pub(crate) fn own_session(&self) -> Session {
        self.volume.session(Cred::root()).with_client(self.client)
    }

    pub(crate) fn caps(&self) -> Caps {
        self.volume.caps()
    }

    pub(crate) fn order(&self) -> &Order {
        &self.known.order
    }

    /// # Errors
    /// `ROFS`.
    pub(crate) fn check_writable(&self) -> std::result::Result<(), Status> {
        if self.options.read_only {
            Err(Status::ROFS)
        } else {
            Ok(())
        }
    }

    /// Returns the write verifier. It differs between runs of the server, and changes when data may
    /// be lost within a run. A client whose uncommitted writes had another verifier writes them
    /// again.
    pub(crate) fn write_verifier(&self) -> u64 {
        let lost = self.known.opens.lost() + self.failed.load(Ordering::Acquire);
        self.instance.wrapping_add(lost)
    }

    /// Returns an open of a file for reading or writing. The owner may do both, whatever the mode
    /// says, because it could when it opened the file. An executable file may be read, because that
    /// is how a client runs it.
    pub(crate) fn open(&self, session: &Session, node: NodeId, mode: Mode) -> Result<Arc<Held>> {
        let opens = &self.known.opens;
        opens.get(node, Some(session.cred()), mode, || {
            let how = OpenHow::from(mode).momentary();
            match session.open(node, how) {
                Err(e) if e == Kind::Access && self.may_anyway(session, node, mode)? => {
                    let own = self.own_session();
                    let open = own.open(node, how)?;
                    Ok((own, open))
                }
                opened => Ok((session.clone(), opened?)),
            }
        })
    }

    fn may_anyway(&self, session: &Session, node: NodeId, mode: Mode) -> Result<bool> {
        if self.caps().has(Caps::CHECKS_ACCESS) {
            return Ok(false);
        }
        let attr = session.getattr(node)?;
        let owner = attr.uid == session.cred().uid;
        let runs = mode == Mode::Read && session.access(node, Access::EXEC).is_ok();
        Ok(attr.kind == FileKind::File && (owner || runs))
    }

    /// Keeps the open of a file that was just made.
    pub(crate) fn keep(&self, session: &Session, attr: &Attr, open: OpenId) {
        let cred = Some(session.cred());
        let opens = &self.known.opens;
        drop(opens.keep(attr.node, cred, Mode::Write, session.clone(), open));
    }

    /// Returns an open of a directory for reading. If cookies end with the open, all callers share
    /// one, unless the driver checks access itself.
    pub(crate) fn open_dir(&self, session: &Session, dir: NodeId) -> Result<Arc<Held>> {
        let caps = self.caps();
        let open_as = |session: Session| {
            let open = session.open(dir, OpenHow::from(Mode::Read).momentary())?;
            Ok((session, open))
        };
        if caps.has(Caps::STABLE_COOKIES) {
            let cred = Some(session.cred());
            return self
                .known
                .opens
                .get(dir, cred, Mode::Read, || open_as(session.clone()));
        }
        let listings = &self.known.listings;
        if caps.has(Caps::CHECKS_ACCESS) {
            let cred = Some(session.cred());
            return listings.get(dir, cred, Mode::Read, || open_as(session.clone()));
        }
        session.access(dir, Access::READ)?;
        listings.get(dir, None, Mode::Read, || open_as(self.own_session()))
    }

    /// Completes a change of names or attributes before it is answered: makes it durable, if the
    /// export's options say so.
    pub(crate) fn settle(&self) -> std::result::Result<(), Status> {
        self.close_doomed();
        if !self.options.durable {
            return Ok(());
        }
        self.counted(self.stable.sync(|| self.own_session().sync()))
    }

    /// Closes opens of nodes that are gone or changed.
    pub(crate) fn close_doomed(&self) {
        self.known.opens.close_doomed();
        self.known.listings.close_doomed();
    }

    /// Makes the data written to the file durable.
    pub(crate) fn commit(
        &self,
        session: &Session,
        open: OpenId,
        data_only: bool,
    ) -> std::result::Result<(), Status> {
        self.counted(session.fsync(open, data_only))
    }

    fn counted(&self, synced: Result<()>) -> std::result::Result<(), Status> {
        synced.map_err(|e| {
            self.failed.fetch_add(1, Ordering::AcqRel);
            Status::from(e)
        })
    }

    /// Closes opens that were not used for a while. To be called once a second.
    pub(crate) fn sweep(&self) {
        self.known.opens.sweep(IDLE);
        self.known.listings.sweep(IDLE_LISTING);
    }

    /// Closes all opens.
    pub(crate) fn close_all(&self) {
        for opens in [&self.known.opens, &self.known.listings] {
            opens.doom_all();
            opens.close_doomed();
        }
    }

    /// Returns how many opens are kept.
    pub(crate) fn open_count(&self) -> usize {
        self.known.opens.len() + self.known.listings.len()
    }
}

/// Returns a number that binds handles to the exported directory: handles of a directory that was
/// exported under the same name before are stale.
fn epoch_of(root: NodeId) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write_u64(root.ino.get());
    hasher.write_u32(root.generation);
    hasher.finish()
}

/// Returns the id for a name, which is the same in every run.
pub(crate) fn id_of(name: &str) -> u32 {
    let mut hasher = SipHasher13::new();
    hasher.write(name.as_bytes());
    hasher.finish() as u32
}
