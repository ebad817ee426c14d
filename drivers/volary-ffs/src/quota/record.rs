//! Quota files as stored: an array of `struct dqblk`, indexed by the number of the user or group.
//! `h/quota.h` of 4.2 and 4.3BSD counts warnings. `ufs/ufs/quota.h` of 4.4BSD has 32-bit times and
//! counts. Both are in the byte order of the machine. FreeBSD also has 64-bit big-endian records
//! behind a header.

use crate::disk::ondisk::{Order, Stored};
use volary_core::QuotaOf;

/// The default grace time, if the file has none: a week, in seconds (`MAX_DQ_TIME`).
const WEEK: i64 = 7 * 24 * 60 * 60;
/// `dqh_magic` and `dqh_version` of FreeBSD's header.
const MAGIC: &[u8; 8] = b"QUOTA64\0";
const VERSION: u32 = 0x2008_1104;
/// Bytes of that header, and of a 64-bit record.
pub(super) const HEADER: usize = 64;
const WIDE: usize = 64;
/// Bytes of a 32-bit record.
const NARROW: usize = 32;
/// Bytes of a record with warnings.
const WARNED: usize = 20;
/// The initial number of warnings (`MAX_DQ_WARN`, `MAX_IQ_WARN`). On 4.2BSD, each login takes one
/// away, so the driver takes none.
const WARNINGS: i64 = 3;

/// The form of a quota file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 4.2BSD's, for users only, with warnings in the place of times.
    Warned(Order),
    /// 4.4BSD's.
    Narrow(Order),
    /// FreeBSD's.
    Wide,
}

/// The limits and the usage of blocks of 512 bytes, or of inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The first count that is refused, or 0 for no limit.
    pub(crate) hard: u64,
    pub(crate) soft: u64,
    pub(crate) used: u64,
    /// When the grace time ends, in seconds, or 0 if it has not begun. In record 0, the length of
    /// the grace time. In 4.2BSD's form, the warnings that are left.
    pub(crate) time: i64,
}

/// What an owner beyond a soft limit gets before it becomes a hard one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grace {
    /// This many seconds.
    Secs(i64),
    /// A number of warnings.
    Warnings,
}

/// A record (`struct dqblk`): the shares of blocks and of inodes.
pub(crate) type Record = [Share; 2];

impl Form {
    /// Returns the name of a quota file.
    pub(crate) fn file_name(self, of: QuotaOf) -> &'static str {
        match (self, of) {
            (Self::Warned(_), _) => "quotas",
            (_, QuotaOf::Users) => "quota.user",
            (_, QuotaOf::Groups) => "quota.group",
        }
    }

    /// Returns which of the two later forms a file has that begins with `head`. Returns `None` for
    /// an unknown header.
    pub(super) fn of(head: &[u8], order: Order) -> Option<Self> {
        if !head.starts_with(MAGIC) {
            return Some(Self::Narrow(order));
        }
        let said = <[u32; 3]>::get(Order::Big, head, MAGIC.len());
        (said == [VERSION, HEADER as u32, WIDE as u32]).then_some(Self::Wide)
    }

    /// Returns the header of a file.
    pub(crate) fn header(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self == Self::Wide {
            bytes.extend_from_slice(MAGIC);
            bytes.resize(HEADER, 0);
            [VERSION, HEADER as u32, WIDE as u32].put(Order::Big, &mut bytes, MAGIC.len());
        }
        bytes
    }

    /// Returns the bytes of a record.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Warned(_) => WARNED,
            Self::Narrow(_) => NARROW,
            Self::Wide => WIDE,
        }
    }

    /// Returns where an owner's record is in the file. No record crosses a sector, except in
    /// 4.2BSD's form.
    pub(super) fn at(self, id: u32) -> u64 {
        let header = if self == Self::Wide { HEADER } else { 0 };
        header as u64 + u64::from(id) * self.len() as u64
    }

    /// Returns the number of the record that byte `at` of the file is in.
    pub(super) fn id_at(self, at: u64) -> u64 {
        at.saturating_sub(self.at(0)) / self.len() as u64
    }

    /// Returns the largest counts of blocks and inodes that a record can hold.
    pub(crate) fn most(self) -> [u64; 2] {
        match self {
            Self::Warned(_) => [u32::MAX.into(), u16::MAX.into()],
            Self::Narrow(_) => [u32::MAX.into(); 2],
            Self::Wide => [i64::MAX as u64; 2],
        }
    }

    /// Returns the grace of a soft limit, if record 0 of the file has `time` for it.
    pub(super) fn grace(self, time: i64) -> Grace {
        match self {
            Self::Warned(_) => Grace::Warnings,
            _ if time > 0 => Grace::Secs(time),
            _ => Grace::Secs(WEEK),
        }
    }

    pub(super) fn parse(self, bytes: &[u8]) -> Record {
        let (numbers, times): ([u64; 6], [i64; 2]) = match self {
            Self::Warned(order) => {
                let [hard, soft, blocks] = <[u32; 3]>::get(order, bytes, 0).map(u64::from);
                let [ihard, isoft, inodes] = <[u16; 3]>::get(order, bytes, 12).map(u64::from);
                let warnings = <[u8; 2]>::get(order, bytes, 18).map(i64::from);
                ([hard, soft, blocks, ihard, isoft, inodes], warnings)
            }
            Self::Narrow(order) => (
                <[u32; 6]>::get(order, bytes, 0).map(u64::from),
                <[i32; 2]>::get(order, bytes, 24).map(i64::from),
            ),
            Self::Wide => (
                Stored::get(Order::Big, bytes, 0),
                Stored::get(Order::Big, bytes, 48),
            ),
        };
        let [bhard, bsoft, blocks, ihard, isoft, inodes] = numbers;
        let share = |hard, soft, used, time| Share {
            hard,
            soft,
            used,
            time,
        };
        [
            share(bhard, bsoft, blocks, times[0]),
            share(ihard, isoft, inodes, times[1]),
        ]
    }

    pub(crate) fn stored(self, [blocks, inodes]: &Record) -> Vec<u8> {
        let numbers = [
            blocks.hard,
            blocks.soft,
            blocks.used,
            inodes.hard,
            inodes.soft,
            inodes.used,
        ];
        let times = [blocks.time, inodes.time];
        let mut bytes = vec![0; self.len()];
        match self {
            Self::Warned(order) => {
                let [b0, b1, b2, i0, i1, i2] = numbers;
                let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let short = |n: u64| u16::try_from(n).unwrap_or(u16::MAX);
                let warnings = |n: i64| u8::try_from(n).unwrap_or(u8::MAX);
                [b0, b1, b2].map(small).put(order, &mut bytes, 0);
                [i0, i1, i2].map(short).put(order, &mut bytes, 12);
                times.map(warnings).put(order, &mut bytes, 18);
            }
            Self::Narrow(order) => {
                let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
                let time = |n: i64| i32::try_from(n).unwrap_or(i32::MAX);
                numbers.map(small).put(order, &mut bytes, 0);
                times.map(time).put(order, &mut bytes, 24);
            }
            Self::Wide => {
                numbers.put(Order::Big, &mut bytes, 0);
                times.put(Order::Big, &mut bytes, 48);
            }
        }
        bytes
    }
}

