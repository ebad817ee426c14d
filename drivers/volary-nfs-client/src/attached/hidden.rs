//! Files that are open but have no name any more.
//!
//! NFS has no opens: a file vanishes with its last name. If an open file loses its last name, it
//! gets a hidden one, `.volary-nfs-…`, in the same directory. This name is not listed here, and is
//! removed with the last open. A directory with only hidden names counts as empty: when it is
//! removed, they are moved to its parent.

use crate::calls::entries::{At, Entries};
use crate::calls::export::Who;
use crate::content::attrs::Attrs;
use crate::content::behind::Behind;
use crate::known::node::{Hidden, Node};
use crate::wire::proto::procedure;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use volary_core::{FileKind, Kind, NodeId, Result};

/// Prefix of the hidden names of this process. It is random, since a killed process leaves hidden
/// names behind, which must be listed.
static HIDDEN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let chance = RandomState::new().hash_one(std::process::id());
    format!(".volary-nfs-{chance:016x}-").into_bytes()
});
/// How many hidden names this process has made.
static HIDDEN_COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns whether a name is, or was, a hidden name of this process: a listing may be older than
/// the last close.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(&HIDDEN)
}

/// The files with hidden names.
pub(crate) struct HiddenFiles {
    entries: Arc<Entries>,
    attrs: Arc<Attrs>,
    behind: Arc<Behind>,
    /// Whether the server supports hard links.
    has_links: bool,
    /// All files with hidden names, and their directories. A file is added before its hidden name
    /// is made, and removed after the server has removed that name.
    all: Mutex<HashMap<NodeId, (Arc<Node>, NodeId)>>,
}

impl HiddenFiles {
    pub(crate) fn new(
        entries: Arc<Entries>,
        attrs: Arc<Attrs>,
        behind: Arc<Behind>,
        has_links: bool,
    ) -> Self {
        Self {
            entries,
            attrs,
            behind,
            has_links,
            all: Mutex::default(),
        }
    }

    fn add(&self, node: &Arc<Node>, dir: NodeId) {
        self.all.lock().insert(node.id, (Arc::clone(node), dir));
    }

    fn remove(&self, node: &Node) {
        self.all.lock().remove(&node.id);
    }

    /// Returns the hidden files of a directory.
    pub(crate) fn under(&self, dir: NodeId) -> Vec<Arc<Node>> {
        let all = self.all.lock();
        let there = all.values().filter(|(_, at)| *at == dir);
        there.map(|(node, _)| Arc::clone(node)).collect()
    }

    /// Returns whether an open node would lose its last name if one name was removed.
    pub(crate) fn would_go(&self, who: Who<'_>, node: &Arc<Node>) -> Result<bool> {
        if node.kind != FileKind::File || !node.is_open() {
            return Ok(false);
        }
        let attr = self.attrs.of(who, node)?;
        let hidden = u32::from(node.hidden.lock().is_some());
        Ok(attr.nlink.saturating_add(hidden) <= 1)
    }

    /// Renames an open file to a hidden name.
    pub(crate) fn hide(&self, who: Who<'_>, at: At<'_>, node: &Arc<Node>) -> Result<()> {
        self.behind.settle(node)?;
        let mut place = node.hidden.lock();
        if place.is_some() {
            // Another thread has hidden it: the name no longer exists.
            return Err(Kind::NotFound.into());
        }
        let At { dir, name } = at;
        let hidden = hidden_name(node);
        self.add(node, dir.id);
        if let Err(e) = self.entries.rename(who, at, At { dir, name: &hidden }) {
            self.remove(node);
            return Err(e);
        }
        *place = Some(Hidden {
            dir: dir.id,
            name: hidden,
        });
        self.entries.names.forget(dir.id, name);
        Ok(())
    }

    /// Keeps an open file that is about to be replaced. If the server has hard links, it gets a
    /// hidden name in addition, so that the old one is never free.
    pub(crate) fn keep_replaced(&self, who: Who<'_>, at: At<'_>, node: &Arc<Node>) -> Result<()> {
        if !self.has_links {
            return self.hide(who, at, node);
        }
        self.behind.settle(node)?;
        let hidden = hidden_name(node);
        let new = At {
            dir: at.dir,
            name: &hidden,
        };
        self.add(node, at.dir.id);
        if let Err(e) = self.entries.link(who, node, new) {
            self.remove(node);
            return Err(e);
        }
        *node.hidden.lock() = Some(Hidden {
            dir: at.dir.id,
            name: hidden,
        });
        Ok(())
    }

    /// Removes the hidden name of a file that is no longer open.
    pub(crate) fn let_go(&self, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        let mut place = node.hidden.lock();
        let Some(hidden) = place.take() else {
            return Ok(());
        };
        let done = self.entries.nodes.get(hidden.dir).and_then(|dir| {
            let at = At {
                dir: &dir,
                name: &hidden.name,
            };
            let done = self.entries.remove(who, procedure::REMOVE, at)?;
            done.removed()
        });
        // A thread that waits for the lock then sees that the name is gone.
        drop(place);
        self.remove(node);
        node.expire();
        match done {
            // Somebody else removed the directory, or the file.
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Stale) => Ok(()),
            done => done,
        }
    }

    /// Moves the hidden names of `all` from `from` to `to`. Skips files that were closed meanwhile.
    pub(crate) fn move_all(
        &self,
        who: Who<'_>,
        all: &[Arc<Node>],
        from: &Arc<Node>,
        to: &Arc<Node>,
    ) -> Result<()> {
        for node in all {
            let mut place = node.hidden.lock();
            let Some(hidden) = place.as_mut().filter(|h| h.dir == from.id) else {
                continue;
            };
            let name = hidden_name(node);
            let old = At {
                dir: from,
                name: &hidden.name,
            };
            let new = At {
                dir: to,
                name: &name,
            };
            self.entries.rename(who, old, new)?;
            *hidden = Hidden { dir: to.id, name };
            self.add(node, to.id);
        }
        Ok(())
    }
}

/// Returns a new hidden name: the count makes it unique in this process, and the prefix among
/// processes.
fn hidden_name(node: &Node) -> Vec<u8> {
    let count = HIDDEN_COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = HIDDEN.clone();
    name.extend_from_slice(format!("{:x}-{count:x}", node.id.ino).as_bytes());
    name
}
