//! Places in directories. Entries are listed by name; a cookie is a hash of the
//! name that it stands behind, and means the same on every attachment.
//!
//! The names of cookies that were given out last are remembered, so that a
//! listing goes on after a name that was removed meanwhile. Others are looked
//! for in the directory.

use crate::change::files::Files;
use crate::name_table::entry::{Place, dir_prefix, name_prefix};
use crate::tree::btree::Tree;
use siphasher::sip::SipHasher24;
use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use volary_core::{Cookie, Kind, Result};

/// Names that are remembered.
const NAMES: usize = 16_384;

/// The cookies of a volume.
pub(crate) struct Cookies {
    nonce: u64,
    names: HashMap<(u64, u64), Box<[u8]>>,
    order: VecDeque<(u64, u64)>,
}

/// Returns the first key behind all versions of a name.
pub(crate) fn past_name(dir: u64, name: &[u8]) -> Vec<u8> {
    let mut key = name_prefix(dir, name);
    // The zero that ends the name becomes a one, below all longer names but
    // past all versions of this one.
    if let Some(last) = key.last_mut() {
        *last = 1;
    }
    key
}

impl Cookies {
    pub(crate) fn new(nonce: u64) -> Self {
        Self {
            nonce,
            names: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Returns the cookie behind a name.
    pub(crate) fn of(&self, dir: u64, name: &[u8]) -> Cookie {
        let mut hasher = SipHasher24::new_with_keys(self.nonce, dir);
        hasher.write(name);
        // Positive in 64 bits, as some clients want it; 0 and 1 are none.
        Cookie((hasher.finish() >> 1).max(2))
    }

    /// Notes that a cookie was given out.
    pub(crate) fn remember(&mut self, dir: u64, cookie: Cookie, name: &[u8]) {
        let key = (dir, cookie.0);
        if self.names.insert(key, name.into()).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > NAMES {
            if let Some(oldest) = self.order.pop_front() {
                self.names.remove(&oldest);
            }
        }
    }

    /// Returns the key from which a listing goes on.
    ///
    /// # Errors
    /// `Invalid` for a cookie that no name in the directory has, unless it was
    /// given out of late; `Corrupt`, `Io`.
    pub(crate) fn key_after(&self, files: &mut Files, dir: u64, cookie: Cookie) -> Result<Vec<u8>> {
        if let Some(name) = self.names.get(&(dir, cookie.0)) {
            return Ok(past_name(dir, name));
        }
        let prefix = dir_prefix(dir);
        let mut found = None;
        Tree::of(&mut files.core).scan(&prefix, &mut |key, _| {
            if !key.starts_with(&prefix) {
                return false;
            }
            let name = Place::of_key(key).map(|p| p.name);
            found = name.filter(|n| self.of(dir, n) == cookie);
            found.is_none()
        })?;
        let name = found.ok_or(Kind::Invalid)?;
        Ok(past_name(dir, &name))
    }
}
