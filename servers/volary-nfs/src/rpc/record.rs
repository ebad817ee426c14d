//! Records on a TCP connection (RFC 5531, section 11): fragments, each after its length.

use crate::timer;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// How much is read ahead, in bytes.
const AHEAD: usize = 64 << 10;
/// The most fragments of a record; no client uses that many.
const FRAGMENTS_MAX: usize = 64;
const LAST: u32 = 1 << 31;

/// Time limits, and the largest record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// From the end of one record to the first byte of the next.
    pub(crate) idle: Duration,
    /// From the first byte of a record to its last.
    pub(crate) record: Duration,
    /// The most bytes of a record.
    pub(crate) len_max: usize,
}

/// Reads records. The reader below must return now and then (`WouldBlock`, `TimedOut`), so that
/// time limits are checked.
pub(crate) struct Records {
    ahead: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Records {
    pub(crate) fn new() -> Self {
        Self {
            ahead: vec![0; AHEAD].into(),
            start: 0,
            end: 0,
        }
    }

    /// Returns whether part of the next record has been read already.
    pub(crate) fn has_more(&self) -> bool {
        self.start < self.end
    }

    /// Reads one record into `record`, which grows as needed and never shrinks. Returns the
    /// record's length, or `None` at the end of the connection. Calls `idle` with the record's
    /// buffer each time that no data came for a while between records.
    ///
    /// # Errors
    /// `InvalidData` for a record that is empty, too long or in too many fragments; `TimedOut`;
    /// `UnexpectedEof` within a record; those of the reader.
    pub(crate) fn read(
        &mut self,
        from: &mut impl Read,
        patience: &Patience,
        record: &mut Vec<u8>,
        mut idle: impl FnMut(&mut Vec<u8>),
    ) -> io::Result<Option<usize>> {
        if !self.has_more() && !self.wait(from, patience.idle, || idle(record))? {
            return Ok(None);
        }
        let until = timer::now() + patience.record;
        let mut len = 0;
        for _ in 0..FRAGMENTS_MAX {
            let mut head = [0; 4];
            self.fill(from, until, &mut head)?;
            let head = u32::from_be_bytes(head);
            let more = usize::try_from(head & !LAST).unwrap_or(usize::MAX);
            let end = more.saturating_add(len);
            if end > patience.len_max {
                return Err(bad("a record is too long"));
            }
            if record.len() < end {
                record.resize(end, 0);
            }
            let room = record.get_mut(len..end).unwrap_or_default();
            self.fill(from, until, room)?;
            len = end;
            if head & LAST != 0 {
                return match len {
                    0 => Err(bad("a record is empty")),
                    _ => Ok(Some(len)),
                };
            }
        }
        Err(bad("a record is in too many pieces"))
    }

    /// Waits for the first byte of a record. Returns false at the end of the connection.
    fn wait(
        &mut self,
        from: &mut impl Read,
        patience: Duration,
        mut idle: impl FnMut(),
    ) -> io::Result<bool> {
        let since = timer::now();
        loop {
            match from.read(&mut self.ahead) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    (self.start, self.end) = (0, n);
                    return Ok(true);
                }
                Err(e) if is_pause(&e) => {
                    idle();
                    if since.elapsed() >= patience {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn fill(&mut self, from: &mut impl Read, until: Instant, out: &mut [u8]) -> io::Result<()> {
        let mut out = out;
        loop {
            let here = self.ahead.get(self.start..self.end).unwrap_or_default();
            let now = here.len().min(out.len());
            let (filled, rest) = out.split_at_mut(now);
            filled.copy_from_slice(here.get(..now).unwrap_or_default());
            self.start += now;
            out = rest;
            if out.is_empty() {
                return Ok(());
            }
            // Large parts are read straight into the record.
            let read = if out.len() >= AHEAD {
                from.read(out)
            } else {
                from.read(&mut self.ahead)
            };
            match read {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) if out.len() >= AHEAD => out = out.get_mut(n..).unwrap_or_default(),
                Ok(n) => (self.start, self.end) = (0, n),
                Err(e) if is_pause(&e) || e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
            if timer::now() >= until {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

fn is_pause(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn bad(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        idle: Duration::from_millis(20),
        record: Duration::from_millis(40),
        len_max: 200_000,
    };

    /// Returns a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(self.1).min(buf.len());
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    /// Returns single bytes, and then `WouldBlock` for ever.
    struct Silent(usize);

    impl Read for Silent {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            timer::rest(Duration::from_millis(5));
            if self.0 == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.0 -= 1;
            // The head says 65,793 bytes.
            buf[0] = if self.0 == 999 { 0x80 } else { 1 };
            Ok(1)
        }
    }

    fn fragment(last: bool, bytes: &[u8]) -> Vec<u8> {
        let head = bytes.len() as u32 | if last { LAST } else { 0 };
        [&head.to_be_bytes(), bytes].concat()
    }

    fn all(bytes: &[u8], step: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut from = Drops(bytes, step);
        let (mut records, mut record, mut found) = (Records::new(), Vec::new(), Vec::new());
        let patience = Patience {
            record: Duration::from_secs(60),
            ..PATIENCE
        };
        while let Some(len) = records.read(&mut from, &patience, &mut record, |_| ())? {
            found.push(record[..len].to_vec());
        }
        Ok(found)
    }

    #[test]
    fn records_come_whole_however_they_are_cut() {
        let long: Vec<u8> = (0..150_000u32).map(|n| n as u8).collect();
        let bytes = [
            fragment(true, b"one"),
            fragment(false, b"t"),
            fragment(false, b""),
            fragment(true, b"wo"),
            fragment(false, &long[..100_000]),
            fragment(true, &long[100_000..]),
            fragment(true, b"end"),
        ]
        .concat();
        for step in [1, 3, 1000, 70_000, 1 << 20] {
            let found = all(&bytes, step).unwrap();
            assert_eq!(found, [&b"one"[..], b"two", &long, b"end"], "{step}");
        }
    }

    #[test]
    fn what_is_too_much_is_refused_on_the_head() {
        let kind = |bytes: &[u8]| all(bytes, 1000).unwrap_err().kind();
        let huge = (LAST | 0x7fff_ffff).to_be_bytes();
        assert_eq!(kind(&huge), io::ErrorKind::InvalidData);
        let sum = [fragment(false, &[0; 150_000]), fragment(true, &[0; 60_000])].concat();
        assert_eq!(kind(&sum), io::ErrorKind::InvalidData);
        assert_eq!(kind(&fragment(true, b"")), io::ErrorKind::InvalidData);
        assert_eq!(
            kind(&fragment(false, b"").repeat(100)),
            io::ErrorKind::InvalidData
        );
        assert_eq!(
            kind(&fragment(true, b"abc")[..6]),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn silence_and_dripping_end() {
        for bytes in [0, 1000] {
            let mut record = Vec::new();
            let read = Records::new().read(&mut Silent(bytes), &PATIENCE, &mut record, |_| ());
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
    }
}
