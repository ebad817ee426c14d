//! One worker, as the host sees it: its lanes, and the mapping of its ids.
//!
//! Ids and opens of a worker that ended must not lead to anything of the next one. So opens have
//! the number of their worker in their upper bits. Node ids are the plug-in's own if they are
//! stable. Otherwise, the worker's number is in the upper bits of `ino`. The root's id never
//! changes.

use super::lane::{Broken, Lane, Told, Wait, now};
use crate::wire::Hello;
use parking_lot::{Condvar, Mutex};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use volary_core::{Attr, Caps, Kind, NodeId, OpenId, Result};

/// How many bits of `ino` a plug-in without stable ids may use.
const INO_BITS: u32 = 52;
/// How many bits of an open's number a worker may use.
const OPEN_BITS: u32 = 40;
/// How many workers of one volume can be distinguished.
pub(super) const EPOCHS: u64 = 1 << 11;
/// How often a caller that waits for a lane checks its limit.
const SLICE: Duration = Duration::from_millis(50);

pub(super) struct Running {
    pub(super) epoch: u64,
    is_stable: bool,
    root_here: NodeId,
    root_there: NodeId,
    lanes: Mutex<Vec<Lane>>,
    is_free: Condvar,
    opens: Mutex<HashSet<u64>>,
    is_over: AtomicBool,
}

impl Running {
    pub(super) fn new(epoch: u64, hello: &Hello, root_here: NodeId) -> Self {
        Self {
            epoch,
            is_stable: hello.caps.has(Caps::STABLE_IDS),
            root_here,
            root_there: hello.root,
            lanes: Mutex::new(Vec::new()),
            is_free: Condvar::new(),
            opens: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// # Errors
    /// The host system's.
    pub(super) fn add_lanes(&self, first: Lane, sockets: Vec<OwnedFd>) -> std::io::Result<()> {
        let mut lanes = vec![first];
        for socket in sockets {
            lanes.push(Lane::new(socket)?);
        }
        *self.lanes.lock() = lanes;
        Ok(())
    }

    /// Takes a lane; waits until one is free.
    ///
    /// # Errors
    /// `Ended`, `Late`.
    pub(super) fn take_lane(&self, wait: Wait<'_>) -> Told<Lane> {
        let mut lanes = self.lanes.lock();
        loop {
            if self.is_over.load(Ordering::Acquire) {
                return Err(Broken::Ended);
            }
            if let Some(lane) = lanes.pop() {
                return Ok(lane);
            }
            if now() >= wait.until {
                return Err(Broken::Late);
            }
            self.is_free.wait_for(&mut lanes, SLICE);
        }
    }

    pub(super) fn give_back(&self, lane: Lane) {
        self.lanes.lock().push(lane);
        self.is_free.notify_one();
    }

    /// Closes all lanes that are not in use. Callers that wait for one get `Ended`.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.lanes.lock().clear();
        self.is_free.notify_all();
    }

    /// Returns the worker's own id of a node.
    ///
    /// # Errors
    /// `Stale` for a node of an earlier worker.
    pub(super) fn there(&self, node: NodeId) -> Result<NodeId> {
        if node == self.root_here {
            return Ok(self.root_there);
        }
        if self.is_stable {
            return Ok(node);
        }
        let ino = node.ino.get();
        let found = NodeId::new(ino & ((1 << INO_BITS) - 1), node.generation);
        let found = found.filter(|_| ino >> INO_BITS == self.epoch);
        found.ok_or_else(|| Kind::Stale.into())
    }

    /// Returns the host's id of a node; `None` if its `ino` is too large.
    pub(super) fn here(&self, node: NodeId) -> Option<NodeId> {
        if node == self.root_there {
            return Some(self.root_here);
        }
        let ino = node.ino.get();
        match (self.is_stable, ino >> INO_BITS) {
            // A node with the root's id on this side would be taken for the root.
            (true, _) => (node != self.root_here).then_some(node),
            (false, 0) => NodeId::new(ino | self.epoch << INO_BITS, node.generation),
            (false, _) => None,
        }
    }

    pub(super) fn attr_here(&self, attr: Attr) -> Option<Attr> {
        Some(Attr {
            node: self.here(attr.node)?,
            ..attr
        })
    }

    /// Returns the worker's own id of an open.
    ///
    /// # Errors
    /// `Stale`.
    pub(super) fn open_there(&self, open: OpenId) -> Result<OpenId> {
        let number = open.0 & ((1 << OPEN_BITS) - 1);
        let is_ours = open.0 >> OPEN_BITS == self.epoch && self.opens.lock().contains(&number);
        match is_ours {
            true => Ok(OpenId(number)),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Returns the host's id of a new open; `None` if its number is in use or too large.
    pub(super) fn open_here(&self, open: OpenId) -> Option<OpenId> {
        let is_new = open.0 >> OPEN_BITS == 0 && self.opens.lock().insert(open.0);
        is_new.then_some(OpenId(open.0 | self.epoch << OPEN_BITS))
    }

    /// Forgets an open; `there` is the worker's own id.
    ///
    /// # Errors
    /// `Stale` if another thread closed it first.
    pub(super) fn close(&self, there: OpenId) -> Result<()> {
        match self.opens.lock().remove(&there.0) {
            true => Ok(()),
            false => Err(Kind::Stale.into()),
        }
    }
}
