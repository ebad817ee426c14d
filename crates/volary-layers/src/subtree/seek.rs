//! Finds a node in the subtree by its id alone, such as one that was given out before a restart.

use super::Subtree;
use volary_core::{Cookie, Ctx, DirBuf, FileKind, Kind, Mode, NodeId, OpenId, Result};

/// How many directories and entries a search for one node covers.
const DIRS_MAX: usize = 1 << 16;
const ENTRIES_MAX: usize = 1 << 20;
/// How many nodes are remembered as not found.
const MISSED_MAX: usize = 1 << 10;
/// How much one listing call returns: entries, and bytes of names.
const STEP: (usize, usize) = (1 << 10, 1 << 16);

/// The state of a search.
struct Way {
    dirs: Vec<NodeId>,
    seen: usize,
    entries: usize,
}

impl Subtree {
    /// Returns whether a search of the subtree, within the bounds, finds a node that is not a
    /// directory. All nodes met on the way are known afterwards.
    ///
    /// # Errors
    /// `Stale` for a node that no longer exists; the first error of listing a directory, if the
    /// node is not found elsewhere.
    pub(super) fn is_found(&self, cx: &Ctx<'_>, node: NodeId) -> Result<bool> {
        // A node that no longer exists is not worth a search.
        self.below.getattr(cx, node)?;
        let mut missed = self.missed.lock();
        if missed.contains(&node) {
            return Ok(false);
        }
        if !self.known.has(node) {
            self.seek(cx, node)?;
        }
        let found = self.known.has(node);
        if !found {
            if missed.len() >= MISSED_MAX {
                missed.clear();
            }
            missed.insert(node);
        }
        Ok(found)
    }

    fn seek(&self, cx: &Ctx<'_>, node: NodeId) -> Result<()> {
        let mut way = Way {
            dirs: vec![self.root],
            seen: 0,
            entries: 0,
        };
        let mut first = Ok(());
        while let Some(dir) = way.dirs.pop() {
            match self.go_through(cx, dir, &mut way) {
                // The directory may have been removed since it was listed.
                Err(e) if e == Kind::Stale => {}
                listed => first = first.and(listed),
            }
            if self.known.has(node) {
                return Ok(());
            }
            if way.entries > ENTRIES_MAX {
                break;
            }
        }
        first
    }

    fn go_through(&self, cx: &Ctx<'_>, dir: NodeId, way: &mut Way) -> Result<()> {
        let open = self.below.open(cx, dir, Mode::Read)?;
        let listed = self.list(cx, open, way);
        listed.and(self.below.close(cx, open))
    }

    fn list(&self, cx: &Ctx<'_>, dir: OpenId, way: &mut Way) -> Result<()> {
        let mut from = Cookie::START;
        loop {
            let mut list = DirBuf::new(STEP.0, STEP.1, false);
            let end = self.below.readdir(cx, dir, from, &mut list)?;
            way.entries += list.len();
            for entry in list.iter() {
                if entry.kind != FileKind::Dir {
                    self.known.add(entry.node);
                } else if way.seen < DIRS_MAX {
                    way.seen += 1;
                    way.dirs.push(entry.node);
                }
            }
            match list.last_cookie() {
                Some(next) if !end && way.entries <= ENTRIES_MAX => from = next,
                _ => return Ok(()),
            }
            cx.check_cancel()?;
        }
    }
}
