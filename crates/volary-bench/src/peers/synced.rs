//! Small files that are made durable as programs do: what is timed on mounted
//! volumes, the same for each.

use super::trees::content;
use anyhow::Result;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;

/// Files of a directory.
pub(crate) const FILES: usize = 1000;
/// Files between one sync and the next.
const BATCH: usize = 100;
const FILE_LEN: usize = 1024;

fn name(number: usize) -> String {
    format!("file{number:05}.dat")
}

/// Creates the files, `batch` at a time; then each of these is fsynced, as
/// package managers do, and the directory.
fn create(dir: &Path, batch: usize) -> Result<()> {
    let numbers: Vec<usize> = (0..FILES).collect();
    for some in numbers.chunks(batch) {
        for number in some {
            let mut file = File::create_new(dir.join(name(*number)))?;
            file.write_all(&content(*number, FILE_LEN))?;
        }
        for number in some {
            File::open(dir.join(name(*number)))?.sync_all()?;
        }
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}

/// Creates the files in a new directory, synced a hundred at a time.
///
/// # Errors
/// The host's.
pub(crate) fn create_by_hundred(dir: &Path) -> Result<()> {
    create(dir, BATCH)
}

/// Creates the files in a new directory, each synced by itself.
///
/// # Errors
/// The host's.
pub(crate) fn create_each(dir: &Path) -> Result<()> {
    create(dir, 1)
}

/// Lists the names.
///
/// # Errors
/// The host's.
pub(crate) fn list(dir: &Path) -> Result<()> {
    let names: std::io::Result<Vec<_>> = fs::read_dir(dir)?.collect();
    anyhow::ensure!(names?.len() == FILES, "not all files are listed");
    Ok(())
}

/// Looks at each file.
///
/// # Errors
/// The host's.
pub(crate) fn stat(dir: &Path) -> Result<()> {
    for number in 0..FILES {
        let found = fs::symlink_metadata(dir.join(name(number)))?;
        anyhow::ensure!(found.len() == FILE_LEN as u64, "a file has another length");
    }
    Ok(())
}

/// Reads each file.
///
/// # Errors
/// The host's.
pub(crate) fn read(dir: &Path) -> Result<()> {
    let mut buf = Vec::with_capacity(FILE_LEN);
    for number in 0..FILES {
        buf.clear();
        File::open(dir.join(name(number)))?.read_to_end(&mut buf)?;
        anyhow::ensure!(buf.len() == FILE_LEN, "a file has another length");
    }
    Ok(())
}

/// Deletes the files; the directory is fsynced after each hundred.
///
/// # Errors
/// The host's.
pub(crate) fn delete(dir: &Path) -> Result<()> {
    for number in 0..FILES {
        fs::remove_file(dir.join(name(number)))?;
        if number % BATCH == BATCH - 1 {
            File::open(dir)?.sync_all()?;
        }
    }
    Ok(())
}