impl Share {
    /// Returns whether the soft limit is passed.
    pub(super) fn is_over(&self) -> bool {
        self.soft != 0 && self.used >= self.soft
    }

    /// Adds `delta` to the usage at time `now`, where `grace` is the grace of the soft limit.
    /// Returns false, and changes nothing, if a limit refuses it. With `force`, no limit refuses.
    pub(crate) fn count(&mut self, delta: i64, now: i64, grace: Grace, force: bool) -> bool {
        let used = self.used.saturating_add_signed(delta);
        let is_over = |used: u64| self.soft != 0 && used >= self.soft;
        let begins = is_over(used) && (!is_over(self.used) || self.time == 0);
        let is_late = match grace {
            Grace::Secs(_) => is_over(used) && !begins && now > self.time,
            Grace::Warnings => is_over(used) && self.time == 0,
        };
        if delta > 0 && !force && (self.hard != 0 && used >= self.hard || is_late) {
            return false;
        }
        self.time = match (is_over(used), grace) {
            (false, Grace::Secs(_)) => 0,
            (true, Grace::Secs(secs)) if begins => now.saturating_add(secs),
            (false, Grace::Warnings) if self.soft != 0 && self.time == 0 => WARNINGS,
            _ => self.time,
        };
        self.used = used;
        true
    }

    /// Starts a new soft limit. An owner already beyond it gets the full grace.
    pub(crate) fn begin(&mut self, grace: Grace) {
        self.time = match grace {
            Grace::Secs(_) => 0,
            Grace::Warnings => WARNINGS,
        };
    }

    /// Returns when the soft limit becomes a hard one for an owner beyond it, in seconds. Without
    /// any warnings left, that is long ago. Returns `None` if it is unknown.
    pub(crate) fn until(&self, form: Form) -> Option<i64> {
        let is_over = self.is_over();
        let is_told = match form {
            Form::Warned(_) => self.time == 0,
            _ => self.time != 0,
        };
        (is_over && is_told).then_some(self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_in_both_forms() {
        let record = [
            Share {
                hard: 9,
                soft: 5,
                used: 3,
                time: 77,
            },
            Share {
                hard: 4,
                soft: 2,
                used: 1,
                time: 2,
            },
        ];
        for form in [
            Form::Warned(Order::Little),
            Form::Warned(Order::Big),
            Form::Narrow(Order::Little),
            Form::Narrow(Order::Big),
            Form::Wide,
        ] {
            let bytes = form.stored(&record);
            assert_eq!(form.parse(&bytes), record);
            assert_eq!(form.id_at(form.at(1000)), 1000);
            let mut file = form.header();
            file.resize(64, 0);
            let order = match form {
                Form::Narrow(order) => order,
                Form::Wide => Order::Little,
                // This form is known by the file's name instead.
                Form::Warned(_) => continue,
            };
            assert_eq!(Form::of(&file, order), Some(form));
        }
        assert_eq!(Form::of(b"QUOTA64\0nonsense.....", Order::Little), None);
    }

    #[test]
    fn a_soft_limit_holds_when_its_grace_has_ended() {
        let mut share = Share {
            soft: 4,
            hard: 7,
            ..Share::default()
        };
        assert!(share.count(3, 100, Grace::Secs(10), false));
        assert_eq!(share.time, 0);
        assert!(share.count(1, 100, Grace::Secs(10), false));
        assert_eq!((share.used, share.time), (4, 110));
        assert!(
            share.count(1, 110, Grace::Secs(10), false),
            "the last moment"
        );
        assert!(!share.count(1, 111, Grace::Secs(10), false));
        assert!(
            !share.count(2, 105, Grace::Secs(10), false),
            "the hard limit"
        );
        assert!(share.count(5, 111, Grace::Secs(10), true), "root");
        assert!(share.count(-8, 111, Grace::Secs(10), false));
        assert_eq!((share.used, share.time), (2, 0));
        assert!(share.count(2, 200, Grace::Secs(10), false));
        assert_eq!(share.time, 210);
    }
}
