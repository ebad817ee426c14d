//! Leases among the uses: granting, breaking, and waiting until a break is done.

use super::mark::Mark;
use super::node::NodeUse;
use super::{Shard, Uses};
use crate::shared::leases::{Held, Impact, Lease, LeaseBits, LeaseKey, LeaseSink, Notice};
use crate::shared::sharing::Rights;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volary_core::{Change, Kind, NodeId, OpenId, Result};

/// How long a waiter sleeps before it checks again whether it was cancelled.
const NAP: Duration = Duration::from_millis(50);

/// The caller of an operation: leases under the caller's key are spared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    /// The holder of this open.
    Open(Mark),
    /// The holder of this key; without a key, no lease is spared.
    Key(Option<LeaseKey>),
}

/// A request for a lease.
pub(crate) struct Ask {
    pub(crate) open: OpenId,
    pub(crate) key: LeaseKey,
    pub(crate) want: LeaseBits,
    /// The most that the volume and the node allow.
    pub(crate) most: LeaseBits,
    pub(crate) is_dir: bool,
    pub(crate) sink: Arc<dyn LeaseSink>,
}

/// How long a caller waits, and when it stops.
pub(crate) struct Patience<'a> {
    /// Returns true once the caller has been cancelled.
    pub(crate) is_off: &'a dyn Fn() -> bool,
    /// How long a lease may take to break.
    pub(crate) limit: Duration,
}

impl NodeUse {
    fn key_of(&self, by: By) -> Option<LeaseKey> {
        match by {
            By::Key(key) => key,
            By::Open(mark) => {
                let open = self.marked.iter().find(|open| open.mark == mark);
                open.and_then(|open| open.key)
            }
        }
    }

    fn others(&mut self, by: By, impact: Impact) -> impl Iterator<Item = &mut Held> {
        let spared = self.key_of(by);
        let leases = self.leases.iter_mut();
        leases.filter(move |held| Some(held.key) != spared || held.is_hit_by_own(impact))
    }

    fn is_awaited(&mut self, by: By, impact: Impact) -> bool {
        self.others(by, impact).any(|held| held.is_awaited(impact))
    }

    /// Returns whether a caller that has begun to wait must go on: until every break in progress is
    /// done.
    fn is_breaking(&mut self, by: By, impact: Impact) -> bool {
        self.others(by, impact).any(|held| held.is_breaking())
    }

    /// Returns which of the requested bits can be granted now.
    fn grantable(&self, ask: &Ask) -> LeaseBits {
        let oplock = ask.sink.is_oplock();
        let mut bits = ask.want & ask.most;
        let data_open = self
            .marked
            .iter()
            .any(|open| open.key != Some(ask.key) && open.share.wants != Rights::NONE);
        if data_open || self.plain.has_data() {
            bits = bits.without(LeaseBits::WRITE);
        }
        let others = || self.leases.iter().filter(|held| held.key != ask.key);
        if others().any(|held| held.granted().has(LeaseBits::WRITE)) {
            return LeaseBits::NONE;
        }
        if others().any(|held| held.granted() != LeaseBits::NONE) {
            bits = bits.without(LeaseBits::WRITE);
        }
        if oplock && !bits.has(LeaseBits::WRITE) {
            bits = bits & LeaseBits::READ;
            let handles = others().any(|held| held.granted().has(LeaseBits::HANDLE));
            if handles {
                bits = LeaseBits::NONE;
            }
        }
        if !oplock && others().any(|held| held.is_oplock() && held.granted() != LeaseBits::NONE) {
            bits = bits.without(LeaseBits::HANDLE);
        }
        if bits.has(LeaseBits::READ) {
            bits
        } else {
            LeaseBits::NONE
        }
    }
}

impl Uses {
    /// Breaks leases after a change that was made elsewhere and reported by the driver.
    pub(crate) fn changed_elsewhere(&self, change: Change) {
        match change {
            Change::Data(node) | Change::Entries(node) | Change::Gone(node) => {
                self.change(node, By::Key(None));
            }
            Change::Attr(_) => {}
            Change::Everything => Notice::tell_all(&self.break_all()),
        }
    }

