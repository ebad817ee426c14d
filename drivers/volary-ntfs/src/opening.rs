//! Opens a volume: finds its master file table, by that table's own first record, which may go on in records that
//! are in the table themselves.

use crate::mft::Mft;
use crate::node;
use crate::ondisk::{kind, number};
use crate::record::{Body, Record};
use crate::runs::{self, Part};
use crate::store::Store;
use crate::stream::Stream;
use crate::volume::Volume;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, Result};

impl Store {
    /// Opens the volume on a device by its boot sector.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn open(dev: Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Result<Self> {
        let mut store = Self::new(dev, volume, memory);
        store.find_mft()?;
        Ok(store)
    }

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
    fn find_mft(&mut self) -> Result<()> {
        let record = self.first_record()?;
        let (index, map) = data_of(&record).ok_or(Kind::Corrupt)?;
        let ends = (map.first, map.end);
        let at = record
            .attrs
            .get(index)
            .map_or(record.at, |attr| record.at_of(attr));
        let clusters = self.volume.clusters;
        let first = runs::decode(record.bytes(&map.pairs), at, ends, clusters)?;
        self.mft = Mft::new(record.at, map.size.min(map.initialized), first)?;
        for part in self.more_parts(&record)? {
            // It is in a part of the table that is known by now.
            let runs = self.part(number::MFT, &part)?;
            self.mft.extend(runs)?;
        }
        self.mft.end_at_hole(&self.volume);
        Ok(())
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
