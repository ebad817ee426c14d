//! Where the pages of a file lie. The first page of a file is its leader.

use crate::disk::ondisk::get_u32;

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
