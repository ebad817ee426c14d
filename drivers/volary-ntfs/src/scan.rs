//! Visits all records. Damage does not stop the scan.

use crate::disk::ondisk::{kind, number};
use crate::files::node::{Listed, Node};
use crate::files::stream::{Content, Stream};
use crate::mft::record::{Body, Record};
use crate::mft::records::Mft;
use volary_core::{Error, Kind, Result};

/// Receives what a scan finds. If a method returns an error, the scan ends with it.
pub(crate) trait Visitor {
    /// Is called before each record. `records` is the number of all records.
    fn at(&mut self, number: u64, records: u64) -> Result<()> {
        let _ = (number, records);
        Ok(())
    }
    /// Receives an extension record.
    fn extension(&mut self, record: &Record) -> Result<()> {
        let _ = record;
        Ok(())
    }
    /// Receives a base record.
    fn node(&mut self, node: &Node) -> Result<()> {
        let _ = node;
        Ok(())
    }
    /// Receives an attribute that has clusters.
    fn stream(&mut self, node: &Node, kind: u32, name: &[u16], stream: &Stream) -> Result<()>;
    /// Receives a record that is not in use.
    fn unused(&mut self, number: u64) -> Result<()> {
        let _ = number;
        Ok(())
    }
    /// Receives the damage of a record, with the code of the finding.
    fn bad(&mut self, number: u64, code: &'static str, e: Error) -> Result<()>;
}

/// Returns whether a record is one of the volume's own files.
pub(crate) fn is_of_volume(number: u64) -> bool {
    number < number::FIRST_USER && number != number::ROOT
}

/// A scan under way.
pub(crate) struct Scan<'a, 'v> {
    mft: &'a Mft,
    visitor: &'v mut dyn Visitor,
}

impl<'a, 'v> Scan<'a, 'v> {
    pub(crate) fn new(mft: &'a Mft, visitor: &'v mut dyn Visitor) -> Self {
        Self { mft, visitor }
    }

    /// Visits the whole volume.
    ///
    /// # Errors
    /// Those of the visitor; `Io`.
    pub(crate) fn volume(&mut self) -> Result<()> {
        let records = self.mft.count();
        for number in 0..records {
            self.visitor.at(number, records)?;
            match self.mft.record(number) {
                Ok(record) if !record.is_used() => self.visitor.unused(number)?,
                Ok(record) if record.base().is_some() => self.visitor.extension(&record)?,
                Ok(record) => self.node(record)?,
                Err(e) => told(self.visitor, number, "record", e)?,
            }
        }
        Ok(())
    }

    /// Visits a node, whose base record is given.
    ///
    /// # Errors
    /// Those of the visitor; `Io`.
    pub(crate) fn node(&mut self, record: Record) -> Result<()> {
        let number = record.number;
        let node = match Node::with_list(self.mft, record) {
            Ok(node) => node,
            Err(e) => return told(self.visitor, number, "attribute-list", e),
        };
        self.visitor.node(&node)?;
        self.list(&node)?;
        for (kind, name) in attributes(&node) {
            match node.stream(self.mft, kind, &name) {
                Ok(Some(stream)) if matches!(stream.content, Content::Mapped(_)) => {
                    self.visitor.stream(&node, kind, &name, &stream)?;
                }
                Ok(_) => {}
                // An unknown method of compression is no damage.
                Err(e) if e == Kind::Unsupported => {}
                Err(e) => told(self.visitor, number, "runs", e)?,
            }
        }
        Ok(())
    }

    /// Visits the attribute list if it has clusters, because no list names the list itself.
    fn list(&mut self, node: &Node) -> Result<()> {
        let record = &node.record;
        let mut all = record.attrs.iter();
        let index = all.position(|attr| attr.kind == kind::ATTRIBUTE_LIST);
        let Some(index) = index.filter(|_| node.list.is_some()) else {
            return Ok(());
        };
        match Stream::of(self.mft, record, index, &[]) {
            Ok(stream) if matches!(stream.content, Content::Mapped(_)) => {
                self.visitor
                    .stream(node, kind::ATTRIBUTE_LIST, &[], &stream)
            }
            Ok(_) => Ok(()),
            Err(e) => told(self.visitor, record.number, "attribute-list", e),
        }
    }
}

/// Returns the type and name of each attribute that may have clusters, without the attribute list.
fn attributes(node: &Node) -> Vec<(u32, Vec<u16>)> {
    let record = &node.record;
    match &node.list {
        None => {
            let mapped = record
                .attrs
                .iter()
                .filter(|attr| matches!(attr.body, Body::Mapped(_)));
            mapped
                .map(|attr| (attr.kind, record.name_of(attr)))
                .collect()
        }
        Some(list) => {
            let may_have_clusters = |one: &&Listed| {
                let never = [
                    kind::STANDARD_INFORMATION,
                    kind::FILE_NAME,
                    kind::INDEX_ROOT,
                ];
                one.lowest == 0 && !never.contains(&one.kind)
            };
            let first = list.iter().filter(may_have_clusters);
            first.map(|one| (one.kind, one.name.clone())).collect()
        }
    }
}

fn told(visitor: &mut dyn Visitor, number: u64, code: &'static str, e: Error) -> Result<()> {
    match e.kind() {
        Kind::Io | Kind::Interrupted => Err(e),
        _ => visitor.bad(number, code, e),
    }
}
