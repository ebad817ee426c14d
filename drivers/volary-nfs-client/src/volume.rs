//! The export: what all operations share.

use crate::fail;
use crate::hidden::HiddenFiles;
use crate::location::NfsOptions;
use crate::locks::Locks;
use crate::node::{Node, tick};
use crate::nodes::Nodes;
use crate::opens::Opens;
use crate::peer::{Call, Done, Peer, Way};
use crate::proto::{Fattr, Fh, Wcc, error_of, procedure, status};
use crate::timer;
use crate::workers::Workers;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use volary_core::{Attr, Cancel, Caps, Cred, Ctx, Kind, NodeId, Result, StatFs};
use volary_rpc::numbers::NFS;
use volary_rpc::{Decoded, Input, Output};

/// Between two tries of a call that the server asks to make later.
const LATER: Duration = Duration::from_millis(100);
const LATER_MAX: Duration = Duration::from_secs(2);

/// What FSINFO and PATHCONF say, within our own bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Info {
    /// The most that is read, written and listed by one call, in bytes.
    pub(crate) read_max: usize,
    pub(crate) write_max: usize,
    pub(crate) list_max: u32,
    pub(crate) caps: Caps,
}

pub(crate) struct Volume {
    pub(crate) peer: Arc<Peer>,
    pub(crate) way: Way,
    /// The name of this machine.
    pub(crate) machine: Arc<[u8]>,
    /// Where MOUNT is, and the export's path.
    pub(crate) mount: (SocketAddr, Vec<u8>),
    pub(crate) options: NfsOptions,
    pub(crate) info: Info,
    pub(crate) root: NodeId,
    pub(crate) root_node: Arc<Node>,
    pub(crate) nodes: Nodes,
    pub(crate) opens: Opens,
    pub(crate) hidden: HiddenFiles,
    pub(crate) locks: Locks,
    /// Calls that nobody waits for: what is read ahead and written behind.
    pub(crate) workers: Workers,
    /// Taken alone where a name must stay free between two calls.
    pub(crate) naming: RwLock<()>,
    /// Nodes with data that the server does not have for good.
    pub(crate) dirty: Mutex<HashMap<NodeId, Arc<Node>>>,
    /// Bytes in memory that the server does not have for good; that were read
    /// ahead.
    pub(crate) behind: AtomicUsize,
    pub(crate) ahead: AtomicUsize,
    pub(crate) room: Mutex<Room>,
    pub(crate) is_detached: AtomicBool,
    pub(crate) whose: Option<Cred>,
}

/// How much room the server is known to have.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) left: u64,
    pub(crate) at: Option<Instant>,
}

/// On whose behalf a call is made.
#[derive(Clone, Copy)]
pub(crate) struct Who<'a> {
    pub(crate) cred: &'a Cred,
    pub(crate) cancel: Option<&'a Cancel>,
}

impl<'a> Who<'a> {
    /// For calls that go on when their caller has gone.
    pub(crate) fn behind(cred: &'a Cred) -> Self {
        Self { cred, cancel: None }
    }
}

