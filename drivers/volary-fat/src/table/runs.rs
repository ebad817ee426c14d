//! Runs: where a file's clusters lie, as stretches that follow each other on
//! the disk.

use crate::table::fat::{Link, Table};
use crate::table::twofold::Of;
use volary_core::{Error, Result};

/// Clusters that follow each other on the disk and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Index in the file of its first cluster.
    pub(crate) at: u32,
    /// Number of its first cluster.
    pub(crate) first: u32,
    /// How many clusters.
    pub(crate) len: u32,
}

/// The chain of a file, as far as it has been looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    runs: Vec<Run>,
    /// Where the chain goes on after what is known.
    next: Option<u32>,
    /// The last cluster, if the chain does not go on, and what is there instead.
    broken: Option<(u32, Link)>,
    /// For finding a loop: a jump's target, and after how many jumps it is
    /// looked at again.
    mark: u32,
    jumps: u32,
    power: u32,
    /// What it is the chain of.
    of: Of,
    /// The copies of the FAT were asked, and the first is gone by.
    settled: bool,
}

impl Runs {
    /// Returns a chain of which only the first cluster is known; empty for 0.
    pub(crate) fn from_first(first: u32, of: Of) -> Self {
        Self {
            next: (first != 0).then_some(first),
            of,
            ..Self::default()
        }
    }

    /// Clusters that are known.
    pub(crate) fn clusters(&self) -> u32 {
        self.runs.last().map_or(0, |r| r.at + r.len)
    }

    /// Returns the last cluster that is known.
    pub(crate) fn last(&self) -> Option<u32> {
        self.runs.last().map(|r| r.first + r.len - 1)
    }

    /// Returns the first cluster.
    pub(crate) fn first(&self) -> Option<u32> {
        self.runs.first().map(|r| r.first).or(self.next)
    }

    /// Returns whether all of the chain is known.
    pub(crate) fn is_whole(&self) -> bool {
        self.next.is_none()
    }

    /// Returns the runs, in order.
    pub(crate) fn as_slice(&self) -> &[Run] {
        &self.runs
    }

    /// Adds clusters at the end of a chain that is known as a whole.
    pub(crate) fn push(&mut self, first: u32, len: u32) {
        match self.runs.last_mut() {
            Some(last) if last.first + last.len == first => last.len += len,
            _ => {
                let at = self.clusters();
                if at == 0 {
                    // Most files are one run.
                    self.runs.reserve_exact(1);
                }
                self.runs.push(Run { at, first, len });
            }
        }
    }

    /// Adds another chain at the end.
    pub(crate) fn append(&mut self, other: Self) {
        if self.runs.is_empty() {
            self.runs = other.runs;
            return;
        }
        for run in &other.runs {
            self.push(run.first, run.len);
        }
    }

    /// Returns the stretch that starts at cluster `index` of the file: its number on
    /// the disk and how many follow with it.
    pub(crate) fn find(&self, index: u32) -> Option<(u32, u32)> {
        let after = self.runs.partition_point(|r| r.at <= index);
        let run = self.runs.get(after.checked_sub(1)?)?;
        let skip = index - run.at;
        (skip < run.len).then(|| (run.first + skip, run.len - skip))
    }

    /// Cuts the chain to `count` clusters and gives what was cut off.
    pub(crate) fn cut(&mut self, count: u32) -> Vec<Run> {
        let keep = self.runs.partition_point(|r| r.at < count);
        let mut cut = self.runs.split_off(keep);
        if let Some(last) = self.runs.last_mut() {
            let kept = count - last.at;
            if kept < last.len {
                let run = Run {
                    at: count,
                    first: last.first + kept,
                    len: last.len - kept,
                };
                cut.insert(0, run);
                last.len = kept;
            }
        }
        cut
    }

