//! Finds the paths of some inodes, for findings from before the check walks the directories.
//! Damaged directories are skipped.

use super::findings::Findings;
use super::inodes::Inodes;
use crate::directory::dir::{DAMAGE_MAX, Dir};
use crate::disk::ondisk::UFS_ROOTINO;
use crate::inodes::blocks::Reader;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use volary_core::{FileKind, Result};

/// The longest path that is assembled, in bytes.
const PATH_MAX: usize = 4096;

/// Directories that were reached: the parent of each, and its name there.
pub(super) type Parents = HashMap<u32, (u32, Vec<u8>)>;

/// A name that leads to an inode.
pub(super) struct Named {
    pub(super) path: Vec<u8>,
    /// The kind that the entry states, if it states one.
    pub(super) kind: Option<FileKind>,
}

/// Finds one path of each inode of `wanted` that has any.
///
/// # Errors
/// `Interrupted`.
pub(super) fn of(
    reader: &Reader<'_>,
    inodes: &Inodes,
    wanted: &BTreeSet<u32>,
    findings: &Findings<'_>,
) -> Result<BTreeMap<u32, Named>> {
    let mut paths = Paths {
        parents: HashMap::new(),
        found: BTreeMap::new(),
    };
    if wanted.is_empty() {
        return Ok(paths.found);
    }
    if wanted.contains(&UFS_ROOTINO) {
        let root = Named {
            path: b"/".to_vec(),
            kind: Some(FileKind::Dir),
        };
        paths.found.insert(UFS_ROOTINO, root);
    }
    let (mut todo, mut done) = (vec![UFS_ROOTINO], 0);
    // Each byte of the volume belongs to one directory at most.
    let mut left = reader.volume.size.saturating_mul(reader.volume.fsize);
    while let Some(ino) = todo.pop() {
        done += 1;
        findings.progress("paths", done, 0)?;
        // Directories that cannot be read are reported elsewhere.
        let Ok(inode) = inodes.inode(reader, ino) else {
            continue;
        };
        let Ok(mut dir) = Dir::new(*reader, &inode) else {
            continue;
        };
        let Some(more) = left.checked_sub(inode.size) else {
            continue;
        };
        left = more;
        let (mut at, mut damaged) = (0, 0);
        while at < inode.size && damaged < DAMAGE_MAX {
            let entry = match dir.entry(at) {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(_) => {
                    damaged += 1;
                    at = Dir::next_chunk(at);
                    continue;
                }
            };
            at = entry.end;
            if !entry.is_used() || entry.is_dots() {
                continue;
            }
            if wanted.contains(&entry.ino) && !paths.found.contains_key(&entry.ino) {
                let path = path(&paths.parents, ino, Some(entry.name));
                let kind = entry.kind;
                paths.found.insert(entry.ino, Named { path, kind });
            }
            let is_dir = inodes.all.get(&entry.ino);
            let is_dir = is_dir.is_some_and(|seen| seen.kind == FileKind::Dir);
            if is_dir && entry.ino != UFS_ROOTINO && !paths.parents.contains_key(&entry.ino) {
                paths.parents.insert(entry.ino, (ino, entry.name.to_vec()));
                todo.push(entry.ino);
            }
        }
    }
    Ok(paths.found)
}

struct Paths {
    parents: Parents,
    found: BTreeMap<u32, Named>,
}

/// Assembles the path of a directory, or of a name in it.
pub(super) fn path(parents: &Parents, dir: u32, name: Option<&[u8]>) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = name.into_iter().collect();
    let (mut at, mut len) = (dir, 0);
    while let Some((parent, name)) = parents.get(&at).filter(|_| len < PATH_MAX) {
        parts.push(name);
        len += name.len() + 1;
        at = *parent;
    }
    let mut path = Vec::new();
    for part in parts.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(part);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    path
}