impl Volume {
    pub(crate) fn who<'a>(&'a self, cx: &'a Ctx<'_>) -> Who<'a> {
        Who {
            cred: self.whose.as_ref().unwrap_or(cx.cred),
            cancel: Some(cx.cancel),
        }
    }

    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_detached.load(Ordering::Acquire) {
            Err(Kind::Stale.into())
        } else {
            Ok(())
        }
    }

    /// # Errors
    /// `ReadOnly`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check()?;
        if self.options.read_only {
            Err(Kind::ReadOnly.into())
        } else {
            Ok(())
        }
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.check()?;
        self.nodes.get(id)
    }

    /// Returns a call of NFS: the status, and the results after it.
    pub(crate) fn nfs(
        &self,
        who: Who<'_>,
        procedure: u32,
        write: impl Fn(&mut Output),
    ) -> Result<(u32, Done)> {
        let call = Call {
            program: NFS,
            procedure,
            cred: Some(who.cred),
            cancel: who.cancel,
        };
        let until = timer::now() + self.options.timeout;
        let mut rest = LATER;
        loop {
            let done = self.peer.call(&call, &write)?;
            let status = done.results().u32().map_err(fail::garbage)?;
            if status != status::JUKEBOX || timer::now() + rest >= until {
                return Ok((status, done));
            }
            if who.cancel.is_some_and(Cancel::is_set) {
                return Err(Kind::Interrupted.into());
            }
            self.peer.rest(rest);
            rest = (rest * 2).min(LATER_MAX);
        }
    }

    /// Returns a call that changes nothing: `read` reads what follows OK, `post` what
    /// follows an error.
    pub(crate) fn ask<T>(
        &self,
        who: Who<'_>,
        procedure: u32,
        write: impl Fn(&mut Output),
        read: impl FnOnce(&mut Input<'_>) -> Decoded<T>,
    ) -> Result<T> {
        let (status, done) = self.nfs(who, procedure, write)?;
        let mut input = after_status(&done);
        if status != status::OK {
            return Err(error_of(status));
        }
        read(&mut input).map_err(fail::garbage)
    }

    /// GETATTR.
    pub(crate) fn fetch_attr(&self, who: Who<'_>, node: &Node) -> Result<Attr> {
        let asked = tick();
        let put = |out: &mut Output| node.fh.write(out);
        let attr = self.ask(who, procedure::GETATTR, put, Fattr::read);
        let attr = attr.inspect_err(|_| node.expire())?;
        node.answer(&attr, asked)
    }

    /// Attributes that are believed, or else are asked for.
    pub(crate) fn attr_of(self: &Arc<Self>, who: Who<'_>, node: &Arc<Node>) -> Result<Attr> {
        self.settle(node)?;
        match node.attr(self.options.cache) {
            Some(attr) => Ok(attr),
            None => self.fetch_attr(who, node),
        }
    }

    /// Attributes as they were last known, however long ago; asked for only if they are
    /// in doubt.
    pub(crate) fn last_attr(self: &Arc<Self>, who: Who<'_>, node: &Arc<Node>) -> Result<Attr> {
        self.settle(node)?;
        match node.believed() {
            Some(attr) => Ok(attr),
            None => self.fetch_attr(who, node),
        }
    }

    /// Returns a call that changes one node, and answers with a status and `wcc_data`.
    pub(crate) fn change(
        &self,
        who: Who<'_>,
        procedure: u32,
        node: &Node,
        write: impl Fn(&mut Output),
    ) -> Result<Changed> {
        let changing = node.begin_change();
        let (status, done) = self.nfs(who, procedure, write)?;
        let wcc = Wcc::read(&mut after_status(&done)).map_err(fail::garbage)?;
        changing.end(&wcc)?;
        Ok(Changed {
            status,
            is_resent: done.is_resent,
        })
    }

    /// Returns a call that makes a node in `dir`: CREATE, MKDIR, SYMLINK, MKNOD.
    pub(crate) fn make(
        &self,
        who: Who<'_>,
        procedure: u32,
        dir: &Arc<Node>,
        name: &[u8],
        write: impl Fn(&mut Output),
    ) -> Result<Arc<Node>> {
        let changing = dir.begin_change();
        let asked = tick();
        let put = |out: &mut Output| {
            dir.fh.write(out);
            out.opaque(name);
            write(out);
        };
        let (status, done) = self.nfs(who, procedure, put)?;
        let mut input = after_status(&done);
        let read = |input: &mut Input<'_>| {
            let made = if status == status::OK {
                (Fh::read_maybe(input)?, Fattr::read_maybe(input)?)
            } else {
                (None, None)
            };
            Decoded::Ok((made, Wcc::read(input)?))
        };
        let ((fh, attr), wcc) = read(&mut input).map_err(fail::garbage)?;
        changing.end(&wcc)?;
        let epoch = dir.epoch();
        if status != status::OK {
            return Err(error_of(status));
        }
        let node = match (fh, attr) {
            (Some(fh), Some(attr)) => self.nodes.enter(fh, &attr, asked)?,
            _ => self.look_up(who, dir, name)?,
        };
        self.nodes.name(dir.id, epoch, name, node.id);
        Ok(node)
    }

    /// LOOKUP.
    pub(crate) fn look_up(&self, who: Who<'_>, dir: &Arc<Node>, name: &[u8]) -> Result<Arc<Node>> {
        let asked = tick();
        let put = |out: &mut Output| {
            dir.fh.write(out);
            out.opaque(name);
        };
        let (status, done) = self.nfs(who, procedure::LOOKUP, put)?;
        let mut input = after_status(&done);
        if status != status::OK {
            if let Some(attr) = Fattr::read_maybe(&mut input).map_err(fail::garbage)? {
                dir.note(&attr, asked)?;
            }
            self.nodes.unname(dir.id, name);
            return Err(error_of(status));
        }
        let read = |input: &mut Input<'_>| {
            let fh = Fh::read(input)?;
            Decoded::Ok((fh, Fattr::read_maybe(input)?, Fattr::read_maybe(input)?))
        };
        let (fh, attr, of_dir) = read(&mut input).map_err(fail::garbage)?;
        let node = self.enter(who, fh, attr, asked)?;
        if let Some(attr) = of_dir {
            dir.note(&attr, asked)?;
        }
        // A directory's parent may become another without its own entries changing.
        if name != b".." && dir.is_unchanged_since(asked) {
            self.nodes.name(dir.id, dir.epoch(), name, node.id);
            // Who has begun to remove it meanwhile takes the name away here when that
            // is done, which may have been before.
            if !dir.is_unchanged_since(asked) {
                self.nodes.unname(dir.id, name);
            }
        }
        Ok(node)
    }

    /// Returns the node of a handle; its attributes are asked for if they did not come.
    pub(crate) fn enter(
        &self,
        who: Who<'_>,
        fh: Fh,
        attr: Option<Fattr>,
        asked: u64,
    ) -> Result<Arc<Node>> {
        let attr = match attr {
            Some(attr) => attr,
            None => {
                let put = |out: &mut Output| fh.write(out);
                self.ask(who, procedure::GETATTR, put, Fattr::read)?
            }
        };
        self.nodes.enter(fh, &attr, asked)
    }

    /// FSSTAT.
    pub(crate) fn room_of(&self, who: Who<'_>) -> Result<StatFs> {
        let root = &self.root_node;
        let asked = tick();
        let put = |out: &mut Output| root.fh.write(out);
        let (attr, stat) = self.ask(who, procedure::FSSTAT, put, |input| {
            let attr = Fattr::read_maybe(input)?;
            let stat = StatFs {
                block_size: 4096,
                size: input.u64()?,
                free: input.u64()?,
                available: input.u64()?,
                nodes: input.u64()?,
                nodes_free: input.u64()?,
            };
            Ok((attr, stat))
        })?;
        if let Some(attr) = attr {
            root.note(&attr, asked)?;
        }
        Ok(stat)
    }
}

/// What a change came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Changed {
    pub(crate) status: u32,
    pub(crate) is_resent: bool,
}

impl Changed {
    /// # Errors
    /// What the status says.
    pub(crate) fn done(self) -> Result<()> {
        match self.status {
            status::OK => Ok(()),
            status => Err(error_of(status)),
        }
    }

    /// The same for a removal: one that was sent again may have been done the
    /// first time.
    pub(crate) fn removed(self) -> Result<()> {
        if self.is_resent && self.status == status::NOENT {
            return Ok(());
        }
        self.done()
    }
}

/// Returns the results after the status.
pub(crate) fn after_status(done: &Done) -> Input<'_> {
    let mut input = done.results();
    // It is there: it was read before.
    let _ = input.u32();
    input
}
