//! Leases: how they are requested, given up and broken.

use crate::session::Session;
use crate::shared::leases::{Impact, Lease, LeaseBits, LeaseKey, LeaseSink, Notice};
use crate::shared::uses::{Ask, By, Patience};
use crate::volume::{Hearing, Volume};
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{Error, FileKind, Kind, NodeId, OpenId, Result};

impl Session {
    /// Requests a lease for the open, which must have been made with this `key`
    /// ([`OpenHow::lease_key`](crate::OpenHow::lease_key)). Returns what the key holds then, which
    /// may be nothing. From now on, `sink` is told what is taken away. The module `leases` says
    /// what is granted and what breaks it.
    ///
    /// # Errors
    /// `Invalid` if the open was not made with the key.
    pub fn lease(
        &self,
        open: OpenId,
        key: LeaseKey,
        want: LeaseBits,
        sink: Arc<dyn LeaseSink>,
    ) -> Result<Lease> {
        let opened = self.volume.opens.get(open)?;
        let is_dir = self.getattr(opened.node)?.kind == FileKind::Dir;
        let locked = self.volume.ranges.any(opened.node, |_| true);
        // A client that alone may write could also lock by itself, so no W in a grace period.
        let alone = !is_dir && !self.volume.ranges.is_grace();
        let most = match (locked, alone) {
            (true, _) => LeaseBits::NONE,
            (false, false) => self.volume.lease_most().without(LeaseBits::WRITE),
            (false, true) => self.volume.lease_most(),
        };
        let ask = Ask {
            open,
            key,
            want,
            most,
            is_dir,
            sink,
        };
        self.volume.uses.lease(opened.node, opened.mark, ask)
    }

    /// Gives up all of the client's lease but `bits`, after the client was told to. Returns what it
    /// holds then. If more was taken away meanwhile, the client is told before this returns.
    ///
    /// # Errors
    /// `Invalid` if nothing is being taken away, or if `bits` is more than the client was told that
    /// it may keep.
    pub fn acknowledge(&self, key: LeaseKey, bits: LeaseBits) -> Result<LeaseBits> {
        let notice = self.volume.uses.acknowledge(&key, bits)?;
        Notice::tell_all(notice.as_slice());
        Ok(bits)
    }

    /// Returns what the key holds.
    ///
    /// # Errors
    /// `Invalid` if it has no lease.
    pub fn lease_state(&self, key: LeaseKey) -> Result<Lease> {
        self.volume.uses.lease_state(&key)
    }

    /// Returns the node that the key has a lease on, until the last open of the key ends. Until
    /// then, no other node can be opened with the key.
    pub fn leased_node(&self, key: LeaseKey) -> Option<NodeId> {
        self.volume.uses.leased_node(&key)
    }

    /// Gives up the client's lease without being asked; its opens stay.
    ///
    /// # Errors
    /// `Invalid` if the key has no lease.
    pub fn give_up_lease(&self, key: LeaseKey) -> Result<()> {
        self.volume.uses.give_up(&key)
    }

    /// Returns whether a caller without a lease would now wait for another's lease if it read
    /// (`writes` false) or wrote the node. For servers with few threads.
    pub fn would_wait(&self, node: NodeId, writes: bool) -> bool {
        let impact = if writes { Impact::WRITE } else { Impact::READ };
        self.volume.uses.would_wait(node, By::Key(None), impact)
    }

    /// Returns whether removing, renaming or replacing the node would wait now for
    /// another's lease.
    pub fn would_wait_for_name(&self, node: NodeId) -> bool {
        self.volume
            .uses
            .would_wait(node, By::Key(None), Impact::NAME)
    }

    /// Breaks the handle part (H) of all leases on nodes that are open below the directory, and
    /// waits. Called before a directory is renamed by a client to whom opens below it forbid that.
    /// Returns whether anything below is open then.
    ///
    /// # Errors
    /// `Busy`; `Corrupt` if a chain of parents never reaches the root; `Interrupted`.
    pub fn free_below(&self, dir: NodeId) -> Result<bool> {
        for node in self.open_nodes_below(dir)? {
            self.contend(node, By::Key(None), Impact::NAME)?;
        }
        self.is_open_below(dir)
    }

