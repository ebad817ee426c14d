//! Keeps warnings about users and groups that have passed a soft limit, until somebody fetches
//! them.

use super::Grace;
use super::record::Share;
use std::collections::BTreeMap;
use volary_core::{Finding, QuotaOf, Severity, Untold};

/// Most owners whose last warning is remembered.
const MOST: usize = 1000;
/// Seconds within which repeated crossings of a limit give only one warning.
const PAUSE: i64 = 60;
const DAY: i64 = 24 * 60 * 60;

/// What a soft limit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Bounded {
    Room,
    Files,
}

/// An owner who has passed a soft limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    pub(super) of: QuotaOf,
    pub(super) id: u32,
    pub(super) what: Bounded,
    /// The usage now.
    pub(super) share: Share,
    pub(super) grace: Grace,
}

/// Warnings that nobody has fetched yet.
#[derive(Default)]
pub(crate) struct Warnings {
    pub(crate) untold: Untold,
    /// When the last warning was given about each, in seconds.
    told: BTreeMap<(bool, u32, Bounded), i64>,
}

impl Warnings {
    /// Keeps a warning at second `now`. Skips it if the same one was given a moment ago, or nobody
    /// fetches warnings.
    pub(super) fn add(&mut self, passed: &Passed, now: i64) {
        let key = (passed.of == QuotaOf::Groups, passed.id, passed.what);
        let last = self.told.get(&key);
        let is_known = last.is_some_and(|&last| (last..last.saturating_add(PAUSE)).contains(&now));
        if is_known || self.untold.is_full() {
            return;
        }
        if self.told.len() >= MOST {
            self.told.clear();
        }
        self.told.insert(key, now);
        self.untold.add(Finding {
            code: "soft-limit",
            severity: Severity::Note,
            path: None,
            offset: None,
            message: message(passed),
            repair: String::new(),
        });
    }
}

fn message(passed: &Passed) -> String {
    let whose = match passed.of {
        QuotaOf::Users => "user",
        QuotaOf::Groups => "group",
    };
    let Passed { id, share, .. } = passed;
    // A record holds the first count that is refused, so the limit is one less.
    let soft = share.soft.saturating_sub(1);
    let takes = match passed.what {
        Bounded::Room => format!(
            "takes {} KiB, more than the soft limit of {} KiB",
            share.used.div_ceil(2),
            soft / 2
        ),
        Bounded::Files => format!(
            "has {} files, more than the soft limit of {soft}",
            share.used
        ),
    };
    let left = match passed.grace {
        Grace::Warnings => format!("{} warnings are left", share.time),
        Grace::Secs(secs) if secs % DAY == 0 => format!("{} days are left", secs / DAY),
        Grace::Secs(secs) => format!("{secs} seconds are left"),
    };
    format!("{whose} {id} {takes}: {left} to go below it")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(id: u32) -> Passed {
        Passed {
            of: QuotaOf::Users,
            id,
            what: Bounded::Room,
            share: Share {
                hard: 0,
                soft: 5,
                used: 6,
                time: 0,
            },
            grace: Grace::Secs(2 * DAY),
        }
    }

    #[test]
    fn an_owner_who_goes_to_and_fro_is_told_of_once_a_minute() {
        let mut warnings = Warnings::default();
        for second in [100, 130, 159, 160] {
            warnings.add(&passed(7), second);
        }
        let all = warnings.untold.take();
        assert_eq!(all.len(), 2);
        assert_eq!(
            all[0].message,
            "user 7 takes 3 KiB, more than the soft limit of 2 KiB: 2 days are left to go below it"
        );
        assert!(warnings.untold.take().is_empty());
    }

    #[test]
    fn warnings_that_nobody_takes_are_bounded() {
        let mut warnings = Warnings::default();
        for id in 0..5000 {
            warnings.add(&passed(id), 0);
        }
        assert_eq!(warnings.untold.take().len(), 1000);
    }
}
