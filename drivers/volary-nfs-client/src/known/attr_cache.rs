//! Cached attributes and rights of one node: as the server last gave them, and whether they are
//! valid.

use crate::timer;
use crate::wire::proto::{Fattr, Wcc};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use volary_core::{Access, Cred, Time};

/// For how many callers the rights on a node are cached.
const RIGHTS_MAX: usize = 4;

/// Counts calls, so that the later of two replies is known.
static CLOCK: AtomicU64 = AtomicU64::new(1);

/// Returns the current time on the counter of calls.
pub(crate) fn tick() -> u64 {
    CLOCK.fetch_add(1, Ordering::SeqCst)
}

/// The cached attributes of one node.
pub(crate) struct AttrCache {
    attr: Fattr,
    /// When the call was made that returned them; see [`tick`].
    asked: u64,
    at: Option<Instant>,
    /// See [`Attr::change`](volary_core::Attr::change).
    change: u64,
    /// Counts the times that others changed the node's entries.
    epoch: u64,
    /// The number of our own changes in progress.
    changing: u32,
    overlaps: bool,
    rights: Vec<Rights>,
}

struct Rights {
    cred: Cred,
    asked: Access,
    granted: Access,
    at: Instant,
}

impl AttrCache {
    /// Makes a cache of `attr`, from a call made at `asked`. If that time is unknown (0), the
    /// attributes are not valid.
    pub(crate) fn new(attr: Fattr, asked: u64) -> Self {
        Self {
            attr,
            asked,
            at: (asked > 0).then(timer::now),
            change: nanos(attr.ctime),
            epoch: 0,
            changing: 0,
            overlaps: false,
            rights: Vec::new(),
        }
    }

    /// Returns the attributes as the server last gave them.
    pub(crate) fn attr(&self) -> &Fattr {
        &self.attr
    }

    /// Returns the change count that goes with them.
    pub(crate) fn change(&self) -> u64 {
        self.change
    }

    /// Returns whether they are younger than `age`.
    pub(crate) fn is_fresh(&self, age: Duration) -> bool {
        self.at.is_some_and(|at| at.elapsed() < age)
    }

    /// Returns whether nothing has made them doubtful since.
    pub(crate) fn is_believed(&self) -> bool {
        self.at.is_some()
    }

    /// Returns a number that grows when others may have changed the node's entries.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Takes the attributes from a call, made at `asked`, that changed nothing. `None` if the
    /// cached attributes are to be shown then; otherwise `attr` is, with the returned change count.
    pub(crate) fn answer(&mut self, attr: &Fattr, asked: u64) -> Option<u64> {
        if self.changing == 0 && asked >= self.asked {
            self.take(attr, asked, None);
            return None;
        }
        if self.changing == 0 && self.at.is_some() {
            return None;
        }
        // It is unknown whether the reply is from before our change or after it.
        if !attr.is_same_content(&self.attr) {
            self.at = None;
            self.change += 1;
        }
        Some(self.change.max(nanos(attr.ctime)))
    }

    /// Returns whether, as far as is known, no call of ours has changed the node since `asked`.
    pub(crate) fn is_unchanged_since(&self, asked: u64) -> bool {
        self.changing == 0 && self.asked <= asked
    }

    /// Begins a change by a call of ours.
    pub(crate) fn begin_change(&mut self) {
        self.overlaps |= self.changing > 0;
        self.changing += 1;
    }

    /// Takes the reply of our own change.
    pub(crate) fn take_change(&mut self, wcc: &Wcc, asked: u64) {
        match &wcc.after {
            Some(attr) => self.take(attr, asked, Some(wcc.before)),
            None => self.forget(),
        }
        if self.overlaps {
            self.at = None;
            self.epoch += 1;
        }
    }

    /// Ends a change by a call of ours.
    pub(crate) fn end_change(&mut self) {
        self.changing -= 1;
        if self.changing == 0 {
            self.overlaps = false;
        }
    }

    /// Notes that the content was changed here, before the server knows of it.
    pub(crate) fn touch(&mut self) {
        self.change += 1;
    }

    /// Makes the attributes invalid, and those of calls that were made before.
    pub(crate) fn expire(&mut self) {
        self.doubt();
        self.rights.clear();
    }

    /// Notes that the node's state is unknown: its entries may have changed too.
    pub(crate) fn forget(&mut self) {
        self.doubt();
        self.epoch += 1;
        self.change += 1;
    }

    fn doubt(&mut self) {
        self.at = None;
        self.asked = tick();
    }

    /// Stores attributes. `own` is for a change of our own: the node's times before it, if the
    /// server gave them.
    fn take(&mut self, attr: &Fattr, asked: u64, own: Option<Option<(Time, Time)>>) {
        let differs = !attr.is_same_content(&self.attr);
        let older = attr.ctime < self.attr.ctime;
        let expected = own.flatten() == Some((self.attr.mtime, self.attr.ctime));
        if differs && !expected {
            self.epoch += 1;
        }
        if (attr.uid, attr.gid, attr.mode) != (self.attr.uid, self.attr.gid, self.attr.mode) {
            self.rights.clear();
        }
        if differs || own.is_some() {
            self.change = (self.change + 1).max(nanos(attr.ctime));
        }
        self.attr = *attr;
        self.asked = asked;
        // A time that goes back is from an old reply, or the server's clock was set: ask again.
        self.at = (!older).then(timer::now);
    }

    /// Returns the part of `want` that this caller was granted, if it is cached and younger than
    /// `age`.
    pub(crate) fn rights(&self, cred: &Cred, want: Access, age: Duration) -> Option<Access> {
        let found = self.rights.iter().find(|r| r.cred == *cred)?;
        let fresh = found.at.elapsed() < age && found.asked.has(want);
        fresh.then_some(Access(found.granted.0 & want.0))
    }

    pub(crate) fn note_rights(&mut self, cred: &Cred, asked: Access, granted: Access) {
        self.rights.retain(|r| r.cred != *cred);
        if self.rights.len() >= RIGHTS_MAX {
            self.rights.remove(0);
        }
        self.rights.push(Rights {
            cred: cred.clone(),
            asked,
            granted,
            at: timer::now(),
        });
    }
}

/// Returns nanoseconds since 1970, which fit for 584 years.
fn nanos(time: Time) -> u64 {
    let secs = u64::try_from(time.secs).unwrap_or_default();
    secs.saturating_mul(1_000_000_000)
        .saturating_add(time.nanos.into())
}
