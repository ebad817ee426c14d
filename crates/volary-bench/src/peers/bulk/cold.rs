//! Empties the host's caches of what is to be read: all of them as root, those of the files alone
//! otherwise.

use anyhow::{Context, Result};
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// With so many files, all of the host's caches are emptied; the rest of the machine is spared for fewer.
const MANY: u64 = 1000;

/// What to forget before each run.
pub(super) struct Cold {
    forgets_all: bool,
    paths: Vec<PathBuf>,
}

impl Cold {
    /// For these files, and all files in these directories; so many there are.
    pub(super) fn new(paths: Vec<PathBuf>, files: u64) -> Self {
        Self {
            forgets_all: files >= MANY && rustix::process::geteuid().is_root(),
            paths,
        }
    }

    /// Forgets them: afterwards reads go to the device.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn empty(&self) -> Result<()> {
        if self.forgets_all && fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
            return Ok(());
        }
        self.paths.iter().try_for_each(|path| forget(path))
    }
}

fn forget(path: &Path) -> Result<()> {
    let there = || path.display().to_string();
    let kind = fs::symlink_metadata(path).with_context(there)?;
    if kind.is_dir() {
        let entries = fs::read_dir(path).with_context(there)?;
        return entries
            .into_iter()
            .try_for_each(|entry| forget(&entry?.path()));
    }
    // What may not be read is not read by anybody here.
    if kind.is_file()
        && let Ok(file) = File::open(path)
    {
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    Ok(())
}
