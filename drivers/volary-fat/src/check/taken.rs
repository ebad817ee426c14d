//! The short names that are taken in a directory, and one that is not.

use std::collections::{HashMap, HashSet};

/// The short names of a directory.
pub(super) struct Taken {
    pub(super) dir: u32,
    names: HashSet<[u8; 11]>,
    /// Numbers below this one are taken, by the name that they are added to.
    next: HashMap<[u8; 11], u32>,
}

impl Taken {
    /// Returns the names of the directory `dir`.
    pub(super) fn new(dir: u32, names: HashSet<[u8; 11]>) -> Self {
        Self {
            dir,
            names,
            next: HashMap::new(),
        }
    }

    /// Notes a name that an entry has got.
    pub(super) fn insert(&mut self, name: [u8; 11]) {
        self.names.insert(name);
    }

    /// Returns a name that is not taken: the start of `basis`, with a number. `basis` itself if there is none.
    pub(super) fn unused(&mut self, basis: [u8; 11]) -> [u8; 11] {
        let next = self.next.entry(basis).or_insert(1);
        while *next <= crate::names::short::TAIL_MAX {
            let new = numbered(basis, *next);
            *next += 1;
            if !self.names.contains(&new) {
                return new;
            }
        }
        basis
    }
}

/// Returns a short name with a number at the end of its first part.
fn numbered(basis: [u8; 11], number: u32) -> [u8; 11] {
    let tail = format!("~{number}");
    let mut new = basis;
    let base = new.get_mut(..8).unwrap_or_default();
    let used = base.iter().position(|&b| b == b' ').unwrap_or(8);
    let at = used.min(8 - tail.len());
    for (to, from) in base.iter_mut().skip(at).zip(tail.bytes()) {
        *to = from;
    }
    new
}
