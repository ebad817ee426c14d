//! Finds the path from a directory up to the root, for changes of which only the directory is
//! known.

use volary_core::{Cookie, DirBuf, Mode, NodeId};
use volary_session::Session;

/// The most entries that are visited in one climb.
const ENTRIES_MAX: usize = 1 << 16;

/// The deepest directory whose changes are reported to watches of a whole tree.
const DEPTH_MAX: usize = 256;

/// Returns the directory and its ancestors, each with its name in the next one. The result is empty
/// if there is no way up.
///
/// # Errors
/// [`TooFar`].
pub(super) fn above(session: &Session, dir: NodeId) -> Result<Vec<(NodeId, Vec<u8>)>, TooFar> {
    let mut path = Vec::new();
    let mut here = dir;
    let mut left = ENTRIES_MAX;
    while here != session.root() && path.len() < DEPTH_MAX {
        let Ok(parent) = session.lookup(here, b"..") else {
            return Ok(Vec::new());
        };
        let Some(name) = name_in(session, parent.node, here, &mut left)? else {
            return Ok(Vec::new());
        };
        path.push((here, name));
        here = parent.node;
    }
    path.push((here, Vec::new()));
    Ok(path)
}

/// The climb would visit more entries than one change is worth.
pub(super) struct TooFar;

/// Returns the names from the directory `top` down to the first of `above`.
pub(super) fn below(above: &[(NodeId, Vec<u8>)], top: NodeId) -> Option<Vec<Vec<u8>>> {
    let depth = above.iter().position(|(node, _)| *node == top)?;
    let names = above.get(..depth)?.iter().rev();
    Some(names.map(|(_, name)| name.clone()).collect())
}

fn name_in(
    session: &Session,
    dir: NodeId,
    node: NodeId,
    left: &mut usize,
) -> Result<Option<Vec<u8>>, TooFar> {
    let Ok(open) = session.open(dir, Mode::Read) else {
        return Ok(None);
    };
    let mut from = Cookie::START;
    let mut found = None;
    while found.is_none() {
        let mut buf = DirBuf::new(256, 16 << 10, false);
        let Ok(end) = session.readdir(open, from, &mut buf) else {
            break;
        };
        *left = left.saturating_sub(buf.len());
        found = buf.iter().find(|e| e.node == node).map(|e| e.name.to_vec());
        match buf.last_cookie() {
            Some(last) if !end && *left > 0 => from = last,
            _ => break,
        }
    }
    // It was opened only for reading, so closing it cannot lose anything.
    let _ = session.close(open);
    if found.is_none() && *left == 0 {
        return Err(TooFar);
    }
    Ok(found)
}