    /// Breaks others' leases that forbid the impact, and waits if it must.
    ///
    /// # Errors
    /// `Busy` if too many callers wait; `Stale` once detached; `Interrupted`.
    #[inline]
    pub(crate) fn contend(&self, node: NodeId, by: By, impact: Impact) -> Result<()> {
        if self.volume.uses.has_leases() {
            self.contend_leases(node, by, impact)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn contend_leases(&self, node: NodeId, by: By, impact: Impact) -> Result<()> {
        let uses = &self.volume.uses;
        let (notices, awaited) = uses.break_others(node, by, impact);
        Notice::tell_all(&notices);
        if !awaited {
            return Ok(());
        }
        self.note_wait();
        let cx = self.ctx();
        let patience = Patience {
            is_off: &|| cx.cancel.is_set(),
            limit: self.volume.lease_timeout,
        };
        uses.wait(node, by, impact, &patience)
    }

    /// Notes that the node has changed. Breaks leases on it that were granted meanwhile, and those
    /// on the directory that the open came through.
    #[inline]
    pub(crate) fn has_changed(&self, node: NodeId, by: By) {
        if self.volume.uses.has_leases() {
            self.break_changed(node, by);
        }
    }

    #[cold]
    fn break_changed(&self, node: NodeId, by: By) {
        let uses = &self.volume.uses;
        self.volume.break_leases(node, by);
        if !uses.has_dir_leases() {
            return;
        }
        if let By::Open(mark) = by {
            let at = uses.of_open(node, mark, |open| {
                let place = open.place.as_ref();
                place.map(|place| (place.dir, open.parent_key))
            });
            if let Some((dir, key)) = at.flatten() {
                self.volume.break_leases(dir, By::Key(key));
            }
        }
    }
}

impl Volume {
    /// Returns how many leases there are.
    pub fn lease_count(&self) -> usize {
        self.uses.lease_count()
    }

    /// Breaks leases on a directory whose entries have changed.
    pub(crate) fn entries_changed(&self, dir: NodeId, key: Option<LeaseKey>) {
        if self.uses.has_dir_leases() {
            self.break_leases(dir, By::Key(key));
        }
    }

    /// Breaks leases on a node that has changed: nobody may keep what they cached of it.
    pub(crate) fn break_leases(&self, node: NodeId, by: By) {
        self.uses.change(node, by);
    }

    /// Returns the most that a lease can hold here. If others change nodes without a notice, that
    /// is nothing. If notices come only after the change, it is all but write caching.
    fn lease_most(&self) -> LeaseBits {
        match self.hearing() {
            Hearing::Told => LeaseBits::READ | LeaseBits::HANDLE,
            Hearing::Nothing => LeaseBits::NONE,
            Hearing::All => LeaseBits::ALL,
        }
    }
}

impl Session {
    /// # Errors
    /// None of its own.
    fn open_nodes_below(&self, dir: NodeId) -> Result<Vec<NodeId>> {
        let (mut nodes, mut known) = (Vec::new(), HashMap::new());
        for (node, place) in self.volume.uses.table.places() {
            if self.is_within(place.dir, dir, &mut known)? {
                nodes.push(node);
            }
        }
        nodes.dedup();
        Ok(nodes)
    }

    /// Returns whether `at` is `dir` or below it. `known` keeps what the way up has shown, for the
    /// next call.
    ///
    /// # Errors
    /// `Corrupt` if the parents form a circle; `Interrupted`.
    pub(crate) fn is_within(
        &self,
        mut at: NodeId,
        dir: NodeId,
        known: &mut HashMap<NodeId, bool>,
    ) -> Result<bool> {
        let cx = self.ctx();
        let root = self.root();
        let (mut passed, mut before) = (Vec::new(), at);
        let found = loop {
            cx.check_cancel()?;
            if at == dir || at == root {
                break at == dir;
            }
            if let Some(found) = known.get(&at) {
                break *found;
            }
            // Detects a circle (Brent): the node kept at the last power of two is met again.
            if passed.last().is_some() && at == before {
                let found = "directories each above the other";
                return Err(Error::corrupt("directory", 0, found, "a way to the root"));
            }
            if passed.len().is_power_of_two() {
                before = at;
            }
            passed.push(at);
            match self.fs().parent(&cx, at) {
                Ok(parent) => at = parent.node,
                // Removed meanwhile: it is below nothing.
                Err(e) if e == Kind::Stale => break false,
                Err(e) => return Err(e),
            }
        };
        known.extend(passed.into_iter().map(|node| (node, found)));
        Ok(found)
    }
}
