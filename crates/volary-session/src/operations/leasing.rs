//! Leases: asking for them, giving them up, and breaking others'.

use crate::session::Session;
use crate::shared::leases::{Impact, Lease, LeaseBits, LeaseKey, LeaseSink, Notice};
use crate::shared::uses::{Ask, By, Patience};
use crate::volume::{Hearing, Volume};
use std::collections::HashMap;
use std::sync::Arc;
use volary_core::{Error, FileKind, Kind, NodeId, OpenId, Result};

impl Session {
    /// Asks for a lease for the open, which has to have been made with this
    /// `key` ([`OpenHow::lease_key`](crate::OpenHow::lease_key)): gives what is
    /// held then, which may be nothing. `sink` is told, from now on, what is taken
    /// away. The module `leases` says what is granted and what breaks it.
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
        // Who alone writes may lock by itself, too.
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

    /// The client gives up all of its lease but `bits`, as it was told to; gives
    /// what it holds then. If meanwhile more was taken away, it is told of that
    /// before this returns.
    ///
    /// # Errors
    /// `Invalid` if nothing is being taken away, or `bits` is more than it was
    /// told that it may keep.
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

    /// Returns the node that the key has a lease on, until the last open of the key
    /// ends. With the key no other node can be opened.
    pub fn leased_node(&self, key: LeaseKey) -> Option<NodeId> {
        self.volume.uses.leased_node(&key)
    }

    /// The client gives up its lease unasked, and keeps its opens.
    ///
    /// # Errors
    /// `Invalid` if the key has no lease.
    pub fn give_up_lease(&self, key: LeaseKey) -> Result<()> {
        self.volume.uses.give_up(&key)
    }

    /// Returns whether reading (`writes` false) or writing the node as one without a
    /// lease would wait now for another's lease: for servers with few threads.
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

    /// Breaks the H of all leases on what is open below the directory by other
    /// opens than this one's, and waits: before a directory is renamed by a
    /// client to whom opens below forbid it. Whether anything is open below then.
    ///
    /// # Errors
    /// `Busy`; `Corrupt` if a way up to the root has no end; `Interrupted`.
    pub fn free_below(&self, dir: NodeId) -> Result<bool> {
        for node in self.open_nodes_below(dir)? {
            self.contend(node, By::Key(None), Impact::NAME)?;
        }
        self.is_open_below(dir)
    }

    /// Takes away what others' leases forbid, and waits where it has to.
    ///
    /// # Errors
    /// `Busy` if too many wait; `Stale` once detached; `Interrupted`.
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

    /// The node has changed: a lease that was granted while it did is broken,
    /// and so are those on the directory that the open came through.
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

    /// Entries of the directory have changed.
    pub(crate) fn entries_changed(&self, dir: NodeId, key: Option<LeaseKey>) {
        if self.uses.has_dir_leases() {
            self.break_leases(dir, By::Key(key));
        }
    }

    /// The node has changed: nobody keeps what they know of it.
    pub(crate) fn break_leases(&self, node: NodeId, by: By) {
        self.uses.change(node, by);
    }

    /// Returns the most that a lease can be here: where others change nodes unheard,
    /// nothing; where they are heard of when it has happened, not gathered
    /// writes.
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

    /// Returns whether `at` is `dir` or below it. `known` keeps what the way up has shown, for the next
    /// call.
    ///
    /// # Errors
    /// `Corrupt` if the way up has no end; `Interrupted`.
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
            // Notices a circle: the node that is kept at each power of two is met again (Brent).
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
                // Gone meanwhile: nothing in it is below anything.
                Err(e) if e == Kind::Stale => break false,
                Err(e) => return Err(e),
            }
        };
        known.extend(passed.into_iter().map(|node| (node, found)));
        Ok(found)
    }
}
