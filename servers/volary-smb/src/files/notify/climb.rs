//! From a directory up to the root, by names: for changes of which only the directory is known.

use volary_core::{Cookie, DirBuf, Mode, NodeId};
use volary_session::Session;

/// Deepest directory whose changes are told to those who watch a tree.
const DEPTH_MAX: usize = 256;

/// The directory and those above it, each with its name in the one above.
pub(super) fn above(session: &Session, dir: NodeId) -> Vec<(NodeId, Vec<u8>)> {
    let mut path = Vec::new();
    let mut here = dir;
    while here != session.root() && path.len() < DEPTH_MAX {
        let Ok(parent) = session.lookup(here, b"..") else {
            return Vec::new();
        };
        let Some(name) = name_in(session, parent.node, here) else {
            return Vec::new();
        };
        path.push((here, name));
        here = parent.node;
    }
    path.push((here, Vec::new()));
    path
}

/// The names from the directory `top` down to the first of `above`.
pub(super) fn below(above: &[(NodeId, Vec<u8>)], top: NodeId) -> Option<Vec<Vec<u8>>> {
    let depth = above.iter().position(|(node, _)| *node == top)?;
    let names = above.get(..depth)?.iter().rev();
    Some(names.map(|(_, name)| name.clone()).collect())
}

fn name_in(session: &Session, dir: NodeId, node: NodeId) -> Option<Vec<u8>> {
    let open = session.open(dir, Mode::Read).ok()?;
    let mut from = Cookie::START;
    let mut found = None;
    while found.is_none() {
        let mut buf = DirBuf::new(256, 16 << 10, false);
        let Ok(end) = session.readdir(open, from, &mut buf) else {
            break;
        };
        found = buf.iter().find(|e| e.node == node).map(|e| e.name.to_vec());
        match buf.last_cookie() {
            Some(last) if !end => from = last,
            _ => break,
        }
    }
    // Opened to look only: there is nothing that ending it could lose.
    let _ = session.close(open);
    found
}
