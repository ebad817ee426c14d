//! Iostone (Park and Becker): files of a time-sharing system, opened at random, each read or written as a whole.

use super::{Files, read_whole, write_new};
use anyhow::Result;
use volary_sim::rng::Rng;

/// So many files of a length, and how often one of them is chosen, of a thousand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Files.
    pub files: usize,
    /// Bytes of each.
    pub len: u64,
    /// Choices of a thousand.
    pub chosen: u64,
}

/// Instances that run in turns, each in its own directory.
pub struct Iostone<'a> {
    /// The files of an instance.
    pub mix: &'a [Mix],
    /// Instances.
    pub instances: usize,
    /// Files that an instance opens.
    pub opened: usize,
    /// Of three that are opened, so many are read; the others are written anew.
    pub read_of_three: u64,
}

impl Iostone<'_> {
    fn path(instance: usize, kind: usize, file: usize) -> String {
        format!("stone{instance}/f{kind}x{file}")
    }

    /// Makes all files; those of instances in turns.
    ///
    /// # Errors
    /// Of the files.
    pub fn prepare(&self, files: &mut dyn Files) -> Result<()> {
        for instance in 0..self.instances {
            files.mkdir(&format!("stone{instance}"))?;
        }
        for (kind, mix) in self.mix.iter().enumerate() {
            for file in 0..mix.files {
                for instance in 0..self.instances {
                    write_new(files, &Self::path(instance, kind, file), mix.len, UNIT)?;
                }
            }
        }
        Ok(())
    }

    /// Opens files, in turns.
    ///
    /// # Errors
    /// Of the files.
    pub fn run(&self, files: &mut dyn Files) -> Result<()> {
        let mut rngs: Vec<Rng> = (0..self.instances)
            .map(|i| Rng::new(i as u64 + 1))
            .collect();
        for _ in 0..self.opened {
            for (instance, rng) in rngs.iter_mut().enumerate() {
                self.turn(files, instance, rng)?;
            }
        }
        Ok(())
    }

    fn turn(&self, files: &mut dyn Files, instance: usize, rng: &mut Rng) -> Result<()> {
        let mut left = rng.below(1000);
        let mut chosen = 0;
        for (kind, mix) in self.mix.iter().enumerate() {
            chosen = kind;
            match left.checked_sub(mix.chosen) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        let Some(mix) = self.mix.get(chosen) else {
            return Ok(());
        };
        let path = Self::path(instance, chosen, rng.index(mix.files.max(1)));
        if rng.below(3) < self.read_of_three {
            return read_whole(files, &path, mix.len, UNIT);
        }
        files.open(&path)?;
        super::by_unit(mix.len, UNIT, |at, len| files.write(&path, at, len))?;
        files.close(&path)
    }
}

/// Bytes that are read or written at a time.
const UNIT: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// How often each file was opened, read and written.
    #[derive(Default)]
    struct Counts(BTreeMap<String, [u64; 3]>);

    impl Counts {
        fn count(&mut self, path: &str, which: usize) -> Result<()> {
            self.0.get_mut(path).unwrap()[which] += 1;
            Ok(())
        }
    }

    impl Files for Counts {
        fn mkdir(&mut self, _: &str) -> Result<()> {
            Ok(())
        }
        fn create(&mut self, path: &str) -> Result<()> {
            assert!(self.0.insert(path.to_owned(), [0; 3]).is_none());
            Ok(())
        }
        fn open(&mut self, path: &str) -> Result<()> {
            self.count(path, 0)
        }
        fn close(&mut self, _: &str) -> Result<()> {
            Ok(())
        }
        fn write(&mut self, path: &str, _: u64, _: u64) -> Result<()> {
            self.count(path, 2)
        }
        fn read(&mut self, path: &str, _: u64, _: u64) -> Result<()> {
            self.count(path, 1)
        }
        fn stat(&mut self, _: &str) -> Result<()> {
            Ok(())
        }
        fn unlink(&mut self, _: &str) -> Result<()> {
            Ok(())
        }
        fn rmdir(&mut self, _: &str) -> Result<()> {
            Ok(())
        }
        fn compute(&mut self, _: f64) -> Result<()> {
            Ok(())
        }
        fn sync(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn files_are_opened_as_often_as_the_mix_says_and_two_of_three_are_read() {
        let kind = |files, len, chosen| Mix { files, len, chosen };
        let mix = [kind(4, 512, 700), kind(2, 3 * UNIT, 300)];
        let stone = Iostone {
            mix: &mix,
            instances: 2,
            opened: 3000,
            read_of_three: 2,
        };
        let mut counts = Counts::default();
        stone.prepare(&mut counts).unwrap();
        assert_eq!(counts.0.len(), 12);
        counts.0.values_mut().for_each(|all| *all = [0; 3]);
        stone.run(&mut counts).unwrap();
        let sum = |kind: &str, which: usize| -> f64 {
            let some = counts.0.iter().filter(|(path, _)| path.contains(kind));
            some.map(|(_, all)| all[which] as f64).sum()
        };
        assert_eq!(sum("f0", 0) + sum("f1", 0), 6000.0);
        assert!((sum("f1", 0) / 6000.0 - 0.3).abs() < 0.02);
        assert!((sum("f0", 1) / sum("f0", 0) - 2.0 / 3.0).abs() < 0.02);
        // Three calls for each of the long ones.
        assert_eq!(sum("f1", 1) + sum("f1", 2), 3.0 * sum("f1", 0));
        assert!(counts.0.values().all(|all| all[0] > 300));
    }
}
