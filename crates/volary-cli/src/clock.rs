//! The one place that looks at the clock, and times as people write them.
//!
//! All times are read and printed in UTC.

use std::time::Instant;
use volary::Time;

/// Returns the time now: of the system, or, where it is set, of `SOURCE_DATE_EPOCH`
/// (seconds since 1970), so that an image can be made twice with the same
/// bytes.
#[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
pub(crate) fn now() -> Time {
    static FIXED: std::sync::OnceLock<Option<i64>> = std::sync::OnceLock::new();
    let fixed = FIXED.get_or_init(|| std::env::var("SOURCE_DATE_EPOCH").ok()?.parse().ok());
    match fixed {
        Some(secs) => Time::from_secs(*secs),
        None => std::time::SystemTime::now().into(),
    }
}

/// Returns the moment, which no setting of the system's clock moves.
#[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Returns a clock that tells the time since now.
pub(crate) fn stopwatch() -> volary::bulk::Clock {
    let begin = instant();
    std::sync::Arc::new(move || begin.elapsed())
}

/// A time in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) year: i64,
    pub(crate) month: u8,
    pub(crate) day: u8,
    pub(crate) hour: u8,
    pub(crate) minute: u8,
    pub(crate) second: u8,
    pub(crate) nanos: u32,
}

const DAY: i64 = 86_400;

impl Parts {
    /// Returns the parts of a time, in UTC.
    pub(crate) fn of(time: Time) -> Self {
        let (year, month, day) = time.date();
        let rest = time.secs.rem_euclid(DAY);
        Self {
            year,
            month: small(month.into()),
            day: small(day.into()),
            hour: small(rest / 3600),
            minute: small(rest % 3600 / 60),
            second: small(rest % 60),
            nanos: time.nanos,
        }
    }

    /// Returns the time, or `None` for a date that there is not.
    pub(crate) fn time(self) -> Option<Time> {
        let in_range = (1..=12).contains(&self.month)
            && (1..=31).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 61
            && (0..=9999).contains(&self.year);
        if !in_range {
            return None;
        }
        let secs =
            i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        let year = i32::try_from(self.year).ok()?;
        let whole = Time::from_date(year, self.month.into(), self.day.into(), secs);
        let time = Time::new(whole.secs, self.nanos);
        // The 31st of a month that has 30 days comes out as another day.
        (Self::of(time).day == self.day || self.second == 60).then_some(time)
    }
}

fn small(n: i64) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

/// `2026-11-21 21:30:05`.
pub(crate) fn to_second(time: Time) -> String {
    let p = Parts::of(time);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        p.year, p.month, p.day, p.hour, p.minute, p.second
    )
}

/// `2026-11-21T21:30:05.250000000Z`, for JSON.
pub(crate) fn iso(time: Time) -> String {
    let text = to_second(time).replace(' ', "T");
    format!("{text}.{:09}Z", time.nanos)
}

/// Appends `2026-11-21 21:30`: the form of `ls -l`.
pub(crate) fn push_minute(out: &mut Vec<u8>, time: Time) {
    use std::io::Write;
    let p = Parts::of(time);
    // Writing to a vector does not fail.
    let _ = write!(
        out,
        "{:04}-{:02}-{:02} {:02}:{:02}",
        p.year, p.month, p.day, p.hour, p.minute
    );
}

/// Returns a time as people write it: `now`, `@SECONDS`, `2026-11-21`,
/// `2026-11-21 21:30`, `2026-11-21T21:30:05.25Z`.
pub(crate) fn parse(text: &str) -> Option<Time> {
    if text == "now" {
        return Some(now());
    }
    if let Some(secs) = text.strip_prefix('@') {
        let (secs, nanos) = with_fraction(secs)?;
        return Some(Time::new(secs.parse().ok()?, nanos));
    }
    let text = text.trim_end_matches('Z');
    let (date, clock) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-');
    let (year, month, day) = (date.next()?, date.next()?, date.next()?);
    let mut clock = clock.splitn(3, ':');
    let (hour, minute) = (clock.next()?, clock.next()?);
    let (second, nanos) = with_fraction(clock.next().unwrap_or("0"))?;
    Parts {
        year: year.parse().ok()?,
        month: month.parse().ok()?,
        day: day.parse().ok()?,
        hour: hour.parse().ok()?,
        minute: minute.parse().ok()?,
        second: second.parse().ok()?,
        nanos,
    }
    .time()
}

/// Returns a time as `touch -t` has it: `[[CC]YY]MMDDhhmm[.ss]`, with this year where
/// there is none.
pub(crate) fn parse_stamp(text: &str) -> Option<Time> {
    let (digits, second) = text.split_once('.').unwrap_or((text, "00"));
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let two = |at: usize| digits.get(at..at + 2)?.parse::<u8>().ok();
    let (year, at) = match digits.len() {
        8 => (Parts::of(now()).year, 0),
        10 => (century(two(0)?), 2),
        12 => (digits.get(..4)?.parse().ok()?, 4),
        _ => return None,
    };
    Parts {
        year,
        month: two(at)?,
        day: two(at + 2)?,
        hour: two(at + 4)?,
        minute: two(at + 6)?,
        second: second.parse().ok()?,
        nanos: 0,
    }
    .time()
}

/// POSIX: 69 to 99 are of the last century.
fn century(year: u8) -> i64 {
    i64::from(year) + if year < 69 { 2000 } else { 1900 }
}

fn with_fraction(text: &str) -> Option<(&str, u32)> {
    let Some((whole, fraction)) = text.split_once('.') else {
        return Some((text, 0));
    };
    if fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((whole, format!("{fraction:0<9}").parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        for (text, secs, nanos) in [
            ("1970-01-01", 0, 0),
            ("@5", 5, 0),
            ("@-1", -1, 0),
            ("@1.5", 1, 500_000_000),
            ("2000-02-29", 951_782_400, 0),
            ("2026-11-21 21:30", 1_795_296_600, 0),
            ("2026-11-21T21:30:05.25Z", 1_795_296_605, 250_000_000),
            ("1969-12-31 23:59:59", -1, 0),
        ] {
            assert_eq!(parse(text), Some(Time::new(secs, nanos)), "{text}");
        }
        for text in [
            "",
            "x",
            "2026-13-01",
            "2026-02-29",
            "2026-11-21 25:00",
            "@x",
            "@1.x",
            "12",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn stamps_of_touch() {
        assert_eq!(parse_stamp("202611212130.05"), parse("2026-11-21 21:30:05"));
        assert_eq!(parse_stamp("2611212130"), parse("2026-11-21 21:30"));
        assert_eq!(parse_stamp("9902030405"), parse("1999-02-03 04:05"));
        for text in ["", "1", "20261121213", "aaaabbccddee", "202613212130"] {
            assert_eq!(parse_stamp(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_eight_centuries_comes_back() {
        for day in -150_000_i64..150_000 {
            let time = Time::from_secs(day * DAY + 3_661);
            assert_eq!(Parts::of(time).time(), Some(time), "day {day}");
        }
    }

    #[test]
    fn times_are_printed_as_they_are_read() {
        let time = parse("2026-11-21 21:30:05.25").unwrap();
        assert_eq!(to_second(time), "2026-11-21 21:30:05");
        assert_eq!(iso(time), "2026-11-21T21:30:05.250000000Z");
        assert_eq!(parse(&iso(time)), Some(time));
    }
}
