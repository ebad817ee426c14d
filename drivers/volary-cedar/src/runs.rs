//! Where the pages of a file lie. The first page of a file is its leader.

use crate::ondisk::get_u32;
use crate::volume::Layout;

/// A run of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first page.
    pub(crate) start: u32,
    /// How many.
    pub(crate) len: u32,
}

/// Bytes of a run as stored.
pub(crate) const RUN: usize = 8;

/// All runs of a file, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(pub(crate) Vec<Run>);

impl Runs {
    /// Pages, the leader with them.
    pub(crate) fn pages(&self) -> u32 {
        self.0.iter().map(|r| r.len).fold(0, u32::saturating_add)
    }

    /// Returns the leader page; none for a file without pages.
    pub(crate) fn leader(&self) -> Option<u32> {
        self.0.first().map(|r| r.start)
    }

    /// Adds pages at the end.
    pub(crate) fn push(&mut self, run: Run) {
        match self.0.last_mut() {
            Some(last) if last.start + last.len == run.start => last.len += run.len,
            _ => self.0.push(run),
        }
    }

    /// Cuts off all pages after the first `keep`, and gives them.
    pub(crate) fn cut(&mut self, keep: u32) -> Vec<Run> {
        let mut left = keep;
        let mut gone = Vec::new();
        self.0.retain_mut(|run| {
            let kept = run.len.min(left);
            left -= kept;
            if kept < run.len {
                gone.push(Run {
                    start: run.start + kept,
                    len: run.len - kept,
                });
            }
            run.len = kept;
            kept > 0
        });
        gone
    }

    /// Returns where page `at` of the file lies, counted from the leader, and how many
    /// pages follow it in one piece, itself with them.
    pub(crate) fn find(&self, at: u32) -> Option<Run> {
        let mut left = at;
        for run in &self.0 {
            if left < run.len {
                return Some(Run {
                    start: run.start + left,
                    len: run.len - left,
                });
            }
            left -= run.len;
        }
        None
    }

    /// As stored.
    pub(crate) fn encode(runs: &[Run]) -> Vec<u8> {
        let mut out = Vec::with_capacity(runs.len() * RUN);
        for run in runs {
            out.extend_from_slice(&run.start.to_le_bytes());
            out.extend_from_slice(&run.len.to_le_bytes());
        }
        out
    }

    /// From what is stored.
    pub(crate) fn decode(bytes: &[u8]) -> impl Iterator<Item = Run> + '_ {
        bytes.chunks_exact(RUN).map(|b| Run {
            start: get_u32(b, 0),
            len: get_u32(b, 4),
        })
    }

    /// Returns the checksum that the leader carries.
    pub(crate) fn checksum(&self) -> u32 {
        crc32c::crc32c(&Self::encode(&self.0))
    }
}

impl Layout {
    /// Largest file, in bytes.
    pub(crate) fn size_max(&self) -> u64 {
        (u64::from(self.pages) * u64::from(self.page)).max(1 << 40)
    }

    /// Pages that content of `size` bytes takes, the leader with them.
    pub(crate) fn pages_for(&self, size: u64) -> u32 {
        match size.div_ceil(u64::from(self.page)) {
            0 => 0,
            n => u32::try_from(n + 1).unwrap_or(u32::MAX),
        }
    }

    /// Cuts a range of a file's bytes into stretches of the device.
    pub(crate) fn stretches(&self, runs: &Runs, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let page = u64::from(self.page);
        let mut out = Vec::new();
        let (mut at, end) = (offset, offset + len);
        while at < end {
            // The leader is page 0 of the runs.
            let Some(run) = u32::try_from(at / page + 1).ok().and_then(|p| runs.find(p)) else {
                break;
            };
            let within = at % page;
            let n = (u64::from(run.len) * page - within).min(end - at);
            out.push((self.offset(run.start) + within, n));
            at += n;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u32, len: u32) -> Run {
        Run { start, len }
    }

    #[test]
    fn neighbours_join_and_cutting_gives_what_is_past_the_cut() {
        let mut runs = Runs::default();
        for r in [run(10, 2), run(12, 3), run(40, 5)] {
            runs.push(r);
        }
        assert_eq!(runs.0, [run(10, 5), run(40, 5)]);
        assert_eq!(runs.find(6), Some(run(41, 4)));
        assert_eq!(runs.find(10), None);
        let before = runs.checksum();
        assert_eq!(runs.cut(4), [run(14, 1), run(40, 5)]);
        assert_eq!(runs.0, [run(10, 4)]);
        assert_ne!(runs.checksum(), before);
        assert_eq!(runs.cut(0), [run(10, 4)]);
        assert_eq!(runs.leader(), None);
    }

    #[test]
    fn what_was_stored_comes_back() {
        let runs = Runs(vec![run(1, 2), run(u32::MAX, 7)]);
        let bytes = Runs::encode(&runs.0);
        assert_eq!(Runs::decode(&bytes).collect::<Vec<_>>(), runs.0);
    }
}
