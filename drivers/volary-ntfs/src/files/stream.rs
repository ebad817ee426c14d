//! The content of attributes: bytes in a record, or clusters.

use crate::disk::ondisk::aflag;
use crate::disk::runs::{self, Part, Run};
use crate::files::lznt1;
use crate::mft::record::{Body, Record};
use crate::mft::records::Mft;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use volary_core::{Ctx, Error, Kind, Result};

/// The largest compression unit, in bytes.
const UNIT_MAX: u64 = 1 << 20;

/// An attribute's content.
pub(crate) struct Stream {
    pub(crate) content: Content,
    /// The place of the attribute's header on the device, and the record's number.
    pub(crate) at: u64,
    pub(crate) number: u64,
    pub(crate) flags: u16,
    pub(crate) size: u64,
    /// The bytes that were written. The rest, up to the size, reads as zeros.
    pub(crate) initialized: u64,
    /// The bytes allocated on the volume.
    pub(crate) taken: u64,
}

pub(crate) enum Content {
    Here(Vec<u8>),
    Mapped(Mapped),
}

/// Clusters, whose mapping pairs are in one or several parts.
pub(crate) struct Mapped {
    /// The runs of the first part.
    runs: Vec<Run>,
    /// All parts, in order.
    pub(crate) parts: Vec<Part>,
    /// The number of clusters.
    pub(crate) end: u64,
    /// The number of clusters that are compressed together; 0 if none are.
    pub(crate) unit: u64,
    /// The part that was used last, unless it is the first.
    last: Mutex<Option<(usize, Arc<[Run]>)>>,
    /// The compression unit that was decompressed last.
    unpacked: Mutex<Option<(u64, Arc<[u8]>)>>,
}

impl Stream {
    /// Returns the content of the attribute with this index in a record. `more` are its further
    /// parts.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported` for an unknown method of compression.
    pub(crate) fn of(mft: &Mft, record: &Record, index: usize, more: &[Part]) -> Result<Self> {
        let attr = record.attrs.get(index).ok_or(Kind::Corrupt)?;
        let at = record.at_of(attr);
        let stream = |content, size, initialized, taken| Self {
            content,
            at,
            number: record.number,
            flags: attr.flags,
            size,
            initialized,
            taken,
        };
        let map = match &attr.body {
            Body::Here(range) => {
                let bytes = record.bytes(range).to_vec();
                let size = bytes.len() as u64;
                return Ok(stream(
                    Content::Here(bytes),
                    size,
                    size,
                    size.next_multiple_of(8),
                ));
            }
            Body::Mapped(map) => map,
        };
        let cluster = mft.volume().cluster;
        let end = map.allocated.div_ceil(cluster);
        let is_odd = map.size > map.allocated || map.initialized > map.size;
        if map.first != 0 || is_odd || end > 1 << 62 {
            let found = format!(
                "{} of {} of {} bytes (record {})",
                map.initialized, map.size, map.allocated, record.number
            );
            return Err(Error::corrupt("sizes", at, found, "each within the next"));
        }
        let unit = unit(attr.flags, map.unit, cluster, at)?;
        let pairs = record.bytes(&map.pairs);
        let own = Part {
            first: 0,
            record: record.reference(),
            id: attr.id,
        };
        let mut parts = vec![own];
        parts.extend_from_slice(more);
        let mapped = Mapped {
            runs: runs::decode(pairs, at, 0..map.end, mft.volume().clusters)?,
            parts,
            end,
            unit,
            last: Mutex::default(),
            unpacked: Mutex::default(),
        };
        let taken = map.taken.unwrap_or(map.allocated);
        Ok(stream(
            Content::Mapped(mapped),
            map.size,
            map.initialized,
            taken,
        ))
    }

    pub(crate) fn is_compressed(&self) -> bool {
        matches!(&self.content, Content::Mapped(mapped) if mapped.unit > 0)
    }

    /// # Errors
    /// `Unsupported` for encrypted content, because its key is not on the volume.
    pub(crate) fn check_clear(&self) -> Result<()> {
        if self.flags & aflag::ENCRYPTED == 0 {
            return Ok(());
        }
        let words = "it is encrypted (EFS), and what it holds cannot be read without its key";
        Err(Error::note(Kind::Unsupported, words))
    }

