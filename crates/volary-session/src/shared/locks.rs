//! The lock table: which owners hold which bytes, and which wait for which.

mod held;
mod ranges;

use crate::options::Limits;
use parking_lot::{Condvar, Mutex, MutexGuard};
use ranges::Holding;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use volary_core::{Kind, NodeId, OpenId, Result};

pub use held::{HeldLock, LockOwner, Range};

/// How long a waiter sleeps before it checks again whether it was cancelled.
const NAP: Duration = Duration::from_millis(50);

/// How many locks there can be on one node, give or take two (a lock that is split).
pub(crate) const LOCKS_MAX: usize = 1 << 12;

/// A lock that a caller wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub(crate) node: NodeId,
    pub(crate) owner: LockOwner,
    /// The open that it is taken through; it ends with that.
    pub(crate) open: OpenId,
    pub(crate) range: Range,
    pub(crate) exclusive: bool,
    pub(crate) exact: bool,
    /// It reclaims a lost lock: a grace period does not refuse it.
    pub(crate) claims: bool,
    /// The user to whose share it counts, unless the owner has locks on the node already.
    pub(crate) uid: u32,
}

/// All locks of one kind on a volume.
pub(crate) struct LockTable {
    state: Mutex<State>,
    /// Notified when a lock is released, and to wake waiters.
    freed: Condvar,
    /// How many nodes have locks, so that closing an unlocked file costs one
    /// load.
    locked_nodes: AtomicUsize,
    /// How many locks there can be, give or take two, in all and per user, and how many callers may
    /// wait.
    locks_max: usize,
    user_locks_max: usize,
    waiting_max: usize,
}

#[derive(Default)]
struct State {
    nodes: HashMap<NodeId, NodeLocks>,
    /// The number of locks on all nodes.
    count: usize,
    /// The number of locks of each user who has any.
    users: HashMap<u32, usize>,
    waiting: Vec<(u64, Wanted)>,
    tickets: u64,
    /// How many grace periods are in force.
    graces: usize,
    shut: bool,
}

#[derive(Default)]
struct NodeLocks {
    held: Holding,
    /// Which owner locked through which open, and to which user's share that counts.
    through: Vec<(OpenId, LockOwner, u32)>,
}

impl NodeLocks {
    /// Returns the user to whose share the owner's locks count, if it has any.
    fn user_of(&self, owner: LockOwner) -> Option<u32> {
        let mut through = self.through.iter();
        through
            .find(|(_, o, _)| *o == owner)
            .map(|(_, _, uid)| *uid)
    }

    /// Removes all locks of the owner, and forgets the owner.
    fn end(&mut self, owner: LockOwner) {
        self.held.clear(owner, Range::ALL);
        self.through.retain(|(_, other, _)| *other != owner);
    }
}

