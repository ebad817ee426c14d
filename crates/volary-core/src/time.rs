//! Points in time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: nanoseconds since 1970-01-01 00:00 UTC without leap seconds, as in POSIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time {
    /// Whole seconds, rounded down.
    pub secs: i64,
    /// The rest, below 1,000,000,000.
    pub nanos: u32,
}

impl Time {
    /// 1970-01-01 00:00 UTC.
    pub const EPOCH: Self = Self { secs: 0, nanos: 0 };

    /// Returns a time at a whole second.
    pub const fn from_secs(secs: i64) -> Self {
        Self { secs, nanos: 0 }
    }

    /// Returns a time; nanoseconds past a second are carried over.
    pub fn new(secs: i64, nanos: u32) -> Self {
        let carry = i64::from(nanos / 1_000_000_000);
        Self {
            secs: secs.saturating_add(carry),
            nanos: nanos % 1_000_000_000,
        }
    }

    /// Returns the time of a date of the Gregorian calendar, `secs` after midnight UTC. DOS, zip
    /// and ISO 9660 keep times so. A month past the twelfth or a day past the last carries over, so
    /// any fields make a time.
    pub const fn from_date(year: i32, month: u32, day: u32, secs: i64) -> Self {
        // In years that begin in March, the leap day comes last.
        let months = month as i64 + 9;
        let year = year as i64 - 1 + months / 12;
        let day_of_year = (153 * (months % 12) + 2) / 5 + day as i64 - 1;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        Self::from_secs((year * 365 + leap_days + day_of_year - 719_468) * 86_400 + secs)
    }

    /// Returns year, month and day in UTC by the Gregorian calendar, as
    /// [`from_date`](Self::from_date) takes them.
    pub const fn date(self) -> (i64, u32, u32) {
        let days = self.secs.div_euclid(86_400) + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        // Months are counted from March, as in `from_date`.
        let months = (5 * of_year + 2) / 153;
        let day = of_year - (153 * months + 2) / 5 + 1;
        let is_next = months >= 10;
        let month = if is_next { months - 9 } else { months + 3 };
        (era * 400 + year + is_next as i64, month as u32, day as u32)
    }

    /// Returns the last multiple of `step` nanoseconds that is not after this time.
    /// A step of 0 leaves it as it is.
    #[must_use]
    pub fn round_down(self, step: u64) -> Self {
        if step <= 1 {
            return self;
        }
        let all = i128::from(self.secs) * 1_000_000_000 + i128::from(self.nanos);
        let rounded = all - all.rem_euclid(i128::from(step));
        Self {
            secs: i64::try_from(rounded.div_euclid(1_000_000_000)).unwrap_or(self.secs),
            nanos: u32::try_from(rounded.rem_euclid(1_000_000_000)).unwrap_or(0),
        }
    }
}

impl From<SystemTime> for Time {
    fn from(t: SystemTime) -> Self {
        match t.duration_since(UNIX_EPOCH) {
            Ok(d) => Self {
                secs: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
                nanos: d.subsec_nanos(),
            },
            Err(e) => {
                let d = e.duration();
                let secs = -i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
                match d.subsec_nanos() {
                    0 => Self { secs, nanos: 0 },
                    n => Self {
                        secs: secs - 1,
                        nanos: 1_000_000_000 - n,
                    },
                }
            }
        }
    }
}

impl From<Time> for SystemTime {
    /// Returns the Unix epoch if the host cannot represent the time.
    fn from(t: Time) -> Self {
        let whole = Duration::from_secs(t.secs.unsigned_abs());
        let base = if t.secs >= 0 {
            UNIX_EPOCH.checked_add(whole)
        } else {
            UNIX_EPOCH.checked_sub(whole)
        };
        base.and_then(|b| b.checked_add(Duration::from_nanos(t.nanos.into())))
            .unwrap_or(UNIX_EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_goes_down_before_the_epoch_too() {
        assert_eq!(
            Time::new(-1, 500).round_down(2_000_000_000),
            Time::from_secs(-2)
        );
        assert_eq!(
            Time::new(3, 999_999_999).round_down(2_000_000_000),
            Time::from_secs(2)
        );
        assert_eq!(
            Time::new(3, 123_456_789).round_down(10_000_000),
            Time::new(3, 120_000_000)
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (year, month, day, secs) in [
            (1970, 1, 1, 0),
            (1969, 12, 31, -86_400),
            (1980, 1, 1, 315_532_800),
            (2000, 2, 29, 951_782_400),
            (2000, 3, 1, 951_868_800),
            (2026, 11, 22, 1_795_305_600),
            (2100, 3, 1, 4_107_542_400),
            (0, 3, 1, -62_162_035_200),
        ] {
            let time = Time::from_date(year, month, day, 5);
            assert_eq!(time, Time::from_secs(secs + 5), "{year}-{month}-{day}");
            assert_eq!(time.date(), (i64::from(year), month, day));
        }
        assert_eq!(
            Time::from_date(2025, 13, 32, 0),
            Time::from_date(2026, 2, 1, 0)
        );
        for day in (-150_000..150_000).map(|day| day * 86_400 + 3661) {
            let (year, month, day_of_month) = Time::from_secs(day).date();
            let back = Time::from_date(year as i32, month, day_of_month, 3661);
            assert_eq!(back.secs, day);
        }
        for secs in [i64::MIN, i64::MAX] {
            Time::from_secs(secs).date();
        }
        Time::from_date(i32::MIN, u32::MAX, u32::MAX, 0);
        Time::from_date(i32::MAX, u32::MAX, u32::MAX, 0);
    }

    #[test]
    fn host_times_come_back() {
        for t in [
            Time::new(5, 7),
            Time::new(-5, 7),
            Time::EPOCH,
            Time::from_secs(-1),
        ] {
            assert_eq!(Time::from(SystemTime::from(t)), t);
        }
    }
}
