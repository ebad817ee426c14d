//! The uses of nodes: share modes, places, pending deletions, and leases.

mod contend;
mod mark;
mod node;
mod place;
mod table;
mod waiters;

use crate::options::VolumeOptions;
use crate::shared::events::ClientId;
use crate::shared::leases::Keys;
use crate::shared::sharing::{Rights, Share};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use table::{Shard, Table};
use volary_core::{Caps, Kind, NodeId, OpenId, Result, Time};
use waiters::Waiters;

pub(crate) use contend::{Ask, By, Patience};
pub(crate) use mark::{MOMENTARY, Mark, PLAIN};
pub(crate) use node::{Deleter, Marked, Removal};
pub(crate) use place::{Naming, Place};

/// The uses of all nodes that are open.
pub(crate) struct Uses {
    pub(crate) table: Table,
    naming: Naming,
    marks: AtomicU64,
    /// How many opens have a share mode or a place ([`Marked`]). If 0, checks
    /// of share modes cost one atomic load.
    marked: AtomicUsize,
    /// How many entries are to be removed with their last open.
    deleting: AtomicUsize,
    /// How many leases there are, and how many of them are on directories.
    leased: AtomicUsize,
    dirs_leased: AtomicUsize,
    /// Taken while a shard is held.
    keys: Mutex<Keys>,
    /// The clock, and how long a client may take to give up a lease.
    clock: fn() -> Time,
    timeout: Duration,
    pub(crate) waiters: Waiters,
}

impl Uses {
    pub(crate) fn new(caps: Caps, options: &VolumeOptions) -> Self {
        let limits = &options.limits;
        Self {
            table: Table::default(),
            naming: Naming::new(caps),
            marks: AtomicU64::new(1),
            marked: AtomicUsize::new(0),
            deleting: AtomicUsize::new(0),
            leased: AtomicUsize::new(0),
            dirs_leased: AtomicUsize::new(0),
            keys: Mutex::new(Keys::new(limits.leases, limits.client_leases)),
            clock: options.clock,
            timeout: options.lease_timeout,
            waiters: Waiters::new(limits.waiting),
        }
    }

    /// Returns whether any open of the volume has a share mode or a place.
    pub(crate) fn has_marked(&self) -> bool {
        self.marked.load(Ordering::SeqCst) > 0
    }

    /// Returns whether any entry is to be removed with its last open.
    pub(crate) fn has_deleting(&self) -> bool {
        self.deleting.load(Ordering::SeqCst) > 0
    }

    /// Counts an open that allows all. `names` is the node's link count.
    ///
    /// # Errors
    /// `DeletePending`, `Sharing`.
    pub(crate) fn enter_plain(&self, node: NodeId, wants: Rights, names: u32) -> Result<()> {
        self.table.with(node, |this| {
            this.check_names(names)?;
            let allows = Rights::ALL;
            this.check_share(Share { wants, allows }, |_| false)?;
            this.plain.add(wants);
            Ok(())
        })
    }

    /// Checks that a client may use `wants` at this moment, without a counted open; the client's
    /// own opens do not conflict.
    ///
    /// # Errors
    /// `Sharing`.
    pub(crate) fn check_moment(
        &self,
        node: NodeId,
        wants: Rights,
        client: Option<ClientId>,
    ) -> Result<()> {
        self.check_allowed(node, wants, |open| open.is_of(client))
    }

    /// # Errors
    /// `DeletePending` if all names of the node are to be removed.
    pub(crate) fn check_names(&self, node: NodeId, names: u32) -> Result<()> {
        if !self.has_deleting() {
            return Ok(());
        }
        match self.table.shard(node).nodes.lock().get(&node) {
            Some(this) => this.check_names(names),
            None => Ok(()),
        }
    }

    /// Registers an open with its share mode and place.
    ///
    /// # Errors
    /// `Invalid` if its key has a lease on another node; then as
    /// [`enter_plain`](Self::enter_plain).
    pub(crate) fn enter(&self, node: NodeId, names: u32, mut open: Marked) -> Result<Mark> {
        let elsewhere = open.key.and_then(|key| self.leased_node(&key));
        if elsewhere.is_some_and(|leased| leased != node) {
            return Err(Kind::Invalid.into());
        }
        let mark = Mark(self.marks.fetch_add(1, Ordering::Relaxed));
        open.mark = mark;
        self.table.with(node, |this| {
            match &open.place {
                Some(place) => this.check_entry(&self.naming, place)?,
                None => this.check_names(names)?,
            }
            this.check_share(open.share, |other| other.is_spared_by(&open))?;
            this.marked.push(open);
            self.marked.fetch_add(1, Ordering::SeqCst);
            Ok(mark)
        })
    }

    /// Notes the id of a registered open.
    pub(crate) fn name(&self, node: NodeId, mark: Mark, open: OpenId) {
        self.with_open(node, mark, |_, marked| marked.open = Some(open));
    }

    /// Ends an open. If it was the last one through an entry that is marked for removal, returns
    /// that entry. The caller must remove it, and then call [`removed`](Self::removed).
    pub(crate) fn leave(&self, node: NodeId, mark: Mark, wants: Rights) -> Option<Removal> {
        let Shard { nodes, changed } = self.table.shard(node);
        let mut nodes = nodes.lock();
        let this = nodes.get_mut(&node)?;
        let removal = if mark == PLAIN {
            this.plain.sub(wants);
            None
        } else {
            let left = this.leave(mark, &self.naming)?;
            self.marked.fetch_sub(1, Ordering::SeqCst);
            let begun = usize::from(left.begun);
            self.deleting.fetch_add(begun, Ordering::SeqCst);
            if let Some(lease) = left.lease {
                self.keys.lock().leave(&lease.key);
                self.leased.fetch_sub(1, Ordering::SeqCst);
                let dirs = usize::from(lease.is_dir);
                self.dirs_leased.fetch_sub(dirs, Ordering::SeqCst);
                changed.notify_all();
            }
            this.due(node, &self.naming)
        };
        if this.is_idle() {
            nodes.remove(&node);
        }
        removal
    }