impl LockTable {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            freed: Condvar::new(),
            locked_nodes: AtomicUsize::new(0),
            locks_max: limits.locks,
            user_locks_max: limits.user_locks,
            waiting_max: limits.waiting,
        }
    }

    /// Takes a lock, which replaces the owner's locks on the range.
    ///
    /// # Errors
    /// `Quota` if there are too many locks; `Locked`.
    pub(crate) fn try_lock(&self, want: &Wanted) -> Result<()> {
        let mut state = self.state.lock();
        self.check_room(&state, want)?;
        if state.is_blocked(want) {
            return Err(Kind::Locked.into());
        }
        self.take(&mut state, want);
        Ok(())
    }

    /// Takes a lock likewise, but waits until it is free.
    ///
    /// # Errors
    /// `Quota` if there are too many locks; `Busy` if too many callers wait; `Deadlock` if the wait
    /// would never end; `Interrupted` once `is_off`; `Stale` once the table is shut.
    pub(crate) fn lock(&self, want: &Wanted, is_off: &dyn Fn() -> bool) -> Result<()> {
        let mut state = self.state.lock();
        state.tickets += 1;
        let ticket = state.tickets;
        let mut listed = false;
        let answer = loop {
            if let Err(e) = self.check_room(&state, want) {
                break Err(e);
            }
            if !state.is_blocked(want) {
                self.take(&mut state, want);
                break Ok(());
            }
            if is_off() {
                break Err(Kind::Interrupted.into());
            }
            if state.would_never_end(want) {
                break Err(Kind::Deadlock.into());
            }
            if !listed && state.waiting.len() >= self.waiting_max {
                break Err(Kind::Busy.into());
            }
            if !listed {
                state.waiting.push((ticket, *want));
                listed = true;
            }
            self.freed.wait_for(&mut state, NAP);
        };
        if listed {
            state.waiting.retain(|(other, _)| *other != ticket);
        }
        answer
    }

    /// Releases the owner's locks on the range.
    ///
    /// # Errors
    /// `Quota` if that would split a lock and there are too many locks.
    pub(crate) fn unlock(&self, node: NodeId, owner: LockOwner, range: Range) -> Result<()> {
        let mut done = Ok(());
        self.release(node, owner, |locks| {
            if locks.held.len() >= LOCKS_MAX && locks.held.splits(owner, range) {
                done = Err(Kind::Quota.into());
            } else {
                locks.held.clear(owner, range);
            }
        });
        done
    }

    /// Releases one exact lock. Returns false if there is none.
    pub(crate) fn unlock_exact(&self, node: NodeId, owner: LockOwner, range: Range) -> bool {
        let mut found = false;
        self.release(node, owner, |locks| {
            found = locks.held.take_exact(owner, range);
        });
        found
    }

    /// Returns whether there are any locks on the volume.
    pub(crate) fn has_locks(&self) -> bool {
        self.locked_nodes.load(Ordering::Acquire) > 0
    }

    /// Returns whether any lock on the node satisfies `such`.
    pub(crate) fn any(&self, node: NodeId, such: impl Fn(&HeldLock) -> bool) -> bool {
        let state = self.state.lock();
        let locks = state.nodes.get(&node);
        locks.is_some_and(|locks| locks.held.iter().any(such))
    }

    /// Releases all that the owner holds on the node.
    pub(crate) fn end_owner(&self, node: NodeId, owner: LockOwner) {
        self.release(node, owner, |locks| locks.end(owner));
    }

    /// Releases all that is held on the node by owners who locked through this open.
    pub(crate) fn end_open(&self, node: NodeId, open: OpenId) {
        if !self.has_locks() {
            return;
        }
        let mut state = self.state.lock();
        let locks = state.nodes.get(&node);
        let through = locks.map_or(&[][..], |locks| &locks.through);
        let ended = through.iter().filter(|(other, ..)| *other == open);
        let ended: Vec<_> = ended.map(|(_, owner, _)| *owner).collect();
        for owner in ended {
            self.release_in(&mut state, node, owner, |locks| locks.end(owner));
        }
    }

    /// Returns a lock that conflicts with this one: the first one by offset, or in a grace period
    /// that of nobody on all bytes.
    pub(crate) fn test(&self, want: &Wanted) -> Option<HeldLock> {
        let state = self.state.lock();
        let held = state.blockers(want).next();
        held.or_else(|| state.is_kept_out(want).then_some(HeldLock::NOBODYS))
    }

    pub(crate) fn begin_grace(&self) {
        self.state.lock().graces += 1;
    }

    pub(crate) fn end_grace(&self) {
        self.state.lock().graces -= 1;
        self.freed.notify_all();
    }

    /// Returns whether a grace period is in force.
    pub(crate) fn is_grace(&self) -> bool {
        self.state.lock().graces > 0
    }

    /// Returns all locks on the node, by offset.
    pub(crate) fn held(&self, node: NodeId) -> Vec<HeldLock> {
        let state = self.state.lock();
        let locks = state.nodes.get(&node);
        locks.map_or_else(Vec::new, |locks| locks.held.iter().copied().collect())
    }

    /// Returns how many callers wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Makes waiters check at once whether they were cancelled.
    pub(crate) fn wake(&self) {
        drop(self.state.lock());
        self.freed.notify_all();
    }

    /// Refuses locks from now on, and ends all waits.
    pub(crate) fn shut(&self) {
        self.state.lock().shut = true;
        self.freed.notify_all();
    }

    fn take(&self, state: &mut MutexGuard<'_, State>, want: &Wanted) {
        let State { nodes, .. } = &mut **state;
        let locks = nodes.entry(want.node).or_default();
        let before = locks.held.len();
        let lowers = locks.held.set(HeldLock {
            owner: want.owner,
            range: want.range,
            exclusive: want.exclusive,
            exact: want.exact,
        });
        let after = locks.held.len();
        let uid = locks.user_of(want.owner).unwrap_or(want.uid);
        let through = (want.open, want.owner, uid);
        if !locks.through.contains(&through) {
            locks.through.push(through);
        }
        state.counts_for(uid, before, after);
        self.locked_nodes
            .store(state.nodes.len(), Ordering::Release);
        if lowers {
            self.freed.notify_all();
        }
    }

    fn release(&self, node: NodeId, owner: LockOwner, how: impl FnOnce(&mut NodeLocks)) {
        if self.has_locks() {
            self.release_in(&mut self.state.lock(), node, owner, how);
        }
    }

    /// Releases locks of the owner by `how`, and wakes waiters.
    fn release_in(
        &self,
        state: &mut State,
        node: NodeId,
        owner: LockOwner,
        how: impl FnOnce(&mut NodeLocks),
    ) {
        let Some(locks) = state.nodes.get_mut(&node) else {
            return;
        };
        let Some(uid) = locks.user_of(owner) else {
            return;
        };
        let before = locks.held.len();
        how(locks);
        let after = locks.held.len();
        if locks.held.is_empty() {
            state.nodes.remove(&node);
            let count = state.nodes.len();
            self.locked_nodes.store(count, Ordering::Release);
        }
        state.counts_for(uid, before, after);
        self.freed.notify_all();
    }

    /// # Errors
    /// `Stale` once the table is shut; `Quota` if there are too many locks.
    fn check_room(&self, state: &State, want: &Wanted) -> Result<()> {
        if state.shut {
            return Err(Kind::Stale.into());
        }
        let held = state
            .nodes
            .get(&want.node)
            .map_or(0, |locks| locks.held.len());
        let theirs = state.users.get(&want.uid).copied().unwrap_or(0);
        let too_many = theirs >= self.user_locks_max || state.count >= self.locks_max;
        if held >= LOCKS_MAX || too_many {
            return Err(Kind::Quota.into());
        }
        Ok(())
    }
}

