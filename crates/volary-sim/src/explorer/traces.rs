//! A memory of results of work on disks, by the sectors that the work read.
//!
//! Deterministic work always reads the same sectors first, then those that their content leads to,
//! and so on. So it has the same result on two disks with the same content wherever it read, even
//! if they differ elsewhere.

use std::collections::HashMap;
use std::ops::Range;

/// The most steps that are remembered.
const STEPS_MAX: usize = 2_000_000;

/// All readings so far, as a tree: each reading has one branch for each content that was found.
pub(crate) struct Traces<T> {
    steps: Vec<Step<T>>,
    next: HashMap<(usize, u64), usize>,
}

enum Step<T> {
    /// These sectors are read next.
    Read(Range<u64>),
    /// The work ends here, with this result.
    Done(T),
}

impl<T> Default for Traces<T> {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            next: HashMap::new(),
        }
    }
}

impl<T> Traces<T> {
    /// Returns the result of the work on a disk, if it is known; `content` hashes the content of
    /// sectors.
    pub(crate) fn find(&self, content: impl Fn(&Range<u64>) -> u64) -> Option<&T> {
        let mut at = 0;
        loop {
            match self.steps.get(at)? {
                Step::Done(what) => return Some(what),
                Step::Read(sectors) => at = *self.next.get(&(at, content(sectors)))?,
            }
        }
    }

    /// Notes the result of work that read these sectors in this order.
    ///
    /// # Errors
    /// A description, if the work is not deterministic.
    pub(crate) fn note(
        &mut self,
        reads: &[Range<u64>],
        content: impl Fn(&Range<u64>) -> u64,
        done: T,
    ) -> Result<(), String> {
        if self.steps.len() >= STEPS_MAX {
            *self = Self::default();
        }
        let mut at = (!self.steps.is_empty()).then_some(0);
        let mut branch = None;
        for (i, sectors) in reads.iter().enumerate() {
            // Sectors that were read before add no information.
            let before = reads.iter().take(i);
            let is_in = |r: &Range<u64>| r.start <= sectors.start && sectors.end <= r.end;
            if before.clone().any(is_in) {
                continue;
            }
            let here = match at.and_then(|at| Some((at, self.steps.get(at)?))) {
                Some((here, Step::Read(known))) if known == sectors => here,
                Some(_) => return Err(format!("{NOT_THE_SAME}: sectors {sectors:?}")),
                None => self.add(branch, Step::Read(sectors.clone())),
            };
            let key = (here, content(sectors));
            at = self.next.get(&key).copied();
            branch = Some(key);
        }
        match at {
            None => {
                self.add(branch, Step::Done(done));
                Ok(())
            }
            Some(_) => Err(format!("{NOT_THE_SAME}: its end")),
        }
    }

    fn add(&mut self, branch: Option<(usize, u64)>, step: Step<T>) -> usize {
        let number = self.steps.len();
        self.steps.push(step);
        if let Some(key) = branch {
            self.next.insert(key, number);
        }
        number
    }
}

const NOT_THE_SAME: &str = "what reads the same goes on otherwise";

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads sector 0, and the sector whose number is there.
    fn work(disk: &[u64]) -> (Vec<Range<u64>>, u64) {
        let second = disk[0];
        let again = vec![0..1, second..second + 1, 0..1];
        (again, disk[second as usize])
    }

    #[test]
    fn only_what_was_read_tells_disks_apart() {
        let mut traces = Traces::default();
        let content = |disk: [u64; 4]| move |r: &Range<u64>| disk[r.start as usize];
        for disk in [[1, 7, 0, 0], [2, 0, 8, 0], [1, 9, 0, 0]] {
            assert_eq!(traces.find(content(disk)), None);
            let (reads, done) = work(&disk);
            traces.note(&reads, content(disk), done).unwrap();
        }
        assert_eq!(traces.find(content([1, 7, 5, 5])), Some(&7));
        assert_eq!(traces.find(content([2, 5, 8, 5])), Some(&8));
        assert_eq!(traces.find(content([1, 9, 5, 5])), Some(&9));
        assert_eq!(traces.find(content([3, 9, 5, 5])), None);
    }

    #[test]
    fn work_that_is_not_the_same_each_time_is_told() {
        let mut traces = Traces::default();
        let content = |_: &Range<u64>| 1;
        traces.note(&[0..1, 4..8], content, 1).unwrap();
        for reads in [vec![0..1, 4..5], Vec::new(), vec![0..1, 4..8, 9..10]] {
            assert!(traces.note(&reads, content, 1).is_err(), "{reads:?}");
        }
    }
}
