//! Opens the master file table by its own first record. That record may continue in records that
//! are in the table themselves.

use crate::disk::clusters::Clusters;
use crate::disk::ondisk::{kind, number};
use crate::disk::runs::{self, Part};
use crate::files::node;
use crate::files::stream::Stream;
use crate::mft::record::{Body, Record};
use crate::mft::records::Mft;
use crate::mft::table::Table;
use volary_core::{Error, Kind, Result};

/// Opens the table at the place that the boot sector gives.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(crate) fn open(clusters: Clusters) -> Result<Mft> {
    let mut mft = Mft::new(clusters);
    let record = first_record(&mft)?;
    let (index, map) = data_of(&record).ok_or(Kind::Corrupt)?;
    let mapped = map.first..map.end;
    let at = record
        .attrs
        .get(index)
        .map_or(record.at, |attr| record.at_of(attr));
    let clusters = mft.volume().clusters;
    let first = runs::decode(record.bytes(&map.pairs), at, mapped, clusters)?;
    let len = map.size.min(map.initialized);
    mft.set_table(Table::new(record.at, len, first)?);
    for part in more_parts(&mft, &record)? {
        // That record is in a part of the table that is already known.
        let runs = mft.part(number::MFT, &part)?;
        mft.extend(runs)?;
    }
    mft.end_at_hole();
    Ok(mft)
}

/// Returns the first record of the table, or the mirror's copy of it.
fn first_record(mft: &Mft) -> Result<Record> {
    let volume = mft.volume();
    let at = volume.mft.saturating_mul(volume.cluster);
    let mut bytes = vec![0; volume.record];
    let read = mft.clusters().read(at, &mut bytes);
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
        Kind::Corrupt => mft.mirrored(number::MFT).and_then(usable).map_err(|_| e),
        _ => Err(e),
    })
}

/// Returns the parts of the table's data that are described in other records.
fn more_parts(mft: &Mft, record: &Record) -> Result<Vec<Part>> {
    let is_list = |attr: &crate::mft::record::Attr| attr.kind == kind::ATTRIBUTE_LIST;
    let Some(index) = record.attrs.iter().position(is_list) else {
        return Ok(Vec::new());
    };
    let list = Stream::of(mft, record, index, &[])?;
    let list = list.all(mft, "attribute list", node::LIST_MAX)?;
    let entries = node::entries(&list, record)?;
    node::parts(&entries, kind::DATA, &[], record)
}

fn has_data(record: &Record) -> bool {
    record.is_used() && data_of(record).is_some()
}

/// Returns the first part of the table's data attribute: the part that begins at cluster 0.
fn data_of(record: &Record) -> Option<(usize, &crate::mft::record::Mapping)> {
    let all = record.attrs.iter().enumerate();
    all.filter(|(_, attr)| attr.kind == kind::DATA && record.name_of(attr).is_empty())
        .find_map(|(index, attr)| match &attr.body {
            Body::Mapped(map) if map.first == 0 => Some((index, map)),
            _ => None,
        })
}
