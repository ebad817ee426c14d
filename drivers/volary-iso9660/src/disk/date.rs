//! Decodes stored times.

use volary_core::Time;

/// Returns a time in seven bytes (9.1.5), or the epoch for an invalid one.
pub(crate) fn short(bytes: [u8; 7]) -> Time {
    let [year, month, day, hour, minute, second, zone] = bytes;
    let fields = [month, day, hour, minute, second].map(i64::from);
    time(1900 + i64::from(year), fields, 0, zone as i8)
}

/// Returns a time in seventeen bytes (8.4.26.1): digits, hundredths and the zone. Returns `None`
/// for one that was not set.
pub(crate) fn long(bytes: [u8; 17]) -> Option<Time> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = std::str::from_utf8(bytes.get(from..to)?).ok()?;
        digits.parse().ok()
    };
    let year = number(0, 4).filter(|&year| year > 0)?;
    let fields = [
        number(4, 6)?,
        number(6, 8)?,
        number(8, 10)?,
        number(10, 12)?,
        number(12, 14)?,
    ];
    let nanos = u32::try_from(number(14, 16)?).ok()? * 10_000_000;
    let zone = *bytes.last()? as i8;
    Some(time(year, fields, nanos, zone))
}

/// Returns a time. `fields` are month, day, hour, minute and second. `zone` is the offset of the
/// local time from UTC, in quarters of an hour.
fn time(year: i64, fields: [i64; 5], nanos: u32, zone: i8) -> Time {
    let [month, day, hour, minute, second] = fields;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 {
        return Time::EPOCH;
    }
    let (Ok(year), Ok(month), Ok(day)) = (year.try_into(), month.try_into(), day.try_into()) else {
        return Time::EPOCH;
    };
    // A zone out of range is ignored, as in other readers.
    let zone = if (-52..=52).contains(&zone) {
        i64::from(zone)
    } else {
        0
    };
    let secs = hour * 3600 + minute * 60 + second.min(60) - zone * 900;
    let whole = Time::from_date(year, month, day, secs);
    Time::new(whole.secs, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_zone() {
        assert_eq!(short([70, 1, 1, 0, 0, 0, 0]), Time::EPOCH);
        let noon = short([126, 11, 22, 12, 0, 0, 4]);
        assert_eq!(noon, Time::from_secs(1_795_345_200));
        assert_eq!(short([126, 13, 22, 12, 0, 0, 4]), Time::EPOCH);
        let long = long(*b"2026112212000050\x04").unwrap();
        assert_eq!((long.secs, long.nanos), (1_795_345_200, 500_000_000));
        assert_eq!(super::long(*b"0000000000000000\0"), None);
        assert_eq!(super::long([0xff; 17]), None);
    }
}
