//! The context of each call: who asks, at what time, and whether to go on.

use crate::{Kind, Result, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Who asks, at what time, and whether they still want the answer.
#[derive(Clone, Copy, Debug)]
pub struct Ctx<'a> {
    /// The caller.
    pub cred: &'a Cred,
    /// The time of the call: what new time stamps are made from.
    pub now: Time,
    /// Set when the caller has lost interest.
    pub cancel: &'a Cancel,
}

impl Ctx<'_> {
    /// Loops over long work call this in each round.
    ///
    /// # Errors
    /// `Interrupted` once the caller has lost interest.
    pub fn check_cancel(&self) -> Result<()> {
        if self.cancel.is_set() {
            Err(Kind::Interrupted.into())
        } else {
            Ok(())
        }
    }
}

/// A caller's identity: user, group and supplementary groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cred {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Arc<[u32]>,
}

impl Cred {
    /// User 0, group 0.
    pub fn root() -> Self {
        Self::new(0, 0)
    }

    /// Returns a user with one group.
    pub fn new(uid: u32, gid: u32) -> Self {
        Self {
            uid,
            gid,
            groups: Arc::from([]),
        }
    }

    /// Returns whether the caller is in the group.
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Returns whether the caller is user 0, for whom access is not checked.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Ends long work early: once its flag is set, its deadline comes, or the cancel that it depends on
/// is set.
#[derive(Debug, Default)]
pub struct Cancel {
    flag: AtomicBool,
    until: Option<(Time, fn() -> Time)>,
    other: Option<Arc<Self>>,
}

impl Cancel {
    /// Returns a cancel that is not set.
    pub const fn new() -> Self {
        Self {
            flag: AtomicBool::new(false),
            until: None,
            other: None,
        }
    }
    /// Returns a cancel that counts as set once `clock` shows `at`, or once `other` is set.
    pub const fn until(at: Time, clock: fn() -> Time, other: Option<Arc<Self>>) -> Self {
        Self {
            flag: AtomicBool::new(false),
            until: Some((at, clock)),
            other,
        }
    }
    /// Sets it, for good.
    pub fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
    /// Returns whether it is set.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
            || self.until.is_some_and(|(at, clock)| clock() >= at)
            || self.other.as_ref().is_some_and(|other| other.is_set())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_and_what_it_stands_on_both_set_it() {
        let first = Arc::new(Cancel::new());
        let late = Cancel::until(
            Time::from_secs(2),
            || Time::from_secs(1),
            Some(first.clone()),
        );
        assert!(!late.is_set());
        first.set();
        assert!(late.is_set());
        let over = Cancel::until(Time::from_secs(1), || Time::from_secs(1), None);
        assert!(over.is_set());
    }
}