    /// Follows the chain until `need` clusters are known, or to its end. Where
    /// the first copy of the FAT does not lead on, it is the chain of all copies
    /// that leads to most.
    ///
    /// # Errors
    /// `Corrupt` for a chain that runs into a free, bad or impossible cluster
    /// before that, or in a circle, in all copies; `Io`. The clusters before are known then.
    pub(crate) fn load(&mut self, table: &Table, need: u32) -> Result<()> {
        while let Some(first) = self.next {
            let known = self.clusters();
            if known >= need {
                return Ok(());
            }
            if let Some((last, link)) = self.broken {
                return Err(table.broken(last, link));
            }
            if let Err(e) = self.check_loop(table, first) {
                return self.recover(table, e);
            }
            let (len, link) = table.follow(first, table.last)?;
            let last = first + len - 1;
            match link {
                Link::Next(next) => self.next = Some(next),
                Link::End => self.next = None,
                link => {
                    if self.ask_copies(table)? {
                        return Ok(());
                    }
                    self.broken = Some((last, link));
                }
            }
            self.push(first, len);
            let short = link == Link::End && matches!(self.of, Of::File(n) if self.clusters() < n);
            if short || table.is_fork(last)? {
                self.ask_copies(table)?;
            }
        }
        Ok(())
    }

    /// Takes the chain from all copies of the FAT, or fails with `e` if they do
    /// not lead to more than the first.
    fn recover(&mut self, table: &Table, e: Error) -> Result<()> {
        match self.ask_copies(table)? {
            true => Ok(()),
            false => Err(e),
        }
    }

    /// Looks for the chain in all copies of the FAT, and takes it from there if
    /// that is better; whether it is.
    fn ask_copies(&mut self, table: &Table) -> Result<bool> {
        let Some(first) = self.first().filter(|_| !self.settled) else {
            return Ok(false);
        };
        self.settled = true;
        let Some(way) = table.best_way(first, self.of)? else {
            return Ok(false);
        };
        self.runs.clear();
        self.next = None;
        for cluster in way.clusters {
            self.push(cluster, 1);
        }
        Ok(true)
    }

    /// Follows the chain to its end.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub(crate) fn load_all(&mut self, table: &Table) -> Result<()> {
        self.load(table, u32::MAX)
    }

    /// A chain in a circle comes to the same jump again and again: the mark
    /// moves at growing distances, so that it is in the circle at last.
    fn check_loop(&mut self, table: &Table, target: u32) -> Result<()> {
        if self.last().is_some_and(|last| last + 1 == target) {
            return Ok(());
        }
        if target == self.mark || self.clusters() > table.last {
            return Err(Error::corrupt(
                "FAT entry",
                0,
                format!("a chain in a circle, through cluster {target}"),
                "an end",
            ));
        }
        if self.jumps >= self.power {
            self.mark = target;
            self.jumps = 0;
            self.power = self.power.max(1).saturating_mul(2);
        }
        self.jumps += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(parts: &[(u32, u32)]) -> Runs {
        let mut runs = Runs::default();
        for &(first, len) in parts {
            runs.push(first, len);
        }
        runs
    }

    #[test]
    fn clusters_that_follow_each_other_are_one_run() {
        let r = runs(&[(5, 2), (7, 1), (20, 4)]);
        assert_eq!(r.as_slice().len(), 2);
        assert_eq!(r.clusters(), 7);
        assert_eq!(r.find(0), Some((5, 3)));
        assert_eq!(r.find(2), Some((7, 1)));
        assert_eq!(r.find(3), Some((20, 4)));
        assert_eq!(r.find(7), None);
        assert_eq!(r.last(), Some(23));
    }

    #[test]
    fn a_cut_gives_what_is_past_it() {
        for count in 0..=7 {
            let mut r = runs(&[(5, 3), (20, 4)]);
            let cut = r.cut(count);
            assert_eq!(r.clusters(), count);
            assert_eq!(cut.iter().map(|c| c.len).sum::<u32>(), 7 - count);
        }
    }
}
