//! What a commit takes from the allocation map and gives back, as its log record
//! says it.

use crate::disk::ondisk::{HEADER, get_u16, get_u32, put};
use crate::disk::runs::{RUN, Run};
use std::collections::BTreeMap;

/// Pages, as few runs as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunSet(BTreeMap<u32, u32>);

impl RunSet {
    /// Adds the pages of a run.
    pub(crate) fn insert(&mut self, run: Run) {
        let (mut start, mut end) = (run.start, run.start.saturating_add(run.len));
        if start == end {
            return;
        }
        while let Some((&from, &len)) = self.0.range(..=end).next_back() {
            if from + len < start {
                break;
            }
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(from + len));
        }
        self.0.insert(start, end - start);
    }

    /// Returns how many runs there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, page: u32) -> bool {
        let before = self.0.range(..=page).next_back();
        before.is_some_and(|(start, len)| page - start < *len)
    }

    /// Returns the runs, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.0.iter().map(|(start, len)| Run {
            start: *start,
            len: *len,
        })
    }

    /// Returns how many pages there are.
    pub(crate) fn pages(&self) -> u64 {
        self.0.values().map(|len| u64::from(*len)).sum()
    }
}

impl Extend<Run> for RunSet {
    fn extend<T: IntoIterator<Item = Run>>(&mut self, runs: T) {
        runs.into_iter().for_each(|run| self.insert(run));
    }
}

/// What a record changes in the map: first pages are taken, then others freed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) taken: RunSet,
    pub(crate) freed: RunSet,
}

/// Where the numbers of runs are in a record's end page.
const AT_COUNTS: usize = HEADER + 4;
/// Where the runs begin.
const AT_RUNS: usize = HEADER + 8;
/// Number of runs that says: they are more than the page holds.
const UNTOLD: u16 = u16::MAX;

impl Delta {
    /// Runs, of both kinds.
    pub(crate) fn len(&self) -> usize {
        self.taken.len() + self.freed.len()
    }

    /// Most runs that a record's end holds, in pages of this size.
    pub(crate) fn most(page_len: usize) -> usize {
        page_len.saturating_sub(AT_RUNS) / RUN
    }

    /// Puts what a record tells into its end page: nothing is told of what is None.
    pub(crate) fn put(told: Option<&Self>, end: &mut [u8]) {
        let Some(delta) = told else {
            return put(end, AT_COUNTS, &UNTOLD.to_le_bytes());
        };
        let counts = [delta.taken.len() as u16, delta.freed.len() as u16];
        put(end, AT_COUNTS, &counts.map(u16::to_le_bytes).concat());
        let runs: Vec<Run> = delta.taken.iter().chain(delta.freed.iter()).collect();
        put(end, AT_RUNS, &crate::disk::runs::Runs::encode(&runs));
    }

    /// Returns what a record tells in its end page; None if it does not.
    pub(crate) fn get(end: &[u8]) -> Option<Self> {
        let [taken, freed] = [AT_COUNTS, AT_COUNTS + 2].map(|at| get_u16(end, at));
        let all = usize::from(taken) + usize::from(freed);
        if taken == UNTOLD || all > Self::most(end.len()) {
            return None;
        }
        let run = |i: usize| Run {
            start: get_u32(end, AT_RUNS + i * RUN),
            len: get_u32(end, AT_RUNS + i * RUN + 4),
        };
        let mut delta = Self::default();
        delta.taken.extend((0..taken.into()).map(run));
        delta.freed.extend((taken.into()..all).map(run));
        Some(delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_sim::rng::Rng;

    fn run(start: u32, len: u32) -> Run {
        Run { start, len }
    }

    #[test]
    fn a_set_has_the_pages_that_were_put_in_as_few_runs() {
        for seed in 0..50 {
            let (mut rng, mut set, mut model) = (Rng::new(seed), RunSet::default(), [false; 64]);
            for _ in 0..rng.below(12) {
                let (start, len) = (rng.below(56) as u32, rng.below(8) as u32);
                set.insert(run(start, len));
                model[start as usize..(start + len) as usize].fill(true);
            }
            let runs = model.chunk_by(|a, b| a == b).filter(|c| c[0]).count();
            assert_eq!(set.len(), runs, "seed {seed}: {set:?}");
            let pages = model.iter().filter(|p| **p).count();
            assert_eq!(set.pages(), pages as u64);
            for (page, is_in) in model.iter().enumerate() {
                assert_eq!(
                    set.contains(page as u32),
                    *is_in,
                    "seed {seed}, page {page}"
                );
            }
        }
    }

    #[test]
    fn an_end_page_says_what_it_was_told() {
        let most = Delta::most(512) as u32;
        let mut delta = Delta::default();
        delta.taken.extend((0..most - 3).map(|i| run(i * 3, 2)));
        delta.freed.extend((0..3).map(|i| run(1000 + i * 9, 4)));
        let mut end = vec![0; 512];
        assert_eq!(Delta::get(&end), Some(Delta::default()));
        Delta::put(Some(&delta), &mut end);
        assert_eq!(Delta::get(&end), Some(delta));
        Delta::put(None, &mut end);
        assert_eq!(Delta::get(&end), None);
    }
}
