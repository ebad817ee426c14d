//! From a name to a node, and from a directory to the one above.

use crate::calls::entries::Entries;
use crate::calls::export::Who;
use crate::content::attrs::Attrs;
use crate::fail;
use crate::known::node::Node;
use std::sync::Arc;
use volary_core::{Entry, FileKind, Kind, Name, NodeId, Result};

/// How often a name is tried again that others make and remove meanwhile.
pub(crate) const RACES_MAX: u32 = 16;

/// A place for a name.
pub(crate) type Place<'a> = (&'a Arc<Node>, Name<'a>);

/// Directories, and what is in them.
pub(crate) struct Tree {
    pub(crate) entries: Arc<Entries>,
    pub(crate) attrs: Arc<Attrs>,
    root: NodeId,
}

impl Tree {
    pub(crate) fn new(entries: Arc<Entries>, attrs: Arc<Attrs>, root: NodeId) -> Self {
        Self {
            entries,
            attrs,
            root,
        }
    }

    /// See [`lookup`](volary_core::FileSystem::lookup).
    pub(crate) fn find_entry(&self, who: Who<'_>, place: Place<'_>) -> Result<Entry> {
        let (dir, name) = place;
        let mut entry = Err(Kind::Stale.into());
        for _ in 0..RACES_MAX {
            let found = self.find(who, place)?;
            entry = self.attrs.entry(who, &found);
            if !matches!(&entry, Err(e) if *e == Kind::Stale) {
                break;
            }
            // What was there is gone; there may be another by now.
            self.entries.names.forget(dir.id, name.as_bytes());
        }
        entry
    }

    /// Returns what a name leads to: as remembered while nobody else has changed the
    /// directory, and otherwise as the server says.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`.
    pub(crate) fn find(&self, who: Who<'_>, (dir, name): Place<'_>) -> Result<Arc<Node>> {
        if dir.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let at = (dir, name.as_bytes());
        if dir.attr(self.attrs.cache).is_some()
            && let Some(node) = self.entries.known(at)
        {
            return Ok(node);
        }
        let node = self.entries.look_up(who, at)?;
        if node.is_hidden_as(dir.id, name.as_bytes()) {
            return Err(Kind::NotFound.into());
        }
        Ok(node)
    }

    /// See [`parent`](volary_core::FileSystem::parent).
    pub(crate) fn above(&self, who: Who<'_>, dir: &Arc<Node>) -> Result<Arc<Node>> {
        if dir.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if dir.id == self.root {
            return Ok(Arc::clone(dir));
        }
        let above = self.entries.look_up(who, (dir, b".."))?;
        if above.kind != FileKind::Dir {
            return Err(fail::nonsense("..", "no directory", "a directory"));
        }
        Ok(above)
    }

    /// Returns whether `dir` is `above` or in it, as far as the server tells.
    pub(crate) fn is_below(&self, who: Who<'_>, dir: &Arc<Node>, above: &Node) -> Result<bool> {
        // As deep as a path can be; a server whose `..` has no end stops here.
        const DEPTH_MAX: u32 = 4096;
        let mut at = Arc::clone(dir);
        for _ in 0..DEPTH_MAX {
            if at.id == above.id {
                return Ok(true);
            }
            if at.id == self.root {
                return Ok(false);
            }
            let next = self.above(who, &at)?;
            if next.id == at.id {
                return Ok(false);
            }
            at = next;
        }
        Err(fail::nonsense(
            "..",
            "a way without end",
            "a way to the root",
        ))
    }
}
