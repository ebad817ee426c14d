//! FAT's dates and times: local time, from 1980 to 2107 (specification, page
//! 25). A change has steps of 2 s, a birth of 10 ms, an access of a day.

use crate::volume::ondisk::DirEntry;
use volary_core::Time;

const DAY: i64 = 86_400;
/// Days from 1970-01-01 to 1980-01-01.
const FIRST_DAY: i64 = 3652;
/// Days from 1970-01-01 to 2107-12-31.
const LAST_DAY: i64 = 50_403;

/// Steps of the time of the last change, in nanoseconds.
pub(crate) const CHANGE_STEP: u64 = 2_000_000_000;

/// How far local time is ahead of UTC, in minutes. FAT keeps local time and
/// does not say which; this is what the mount option `tz` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Zone(pub i16);

/// A point in time as an entry keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp {
    /// Bits 0–4 day, 5–8 month, 9–15 years since 1980.
    pub date: u16,
    /// Bits 0–4 seconds / 2, 5–10 minutes, 11–15 hours.
    pub time: u16,
    /// Hundredths of a second, 0–199.
    pub hundredths: u8,
}

impl Stamp {
    /// Returns the stamp of a time, rounded down to 10 ms; what lies before 1980 or
    /// after 2107 becomes the first or the last that there is.
    pub(crate) fn new(time: Time, zone: Zone) -> Self {
        let local = time.secs.saturating_add(i64::from(zone.0) * 60);
        let day = local.div_euclid(DAY);
        if day < FIRST_DAY {
            return Self {
                date: 0x21,
                time: 0,
                hundredths: 0,
            };
        }
        if day > LAST_DAY {
            return Self {
                date: 0xff9f,
                time: 0xbf7d,
                hundredths: 199,
            };
        }
        let (year, month, day) = Time::from_secs(local).date();
        let year = year as u32 - 1980;
        // Below 86,400, so that nothing is cut off.
        let second = local.rem_euclid(DAY) as u32;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        Self {
            date: ((year << 9) | (month << 5) | day) as u16,
            time: ((hour << 11) | (minute << 5) | (second / 2)) as u16,
            hundredths: (second % 2 * 100 + time.nanos / 10_000_000) as u8,
        }
    }

    /// Returns the time that it says. Numbers out of their range are read as Linux
    /// reads them: a month or day of 0 as the first, more than there are as
    /// running over.
    pub(crate) fn to_time(self, zone: Zone) -> Time {
        let month = MONTHS.get(usize::from(self.date >> 5)).copied();
        let day = i64::from(self.date & 31);
        let days = FIRST_DAY + i64::from(month.unwrap_or(0)) + day.max(1) - 1;
        let time = i64::from(self.time);
        let second = (time >> 11) * 3600 + (time >> 5 & 63) * 60 + (time & 31) * 2;
        let secs = days * DAY + second - i64::from(zone.0) * 60;
        let hundredths = u32::from(self.hundredths.min(199));
        Time::new(
            secs + i64::from(hundredths / 100),
            hundredths % 100 * 10_000_000,
        )
    }
}

/// Sets all times of a new entry.
pub(crate) fn set_all(entry: &mut DirEntry, time: Time, zone: Zone) {
    let stamp = Stamp::new(time, zone);
    entry.DIR_WrtDate.set(stamp.date);
    entry.DIR_WrtTime.set(stamp.time);
    entry.DIR_LstAccDate.set(stamp.date);
    entry.DIR_CrtDate.set(stamp.date);
    entry.DIR_CrtTime.set(stamp.time);
    entry.DIR_CrtTimeTenth = stamp.hundredths;
}

/// Sets the time of the last change.
pub(crate) fn set_write(entry: &mut DirEntry, time: Time, zone: Zone) {
    let stamp = Stamp::new(time, zone);
    entry.DIR_WrtDate.set(stamp.date);
    entry.DIR_WrtTime.set(stamp.time);
}

/// Sets the day of the last access.
pub(crate) fn set_access(entry: &mut DirEntry, time: Time, zone: Zone) {
    entry.DIR_LstAccDate.set(Stamp::new(time, zone).date);
}

/// Sets the time of birth. On a volume with the UNIX extension those bytes
/// are not times.
pub(crate) fn set_create(entry: &mut DirEntry, time: Time, zone: Zone) {
    let stamp = Stamp::new(time, zone);
    entry.DIR_CrtDate.set(stamp.date);
    entry.DIR_CrtTime.set(stamp.time);
    entry.DIR_CrtTimeTenth = stamp.hundredths;
}

/// Returns the time of the last change.
pub(crate) fn write_time(entry: &DirEntry, zone: Zone) -> Time {
    let stamp = Stamp {
        date: entry.DIR_WrtDate.get(),
        time: entry.DIR_WrtTime.get(),
        hundredths: 0,
    };
    stamp.to_time(zone)
}

