//! FILETIME (MS-FSCC 2.1.1): 100 ns steps since 1601-01-01 00:00 UTC.

use volary_core::Time;

const STEPS_A_SECOND: i64 = 10_000_000;
/// Seconds from 1601 to 1970.
const EPOCH_SECS: i64 = 11_644_473_600;

/// Returns a time as a FILETIME, rounded down. Earlier times become 1601.
pub(crate) fn from_time(time: Time) -> u64 {
    let steps = time
        .secs
        .saturating_add(EPOCH_SECS)
        .saturating_mul(STEPS_A_SECOND)
        .saturating_add(i64::from(time.nanos / 100));
    u64::try_from(steps).unwrap_or(0)
}

/// Returns the time of a FILETIME, limited to the greatest signed number.
pub(crate) fn to_time(filetime: u64) -> Time {
    let steps = i64::try_from(filetime).unwrap_or(i64::MAX);
    let secs = (steps / STEPS_A_SECOND).saturating_sub(EPOCH_SECS);
    let nanos = u32::try_from(steps % STEPS_A_SECOND).unwrap_or(0);
    Time::new(secs, nanos.saturating_mul(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_told() {
        assert_eq!(from_time(Time::EPOCH), 116_444_736_000_000_000);
        assert_eq!(to_time(116_444_736_000_000_000), Time::EPOCH);
        assert_eq!(to_time(0), Time::from_secs(-EPOCH_SECS));
        assert_eq!(from_time(Time::new(1, 250)), 116_444_736_010_000_002);
        assert_eq!(from_time(Time::from_secs(i64::MIN)), 0);
    }

    #[test]
    fn every_held_filetime_comes_back() {
        for filetime in [0, 1, 9_999_999, 133_000_000_123_456_789, i64::MAX as u64] {
            assert_eq!(from_time(to_time(filetime)), filetime);
        }
    }
}
