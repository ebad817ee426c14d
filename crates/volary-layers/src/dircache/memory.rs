//! The cache of entries and attributes.

use crate::bounded::Bounded;
use std::collections::HashMap;
use volary_core::{Attr, Cred, Entry, NodeId, OpenId, Time};

/// Entries and attributes, each with the time at which it was read.
pub(super) struct Memory {
    attrs: Bounded<NodeId, (Attr, Time)>,
    dirs: Bounded<NodeId, Names>,
    /// How much the names of one directory may weigh.
    dir_max: usize,
    /// How long a value stays valid, in seconds; `None` for as long as it is cached.
    age: Option<u64>,
    /// The number of changes in progress.
    changing: u64,
    /// The number of finished changes and of change reports.
    changes: u64,
    /// The caller for whom the values were read, on volumes where callers may see different things.
    caller: Option<Cred>,
    /// The node of each open; bounded by the opens below.
    opens: HashMap<OpenId, NodeId>,
}

/// The nodes that names of a directory refer to; `None` for a name that does not exist.
#[derive(Default)]
struct Names {
    names: HashMap<Vec<u8>, (Option<NodeId>, Time)>,
    weight: usize,
}

/// The number of changes when a question was sent below. The answer is cached only if no change
/// came since.
#[derive(Clone, Copy)]
pub(super) struct Ticket(Option<u64>);

/// Roughly the memory that an entry and a node take, in bytes.
const ENTRY_WEIGHT: usize = 160;
const ATTR_WEIGHT: usize = 320;

impl Memory {
    pub(super) fn new(bytes: usize, age: Option<u64>) -> Self {
        Self {
            attrs: Bounded::new(bytes / 2, |_| ATTR_WEIGHT),
            dirs: Bounded::new(bytes / 2, |names: &Names| ENTRY_WEIGHT + names.weight),
            dir_max: bytes / 8,
            age,
            changing: 0,
            changes: 0,
            caller: None,
            opens: HashMap::new(),
        }
    }

    pub(super) fn ticket(&mut self) -> Ticket {
        Ticket((self.changing == 0).then_some(self.changes))
    }

    fn counts(&self, ticket: Ticket) -> bool {
        self.changing == 0 && ticket.0 == Some(self.changes)
    }

    fn is_fresh(&self, learnt: Time, now: Time) -> bool {
        let Some(age) = self.age else { return true };
        let since = now.secs.checked_sub(learnt.secs);
        since.is_some_and(|secs| secs >= 0 && secs.unsigned_abs() < age)
    }

    pub(super) fn only_for(&mut self, cred: &Cred) {
        if self.caller.as_ref() != Some(cred) {
            self.forget_all();
            self.changes += 1;
            self.caller = Some(cred.clone());
        }
    }

    pub(super) fn attr(&mut self, now: Time, node: NodeId) -> Option<Attr> {
        let (attr, learnt) = *self.attrs.get(&node)?;
        self.is_fresh(learnt, now).then_some(attr)
    }

    /// Returns the node that a name refers to, with its attributes if they are cached. `Some(None)`
    /// if the name is known not to exist.
    pub(super) fn entry(
        &mut self,
        now: Time,
        dir: NodeId,
        name: &[u8],
    ) -> Option<Option<(NodeId, Option<Attr>)>> {
        let (node, learnt) = *self.dirs.get(&dir)?.names.get(name)?;
        if !self.is_fresh(learnt, now) {
            return None;
        }
        Some(node.map(|node| (node, self.attr(now, node))))
    }

    pub(super) fn keep_attr(&mut self, ticket: Ticket, now: Time, attr: &Attr) {
        if self.counts(ticket) {
            self.attrs.insert(attr.node, (*attr, now));
        }
    }

    pub(super) fn keep(
        &mut self,
        ticket: Ticket,
        now: Time,
        dir: NodeId,
        name: &[u8],
        entry: Option<&Entry>,
    ) {
        if !self.counts(ticket) {
            return;
        }
        let weight = name.len() + ENTRY_WEIGHT;
        self.dirs.grew(weight);
        let known = self.dirs.get(&dir).map_or(0, |names| names.weight);
        if known == 0 || known + weight > self.dir_max {
            self.dirs.insert(dir, Names::default());
        }
        if let Some(names) = self.dirs.get(&dir) {
            let node = entry.map(|entry| entry.node);
            names.names.insert(name.to_vec(), (node, now));
            names.weight += weight;
        }
        if let Some(entry) = entry {
            self.attrs.insert(entry.node, (entry.attr, now));
        }
    }

    pub(super) fn begin(&mut self) {
        self.changing += 1;
    }

    pub(super) fn end(&mut self) {
        self.changing -= 1;
        self.changes += 1;
    }

    /// Notes a change that did not come through this layer.
    pub(super) fn heard(&mut self) {
        self.changes += 1;
    }

    pub(super) fn forget_attr(&mut self, node: NodeId) {
        self.attrs.remove(&node);
    }

    pub(super) fn forget_entry(&mut self, dir: NodeId, name: &[u8]) {
        if let Some(names) = self.dirs.get(&dir) {
            names.names.remove(name);
        }
    }

    pub(super) fn forget_entries(&mut self, dir: NodeId) {
        self.dirs.remove(&dir);
    }

    pub(super) fn forget_all(&mut self) {
        self.attrs.clear();
        self.dirs.clear();
    }

    pub(super) fn opened(&mut self, open: OpenId, node: NodeId) {
        self.opens.insert(open, node);
    }

    pub(super) fn closed(&mut self, open: OpenId) {
        self.opens.remove(&open);
    }

    pub(super) fn node_of(&self, open: OpenId) -> Option<NodeId> {
        self.opens.get(&open).copied()
    }
}
