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
