//! [`Pool`]: bounds how many units of a resource are taken, in all and by one party.

use crate::serving::party::Party;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// A limited number of units, such as threads, of which no party can take all.
#[derive(Debug)]
pub struct Pool {
    all: usize,
    of_party: usize,
    taken: Mutex<HashMap<Party, usize>>,
}

impl Pool {
    /// Makes a pool of `all` units, of which each party takes at most `of_party`.
    pub fn new(all: usize, of_party: usize) -> Self {
        Self {
            all,
            of_party,
            taken: Mutex::default(),
        }
    }

    /// Takes one unit for as long as the returned value lives. `None` if the party, or all
    /// together, have reached their limit.
    pub fn take(self: &Arc<Self>, party: Party) -> Option<Pooled> {
        let mut taken = self.taken.lock();
        let all: usize = taken.values().sum();
        let theirs = taken.get(&party).copied().unwrap_or(0);
        if all >= self.all || theirs >= self.of_party {
            return None;
        }
        taken.insert(party, theirs.saturating_add(1));
        Some(Pooled {
            pool: Arc::clone(self),
            party,
        })
    }
}

/// One unit of a [`Pool`], given back when dropped.
#[derive(Debug)]
pub struct Pooled {
    pool: Arc<Pool>,
    party: Party,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Entry::Occupied(mut theirs) = self.pool.taken.lock().entry(self.party) {
            *theirs.get_mut() = theirs.get().saturating_sub(1);
            if *theirs.get() == 0 {
                theirs.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_party_has_more_than_its_share() {
        let pool = Arc::new(Pool::new(3, 2));
        let take = |uid| pool.take(Party::User(uid));
        let two = (take(1), take(1));
        assert!(two.0.is_some() && two.1.is_some());
        assert!(take(1).is_none(), "its share");
        let other = take(2);
        assert!(other.is_some() && take(3).is_none(), "all");
        drop(two);
        assert!(take(3).is_some() && take(1).is_some());
        drop(other);
        assert!(pool.taken.lock().is_empty());
    }
}
