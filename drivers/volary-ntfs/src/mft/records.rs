//! Reads and checks records of the master file table.

use crate::disk::clusters::Clusters;
use crate::disk::ondisk::{Reference, number};
use crate::disk::runs::{self, Part, Run};
use crate::disk::volume::Volume;
use crate::mft::record::{Body, Record};
use crate::mft::table::Table;
use volary_core::{Error, Kind, Result};

/// The master file table.
pub(crate) struct Mft {
    clusters: Clusters,
    table: Table,
}

impl Mft {
    /// Returns a table whose place is not known yet.
    pub(crate) fn new(clusters: Clusters) -> Self {
        Self {
            clusters,
            table: Table::default(),
        }
    }

    /// Returns the volume's clusters.
    pub(crate) fn clusters(&self) -> &Clusters {
        &self.clusters
    }

    /// Returns the checked boot sector.
    pub(crate) fn volume(&self) -> &Volume {
        self.clusters.volume()
    }

    /// Returns the places of the table.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Sets the places of the table.
    pub(crate) fn set_table(&mut self, table: Table) {
        self.table = table;
    }

    /// Adds runs of the table.
    ///
    /// # Errors
    /// Those of [`Table::extend`].
    pub(crate) fn extend(&mut self, more: Vec<Run>) -> Result<()> {
        self.table.extend(more)
    }

    /// Ends the table at its first hole, or at the last cluster that the volume has on the device.
    pub(crate) fn end_at_hole(&mut self) {
        self.table.end_at_hole(self.clusters.volume());
    }

    /// Returns the number of records.
    pub(crate) fn count(&self) -> u64 {
        self.table.records(self.volume())
    }

    /// Returns the byte offset of a record on the device.
    ///
    /// # Errors
    /// `Stale` for a number past the end of the table; `Corrupt` for a hole in the table.
    pub(crate) fn record_at(&self, number: u64) -> Result<u64> {
        let offset = self.table.offset_of(number, self.volume())?;
        let cluster = self.volume().cluster;
        let run = self.table.run(offset / cluster)?;
        let place = run.place.ok_or_else(|| self.table.hole(number))?;
        Ok(place
            .saturating_mul(cluster)
            .saturating_add(offset % cluster))
    }

    /// Returns the bytes of a record as they are stored, and their place.
    fn record_bytes(&self, number: u64) -> Result<(u64, Vec<u8>)> {
        let at = self.record_at(number)?;
        let cluster = self.volume().cluster;
        let mut bytes = vec![0; self.volume().record];
        let mut offset = self.table.offset_of(number, self.volume())?;
        let mut rest = bytes.as_mut_slice();
        while !rest.is_empty() {
            let run = self.table.run(offset / cluster)?;
            let place = run.place.ok_or_else(|| self.table.hole(number))?;
            let within = offset % cluster;
            let there = run.len.saturating_mul(cluster).saturating_sub(within);
            let len = usize::try_from(there).unwrap_or(usize::MAX).min(rest.len());
            let (part, more) = rest.split_at_mut_checked(len).unwrap_or_default();
            let from = place.saturating_mul(cluster).saturating_add(within);
            self.clusters.read(from, part)?;
            offset = offset.saturating_add(len as u64);
            rest = more;
        }
        Ok((at, bytes))
    }

    /// Returns a record, whether it is in use or not. If it is damaged, returns its copy in
    /// `$MFTMirr`, if there is one.
    ///
    /// # Errors
    /// `Stale` for a number past the end of the table; `Corrupt`; `Io`.
    pub(crate) fn record(&self, number: u64) -> Result<Record> {
        match self.record_itself(number) {
            Err(e) if number < number::MIRRORED && e == Kind::Corrupt => {
                self.mirrored(number).map_err(|_| e)
            }
            read => read,
        }
    }

    /// Returns a record of the `$MFT` itself, without trying the mirror.
    ///
    /// # Errors
    /// Those of [`record`](Self::record).
    pub(crate) fn record_itself(&self, number: u64) -> Result<Record> {
        let (at, bytes) = self.record_bytes(number)?;
        Record::of(number, at, bytes)
    }

    /// Returns a record of the mirror.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn mirrored(&self, number: u64) -> Result<Record> {
        let within = number.saturating_mul(self.volume().record as u64);
        let mirror = self.volume().mirror.saturating_mul(self.volume().cluster);
        let at = mirror.saturating_add(within);
        let mut bytes = vec![0; self.volume().record];
        self.clusters.read(at, &mut bytes)?;
        Record::of(number, at, bytes)
    }

    /// Returns the record that a reference names.
    ///
    /// # Errors
    /// `Stale` for a record that is not in use, or that another file has now; those of
    /// [`record`](Self::record).
    pub(crate) fn referred(&self, to: Reference) -> Result<Record> {
        let record = self.record(to.number)?;
        let is_same = to.sequence == 0 || record.head.sequence.get() == to.sequence;
        match record.is_used() && is_same {
            true => Ok(record),
            false => Err(Kind::Stale.into()),
        }
    }

    /// Returns a record of the file whose base record is `base`: an extension record, or the base
    /// record itself.
    ///
    /// # Errors
    /// `Corrupt` if the record does not belong to that file; those of [`record`](Self::record).
    pub(crate) fn extension(&self, base: u64, to: Reference) -> Result<Record> {
        let gone = |at, found: String| {
            let expected = format!("a record that goes on from {base}");
            Error::corrupt("attribute list", at, found, expected)
        };
        let record = self.referred(to).map_err(|e| match e.kind() {
            Kind::Stale => {
                let at = self.record_at(base).unwrap_or(0);
                gone(at, format!("record {}, which is not in use", to.number))
            }
            _ => e,
        })?;
        let is_own = to.number == base || record.base().is_some_and(|own| own.number == base);
        match is_own {
            true => Ok(record),
            false => Err(gone(record.at, format!("record {}", to.number))),
        }
    }

    /// Returns the runs of one part of a file's attribute.
    ///
    /// # Errors
    /// Those of [`extension`](Self::extension); `Corrupt` if the record does not have the part.
    pub(crate) fn part(&self, base: u64, part: &Part) -> Result<Vec<Run>> {
        let record = self.extension(base, part.record)?;
        let found = record.attrs.iter().find_map(|attr| match &attr.body {
            Body::Mapped(map) if attr.id == part.id && map.first == part.first => Some((attr, map)),
            _ => None,
        });
        let (attr, map) = found.ok_or_else(|| {
            let found = format!("no attribute {} (record {})", part.id, part.record.number);
            Error::corrupt("attribute list", record.at, found, "one from there on")
        })?;
        let (at, clusters) = (record.at_of(attr), self.volume().clusters);
        runs::decode(record.bytes(&map.pairs), at, map.first..map.end, clusters)
    }
}
