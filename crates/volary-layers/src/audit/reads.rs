//! Limits the lines about reads.

use std::fmt::Write as _;
use volary_core::{Error, Kind, Options, Result, Time};

/// Bounds on lines about reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditReads {
    /// Most lines in a second.
    pub rate: u64,
    /// Most bytes in all.
    pub size: u64,
}

impl Default for AuditReads {
    /// Returns a thousand lines a second, 64 MiB.
    fn default() -> Self {
        Self {
            rate: 1000,
            size: 64 << 20,
        }
    }
}

/// Splits off the bounds after a file's name, which may itself contain commas.
pub(super) fn parse(text: &str) -> Result<(&str, Option<AuditReads>)> {
    let (mut file, mut bounds, mut reads) = (text, AuditReads::default(), false);
    while let Some((before, word)) = file.rsplit_once(',') {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match (key, value) {
            ("reads", "") => reads = true,
            ("rate", value) => bounds.rate = number(text, value)?,
            ("size", value) => bounds.size = number(text, value)?,
            _ => break,
        }
        file = before;
    }
    if file.is_empty() || !reads && file.len() < text.len() {
        return Err(bad(text));
    }
    Ok((file, reads.then_some(bounds)))
}

fn number(text: &str, value: &str) -> Result<u64> {
    let number = Options::parse_size(value).filter(|number| *number > 0);
    number.ok_or_else(|| bad(text))
}

fn bad(text: &str) -> Error {
    let words = format!(
        "layer audit does not know '{text}'; expected FILE, or FILE,reads with ,rate=N (lines a \
         second) and ,size=SIZE after it"
    );
    Error::note(Kind::Invalid, words)
}

/// The lines about reads so far.
pub(super) struct Reads {
    bounds: AuditReads,
    second: i64,
    lines: u64,
    bytes: u64,
    left_out: u64,
    is_full: bool,
}

impl Reads {
    pub(super) fn new(bounds: AuditReads) -> Self {
        Self {
            bounds,
            second: i64::MIN,
            lines: 0,
            bytes: 0,
            left_out: 0,
            is_full: false,
        }
    }

    /// Returns the text to write for a read with this line; empty if it is left out.
    pub(super) fn admit(&mut self, now: Time, line: &str) -> String {
        if self.second != now.secs {
            (self.second, self.lines) = (now.secs, 0);
        }
        if self.is_full || self.lines >= self.bounds.rate {
            self.left_out += 1;
            return String::new();
        }
        let (secs, nanos, size) = (now.secs, now.nanos, self.bounds.size);
        let len = line.len() as u64;
        if self.bytes.saturating_add(len) > size {
            self.is_full = true;
            self.left_out += 1;
            return format!("{secs}.{nanos:09} reads-end size={size}\n");
        }
        self.lines += 1;
        self.bytes += len;
        self.left_out(now) + line
    }

    /// Returns a line with the number of lines left out since the last such line, or nothing if
    /// there were none.
    pub(super) fn left_out(&mut self, now: Time) -> String {
        let mut line = String::new();
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            let (secs, nanos) = (now.secs, now.nanos);
            // Writing to a string does not fail.
            let _ = writeln!(line, "{secs}.{nanos:09} left-out reads={left_out}");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_asked_for_and_bounded_in_words() {
        let bounds = AuditReads::default();
        assert_eq!(parse("log").unwrap(), ("log", None));
        assert_eq!(parse("a,b").unwrap(), ("a,b", None));
        assert_eq!(parse("a,b,reads").unwrap(), ("a,b", Some(bounds)));
        let told = parse("log,rate=5,reads,size=1K").unwrap();
        assert_eq!(
            told,
            (
                "log",
                Some(AuditReads {
                    rate: 5,
                    size: 1024
                })
            )
        );
        for bad in [
            "",
            ",reads",
            "log,rate=5",
            "log,reads,rate=0",
            "log,reads,size=x",
        ] {
            assert_eq!(parse(bad).unwrap_err(), Kind::Invalid, "{bad}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted_and_the_size_is_an_end() {
        let mut reads = Reads::new(AuditReads { rate: 2, size: 25 });
        let at = Time::from_secs;
        let mut say = |secs| reads.admit(at(secs), "a line ..\n");
        assert_eq!((say(1).len(), say(1).len()), (10, 10));
        assert_eq!((say(1), say(1)), (String::new(), String::new()));
        assert_eq!(say(2), "2.000000000 reads-end size=25\n");
        assert_eq!(say(3), "");
        assert_eq!(reads.left_out(at(4)), "4.000000000 left-out reads=4\n");
        assert_eq!(reads.left_out(at(5)), "");
        let mut reads = Reads::new(AuditReads { rate: 1, size: 99 });
        let mut say = |secs| reads.admit(at(secs), "a line\n");
        assert_eq!((say(1), say(1)), ("a line\n".into(), String::new()));
        assert_eq!(say(2), "2.000000000 left-out reads=1\na line\n");
    }
}
