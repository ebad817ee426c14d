//! Making directories with those above them, and removing trees.

use super::error::VolResult;
use super::held::Held;
use super::list::{VolEntry, entries};
use std::collections::HashSet;
use volary_core::{Error, FileKind, Kind, NodeId, Result};
use volary_session::Follow;

/// Makes a directory, and missing ones above it.
///
/// # Errors
/// As [`Vol::mkdir_all`](crate::Vol::mkdir_all).
pub(super) fn make_all(held: &Held, path: &[u8]) -> Result<()> {
    let session = &held.session;
    let mut dir = session.root();
    for part in path.split(|&b| b == b'/').filter(|part| !part.is_empty()) {
        let made = match session.walk_from(dir, part, Follow::Yes) {
            Err(e) if e.kind() == Kind::NotFound => {
                match session.mkdir(dir, part, &held.new_dir()) {
                    // Another thread made it meanwhile.
                    Err(e) if e.kind() == Kind::Exists => session.walk_from(dir, part, Follow::Yes),
                    made => made,
                }
            }
            found => found,
        }?;
        if made.attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        dir = made.node;
    }
    Ok(())
}

/// Removes a file or symlink, or an empty directory.
///
/// # Errors
/// As [`Vol::remove`](crate::Vol::remove).
pub(super) fn remove(held: &Held, path: &[u8]) -> Result<()> {
    let (dir, name) = held.parent(path)?;
    match held.session.lookup(dir, &name)?.attr.kind {
        FileKind::Dir => held.session.rmdir(dir, &name),
        _ => held.session.unlink(dir, &name),
    }
}

/// A directory that is being emptied. It is removed afterwards.
struct Level {
    node: NodeId,
    /// The parent directory, in which it has `name`.
    dir: NodeId,
    name: Vec<u8>,
    /// Entries that are not removed yet.
    rows: Vec<VolEntry>,
    /// The length of the path of the directory above.
    path_len: usize,
}

/// Removes the node at a path, with everything below it.
///
/// # Errors
/// As [`Vol::remove_all`](crate::Vol::remove_all).
pub(super) fn remove_all(held: &Held, path: &[u8]) -> VolResult<()> {
    let mut removal = Removal {
        held,
        path: path.to_vec(),
        seen: HashSet::new(),
        levels: Vec::new(),
    };
    let mut begun = || {
        let (dir, name) = held.parent(path)?;
        let found = held.session.lookup(dir, &name)?;
        match found.attr.kind {
            FileKind::Dir => removal.enter(found.node, dir, name, path.len()),
            _ => held.session.unlink(dir, &name),
        }
    };
    let done = begun().and_then(|()| removal.go_on());
    done.map_err(|e| held.failed_at("remove", &removal.path, e))
}

struct Removal<'a> {
    held: &'a Held,
    path: Vec<u8>,
    seen: HashSet<NodeId>,
    levels: Vec<Level>,
}

impl Removal<'_> {
    fn enter(&mut self, node: NodeId, dir: NodeId, name: Vec<u8>, path_len: usize) -> Result<()> {
        if !self.seen.insert(node) {
            let words = "this directory is in another place too; the volume is damaged";
            return Err(Error::note(Kind::Corrupt, words));
        }
        self.levels.push(Level {
            rows: entries(self.held, node)?,
            node,
            dir,
            name,
            path_len,
        });
        Ok(())
    }

    fn go_on(&mut self) -> Result<()> {
        let session = &self.held.session;
        while let Some(level) = self.levels.last_mut() {
            let (node, path_len) = (level.node, self.path.len());
            match level.rows.pop() {
                Some(row) => {
                    self.path.push(b'/');
                    self.path.extend_from_slice(&row.name);
                    if row.is_dir() {
                        self.enter(row.node, node, row.name, path_len)?;
                    } else {
                        session.unlink(node, &row.name)?;
                        self.path.truncate(path_len);
                    }
                }
                None => {
                    session.rmdir(level.dir, &level.name)?;
                    let path_len = level.path_len;
                    self.path.truncate(path_len);
                    self.levels.pop();
                }
            }
        }
        Ok(())
    }
}
