//! Lock owners: each has its own number at the server, for as long as an open exists through which
//! it locked.
//!
//! A server tells owners of one machine apart by their numbers, some by nothing else. So each
//! attachment counts from a number of its own: others of this host are other owners.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use volary_core::OpenId;

/// The owners of locks.
pub(crate) struct Owners(Mutex<State>);

struct State {
    numbers: HashMap<u64, Owner>,
    by_open: HashMap<OpenId, HashSet<u64>>,
    last: u32,
}

#[derive(Clone, Copy)]
struct Owner {
    svid: u32,
    opens: usize,
}

impl Owners {
    /// Returns no owners yet. The first one's number comes after `last`.
    pub(crate) fn after(last: u32) -> Self {
        Self(Mutex::new(State {
            numbers: HashMap::new(),
            by_open: HashMap::new(),
            last,
        }))
    }

    /// Returns the number of an owner that locks through an open.
    pub(crate) fn svid(&self, open: OpenId, owner: u64) -> u32 {
        let owners = &mut *self.0.lock();
        let found = owners.numbers.entry(owner).or_insert_with(|| {
            owners.last = owners.last.wrapping_add(1) & (u32::MAX >> 1);
            Owner {
                svid: owners.last,
                opens: 0,
            }
        });
        if owners.by_open.entry(open).or_default().insert(owner) {
            found.opens += 1;
        }
        found.svid
    }

    /// Forgets an open. Returns the numbers of the owners that locked through it.
    pub(crate) fn end_open(&self, open: OpenId) -> Vec<u32> {
        let owners = &mut *self.0.lock();
        let of_open = owners.by_open.remove(&open).unwrap_or_default();
        let mut numbers = Vec::with_capacity(of_open.len());
        for number in of_open {
            if let Some(owner) = owners.numbers.get_mut(&number) {
                numbers.push(owner.svid);
                owner.opens -= 1;
                if owner.opens == 0 {
                    owners.numbers.remove(&number);
                }
            }
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_has_one_number_while_an_open_of_its_is_there() {
        let owners = Owners::after(u32::MAX);
        let (a, b) = (OpenId(1), OpenId(2));
        let first = owners.svid(a, 77);
        assert_eq!(owners.svid(a, 77), first);
        assert_eq!(owners.svid(b, 77), first);
        assert_ne!(owners.svid(a, 78), first);
        assert_eq!(owners.end_open(a).len(), 2);
        assert_eq!(owners.svid(b, 77), first);
        assert_eq!(owners.end_open(b), [first]);
        assert_ne!(owners.svid(b, 77), first);
    }
}
