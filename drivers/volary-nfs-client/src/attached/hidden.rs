//! Files without a name of their own.
//!
//! NFS has no opens: a file goes with its last name. One that is open here and
//! loses its name is kept by another, `.volary-nfs-…`, in the same directory, that
//! is not listed here and goes with the last open. A directory in which nothing
//! else is left counts as empty: what is kept moves up when it is removed.

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

/// How names begin by which this process keeps files that are open and have none. Chance
/// tells processes apart: one that was killed leaves such names, and those are listed.
static HIDDEN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let chance = RandomState::new().hash_one(std::process::id());
    format!(".volary-nfs-{chance:016x}-").into_bytes()
});
/// How many names for this were made.
static HIDDEN_COUNT: AtomicU64 = AtomicU64::new(0);

/// Returns whether a name is one by which this process keeps a file, or kept one: a listing may
/// be older than the last close.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(&HIDDEN)
}

/// Files that are kept so.
pub(crate) struct HiddenFiles {
    entries: Arc<Entries>,
    attrs: Arc<Attrs>,
    behind: Arc<Behind>,
    /// The server has hard links.
    has_links: bool,
    /// All of them, with the directory: from before there is an entry to after the server has
    /// removed it.
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

    /// Returns those in a directory.
    pub(crate) fn under(&self, dir: NodeId) -> Vec<Arc<Node>> {
        let all = self.all.lock();
        let there = all.values().filter(|(_, at)| *at == dir);
        there.map(|(node, _)| Arc::clone(node)).collect()
    }

    /// Returns whether a node that is open here would go with one more of its names.
    pub(crate) fn would_go(&self, who: Who<'_>, node: &Arc<Node>) -> Result<bool> {
        if node.kind != FileKind::File || !node.is_open() {
            return Ok(false);
        }
        let attr = self.attrs.of(who, node)?;
        let hidden = u32::from(node.hidden.lock().is_some());
        Ok(attr.nlink.saturating_add(hidden) <= 1)
    }

    /// Keeps an open file by a name that is nobody's.
    pub(crate) fn hide(&self, who: Who<'_>, at: At<'_>, node: &Arc<Node>) -> Result<()> {
        self.behind.settle(node)?;
        let mut place = node.hidden.lock();
        if place.is_some() {
            // Somebody else's doing: the name is gone already.
            return Err(Kind::NotFound.into());
        }
        let (dir, name) = at;
        let hidden = hidden_name(node);
        self.add(node, dir.id);
        if let Err(e) = self.entries.rename(who, at, (dir, &hidden)) {
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

    /// Keeps an open file that is about to be replaced: by one more name, so that
    /// the old one is never free, if the server has hard links.
    pub(crate) fn keep_replaced(&self, who: Who<'_>, at: At<'_>, node: &Arc<Node>) -> Result<()> {
        if !self.has_links {
            return self.hide(who, at, node);
        }
        self.behind.settle(node)?;
        let hidden = hidden_name(node);
        self.add(node, at.0.id);
        if let Err(e) = self.entries.link(who, node, (at.0, &hidden)) {
            self.remove(node);
            return Err(e);
        }
        *node.hidden.lock() = Some(Hidden {
            dir: at.0.id,
            name: hidden,
        });
        Ok(())
    }

    /// Removes the name by which a file was kept, now that it is not open.
    pub(crate) fn let_go(&self, who: Who<'_>, node: &Arc<Node>) -> Result<()> {
        let mut place = node.hidden.lock();
        let Some(hidden) = place.take() else {
            return Ok(());
        };
        let done = self.entries.nodes.get(hidden.dir).and_then(|dir| {
            let entry = (&dir, hidden.name.as_slice());
            let done = self.entries.remove(who, procedure::REMOVE, entry)?;
            done.removed()
        });
        // Who waits for the place finds that the name is gone.
        drop(place);
        self.remove(node);
        node.expire();
        match done {
            // The directory, or the file, went by another's hand.
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Stale) => Ok(()),
            done => done,
        }
    }

    /// Moves hidden names of `all` from `from` to `to`; those that were released meanwhile are dropped.
    pub(crate) fn move_all(
        &self,
        who: Who<'_>,
        all: &[Arc<Node>],
        (from, to): (&Arc<Node>, &Arc<Node>),
    ) -> Result<()> {
        for node in all {
            let mut place = node.hidden.lock();
            let Some(hidden) = place.as_mut().filter(|h| h.dir == from.id) else {
                continue;
            };
            let name = hidden_name(node);
            self.entries
                .rename(who, (from, &hidden.name), (to, &name))?;
            *hidden = Hidden { dir: to.id, name };
            self.add(node, to.id);
        }
        Ok(())
    }
}

/// Returns a name that no other file has: not by this process, and by chance by no other.
fn hidden_name(node: &Node) -> Vec<u8> {
    let count = HIDDEN_COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = HIDDEN.clone();
    name.extend_from_slice(format!("{:x}-{count:x}", node.id.ino).as_bytes());
    name
}
