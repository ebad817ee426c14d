//! The trees that are copied.

use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;

/// `files` files of `len` bytes, spread over `dirs` directories, all below
/// `root`, which is made.
pub(crate) fn make(root: &Path, dirs: usize, files: usize, len: usize) -> Result<()> {
    fs::create_dir(root)?;
    for d in 0..dirs {
        fs::create_dir(root.join(format!("d{d:03}")))?;
    }
    for f in 0..files {
        let dir = root.join(format!("d{:03}", f % dirs));
        fs::write(dir.join(format!("file{f:05}.dat")), content(f, len))?;
    }
    Ok(())
}

/// A file of `len` bytes, whole MiB, made without holding all of it: what this
/// process holds counts in the peaks of the programs that it starts.
pub(crate) fn make_file(path: &Path, len: usize) -> Result<()> {
    let mut file = fs::File::create_new(path)?;
    for part in 0..len >> 20 {
        file.write_all(&content(part, 1 << 20))?;
    }
    Ok(())
}

/// What a tree holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counted {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

/// Counts the files below a directory that may be read, and their bytes.
///
/// # Errors
/// The host's, of the directory; what is below and cannot be read is nobody's to read.
pub(crate) fn count(dir: &Path) -> Result<Counted> {
    let mut counted = Counted::default();
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    for entry in entries.filter_map(std::result::Result::ok) {
        let Ok(kind) = entry.metadata() else { continue };
        if kind.is_dir() {
            let below = count(&entry.path()).unwrap_or_default();
            counted.files += below.files;
            counted.bytes += below.bytes;
        } else if kind.is_file() {
            counted.files += 1;
            counted.bytes += kind.len();
        }
    }
    Ok(counted)
}

/// Returns the bytes of file number `seed`: neither all zeros nor compressible to nothing.
pub(crate) fn content(seed: usize, len: usize) -> Vec<u8> {
    let mut x = (seed as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend_from_slice(&x.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Copies a tree as a plain program would, one file after the other: what is
/// timed on mounted volumes, the same for each. Ends with the data on its way
/// to the volume's device (`syncfs`).
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    copy_dir(from, to)?;
    let dir = fs::File::open(to)?;
    rustix::fs::syncfs(&dir)?;
    Ok(())
}

fn copy_dir(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &target)?;
        } else {
            fs::write(target, fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