impl HeldLock {
    /// The lock that is reported to callers that a grace period refuses.
    const NOBODYS: Self = Self {
        owner: LockOwner {
            client: None,
            number: 0,
        },
        range: Range::ALL,
        exclusive: true,
        exact: false,
    };
}

impl State {
    /// Updates the counts after this user's share of a node's locks changed from `before` to
    /// `after`.
    fn counts_for(&mut self, uid: u32, before: usize, after: usize) {
        self.count = self.count + after - before;
        let theirs = self.users.entry(uid).or_default();
        *theirs = *theirs + after - before;
        if *theirs == 0 {
            self.users.remove(&uid);
        }
    }

    fn is_blocked(&self, want: &Wanted) -> bool {
        self.is_kept_out(want) || self.blockers(want).next().is_some()
    }

    fn is_kept_out(&self, want: &Wanted) -> bool {
        self.graces > 0 && !want.claims
    }

    fn blockers(&self, want: &Wanted) -> impl Iterator<Item = HeldLock> {
        let want = *want;
        let locks = self.nodes.get(&want.node);
        locks
            .into_iter()
            .flat_map(|locks| locks.held.iter().copied())
            .filter(move |held| {
                let theirs = held.owner != want.owner || (want.exact && want.exclusive);
                let clash = held.exclusive || want.exclusive;
                theirs && clash && held.range.overlaps(want.range)
            })
    }

    /// Returns whether a holder of a conflicting lock waits, maybe by way of others, for the caller
    /// that wants this one: a deadlock. An exact lock may conflict with its own owner's, so it is
    /// not checked.
    fn would_never_end(&self, want: &Wanted) -> bool {
        if want.exact {
            return false;
        }
        let mut seen: Vec<LockOwner> = Vec::new();
        let mut to_see: Vec<LockOwner> = self.blockers(want).map(|held| held.owner).collect();
        while let Some(owner) = to_see.pop() {
            if owner == want.owner {
                return true;
            }
            if seen.contains(&owner) {
                continue;
            }
            seen.push(owner);
            for (_, theirs) in self.waiting.iter().filter(|(_, w)| w.owner == owner) {
                to_see.extend(self.blockers(theirs).map(|held| held.owner));
            }
        }
        false
    }
}
