//! Which owner holds which bytes of one node: arithmetic on ranges.

use super::held::{HeldLock, LockOwner, Range};

/// The locks on one node, by first byte. Those of one owner that are not exact
/// neither overlap nor, where they are of one kind, touch.
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

    /// Returns whether taking the range away from the owner leaves two locks of one.
    pub(super) fn splits(&self, owner: LockOwner, range: Range) -> bool {
        self.0.iter().any(|held| {
            let around = held.range.first < range.first && range.last < held.range.last;
            held.owner == owner && around
        })
    }

    /// Takes what the owner holds of the range away from it.
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

    /// Gives the owner this lock in place of what it holds of the range. True
    /// if it gave up an exclusive lock on some of it.
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

    /// Takes out one exact lock of the owner on just this range, an exclusive
    /// one first. False if there is none.
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