    /// Returns the run that holds a cluster, starting from that cluster. It is not empty.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn run(&self, mft: &Mft, cluster: u64) -> Result<Run> {
        let Content::Mapped(mapped) = &self.content else {
            return Err(Kind::Corrupt.into());
        };
        let found = mapped.run(mft, cluster, self.number)?;
        let run = found.ok_or_else(|| {
            let found = format!("no run of cluster {cluster} (record {})", self.number);
            Error::corrupt(
                "mapping pairs",
                self.at,
                found,
                format!("{} clusters", mapped.end),
            )
        })?;
        Ok(run.part(cluster, u64::MAX))
    }

    /// Reads up to the end of the content. Returns how many bytes were read.
    ///
    /// # Errors
    /// `Unsupported` for encrypted content; `Corrupt`; `Io`.
    pub(crate) fn read(&self, mft: &Mft, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.check_clear()?;
        let left = self.size.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let buf = buf.get_mut(..len).unwrap_or_default();
        let written = self.initialized.saturating_sub(offset);
        let written = usize::try_from(written).unwrap_or(usize::MAX).min(len);
        let (now, never) = buf.split_at_mut_checked(written).unwrap_or_default();
        never.fill(0);
        match &self.content {
            Content::Here(bytes) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX);
                let bytes = bytes.get(from..).unwrap_or_default();
                for (to, from) in now.iter_mut().zip(bytes) {
                    *to = *from;
                }
            }
            Content::Mapped(mapped) if mapped.unit > 0 => {
                self.read_units(mft, mapped, offset, now)?;
            }
            Content::Mapped(_) => self.read_runs(mft, offset, now)?,
        }
        Ok(len)
    }

    /// Returns the whole content.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); `Corrupt`, naming `what`, if it has more than `most` bytes.
    pub(crate) fn all(&self, mft: &Mft, what: &'static str, most: u64) -> Result<Vec<u8>> {
        let len = usize::try_from(self.size).unwrap_or(usize::MAX);
        if self.size > most {
            let found = format!("{} bytes (record {})", self.size, self.number);
            return Err(Error::corrupt(
                what,
                self.at,
                found,
                format!("at most {most}"),
            ));
        }
        let mut bytes = vec![0; len];
        self.read(mft, 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads clusters that are not compressed.
    fn read_runs(&self, mft: &Mft, offset: u64, buf: &mut [u8]) -> Result<()> {
        let cluster = mft.volume().cluster;
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let run = self.run(mft, at / cluster)?;
            let within = at % cluster;
            let there = run.len.saturating_mul(cluster).saturating_sub(within);
            let len = usize::try_from(there).unwrap_or(usize::MAX).min(rest.len());
            let (part, more) = rest.split_at_mut_checked(len).unwrap_or_default();
            match run.place {
                Some(place) => {
                    let from = place.saturating_mul(cluster).saturating_add(within);
                    mft.clusters().read_once(from, part, self.at)?;
                }
                None => part.fill(0),
            }
            at = at.saturating_add(len as u64);
            rest = more;
        }
        Ok(())
    }

    /// Reads clusters that are compressed.
    fn read_units(&self, mft: &Mft, mapped: &Mapped, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = mapped.unit.saturating_mul(mft.volume().cluster).max(1);
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let unit = self.unit(mft, mapped, at / len)?;
            let within = usize::try_from(at % len).unwrap_or(usize::MAX);
            let from = unit.get(within..).unwrap_or_default();
            let count = from.len().min(rest.len());
            let (part, more) = rest.split_at_mut_checked(count).unwrap_or_default();
            if count == 0 {
                return Err(Kind::Corrupt.into());
            }
            part.copy_from_slice(from.get(..count).unwrap_or_default());
            at = at.saturating_add(count as u64);
            rest = more;
        }
        Ok(())
    }

    /// Returns the bytes of a compression unit, decompressed.
    fn unit(&self, mft: &Mft, mapped: &Mapped, number: u64) -> Result<Arc<[u8]>> {
        if let Some((last, bytes)) = &*mapped.unpacked.lock()
            && *last == number
        {
            return Ok(bytes.clone());
        }
        let bytes: Arc<[u8]> = self.unpack(mft, mapped, number)?.into();
        *mapped.unpacked.lock() = Some((number, bytes.clone()));
        Ok(bytes)
    }

    /// Reads and decompresses a compression unit. A unit without clusters is all zeros, and a unit
    /// that has all its clusters is not compressed.
    fn unpack(&self, mft: &Mft, mapped: &Mapped, number: u64) -> Result<Vec<u8>> {
        let cluster = mft.volume().cluster;
        let first = number.saturating_mul(mapped.unit);
        let end = first.saturating_add(mapped.unit);
        let mut pieces = Vec::new();
        let (mut at, mut there) = (first, 0u64);
        while at < end.min(mapped.end) {
            let run = self.run(mft, at)?.part(at, end);
            if let Some(place) = run.place {
                pieces.push((place, run.len));
                there = there.saturating_add(run.len);
            }
            at = run.end();
        }
        let mut packed = vec![0; usize::try_from(there.saturating_mul(cluster)).unwrap_or(0)];
        let mut rest = packed.as_mut_slice();
        for (place, len) in pieces {
            let len = usize::try_from(len.saturating_mul(cluster)).unwrap_or(0);
            let (part, more) = rest.split_at_mut_checked(len).unwrap_or_default();
            mft.clusters()
                .read_once(place.saturating_mul(cluster), part, self.at)?;
            rest = more;
        }
        let len = usize::try_from(mapped.unit.saturating_mul(cluster)).unwrap_or(0);
        if packed.len() >= len {
            return Ok(packed);
        }
        let mut bytes = vec![0; len];
        if there > 0 && !lznt1::unpack(&packed, &mut bytes) {
            let found = format!("unit {number} (record {})", self.number);
            let at = self.at;
            return Err(Error::corrupt(
                "compressed data",
                at,
                found,
                "chunks of LZNT1",
            ));
        }
        Ok(bytes)
    }

    /// Calls `each` for the clusters on the volume, in order, without holes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`; those of `each`.
    pub(crate) fn each_place(
        &self,
        mft: &Mft,
        each: &mut dyn FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        let Content::Mapped(mapped) = &self.content else {
            return Ok(());
        };
        self.each_run(mft, None, 0..mapped.end, |run| match run.place {
            Some(place) => each(place, run.len),
            None => Ok(()),
        })
    }

    /// Calls `each` for the runs of these clusters, in order.
    ///
    /// # Errors
    /// `Interrupted`; `Corrupt`; `Io`; those of `each`.
    pub(crate) fn each_run(
        &self,
        mft: &Mft,
        cx: Option<&Ctx<'_>>,
        clusters: Range<u64>,
        mut each: impl FnMut(Run) -> Result<()>,
    ) -> Result<()> {
        let (mut at, end) = (clusters.start, clusters.end);
        while at < end {
            if let Some(cx) = cx {
                cx.check_cancel()?;
            }
            let run = self.run(mft, at)?.part(at, end);
            at = run.end();
            each(run)?;
        }
        Ok(())
    }
}

