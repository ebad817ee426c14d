//! Trees as the readers in Python print them: `I` and a word for each volume, and for each of its
//! nodes a line of `N`, kind, mode, owner, group, links, size, time, hash and path.

use crate::tree::{Leaf, Tree};
use volary_core::{FileKind, Time};

/// Returns a tree for each volume.
///
/// # Errors
/// A line that is none of these, or that says what was said.
pub(super) fn trees(printed: &str) -> Result<Vec<Tree>, String> {
    let mut trees = Vec::new();
    for line in printed.lines() {
        match (line.split_once(' '), trees.last_mut()) {
            (Some(("I", _)), _) => trees.push(Tree::default()),
            (Some(("N", rest)), Some(tree)) => {
                let (path, leaf) = node(rest).ok_or_else(|| line.to_owned())?;
                if tree.0.insert(path, leaf).is_some() {
                    return Err(format!("listed twice: {line}"));
                }
            }
            _ => return Err(line.to_owned()),
        }
    }
    Ok(trees)
}

fn node(line: &str) -> Option<(Vec<u8>, Leaf)> {
    let words: Vec<&str> = line.split(' ').collect();
    let &[kind, mode, uid, gid, links, size, nanos, hash, path] = words.as_slice() else {
        return None;
    };
    let kind = match kind {
        "f" => FileKind::File,
        "d" => FileKind::Dir,
        "l" => FileKind::Symlink,
        "p" => FileKind::Fifo,
        "s" => FileKind::Socket,
        "c" => FileKind::CharDevice,
        "b" => FileKind::BlockDevice,
        _ => return None,
    };
    let mode = u32::from_str_radix(mode, 8).ok()?;
    let nanos: i64 = nanos.parse().ok()?;
    let (secs, nanos) = (
        nanos.div_euclid(1_000_000_000),
        nanos.rem_euclid(1_000_000_000),
    );
    let leaf = Leaf {
        kind,
        size: size.parse().ok()?,
        hash: match hash {
            "-" => None,
            hex => Some(bytes(hex)?.try_into().ok()?),
        },
        owner: Some((mode, uid.parse().ok()?, gid.parse().ok()?)),
        links: Some(links.parse().ok()?),
        mtime: Some(Time::new(secs, u32::try_from(nanos).ok()?)),
    };
    Some((bytes(path)?, leaf))
}

/// Returns what pairs of digits stand for.
fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = (0..hex.len()).step_by(2);
    let byte = |at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    pairs.map(byte).collect()
}
