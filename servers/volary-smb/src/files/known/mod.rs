//! [`Known`]: what the server caches about a share's nodes, to save requests to the volume. News of
//! changes ([`volary_session::News`]) invalidates entries. Uses only the clock.
//!
//! | module | what |
//! |---|---|
//! | `names` | the names in a directory, regardless of case |
//! | this one | DOS attributes, and the length of the list of extended attributes |
//!
//! Changes made elsewhere may be reported only after they have happened ([`Hearing::Told`]).
//! Entries then expire after [`AGE_MAX`], in case such news is lost. If changes are not reported at
//! all, nothing is cached.

mod names;

use crate::clock::now;
use names::Names;
pub(crate) use names::{Build, hash};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use volary_core::NodeId;
use volary_session::{Hearing, News};

/// The greatest age of entries that others may have changed.
const AGE_MAX: Duration = Duration::from_secs(10);
/// The most cached nodes, which take about 4 MiB.
const NODES_MAX: usize = 1 << 16;

/// What the extended attributes of a node say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// DOS attributes, if any are stored.
    pub(crate) dos: Option<u32>,
    /// The length of the list of extended attributes.
    pub(crate) ea_size: u32,
}

impl Kept {
    /// The value for a node without extended attributes.
    pub(crate) const NOTHING: Self = Self {
        dos: None,
        ea_size: 0,
    };
}

/// The cache of one share's nodes.
pub(crate) struct Known {
    hearing: Hearing,
    nodes: Mutex<Nodes>,
    names: Names,
}

#[derive(Default)]
struct Nodes {
    kept: HashMap<NodeId, (Kept, Instant)>,
    /// How much news has changed nodes.
    news: u64,
}

/// The state of the news when a look-up began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AsOf(u64);

impl Known {
    pub(crate) fn new(hearing: Hearing) -> Self {
        Self {
            hearing,
            nodes: Mutex::default(),
            names: Names::default(),
        }
    }

    fn is_fresh(&self, since: Instant) -> bool {
        match self.hearing {
            Hearing::All => true,
            Hearing::Told => now().duration_since(since) < AGE_MAX,
            Hearing::Nothing => false,
        }
    }

    /// Returns the state of the news. Call it before looking up what is then [cached](Self::keep).
    pub(crate) fn as_of(&self) -> AsOf {
        AsOf(self.nodes.lock().news)
    }

    /// Returns the cached value for a node.
    pub(crate) fn kept(&self, node: NodeId) -> Option<Kept> {
        let found = self.nodes.lock().kept.get(&node).copied();
        found.and_then(|(kept, since)| self.is_fresh(since).then_some(kept))
    }

    /// Caches the value, unless there was news since `as_of`.
    pub(crate) fn keep(&self, node: NodeId, kept: Kept, as_of: AsOf) {
        if self.hearing == Hearing::Nothing {
            return;
        }
        let mut nodes = self.nodes.lock();
        if nodes.news != as_of.0 {
            return;
        }
        if nodes.kept.len() >= NODES_MAX {
            nodes.kept = HashMap::new();
        }
        nodes.kept.insert(node, (kept, now()));
    }

    /// Returns whether the directory may have a name with this [`hash`]. Returns `None` if that is
    /// unknown.
    pub(crate) fn may_have(&self, dir: NodeId, hash: u64) -> Option<bool> {
        self.names.may_have(dir, hash, |since| self.is_fresh(since))
    }

    /// Begins to cache the names of a directory that the caller is about to read. Returns `None` if
    /// they must not be cached.
    pub(crate) fn read_names(&self, dir: NodeId) -> Option<Build<'_>> {
        (self.hearing != Hearing::Nothing)
            .then(|| self.names.build(dir))
            .flatten()
    }

    /// Drops entries that the news invalidates.
    pub(crate) fn hear(&self, news: &News) {
        match news {
            News::Made { dir, name, .. } => self.names.add(*dir, name),
            News::Removed { node, .. } => {
                if let Some(node) = node {
                    self.forget_node(*node);
                }
            }
            News::Renamed {
                from,
                name,
                to,
                new_name,
                swapped,
                replaced,
                ..
            } => {
                if let Some(node) = replaced {
                    self.forget_node(*node);
                }
                self.names.add(*to, new_name);
                if *swapped {
                    self.names.add(*from, name);
                }
            }
            News::Attr(node) => self.forget_kept(*node),
            News::Gone(node) => self.forget_node(*node),
            News::Entries(dir) => self.names.forget(*dir),
            News::Everything => self.forget_all(),
            News::Data(_) => {}
        }
    }

    /// Drops the entries of a node that may be gone.
    fn forget_node(&self, node: NodeId) {
        self.forget_kept(node);
        self.names.forget(node);
    }

    fn forget_kept(&self, node: NodeId) {
        let mut nodes = self.nodes.lock();
        nodes.news = nodes.news.wrapping_add(1);
        nodes.kept.remove(&node);
    }

    /// Drops all entries. This is needed after unspecific news, and when the share is no longer
    /// used.
    pub(crate) fn forget_all(&self) {
        let mut nodes = self.nodes.lock();
        nodes.news = nodes.news.wrapping_add(1);
        nodes.kept = HashMap::new();
        drop(nodes);
        self.names.forget_all();
    }
}

#[cfg(test)]
mod tests;
