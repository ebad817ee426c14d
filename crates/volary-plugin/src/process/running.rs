//! One worker, as the host sees it: its lanes, and what its ids are called here.
//!
//! A worker that ended has left ids and opens behind, which must lead to nothing of the next one.
//! Opens have the number of their worker in their upper bits. Node ids are the plug-in's own where
//! they are stable; else the number of the worker is in the upper bits of `ino`. The root is
//! called the same for ever.

use super::lane::{Broken, Lane, Told, Wait, now};
use crate::wire::Hello;
use parking_lot::{Condvar, Mutex};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use volary_core::{Attr, Caps, Kind, NodeId, OpenId, Result};

/// Bits of `ino` that a plug-in without stable ids may use.
const INO_BITS: u32 = 52;
/// Bits of an open's number that a worker may use.
const OPEN_BITS: u32 = 40;
/// Workers of one volume that can be told apart.
pub(super) const EPOCHS: u64 = 1 << 11;
/// How often somebody who waits for a lane looks around.
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
    /// The host's.
    pub(super) fn add_lanes(&self, first: Lane, sockets: Vec<OwnedFd>) -> std::io::Result<()> {
        let mut lanes = vec![first];
        for socket in sockets {
            lanes.push(Lane::new(socket)?);
        }
        *self.lanes.lock() = lanes;
        Ok(())
    }

    /// Takes a lane, once one is free.
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

    /// Closes all lanes that nobody is in. Whoever waits for one is sent away.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.lanes.lock().clear();
        self.is_free.notify_all();
    }

    /// Returns what the worker calls a node.
    ///
    /// # Errors
    /// `Stale` for one of an earlier worker.
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

    /// Returns what a node is called here; `None` for an `ino` that is too large.
    pub(super) fn here(&self, node: NodeId) -> Option<NodeId> {
        if node == self.root_there {
            return Some(self.root_here);
        }
        let ino = node.ino.get();
        match (self.is_stable, ino >> INO_BITS) {
            // What is called as the root is here would be taken for it.
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

    /// Returns what the worker calls an open.
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

    /// Returns what a new open is called here; `None` for a number that is in use or too large.
    pub(super) fn open_here(&self, open: OpenId) -> Option<OpenId> {
        let is_new = open.0 >> OPEN_BITS == 0 && self.opens.lock().insert(open.0);
        is_new.then_some(OpenId(open.0 | self.epoch << OPEN_BITS))
    }

    /// Forgets an open; `there` is what the worker calls it.
    ///
    /// # Errors
    /// `Stale` if somebody else was first.
    pub(super) fn close(&self, there: OpenId) -> Result<()> {
        match self.opens.lock().remove(&there.0) {
            true => Ok(()),
            false => Err(Kind::Stale.into()),
        }
    }
}
