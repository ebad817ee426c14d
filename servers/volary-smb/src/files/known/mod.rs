//! [`Known`]: what the server remembers of a share's nodes, so that it need not ask the volume for
//! it with each request. Changes are news ([`volary_session::News`]) that make it forget.
//! Uses the clock alone.
//!
//! | module | what |
//! |---|---|
//! | `names` | which names a directory has, in whatever case |
//! | here | DOS attributes, and how long the list of extended attributes is |
//!
//! Where changes made elsewhere are told when they have happened
//! ([`Hearing::Told`]), nothing is believed for longer than [`AGE_MAX`], in case such news was
//! lost; where they are not told at all, nothing is remembered.

mod names;

use crate::clock::now;
use names::Names;
pub(crate) use names::{Build, hash};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use volary_core::NodeId;
use volary_session::{Hearing, News};

/// How old may be what others may have changed.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Most nodes that are remembered: about 4 MiB.
const NODES_MAX: usize = 1 << 16;

/// What extended attributes say of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// DOS attributes, if any are kept.
    pub(crate) dos: Option<u32>,
    /// Bytes of the list of extended attributes.
    pub(crate) ea_size: u32,
}

impl Kept {
    /// Of a node that has no extended attributes.
    pub(crate) const NOTHING: Self = Self {
        dos: None,
        ea_size: 0,
    };
}

/// What is remembered of one share's nodes.
pub(crate) struct Known {
    hearing: Hearing,
    nodes: Mutex<Nodes>,
    names: Names,
}

#[derive(Default)]
struct Nodes {
    kept: HashMap<NodeId, (Kept, Instant)>,
    /// How much news there was that changes any.
    news: u64,
}

/// News as far as it was heard when something began to be looked at.
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

    /// To be asked before what is then [remembered](Self::keep) is looked at.
    pub(crate) fn as_of(&self) -> AsOf {
        AsOf(self.nodes.lock().news)
    }

    /// Returns what is remembered of a node.
    pub(crate) fn kept(&self, node: NodeId) -> Option<Kept> {
        let found = self.nodes.lock().kept.get(&node).copied();
        found.and_then(|(kept, since)| self.is_fresh(since).then_some(kept))
    }

    /// Remembers it, unless there was news since.
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

    /// Returns whether the directory may have a name of this [`hash`]; none if that is not known.
    pub(crate) fn may_have(&self, dir: NodeId, hash: u64) -> Option<bool> {
        self.names.may_have(dir, hash, |since| self.is_fresh(since))
    }

    /// Begins to remember the names of a directory, which the caller is about to read; none if
    /// they are not to be remembered.
    pub(crate) fn read_names(&self, dir: NodeId) -> Option<Build<'_>> {
        (self.hearing != Hearing::Nothing)
            .then(|| self.names.build(dir))
            .flatten()
    }

    /// Forgets what the news makes wrong.
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

    /// What is remembered of a node that may be gone.
    fn forget_node(&self, node: NodeId) {
        self.forget_kept(node);
        self.names.forget(node);
    }

    fn forget_kept(&self, node: NodeId) {
        let mut nodes = self.nodes.lock();
        nodes.news = nodes.news.wrapping_add(1);
        nodes.kept.remove(&node);
    }

    /// Forgets all: after news that says no more, and when nobody uses the share any more.
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
