//! Finds the records that are names of one file.

use crate::tree::node::{Entry, LinkKey, Nodes, id_at};
use crate::tree::walk::{Place, Visitor, walk};
use std::collections::HashMap;
use std::sync::OnceLock;
use volary_core::{Error, Kind, Result};

/// The lowest record of each file with several names. The table is built by one walk through the
/// volume, when the first such file is met. If it would take more than `memory` bytes, each name
/// counts as a file of its own.
#[derive(Debug)]
pub(crate) struct Links {
    first: OnceLock<HashMap<LinkKey, u64>>,
    memory: u64,
}

/// The approximate memory of an entry, in bytes.
const WEIGHT: u64 = 96;

impl Links {
    pub(crate) fn new(memory: u64) -> Self {
        let first = OnceLock::new();
        Self { first, memory }
    }

    /// Replaces the id of an entry and its node by that of the file's lowest record.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn unite(&self, nodes: &Nodes<'_>, entry: &mut Entry) -> Result<()> {
        let Some(key) = entry.link else { return Ok(()) };
        if let Some(first) = self.first(nodes, &key)? {
            entry.id = id_at(first)?;
            if let Some(node) = &mut entry.node {
                node.attr.node = entry.id;
            }
        }
        Ok(())
    }

    fn first(&self, nodes: &Nodes<'_>, key: &LinkKey) -> Result<Option<u64>> {
        if let Some(first) = self.first.get() {
            return Ok(first.get(key).copied());
        }
        // Two threads that build the table at once get the same result.
        let counted = self.count(nodes)?;
        Ok(self.first.get_or_init(|| counted).get(key).copied())
    }

    fn count(&self, nodes: &Nodes<'_>) -> Result<HashMap<LinkKey, u64>> {
        let mut counting = Counting {
            first: HashMap::new(),
            max: usize::try_from(self.memory / WEIGHT).unwrap_or(usize::MAX),
        };
        match walk(nodes, &mut counting) {
            Ok(()) => Ok(counting.first),
            Err(e) if e == Kind::NoSpace => Ok(HashMap::new()),
            Err(e) => Err(e),
        }
    }
}

struct Counting {
    first: HashMap<LinkKey, u64>,
    max: usize,
}

impl Visitor for Counting {
    fn entry(&mut self, _: &Place<'_>, entry: &Entry) -> Result<()> {
        let Some(key) = entry.link else { return Ok(()) };
        if self.first.len() >= self.max {
            return Err(Kind::NoSpace.into());
        }
        let at = entry.id.ino.get();
        let first = self.first.entry(key).or_insert(at);
        *first = at.min(*first);
        Ok(())
    }

    fn bad(&mut self, _: &Place<'_>, e: Error) -> Result<()> {
        if e == Kind::Io { Err(e) } else { Ok(()) }
    }
}
