//! Workloads as the papers describe them, done with anything that has files: a volume, or a model of a kernel.

mod iostone;
mod tree;

pub use iostone::{Iostone, Mix};
pub use tree::{Tree, copy, make, read_all, remove, stat_all, with_lengths};

use anyhow::Result;

/// What has files. Paths are names with `/` between them; the root is the empty path.
pub trait Files {
    /// Makes a directory.
    fn mkdir(&mut self, path: &str) -> Result<()>;

    /// Makes a file, which is open from then on.
    fn create(&mut self, path: &str) -> Result<()>;

    /// Opens a file.
    fn open(&mut self, path: &str) -> Result<()>;

    /// Closes a file.
    fn close(&mut self, path: &str) -> Result<()>;

    /// Writes to an open file, by one call.
    fn write(&mut self, path: &str, at: u64, len: u64) -> Result<()>;

    /// Reads from an open file, by one call.
    fn read(&mut self, path: &str, at: u64, len: u64) -> Result<()>;

    /// Asks for a node's attributes.
    fn stat(&mut self, path: &str) -> Result<()>;

    /// Removes a file.
    fn unlink(&mut self, path: &str) -> Result<()>;

    /// Removes an empty directory.
    fn rmdir(&mut self, path: &str) -> Result<()>;

    /// Lets a program work for so many microseconds.
    fn compute(&mut self, micros: f64) -> Result<()>;

    /// Makes all changes so far durable.
    fn sync(&mut self) -> Result<()>;
}

/// Calls `does` with the offset and length of each part of a file.
///
/// # Errors
/// The first of `does`.
fn by_unit(len: u64, unit: u64, mut does: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let unit = unit.max(1);
    let mut at = 0;
    while at < len {
        does(at, unit.min(len - at))?;
        at += unit;
    }
    Ok(())
}

/// Makes a file of this length, written by `unit`, and closes it.
///
/// # Errors
/// Of the files.
pub fn write_new(files: &mut dyn Files, path: &str, len: u64, unit: u64) -> Result<()> {
    files.create(path)?;
    by_unit(len, unit, |at, len| files.write(path, at, len))?;
    files.close(path)
}

/// Reads a file of this length by `unit`.
///
/// # Errors
/// Of the files.
pub fn read_whole(files: &mut dyn Files, path: &str, len: u64, unit: u64) -> Result<()> {
    files.open(path)?;
    by_unit(len, unit, |at, len| files.read(path, at, len))?;
    files.close(path)
}

/// One of Ousterhout's tests with a file: what is done again and again.
#[derive(Clone, Copy, Debug)]
pub struct Again<'a> {
    /// The file.
    pub path: &'a str,
    /// Its length, in bytes.
    pub len: u64,
    /// Bytes of a call.
    pub unit: u64,
    /// Repetitions.
    pub times: usize,
}

impl Again<'_> {
    /// Reads the open file from its beginning to its end.
    ///
    /// # Errors
    /// Of the files.
    pub fn read(&self, files: &mut dyn Files) -> Result<()> {
        self.each(|at, len| files.read(self.path, at, len))
    }

    /// Overwrites the open file.
    ///
    /// # Errors
    /// Of the files.
    pub fn write(&self, files: &mut dyn Files) -> Result<()> {
        self.each(|at, len| files.write(self.path, at, len))
    }

    /// Makes, writes and removes the file, as Ousterhout's `crtdel` does.
    ///
    /// # Errors
    /// Of the files.
    pub fn create_and_delete(&self, files: &mut dyn Files) -> Result<()> {
        for _ in 0..self.times {
            write_new(files, self.path, self.len, self.unit)?;
            files.unlink(self.path)?;
        }
        Ok(())
    }

    fn each(&self, mut does: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        for _ in 0..self.times {
            by_unit(self.len, self.unit, &mut does)?;
        }
        Ok(())
    }
}
