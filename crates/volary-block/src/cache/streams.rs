//! Detects consecutive misses, to decide how far to read ahead.

/// How many sequences of misses are remembered.
const STREAMS: usize = 32;

/// A sequence of misses.
#[derive(Clone, Copy, Default)]
struct Stream {
    /// The page after the last that was read.
    next: u64,
    /// Pages of the last read, or 0 if there was none.
    window: u64,
    /// When it was last used. The oldest one is replaced.
    stamp: u64,
}

/// The latest sequences of misses. Hits cost nothing, because only misses are recorded here.
#[derive(Default)]
pub(super) struct Streams {
    all: [Stream; STREAMS],
    clock: u64,
}

impl Streams {
    /// Returns how many pages to read for a miss of `wanted` pages at `page`. At first these are
    /// just the wanted ones. If the miss is where an earlier read ended, they are twice as many as
    /// then, up to `most`.
    pub(super) fn window(&mut self, page: u64, wanted: u64, most: u64) -> u64 {
        self.clock += 1;
        let follows = |s: &&Stream| s.window > 0 && (s.next..=s.next + s.window).contains(&page);
        let before = self.all.iter().find(follows).map(|s| (s.stamp, s.window));
        let oldest = self.all.iter().map(|s| s.stamp).min().unwrap_or(0);
        let (stamp, last) = before.unwrap_or((oldest, 0));
        let window = (last * 2).max(wanted).min(most);
        if let Some(s) = self.all.iter_mut().find(|s| s.stamp == stamp) {
            *s = Stream {
                next: page + window,
                window,
                stamp: self.clock,
            };
        }
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_along_a_sequence_and_not_elsewhere() {
        let mut s = Streams::default();
        let windows: Vec<u64> = [10, 11, 13, 17, 25, 33].map(|p| s.window(p, 1, 8)).into();
        assert_eq!(windows, [1, 2, 4, 8, 8, 8]);
        assert_eq!(s.window(1000, 3, 8), 3);
        assert_eq!(s.window(500, 1, 8), 1);
        assert_eq!(s.window(1003, 1, 8), 6);
    }

    #[test]
    fn two_sequences_do_not_disturb_each_other() {
        let mut s = Streams::default();
        let a: Vec<u64> = [0, 1, 3, 7].into();
        for (i, page) in a.into_iter().enumerate() {
            assert_eq!(s.window(page, 1, 64), 1 << i);
            assert_eq!(s.window(page + 10_000, 1, 64), 1 << i);
        }
    }
}