/// Returns the day of the last access: its beginning in local time. Where it is not
/// kept (DOS writes 0), the time of the last change.
pub(crate) fn access_time(entry: &DirEntry, zone: Zone) -> Time {
    match entry.DIR_LstAccDate.get() {
        0 => write_time(entry, zone),
        date => Stamp {
            date,
            ..Stamp::default()
        }
        .to_time(zone),
    }
}

/// Returns the time of birth, where it is kept (DOS writes 0).
pub(crate) fn create_time(entry: &DirEntry, zone: Zone) -> Option<Time> {
    let date = entry.DIR_CrtDate.get();
    if date == 0 {
        return None;
    }
    let stamp = Stamp {
        date,
        time: entry.DIR_CrtTime.get(),
        hundredths: entry.DIR_CrtTimeTenth,
    };
    Some(stamp.to_time(zone))
}

/// Days from 1980-01-01 to the first of each month, by the upper 11 bits of a
/// date.
static MONTHS: [u16; 2048] = months();

#[expect(clippy::indexing_slicing, reason = "bounded, and done by the compiler")]
const fn months() -> [u16; 2048] {
    let mut all = [0; 2048];
    let mut i = 0;
    while i < all.len() {
        let month = match i as u32 & 15 {
            0 => 1,
            13.. => 12,
            m => m,
        };
        let first = Time::from_date(1980 + (i >> 4) as i32, month, 1, 0);
        // 128 years have fewer than 65,536 days.
        all[i] = (first.secs / DAY - FIRST_DAY) as u16;
        i += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    const UTC: Zone = Zone(0);

    #[test]
    fn known_dates() {
        // date -u -d '2000-02-29 23:59:58' +%s
        let t = Time::from_secs(951_868_798);
        let stamp = Stamp::new(t, UTC);
        assert_eq!(stamp.date, 20 << 9 | 2 << 5 | 29);
        assert_eq!(stamp.time, 23 << 11 | 59 << 5 | 29);
        assert_eq!(stamp.to_time(UTC), t);
        assert_eq!(Stamp::new(t, Zone(60)).date, 20 << 9 | 3 << 5 | 1);
        assert_eq!(Stamp::new(t, Zone(60)).to_time(Zone(60)), t);
    }

    #[test]
    fn times_that_fat_cannot_say_become_the_nearest() {
        assert_eq!(
            Stamp::new(Time::EPOCH, UTC).to_time(UTC),
            Time::from_secs(315_532_800)
        );
        let last = Stamp::new(Time::from_secs(i64::MAX), UTC);
        assert_eq!(last.to_time(UTC), Time::new(4_354_819_199, 990_000_000));
        assert_eq!(Stamp::new(last.to_time(UTC), UTC), last);
    }

    #[test]
    fn a_day_or_month_of_zero_is_the_first() {
        let first = Time::from_secs(315_532_800);
        assert_eq!(Stamp::default().to_time(UTC), first);
    }

    #[test]
    fn dos_keeps_no_birth_and_no_access() {
        let mut entry = DirEntry::new_zeroed();
        set_write(&mut entry, Time::from_secs(1_000_000_000), UTC);
        assert_eq!(create_time(&entry, UTC), None);
        assert_eq!(access_time(&entry, UTC), Time::from_secs(1_000_000_000));
        set_access(&mut entry, Time::from_secs(1_000_000_000), UTC);
        assert_eq!(access_time(&entry, UTC), Time::from_secs(999_993_600));
    }

    proptest! {
        #[test]
        fn times_come_back_rounded_down(secs in 315_532_800_i64..4_354_819_200, nanos in 0..1_000_000_000_u32) {
            let t = Time::new(secs, nanos);
            let mut entry = DirEntry::new_zeroed();
            set_create(&mut entry, t, UTC);
            set_write(&mut entry, t, UTC);
            set_access(&mut entry, t, UTC);
            prop_assert_eq!(create_time(&entry, UTC), Some(t.round_down(10_000_000)));
            prop_assert_eq!(write_time(&entry, UTC), t.round_down(CHANGE_STEP));
            prop_assert_eq!(access_time(&entry, UTC), t.round_down(86_400_000_000_000));
        }

        #[test]
        fn zones_come_back(secs in 400_000_000_i64..4_000_000_000, zone in -840..=840_i16) {
            let t = Time::from_secs(secs & !1);
            prop_assert_eq!(Stamp::new(t, Zone(zone)).to_time(Zone(zone)), t);
        }

        #[test]
        fn any_bits_are_some_time(date: u16, time: u16, hundredths: u8, zone: i16) {
            let _ = Stamp { date, time, hundredths }.to_time(Zone(zone));
        }
    }
}
