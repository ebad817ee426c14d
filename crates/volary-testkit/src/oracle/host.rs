//! A directory of the host as a [`Tree`], and a directory made from one.

use crate::digest::digest;
use crate::tree::{Leaf, Tree};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;
use volary_core::{FileKind, Time};

/// Returns all that is in a directory: files and directories, without owners.
///
/// # Errors
/// What the host answers.
pub fn tree(dir: &Path) -> io::Result<Tree> {
    let mut tree = Tree::default();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(&at)? {
            let path = entry?.path();
            let meta = std::fs::symlink_metadata(&path)?;
            let (kind, hash) = if meta.is_dir() {
                todo.push(path.clone());
                (FileKind::Dir, None)
            } else {
                let content = std::fs::read(&path)?;
                (FileKind::File, Some(digest(&content)))
            };
            let leaf = Leaf {
                kind,
                size: if meta.is_dir() { 0 } else { meta.len() },
                hash,
                owner: None,
                links: None,
                mtime: Some(Time::from(meta.modified()?)),
            };
            let name = path.strip_prefix(dir).unwrap_or(&path);
            tree.0.insert(name.as_os_str().as_bytes().to_vec(), leaf);
        }
    }
    Ok(tree)
}

/// Writes a file of the host with a time of last change, and the directories
/// that lead to it.
///
/// # Errors
/// What the host answers.
pub fn write(path: &Path, content: &[u8], mtime: Time) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(path, content)?;
    std::fs::File::open(path)?.set_modified(mtime.into())
}

/// Writes what is not zero of these bytes to where a file has none yet.
///
/// # Errors
/// What the host answers.
pub fn write_sparse(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    const PART: usize = 4096;
    for (part, at) in bytes.chunks(PART).zip((at..).step_by(PART)) {
        if !volary_core::is_zero(part) {
            file.write_all_at(part, at)?;
        }
    }
    file.set_len(file.metadata()?.len().max(at + bytes.len() as u64))
}
