//! Which owner holds which bytes of one node.

use super::held::{HeldLock, LockOwner, Range};

/// The locks on one node, by first byte. An owner's locks that are not exact never overlap, and
/// those of one kind never touch.
#[derive(Default)]
pub(super) struct Holding(Vec<HeldLock>);

impl Holding {
    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldLock> {
        self.0.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether removing the range from the owner's locks would split one in two.
    pub(super) fn splits(&self, owner: LockOwner, range: Range) -> bool {
        self.0.iter().any(|held| {
            let around = held.range.first < range.first && range.last < held.range.last;
            held.owner == owner && around
        })
    }

    /// Removes the owner's locks on the range.
    pub(super) fn clear(&mut self, owner: LockOwner, range: Range) {
        let mut ends = Vec::new();
        self.0.retain_mut(|held| {
            if held.owner != owner || !held.range.overlaps(range) {
                return true;
            }
            let Range { first, last } = held.range;
            if last > range.last {
                ends.push(HeldLock {
                    range: Range {
                        first: range.last + 1,
                        last,
                    },
                    ..*held
                });
            }
            if first < range.first {
                held.range.last = range.first - 1;
                return true;
            }
            false
        });
        for end in ends {
            self.insert(end);
        }
    }

    /// Sets this lock in place of the owner's locks on the range. Returns whether it lowers an
    /// exclusive lock on some of it to a shared one.
    pub(super) fn set(&mut self, mut lock: HeldLock) -> bool {
        if lock.exact {
            self.insert(lock);
            return false;
        }
        let lowers = !lock.exclusive
            && self.0.iter().any(|held| {
                held.owner == lock.owner && held.exclusive && held.range.overlaps(lock.range)
            });
        self.clear(lock.owner, lock.range);
        self.0.retain(|held| {
            let joins = held.owner == lock.owner
                && held.exclusive == lock.exclusive
                && touches(held.range, lock.range);
            if joins {
                lock.range.first = lock.range.first.min(held.range.first);
                lock.range.last = lock.range.last.max(held.range.last);
            }
            !joins
        });
        self.insert(lock);
        lowers
    }

    /// Removes one exact lock of the owner on just this range, an exclusive one first. Returns
    /// false if there is none.
    pub(super) fn take_exact(&mut self, owner: LockOwner, range: Range) -> bool {
        let is_it = |held: &HeldLock| held.exact && held.owner == owner && held.range == range;
        let exclusive = self.0.iter().position(|held| is_it(held) && held.exclusive);
        match exclusive.or_else(|| self.0.iter().position(is_it)) {
            Some(index) => {
                self.0.remove(index);
                true
            }
            None => false,
        }
    }

    fn insert(&mut self, lock: HeldLock) {
        let at = self
            .0
            .partition_point(|held| held.range.first <= lock.range.first);
        self.0.insert(at, lock);
    }
}

fn touches(a: Range, b: Range) -> bool {
    a.last.checked_add(1) == Some(b.first) || b.last.checked_add(1) == Some(a.first)
}

#[cfg(test)]
mod tests;