    /// Returns the place of the entry that is to be removed now; `None` if it is gone.
    pub(crate) fn place_of(&self, removal: &Removal) -> Option<Place> {
        let shard = self.table.shard(removal.node).nodes.lock();
        let deleting = &shard.get(&removal.node)?.deleting;
        let entry = deleting.iter().find(|entry| entry.is_going(removal));
        entry.map(|entry| entry.place().clone())
    }

    /// Forgets the removal, which was made or has failed: an entry that still exists may be opened
    /// again.
    pub(crate) fn removed(&self, removal: &Removal) {
        let node = removal.node;
        self.drop_deleting(node, |entry| entry.is_going(removal));
    }

    /// Checks that no open's share mode forbids `rights` on the node, except the open `but`.
    ///
    /// # Errors
    /// `Sharing`.
    pub(crate) fn check(&self, node: NodeId, rights: Rights, but: Option<Mark>) -> Result<()> {
        self.check_allowed(node, rights, |open| Some(open.mark) == but)
    }

    fn check_allowed(
        &self,
        node: NodeId,
        rights: Rights,
        spared: impl Fn(&Marked) -> bool,
    ) -> Result<()> {
        if !self.has_marked() {
            return Ok(());
        }
        let share = Share {
            wants: rights,
            allows: Rights::ALL,
        };
        match self.table.shard(node).nodes.lock().get(&node) {
            Some(this) => this.check_share(share, spared),
            None => Ok(()),
        }
    }

    /// Returns the result of `look` on the open, if it is registered.
    pub(crate) fn of_open<T>(
        &self,
        node: NodeId,
        mark: Mark,
        look: impl FnOnce(&Marked) -> T,
    ) -> Option<T> {
        let shard = self.table.shard(node).nodes.lock();
        let marked = shard.get(&node)?.marked.iter();
        marked.into_iter().find(|open| open.mark == mark).map(look)
    }

    /// Marks the open's entry for removal with the last open through it, on behalf of `by`; without
    /// `by`, takes the mark back.
    pub(crate) fn set_deleting(&self, node: NodeId, mark: Mark, by: Option<Deleter>) {
        let naming = &self.naming;
        let Some(place) = self
            .of_open(node, mark, |open| open.place.clone())
            .flatten()
        else {
            return;
        };
        match by {
            Some(by) => {
                let begun = self
                    .table
                    .with(node, |this| this.begin_deleting(mark, place, by, naming));
                self.deleting
                    .fetch_add(usize::from(begun), Ordering::SeqCst);
            }
            None => self.drop_deleting(node, |entry| entry.is_at(&place, naming)),
        }
    }

    /// Marks the open's entry as [`set_deleting`](Self::set_deleting) does, but when this open
    /// ends.
    pub(crate) fn delete_with(&self, node: NodeId, mark: Mark, by: Deleter) {
        self.with_open(node, mark, |_, open| open.deletes = Some(by));
    }

    /// Returns whether the open's entry is marked for removal; without an open (`mark` `None`),
    /// whether any entry of the node is.
    pub(crate) fn is_deleting(&self, node: NodeId, mark: Option<Mark>) -> bool {
        if !self.has_deleting() {
            return false;
        }
        let shard = self.table.shard(node).nodes.lock();
        let Some(this) = shard.get(&node) else {
            return false;
        };
        let open = this.marked.iter().find(|open| Some(open.mark) == mark);
        match open.and_then(|open| open.place.as_ref()) {
            Some(place) => this.check_entry(&self.naming, place).is_err(),
            None => mark.is_none() && !this.deleting.is_empty(),
        }
    }

    /// Notes that an entry of the node was removed or replaced.
    pub(crate) fn entry_gone(&self, node: NodeId, gone: &Place) {
        let naming = &self.naming;
        self.table.with_known(node, |this| {
            for open in &mut this.marked {
                if open
                    .place
                    .as_ref()
                    .is_some_and(|at| naming.is_same(at, gone))
                {
                    open.place = None;
                }
            }
        });
        self.drop_deleting(node, |entry| entry.is_at(gone, naming));
    }

    /// Notes that an entry of the node was renamed.
    pub(crate) fn entry_moved(&self, node: NodeId, from: &Place, to: &Place) {
        let naming = &self.naming;
        self.table.with_known(node, |this| {
            for open in &mut this.marked {
                if let Some(at) = &mut open.place
                    && naming.is_same(at, from)
                {
                    *at = to.clone();
                }
            }
            this.move_deleting(from, to, naming);
        });
    }

    /// Returns whether a rename between two names of one node changes the entry: if the names are
    /// one entry, and differ only in spelling.
    pub(crate) fn renames_itself(&self, from: &Place, to: &Place) -> bool {
        self.naming.is_same(from, to)
    }

    fn drop_deleting(&self, node: NodeId, which: impl Fn(&node::Deleting) -> bool) {
        let dropped = self.table.with_known(node, |this| {
            let before = this.deleting.len();
            this.deleting.retain(|entry| !which(entry));
            before - this.deleting.len()
        });
        self.deleting
            .fetch_sub(dropped.unwrap_or(0), Ordering::SeqCst);
    }

    fn with_open(&self, node: NodeId, mark: Mark, act: impl FnOnce(&Naming, &mut Marked)) {
        self.table.with_known(node, |this| {
            if let Some(open) = this.marked.iter_mut().find(|open| open.mark == mark) {
                act(&self.naming, open);
            }
        });
    }
}