impl Mapped {
    /// Returns the run that holds a cluster.
    fn run(&self, mft: &Mft, cluster: u64, number: u64) -> Result<Option<Run>> {
        let after = self.parts.partition_point(|part| part.first <= cluster);
        let index = after.saturating_sub(1);
        if index == 0 {
            return Ok(runs::find(&self.runs, cluster));
        }
        if let Some((last, runs)) = &*self.last.lock()
            && *last == index
        {
            return Ok(runs::find(runs, cluster));
        }
        let part = self.parts.get(index).ok_or(Kind::Corrupt)?;
        let runs: Arc<[Run]> = mft.part(number, part)?.into();
        let found = runs::find(&runs, cluster);
        *self.last.lock() = Some((index, runs));
        Ok(found)
    }
}

/// Returns how many clusters are compressed together; 0 if none are.
fn unit(flags: u16, exponent: u8, cluster: u64, at: u64) -> Result<u64> {
    match flags & aflag::COMPRESSION {
        0 => Ok(0),
        aflag::LZNT1 => {
            let unit = 1u64.checked_shl(exponent.into()).unwrap_or(0);
            let bytes = unit.checked_mul(cluster).filter(|bytes| *bytes <= UNIT_MAX);
            bytes.map(|_| unit).filter(|unit| *unit > 1).ok_or_else(|| {
                let found = format!("2^{exponent} clusters");
                Error::corrupt(
                    "compression unit",
                    at,
                    found,
                    format!("up to {UNIT_MAX} bytes"),
                )
            })
        }
        other => {
            let words = format!("its compression, {other:#x}, is not known here");
            Err(Error::note(Kind::Unsupported, words))
        }
    }
}
