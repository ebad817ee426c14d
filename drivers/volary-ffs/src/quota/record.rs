//! Quota files as they are stored: an array of `struct dqblk`, by the number of the user or
//! group. `ufs/ufs/quota.h` of 4.4BSD has numbers of 32 bits in the byte order of the
//! machine; FreeBSD's also 64 bits, big-endian, behind a header.

use crate::ondisk::{Order, Stored};

/// `dqh_magic` and `dqh_version` of FreeBSD's header.
const MAGIC: &[u8; 8] = b"QUOTA64\0";
const VERSION: u32 = 0x2008_1104;
/// Bytes of that header, and of a record of 64 bits.
pub(super) const HEADER: usize = 64;
const WIDE: usize = 64;
/// Bytes of a record of 32 bits.
const NARROW: usize = 32;

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 4.4BSD's.
    Narrow(Order),
    /// FreeBSD's.
    Wide,
}

/// Blocks of 512 bytes, or inodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// The first that is refused; 0 for none.
    pub(crate) hard: u64,
    pub(crate) soft: u64,
    pub(crate) used: u64,
    /// When the time of grace ends, in seconds; 0 if it has not begun. In record 0: how long
    /// it is.
    pub(crate) time: i64,
}

/// A record (`struct dqblk`): blocks, inodes.
pub(crate) type Record = [Share; 2];

impl Form {
    /// The form of a file that begins like this; `None` for a header that is not known.
    pub(super) fn of(head: &[u8], order: Order) -> Option<Self> {
        if !head.starts_with(MAGIC) {
            return Some(Self::Narrow(order));
        }
        let said = <[u32; 3]>::get(Order::Big, head, MAGIC.len());
        (said == [VERSION, HEADER as u32, WIDE as u32]).then_some(Self::Wide)
    }

    /// What a file begins with.
    pub(super) fn header(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self == Self::Wide {
            bytes.extend_from_slice(MAGIC);
            bytes.resize(HEADER, 0);
            [VERSION, HEADER as u32, WIDE as u32].put(Order::Big, &mut bytes, MAGIC.len());
        }
        bytes
    }

    /// Bytes of a record.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Narrow(_) => NARROW,
            Self::Wide => WIDE,
        }
    }

    /// Where in the file the record of a number is. No record crosses a sector.
    pub(super) fn at(self, id: u32) -> u64 {
        let header = if self == Self::Wide { HEADER } else { 0 };
        header as u64 + u64::from(id) * self.len() as u64
    }

    /// The number of the first record that ends behind byte `at` of the file.
    pub(super) fn id_at(self, at: u64) -> u64 {
        at.saturating_sub(self.at(0)) / self.len() as u64
    }

    /// Most that a number has room for.
    pub(super) fn most(self) -> u64 {
        match self {
            Self::Narrow(_) => u32::MAX.into(),
            Self::Wide => i64::MAX as u64,
        }
    }

    pub(super) fn parse(self, bytes: &[u8]) -> Record {
        let (numbers, times): ([u64; 6], [i64; 2]) = match self {
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

    pub(super) fn stored(self, [blocks, inodes]: &Record) -> Vec<u8> {
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
    /// Counts `delta` more at time `now`; `grace` is what a soft limit gives. False if that
    /// is refused: nothing is counted then. With `force` nothing is.
    pub(super) fn count(&mut self, delta: i64, (now, grace): (i64, i64), force: bool) -> bool {
        let used = self.used.saturating_add_signed(delta);
        let is_over = |used: u64| self.soft != 0 && used >= self.soft;
        let begins = is_over(used) && (!is_over(self.used) || self.time == 0);
        if delta > 0 && !force {
            let is_late = is_over(used) && !begins && now > self.time;
            if self.hard != 0 && used >= self.hard || is_late {
                return false;
            }
        }
        self.time = match is_over(used) {
            false => 0,
            true if begins => now.saturating_add(grace),
            true => self.time,
        };
        self.used = used;
        true
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
                time: -1,
            },
        ];
        for form in [
            Form::Narrow(Order::Little),
            Form::Narrow(Order::Big),
            Form::Wide,
        ] {
            let bytes = form.stored(&record);
            assert_eq!(form.parse(&bytes), record);
            let mut file = form.header();
            file.resize(64, 0);
            let order = match form {
                Form::Narrow(order) => order,
                Form::Wide => Order::Little,
            };
            assert_eq!(Form::of(&file, order), Some(form));
            assert_eq!(form.id_at(form.at(1000)), 1000);
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
        assert!(share.count(3, (100, 10), false));
        assert_eq!(share.time, 0);
        assert!(share.count(1, (100, 10), false));
        assert_eq!((share.used, share.time), (4, 110));
        assert!(share.count(1, (110, 10), false), "the last moment");
        assert!(!share.count(1, (111, 10), false));
        assert!(!share.count(2, (105, 10), false), "the hard limit");
        assert!(share.count(5, (111, 10), true), "root");
        assert!(share.count(-8, (111, 10), false));
        assert_eq!((share.used, share.time), (2, 0));
        assert!(share.count(2, (200, 10), false));
        assert_eq!(share.time, 210);
    }
}