    /// Breaks the leases of others after a change of the node, so that nobody keeps stale data.
    pub(crate) fn change(&self, node: NodeId, by: By) {
        if self.has_leases() {
            let (notices, _) = self.break_others(node, by, Impact::CHANGED);
            Notice::tell_all(&notices);
        }
    }

    /// Returns whether there are any leases on the volume.
    pub(crate) fn has_leases(&self) -> bool {
        self.leased.load(Ordering::SeqCst) > 0
    }

    /// Returns whether there are any leases on directories.
    pub(crate) fn has_dir_leases(&self) -> bool {
        self.dirs_leased.load(Ordering::SeqCst) > 0
    }

    /// Returns how many leases there are on the volume.
    pub(crate) fn lease_count(&self) -> usize {
        self.leased.load(Ordering::SeqCst)
    }

    /// Returns whether an operation must break a lease, or wait.
    pub(crate) fn is_hit(&self, node: NodeId, by: By, impact: Impact) -> bool {
        self.has_leases()
            && self.table.peek(node, |this| {
                this.others(by, impact).any(|held| held.is_hit(impact))
            })
    }

    /// Returns whether an operation would wait.
    pub(crate) fn would_wait(&self, node: NodeId, by: By, impact: Impact) -> bool {
        let waits =
            |held: &mut Held| held.is_awaited(impact) || held.granted().has_any(impact.awaits);
        self.has_leases()
            && self
                .table
                .peek(node, |this| this.others(by, impact).any(waits))
    }

    /// Breaks leases that forbid an operation. Returns the notices to send, and whether the
    /// operation must wait.
    pub(crate) fn break_others(&self, node: NodeId, by: By, impact: Impact) -> (Vec<Notice>, bool) {
        let mut notices = Vec::new();
        let now = (self.clock)();
        let awaited = self.table.peek(node, |this| {
            for held in this.others(by, impact) {
                // An earlier break may have run out of time while nobody waited for it.
                held.expire_late(now, self.timeout);
                if let Some(told) = held.break_for(impact) {
                    held.asked_at(now);
                    notices.push(held.notice(told));
                }
            }
            this.is_awaited(by, impact)
        });
        (notices, awaited)
    }

    /// Breaks all leases of the volume in whole.
    pub(crate) fn break_all(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        let now = (self.clock)();
        for shard in self.table.shards() {
            let mut nodes = shard.nodes.lock();
            for held in nodes.values_mut().flat_map(|this| &mut this.leases) {
                if let Some(told) = held.break_for(Impact::CHANGED) {
                    held.asked_at(now);
                    notices.push(held.notice(told));
                }
            }
        }
        notices
    }

    /// Waits until no lease forbids an operation. Leases whose clients take too long are ended.
    ///
    /// # Errors
    /// `Busy` if too many callers wait; `Stale` once shut; `Interrupted`.
    pub(crate) fn wait(
        &self,
        node: NodeId,
        by: By,
        impact: Impact,
        patience: &Patience<'_>,
    ) -> Result<()> {
        let _waiter = self.waiters.enter()?;
        let Shard { nodes, changed } = self.table.shard(node);
        let mut nodes = nodes.lock();
        let mut waited = Duration::ZERO;
        loop {
            let Some(this) = nodes.get_mut(&node) else {
                return Ok(());
            };
            if !this.is_breaking(by, impact) {
                return Ok(());
            }
            if self.waiters.is_shut() {
                return Err(Kind::Stale.into());
            }
            if (patience.is_off)() {
                return Err(Kind::Interrupted.into());
            }
            if waited >= patience.limit {
                let late = this.others(by, impact).filter(|held| held.is_breaking());
                late.for_each(|held| {
                    held.expire();
                });
                changed.notify_all();
                continue;
            }
            let nap = NAP.min(patience.limit - waited);
            // Who is woken for nothing sleeps on: each nap that ends by itself took its time.
            let still = |nodes: &mut super::table::Nodes| {
                let this = nodes.get_mut(&node);
                let breaks = this.is_some_and(|this| this.is_breaking(by, impact));
                breaks && !self.waiters.is_shut() && !(patience.is_off)()
            };
            if changed.wait_while_for(&mut nodes, still, nap).timed_out() {
                waited += nap;
            }
        }
    }

