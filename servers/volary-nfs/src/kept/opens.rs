//! Opens that are kept from one request to the next: NFS has none, and an open for each READ and
//! WRITE would cost more than the operation.
//!
//! Opens are kept by node, caller and mode, at most [`OPENS_MAX`] of them. An open is closed if it
//! was not used for some seconds, and if its node is removed. It is also closed if the node's
//! attributes change, since the caller may have lost the right to open it. An open that is in use
//! is closed by its last user.
//!
//! The table's lock is a leaf: no session is called while it is held.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use volary_core::{Cred, Kind, Mode, NodeId, OpenId, Result};
use volary_session::Session;

/// How many opens are kept.
const OPENS_MAX: usize = 1024;

/// One open, closed when dropped.
pub(crate) struct Held {
    pub(crate) open: OpenId,
    session: Session,
    /// Counts the closes that failed.
    lost: Arc<AtomicU64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        // An error of closing is about earlier writes.
        if self.session.close(self.open).is_err() {
            self.lost.fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// The caller for whom an open is kept, or `None` for all (after a check of their own).
type Whose = Option<Cred>;

struct Slot {
    whose: Whose,
    mode: Mode,
    held: Arc<Held>,
    used: u32,
}

/// The opens of one volume.
#[derive(Default)]
pub(crate) struct Opens {
    table: Mutex<Table>,
    /// The number of calls of [`sweep`](Self::sweep), and so roughly seconds.
    now: AtomicU32,
    lost: Arc<AtomicU64>,
    has_doomed: AtomicBool,
}

#[derive(Default)]
struct Table {
    nodes: HashMap<NodeId, Vec<Slot>>,
    len: usize,
    /// Nodes in the order of their first opens; some have none any more, some appear twice.
    order: VecDeque<NodeId>,
    /// Opens that were taken out in a place where nothing can be closed.
    doomed: Vec<Arc<Held>>,
}

impl Opens {
    /// Returns the open that is kept for these keys, or a new one.
    pub(crate) fn get(
        &self,
        node: NodeId,
        whose: Option<&Cred>,
        mode: Mode,
        open: impl Fn() -> Result<(Session, OpenId)>,
    ) -> Result<Arc<Held>> {
        if let Some(held) = self.find(node, whose, mode) {
            return Ok(held);
        }
        let opened = match open() {
            Err(e) if e == Kind::TooManyOpen && self.close_kept() => open(),
            opened => opened,
        };
        let (session, open) = opened?;
        Ok(self.keep(node, whose, mode, session, open))
    }

    fn find(&self, node: NodeId, whose: Option<&Cred>, mode: Mode) -> Option<Arc<Held>> {
        let now = self.now.load(Ordering::Relaxed);
        let mut table = self.table.lock();
        let slots = table.nodes.get_mut(&node)?;
        let slot = slots
            .iter_mut()
            .find(|slot| slot.mode == mode && slot.whose.as_ref() == whose)?;
        slot.used = now;
        Some(Arc::clone(&slot.held))
    }

    /// Drops all kept opens, for a volume that has no room for more. Those in use are closed by
    /// their last user. Returns whether there were any.
    fn close_kept(&self) -> bool {
        let kept = self.table.lock().take_unused(|_| true);
        !kept.is_empty()
    }

    /// Keeps an open.
    pub(crate) fn keep(
        &self,
        node: NodeId,
        whose: Option<&Cred>,
        mode: Mode,
        session: Session,
        open: OpenId,
    ) -> Arc<Held> {
        let held = Arc::new(Held {
            open,
            session,
            lost: Arc::clone(&self.lost),
        });
        let slot = Slot {
            whose: whose.cloned(),
            mode,
            held: Arc::clone(&held),
            used: self.now.load(Ordering::Relaxed),
        };
        let surplus = self.table.lock().insert(node, slot);
        drop(surplus);
        held
    }

    /// Takes a node's opens out of the table. The next [`close_doomed`](Self::close_doomed) closes
    /// them, so that this can be called where nothing can be closed.
    pub(crate) fn doom(&self, node: NodeId) {
        let mut table = self.table.lock();
        if let Some(slots) = table.nodes.remove(&node) {
            table.len -= slots.len();
            table.doomed.extend(slots.into_iter().map(|slot| slot.held));
            self.has_doomed.store(true, Ordering::Release);
        }
    }

    /// Takes all opens out of the table likewise.
    pub(crate) fn doom_all(&self) {
        let mut table = self.table.lock();
        let all = std::mem::take(&mut table.nodes);
        table.len = 0;
        let slots = all.into_values().flatten();
        table.doomed.extend(slots.map(|slot| slot.held));
        self.has_doomed.store(true, Ordering::Release);
    }

    /// Closes the opens that were taken out.
    pub(crate) fn close_doomed(&self) {
        if !self.has_doomed.swap(false, Ordering::AcqRel) {
            return;
        }
        let doomed = std::mem::take(&mut self.table.lock().doomed);
        drop(doomed);
    }

    /// Closes opens that were not used for `idle` seconds. To be called once a second.
    pub(crate) fn sweep(&self, idle: u32) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        let mut table = self.table.lock();
        let old = table.take_unused(|slot| now.wrapping_sub(slot.used) > idle);
        drop(table);
        drop(old);
        self.close_doomed();
    }

    /// Returns how many closes have failed: each may have lost earlier writes.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns how many opens are kept.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().len
    }
}

impl Table {
    /// Inserts an open. Returns the opens that must be closed for it.
    fn insert(&mut self, node: NodeId, slot: Slot) -> Vec<Arc<Held>> {
        let mut out = Vec::new();
        while self.len >= OPENS_MAX
            && let Some(first) = self.order.pop_front()
        {
            let slots = self.nodes.remove(&first).unwrap_or_default();
            self.len -= slots.len();
            out.extend(slots.into_iter().map(|slot| slot.held));
        }
        let slots = self.nodes.entry(node).or_default();
        let same = |other: &Slot| other.mode == slot.mode && other.whose == slot.whose;
        if let Some(at) = slots.iter().position(same) {
            // Two threads opened it at the same time: the later open stays.
            out.push(slots.swap_remove(at).held);
            self.len -= 1;
        }
        slots.push(slot);
        self.len += 1;
        self.order.push_back(node);
        if self.order.len() > 2 * OPENS_MAX {
            let nodes = &self.nodes;
            self.order.retain(|node| nodes.contains_key(node));
            let mut seen = std::collections::HashSet::new();
            self.order.retain(|node| seen.insert(*node));
        }
        out
    }

    fn take_unused(&mut self, is_old: impl Fn(&Slot) -> bool) -> Vec<Arc<Held>> {
        let mut out = Vec::new();
        self.nodes.retain(|_, slots| {
            let old = slots.extract_if(.., |slot| is_old(slot));
            out.extend(old.map(|slot| slot.held));
            !slots.is_empty()
        });
        self.len -= out.len();
        out
    }
}
