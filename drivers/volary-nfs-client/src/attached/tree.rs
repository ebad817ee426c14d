//! From a name to a node, and from a directory to its parent.

use crate::calls::entries::{At, Entries};
use crate::calls::export::Who;
use crate::content::attrs::Attrs;
use crate::fail;
use crate::known::node::Node;
use std::sync::Arc;
use volary_core::{Entry, FileKind, Kind, Name, NodeId, Result};

/// How often a look-up is repeated if others change the name meanwhile.
pub(crate) const RACES_MAX: u32 = 16;

/// A checked name in a directory.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) dir: &'a Arc<Node>,
    pub(crate) name: Name<'a>,
}

impl<'a> Place<'a> {
    /// Returns the same for calls.
    pub(crate) fn at(self) -> At<'a> {
        At {
            dir: self.dir,
            name: self.name.as_bytes(),
        }
    }
}

/// The tree of directories and their entries.
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
        let mut entry = Err(Kind::Stale.into());
        for _ in 0..RACES_MAX {
            let found = self.find(who, place)?;
            entry = self.attrs.entry(who, &found);
            if !matches!(&entry, Err(e) if *e == Kind::Stale) {
                break;
            }
            // The node no longer exists; the name may refer to another by now.
            let At { dir, name } = place.at();
            self.entries.names.forget(dir.id, name);
        }
        entry
    }

    /// Returns the node that a name refers to. Uses the cache as long as nobody else has changed
    /// the directory, and otherwise asks the server.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`.
    pub(crate) fn find(&self, who: Who<'_>, place: Place<'_>) -> Result<Arc<Node>> {
        let (dir, at) = (place.dir, place.at());
        if dir.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if dir.attr(self.attrs.cache).is_some()
            && let Some(node) = self.entries.known(at)
        {
            return Ok(node);
        }
        let node = self.entries.look_up(who, at)?;
        if node.is_hidden_as(dir.id, at.name) {
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
        let name = b"..".as_slice();
        let above = self.entries.look_up(who, At { dir, name })?;
        if above.kind != FileKind::Dir {
            return Err(fail::nonsense("..", "no directory", "a directory"));
        }
        Ok(above)
    }

    /// Returns whether `dir` is `above` or below it, according to the server.
    pub(crate) fn is_below(&self, who: Who<'_>, dir: &Arc<Node>, above: &Node) -> Result<bool> {
        // As deep as a path can be. It stops a server whose chain of parents never ends.
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
