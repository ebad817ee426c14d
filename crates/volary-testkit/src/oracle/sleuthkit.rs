//! The Sleuth Kit: reads volumes as an examiner does, from the structures up.

use super::{Tool, host, run};
use crate::digest::digest;
use crate::tree::{Leaf, Tree};
use std::path::Path;
use volary_core::{FileKind, Time};

/// Lists.
pub const FLS: Tool = Tool {
    program: "fls",
    package: "sleuthkit",
};

/// Reads one file.
pub const ICAT: Tool = Tool {
    program: "icat",
    package: "sleuthkit",
};

/// Reads all of them, as icat does each.
pub const RECOVER: Tool = Tool {
    program: "tsk_recover",
    package: "sleuthkit",
};

/// Returns all that the volume holds, deleted names left out.
///
/// # Errors
/// What fls, tsk_recover or icat printed.
pub fn tree(image: &Path) -> Result<Tree, String> {
    let printed = run(FLS.command().args(["-r", "-p", "-u", "-m", ""]).arg(image))?;
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    run(RECOVER.command().arg("-a").arg(image).arg(dir.path()))?;
    let content = host::tree(dir.path()).map_err(|e| e.to_string())?;
    let mut tree = Tree::default();
    for row in parse(&String::from_utf8_lossy(&printed)) {
        let (path, mut leaf) = (row.path.into_bytes(), row.leaf);
        if leaf.kind == FileKind::File {
            leaf.hash = match content.0.get(&path) {
                Some(found) => found.hash,
                // It recovers nothing of an empty file, and icat would print nothing.
                None if leaf.size == 0 => Some(digest(&[])),
                None => Some(hash_by_icat(image, &row.inode)?),
            };
        }
        tree.0.insert(path, leaf);
    }
    Ok(tree)
}

fn hash_by_icat(image: &Path, inode: &str) -> Result<[u8; 32], String> {
    let content = run(ICAT.command().arg(image).arg(inode))?;
    Ok(digest(&content))
}

/// A line of fls.
pub(super) struct Row {
    pub(super) path: String,
    pub(super) inode: String,
    pub(super) leaf: Leaf,
}

/// Reads lines of the form `MD5|path|inode|mode|uid|gid|size|atime|mtime|..`.
/// The label and what exists only for the examiner are left out.
pub(super) fn parse(printed: &str) -> Vec<Row> {
    printed.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Row> {
    // A path may hold a bar: the other fields are counted from the end.
    let (_, rest) = line.split_once('|')?;
    let mut fields = rest.rsplitn(10, '|');
    let (_born, _changed) = (fields.next()?, fields.next()?);
    let mtime = fields.next()?.parse().ok()?;
    let _atime = fields.next()?;
    let size = fields.next()?.parse().ok()?;
    let (gid, uid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    let mode = fields.next()?;
    let inode = fields.next()?.to_string();
    let path = fields.next()?.strip_prefix('/')?.to_string();
    let kind = match mode.as_bytes().first()? {
        b'r' if !path.ends_with(" (Volume Label Entry)") => FileKind::File,
        b'd' => FileKind::Dir,
        _ => return None,
    };
    let leaf = Leaf {
        kind,
        size: if kind == FileKind::File { size } else { 0 },
        hash: None,
        owner: Some((permissions(mode.split_once('/')?.1)?, uid, gid)),
        links: None,
        mtime: Some(Time::from_secs(mtime)),
    };
    Some(Row { path, inode, leaf })
}

/// Returns the bits that a mode in letters stands for, as ls writes it.
fn permissions(letters: &str) -> Option<u32> {
    let mut bits = 0;
    for (place, letter) in letters.bytes().skip(1).enumerate() {
        let is_set = letter != b'-' && !letter.is_ascii_uppercase();
        let bit = 8_usize.checked_sub(place)?;
        bits |= u32::from(is_set) << bit;
        // Set-uid, set-gid and sticky stand where the right to execute does.
        let is_special = matches!(letter, b's' | b'S' | b't' | b'T');
        bits |= u32::from(is_special) << (9 + bit / 3);
    }
    Some(bits)
}
