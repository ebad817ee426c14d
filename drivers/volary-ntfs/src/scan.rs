//! Goes through all records in use, whatever damage there is.

use crate::node::{Listed, Node};
use crate::ondisk::{kind, number};
use crate::record::{Body, Record};
use crate::store::Store;
use crate::stream::{Content, Stream};
use volary_core::{Error, Kind, Result};

/// Receives what a scan meets. An error ends the scan.
pub(crate) trait Visitor {
    /// Comes to a record, of so many.
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
    /// Receives damage of a record, with the code of the finding.
    fn bad(&mut self, number: u64, code: &'static str, e: Error) -> Result<()>;
}

/// Returns whether a record is one of the volume's own.
pub(crate) fn is_of_volume(number: u64) -> bool {
    number < number::FIRST_USER && number != number::ROOT
}

impl Store {
    /// Checks the whole volume.
    ///
    /// # Errors
    /// Of `visitor`; `Io`.
    pub(crate) fn scan(&self, visitor: &mut dyn Visitor) -> Result<()> {
        let records = self.mft.records(&self.volume);
        for number in 0..records {
            visitor.at(number, records)?;
            match self.record(number) {
                Ok(record) if !record.is_used() => visitor.unused(number)?,
                Ok(record) if record.base().is_some() => visitor.extension(&record)?,
                Ok(record) => self.scan_node(record, visitor)?,
                Err(e) => told(visitor, number, "record", e)?,
            }
        }
        Ok(())
    }

    pub(crate) fn scan_node(&self, record: Record, visitor: &mut dyn Visitor) -> Result<()> {
        let number = record.number;
        let node = match self.with_list(record) {
            Ok(node) => node,
            Err(e) => return told(visitor, number, "attribute-list", e),
        };
        visitor.node(&node)?;
        self.scan_list(&node, visitor)?;
        for (kind, name) in attributes(&node) {
            match self.stream(&node, kind, &name) {
                Ok(Some(stream)) if matches!(stream.content, Content::Mapped(_)) => {
                    visitor.stream(&node, kind, &name, &stream)?;
                }
                Ok(_) => {}
                // What is not known is no damage.
                Err(e) if e == Kind::Unsupported => {}
                Err(e) => told(visitor, number, "runs", e)?,
            }
        }
        Ok(())
    }

    /// Gives the list itself, which is in no list, if it has clusters.
    fn scan_list(&self, node: &Node, visitor: &mut dyn Visitor) -> Result<()> {
        let record = &node.record;
        let mut all = record.attrs.iter();
        let index = all.position(|attr| attr.kind == kind::ATTRIBUTE_LIST);
        let Some(index) = index.filter(|_| node.list.is_some()) else {
            return Ok(());
        };
        match Stream::of(self, record, index, &[]) {
            Ok(stream) if matches!(stream.content, Content::Mapped(_)) => {
                visitor.stream(node, kind::ATTRIBUTE_LIST, &[], &stream)
            }
            Ok(_) => Ok(()),
            Err(e) => told(visitor, record.number, "attribute-list", e),
        }
    }

    /// Gives `each` the clusters of a stream, in order, without holes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`; of `each`.
    pub(crate) fn each_place(
        &self,
        stream: &Stream,
        each: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let Content::Mapped(mapped) = &stream.content else {
            return Ok(());
        };
        stream.each_run(self, None, (0, mapped.end), |run| match run.place {
            Some(place) => each(place, run.len),
            None => Ok(()),
        })
    }

    /// Gives `each` the stretches of clusters that the bitmap has as in use, as far as the volume
    /// goes.
    ///
    /// # Errors
    /// `Io`; `Interrupted` of `each`. A bitmap that is damaged ends where it cannot be read.
    pub(crate) fn each_used(&self, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let clusters = self.volume.there();
        let read = self.node_of(number::BITMAP);
        let stream = read.and_then(|node| self.stream(&node, kind::DATA, &[]));
        let Ok(Some(stream)) = stream else {
            return Ok(());
        };
        let len = stream.size.min(clusters.div_ceil(8));
        let mut run: Option<(u64, u64)> = None;
        let read = self.each_part(&stream, len, &mut |at, part| {
            for (byte, index) in part.unwrap_or_default().iter().zip(at..) {
                let first = index.saturating_mul(8);
                for cluster in (first..first.saturating_add(8)).filter(|one| *one < clusters) {
                    if byte >> (cluster % 8) & 1 == 0 {
                        continue;
                    }
                    match &mut run {
                        Some((start, count)) if *start + *count == cluster => *count += 1,
                        _ => {
                            if let Some((start, count)) = run.replace((cluster, 1)) {
                                each(start, count)?;
                            }
                        }
                    }
                }
            }
            Ok(())
        });
        if let Err(e) = read
            && matches!(e.kind(), Kind::Io | Kind::Interrupted)
        {
            return Err(e);
        }
        run.map_or(Ok(()), |(start, count)| each(start, count))
    }
}

/// Returns the attributes of a node but its list, each once.
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
