//! Where the master file table lies: as its own first record says, which may go on in records that
//! are in the table themselves.

use crate::node;
use crate::ondisk::{kind, number};
use crate::record::{Body, Record};
use crate::runs::{self, Run};
use crate::store::Store;
use crate::stream::{Part, Stream};
use crate::volume::Volume;
use volary_core::{Error, Kind, Result};

/// Most runs of the table.
const RUNS_MAX: usize = 1 << 20;

/// The table.
#[derive(Default)]
pub(crate) struct Mft {
    runs: Vec<Run>,
    /// Bytes of the table that were written.
    len: u64,
    /// Where its first record stands, in bytes.
    at: u64,
}

impl Mft {
    /// Returns how many records there are.
    pub(crate) fn records(&self, volume: &Volume) -> u64 {
        self.len / volume.record as u64
    }

    /// Returns the byte offset of a record within the `$MFT`.
    pub(crate) fn offset_of(&self, number: u64, volume: &Volume) -> Result<u64> {
        match number < self.records(volume) {
            true => Ok(number.saturating_mul(volume.record as u64)),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Returns the run that holds a cluster of the table, from it on.
    pub(crate) fn run(&self, cluster: u64) -> Result<Run> {
        let run = runs::find(&self.runs, cluster).ok_or_else(|| {
            let found = format!("no run of cluster {cluster}");
            Error::corrupt("$MFT", self.at, found, "runs of all of the table")
        })?;
        Ok(run.part(cluster, u64::MAX))
    }

    pub(crate) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Returns the error of a record that is in a hole.
    pub(crate) fn hole(&self, number: u64) -> Error {
        let found = format!("a hole at record {number}");
        Error::corrupt("$MFT", self.at, found, "a table without holes")
    }

    /// Adds runs of the table.
    fn extend(&mut self, more: Vec<Run>) -> Result<()> {
        if self.runs.len().saturating_add(more.len()) > RUNS_MAX {
            let found = format!("more than {RUNS_MAX} runs");
            return Err(Error::corrupt("$MFT", self.at, found, "fewer"));
        }
        self.runs.extend(more);
        Ok(())
    }
}

impl Store {
    /// Returns the first record of the table, which the boot sector leads to, or that of the mirror.
    fn first_record(&self) -> Result<Record> {
        let at = self.volume.mft.saturating_mul(self.volume.cluster);
        let mut bytes = vec![0; self.volume.record];
        let read = self.read_kept(at, &mut bytes);
        let usable = |record: Record| match has_data(&record) {
            true => Ok(record),
            false => {
                let at = record.at;
                Err(Error::corrupt(
                    "$MFT",
                    at,
                    "a record without runs",
                    "runs of the table",
                ))
            }
        };
        let own = read
            .and_then(|()| Record::of(number::MFT, at, bytes))
            .and_then(usable);
        own.or_else(|e| match e.kind() {
            Kind::Corrupt => self.mirrored(number::MFT).and_then(usable).map_err(|_| e),
            _ => Err(e),
        })
    }

    /// Finds all of the table.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn find_mft(&mut self) -> Result<()> {
        let record = self.first_record()?;
        self.mft.at = record.at;
        let found = data_of(&record).ok_or(Kind::Corrupt)?;
        let (index, map) = found;
        let ends = (map.first, map.end);
        let at = record
            .attrs
            .get(index)
            .map_or(record.at, |attr| record.at_of(attr));
        let clusters = self.volume.clusters;
        let first = runs::decode(record.bytes(&map.pairs), at, ends, clusters)?;
        self.mft.len = map.size.min(map.initialized);
        self.mft.extend(first)?;
        for part in self.more_parts(&record)? {
            // It is in a part of the table that is known by now.
            let runs = self.part(number::MFT, &part)?;
            self.mft.extend(runs)?;
        }
        self.mft.len = self.mft.len.min(self.table_end());
        Ok(())
    }

    /// Bytes of the table that can be there: up to its first hole, and no more than the volume has.
    fn table_end(&self) -> u64 {
        let runs = self.mft.runs.iter();
        let whole = runs.take_while(|run| run.place.is_some()).last();
        let end = whole.map_or(0, Run::end).min(self.volume.there());
        end.saturating_mul(self.volume.cluster)
    }

    /// Returns the parts of the table's data that are in other records.
    fn more_parts(&self, record: &Record) -> Result<Vec<Part>> {
        let is_list = |attr: &crate::record::Attr| attr.kind == kind::ATTRIBUTE_LIST;
        let Some(index) = record.attrs.iter().position(is_list) else {
            return Ok(Vec::new());
        };
        let list = Stream::of(self, record, index, &[])?;
        let list = list.all(self, "attribute list", node::LIST_MAX)?;
        let entries = node::entries(&list, record)?;
        node::parts(&entries, kind::DATA, &[], record)
    }
}

fn has_data(record: &Record) -> bool {
    record.is_used() && data_of(record).is_some()
}

/// Returns the first part of the table's data attribute, whose runs begin at cluster 0.
fn data_of(record: &Record) -> Option<(usize, &crate::record::Mapping)> {
    let all = record.attrs.iter().enumerate();
    all.filter(|(_, attr)| attr.kind == kind::DATA && record.name_of(attr).is_empty())
        .find_map(|(index, attr)| match &attr.body {
            Body::Mapped(map) if map.first == 0 => Some((index, map)),
            _ => None,
        })
}