    /// Grants a lease to an open, or extends the existing lease of its key.
    ///
    /// # Errors
    /// `Stale`; `Invalid` if the open is not of that key, or the key has a
    /// lease on another node.
    pub(crate) fn lease(&self, node: NodeId, mark: Mark, ask: Ask) -> Result<Lease> {
        let mut nodes = self.table.shard(node).nodes.lock();
        let this = nodes.get_mut(&node).ok_or(Kind::Stale)?;
        let open = this.marked.iter().find(|open| open.mark == mark);
        if open.ok_or(Kind::Invalid)?.key != Some(ask.key) {
            return Err(Kind::Invalid.into());
        }
        let now = (self.clock)();
        for held in &mut this.leases {
            held.expire_late(now, self.timeout);
        }
        let granted = this.grantable(&ask);
        if let Some(held) = this.leases.iter_mut().find(|held| held.key == ask.key) {
            held.ask(ask.want & ask.most, granted, ask.sink, ask.open);
            return Ok(held.state());
        }
        let mut keys = self.keys.lock();
        if keys.node_of(&ask.key).is_some() {
            return Err(Kind::Invalid.into());
        }
        if !keys.enter(ask.key, node) {
            return Ok(Lease {
                granted: LeaseBits::NONE,
                epoch: 0,
                breaking: false,
            });
        }
        self.leased.fetch_add(1, Ordering::SeqCst);
        let dirs = usize::from(ask.is_dir);
        self.dirs_leased.fetch_add(dirs, Ordering::SeqCst);
        let held = Held::new(ask.key, granted, ask.sink, ask.open, ask.is_dir);
        let state = held.state();
        this.leases.push(held);
        Ok(state)
    }

    /// Gives up all of the client's lease but `bits`. Returns the next break that it must be told
    /// of.
    ///
    /// # Errors
    /// `Invalid` if no break is in progress, or the client may not keep `bits`.
    pub(crate) fn acknowledge(&self, key: &LeaseKey, bits: LeaseBits) -> Result<Option<Notice>> {
        let now = (self.clock)();
        self.with_lease(key, |held| {
            let told = held.acknowledge(bits)?;
            held.asked_at(now);
            Ok(told.map(|told| held.notice(told)))
        })?
    }

    /// Returns the state of the key's lease.
    ///
    /// # Errors
    /// `Invalid` if the key has no lease.
    pub(crate) fn lease_state(&self, key: &LeaseKey) -> Result<Lease> {
        self.with_lease(key, |held| held.state())
    }

    /// Gives up the client's lease without being asked.
    ///
    /// # Errors
    /// `Invalid` if the key has no lease.
    pub(crate) fn give_up(&self, key: &LeaseKey) -> Result<()> {
        self.with_lease(key, Held::give_up)
    }

    /// Returns the node that the key has a lease on.
    pub(crate) fn leased_node(&self, key: &LeaseKey) -> Option<NodeId> {
        self.keys.lock().node_of(key)
    }

    /// Ends all waits, now and later.
    pub(crate) fn shut(&self) {
        self.waiters.shut();
        self.wake();
    }

    /// Makes waiters check at once whether they were cancelled.
    pub(crate) fn wake(&self) {
        for shard in self.table.shards() {
            drop(shard.nodes.lock());
            shard.changed.notify_all();
        }
    }

    fn with_lease<T>(&self, key: &LeaseKey, act: impl FnOnce(&mut Held) -> T) -> Result<T> {
        let node = self.leased_node(key).ok_or(Kind::Invalid)?;
        let Shard { nodes, changed } = self.table.shard(node);
        let mut nodes = nodes.lock();
        let leases = nodes.get_mut(&node).map(|this| this.leases.iter_mut());
        let found = leases.and_then(|mut leases| leases.find(|held| held.key == *key));
        let answer = act(found.ok_or(Kind::Invalid)?);
        changed.notify_all();
        Ok(answer)
    }
}
