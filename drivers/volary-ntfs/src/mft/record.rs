//! Records of the master file table. All attributes of a checked record are inside of it.

use crate::disk::fixup;
use crate::disk::ondisk::{
    AttrHead, MappedHead, RecordHead, Reference, ResidentHead, aflag, kind, rflag,
};
use std::ops::Range;
use volary_core::{Error, Result};
use zerocopy::FromBytes;

/// The least length of a record's header, in bytes.
const HEAD: usize = 42;
/// The offset of the record's own number.
const NUMBER: usize = 44;

/// Flags of attributes whose header also holds the allocated size.
const HOLES: u16 = aflag::COMPRESSION | aflag::SPARSE;

/// A checked record.
pub(crate) struct Record {
    pub(crate) number: u64,
    /// The place of the record on the device, in bytes.
    pub(crate) at: u64,
    pub(crate) head: RecordHead,
    pub(crate) attrs: Vec<Attr>,
    bytes: Vec<u8>,
}

/// An attribute, or one part of an attribute whose mapping pairs are in several records.
#[derive(Clone, Debug)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) flags: u16,
    pub(crate) id: u16,
    /// Its offset in the record.
    pub(crate) at: usize,
    pub(crate) body: Body,
    name: Range<usize>,
}

/// The content of an attribute.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// The value, which is in the record.
    Here(Range<usize>),
    /// Clusters.
    Mapped(Mapping),
}

/// A mapping of clusters of an attribute.
#[derive(Clone, Debug)]
pub(crate) struct Mapping {
    /// The clusters that are mapped here: the first, and the end.
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) pairs: Range<usize>,
    /// The size of a compression unit, as an exponent of a number of clusters.
    pub(crate) unit: u8,
    /// Sizes in bytes. Only the attribute's first part has them.
    pub(crate) allocated: u64,
    pub(crate) size: u64,
    pub(crate) initialized: u64,
    /// The bytes allocated on the volume, if the attribute may have holes.
    pub(crate) taken: Option<u64>,
}

impl Record {
    /// Checks the record that is at `at`.
    ///
    /// # Errors
    /// `Corrupt`, naming the contradiction.
    pub(crate) fn of(number: u64, at: u64, bytes: Vec<u8>) -> Result<Self> {
        let mut record = Self::head_of(number, at, bytes)?;
        if record.is_used() {
            record.attrs = record.parse()?;
        }
        Ok(record)
    }

    /// Checks the header of the record that is at `at`, but not its attributes.
    ///
    /// # Errors
    /// Those of [`of`](Self::of).
    fn head_of(number: u64, at: u64, mut bytes: Vec<u8>) -> Result<Self> {
        if !bytes.starts_with(b"FILE") {
            let magic = bytes.get(..4).unwrap_or_default();
            let found = format!("\"{}\" (record {number})", volary_core::escape(magic));
            return Err(Error::corrupt("record", at, found, "\"FILE\""));
        }
        fixup::restore("record", at, &mut bytes)?;
        let (head, _) = RecordHead::read_from_prefix(&bytes)
            .map_err(|_| Error::corrupt("record", at, "too short a record", "512 bytes or more"))?;
        Ok(Self {
            number,
            at,
            head,
            attrs: Vec::new(),
            bytes,
        })
    }

    pub(crate) fn is_used(&self) -> bool {
        self.head.flags.get() & rflag::IN_USE != 0
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.head.flags.get() & rflag::DIRECTORY != 0
    }

    pub(crate) fn reference(&self) -> Reference {
        Reference {
            number: self.number,
            sequence: self.head.sequence.get(),
        }
    }

    /// Returns the base record, if this is an extension record.
    pub(crate) fn base(&self) -> Option<Reference> {
        let raw = self.head.base.get();
        (raw != 0).then(|| raw.into())
    }

    /// Returns the low half of the number that the record stores of itself. Only volumes of version
    /// 3.1 have it.
    pub(crate) fn told_number(&self) -> Option<u32> {
        let is_there = usize::from(self.head.usa_offset.get()) >= NUMBER + 4;
        let told = self.bytes.get(NUMBER..)?.first_chunk()?;
        is_there.then_some(u32::from_le_bytes(*told))
    }

    /// Returns the place of an attribute on the device.
    pub(crate) fn at_of(&self, attr: &Attr) -> u64 {
        self.at.saturating_add(attr.at as u64)
    }

    pub(crate) fn bytes(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.get(range.clone()).unwrap_or_default()
    }

    /// Returns the units of an attribute's name.
    pub(crate) fn name_of(&self, attr: &Attr) -> Vec<u16> {
        crate::disk::names::units(self.bytes(&attr.name))
    }

    /// Returns the value of an attribute, if it is in the record.
    pub(crate) fn value(&self, attr: &Attr) -> Option<&[u8]> {
        match &attr.body {
            Body::Here(range) => Some(self.bytes(range)),
            Body::Mapped(_) => None,
        }
    }

    /// Returns the value of the first attribute of a type, if it is in the record.
    pub(crate) fn value_of(&self, kind: u32) -> Option<&[u8]> {
        let attr = self.attrs.iter().find(|attr| attr.kind == kind)?;
        self.value(attr)
    }

    fn bad(&self, what: &'static str, at: usize, found: u64, expected: &str) -> Error {
        let found = format!("{found} (record {})", self.number);
        let at = self.at.saturating_add(at as u64);
        Error::corrupt(what, at, found, expected)
    }

    fn parse(&self) -> Result<Vec<Attr>> {
        let in_use = self.head.in_use.get();
        let end = usize::try_from(in_use).unwrap_or(usize::MAX);
        let mut at = usize::from(self.head.attrs_offset.get());
        if end > self.bytes.len() {
            return Err(self.bad("bytes_in_use", 24, in_use.into(), "at most the record"));
        }
        if at < HEAD || !at.is_multiple_of(8) || at >= end {
            return Err(self.bad("attrs_offset", 20, at as u64, "a place after the head"));
        }
        let mut attrs = Vec::new();
        loop {
            let rest = self.bytes(&(at..end));
            let kind = rest.first_chunk().map(|word| u32::from_le_bytes(*word));
            let kind = kind.ok_or_else(|| self.bad("attribute", at, end as u64, "an end"))?;
            if kind == kind::END {
                return Ok(attrs);
            }
            let attr = self.attr(at, rest)?;
            at = at.saturating_add(attr.1);
            attrs.push(attr.0);
        }
    }

    /// Returns the attribute at the start of `rest`, and its length.
    fn attr(&self, at: usize, rest: &[u8]) -> Result<(Attr, usize)> {
        let short = || self.bad("attribute", at, rest.len() as u64, "24 bytes or more");
        let (head, _) = AttrHead::read_from_prefix(rest).map_err(|_| short())?;
        let len = usize::try_from(head.len.get()).unwrap_or(usize::MAX);
        if len < size_of::<ResidentHead>() || len > rest.len() || !len.is_multiple_of(8) {
            let expected = "a multiple of 8 inside of the record";
            return Err(self.bad("attribute length", at + 4, len as u64, expected));
        }
        let rest = rest.get(..len).unwrap_or_default();
        let from = usize::from(head.name_offset.get());
        let name_end = from.saturating_add(2 * usize::from(head.name_len));
        if head.name_len > 0 && name_end > len {
            let expected = "a name inside of the attribute";
            return Err(self.bad("attribute name", at + 9, name_end as u64, expected));
        }
        let name = match head.name_len {
            0 => 0..0,
            _ => at + from..at + name_end,
        };
        let body = match head.is_mapped {
            0 => self.resident(at, rest)?,
            _ => self.mapped(at, rest, &head)?,
        };
        let attr = Attr {
            kind: head.kind.get(),
            flags: head.flags.get(),
            id: head.id.get(),
            at,
            body,
            name,
        };
        Ok((attr, len))
    }

    fn resident(&self, at: usize, rest: &[u8]) -> Result<Body> {
        let short = || self.bad("attribute", at, rest.len() as u64, "24 bytes or more");
        let (head, _) = ResidentHead::read_from_prefix(rest).map_err(|_| short())?;
        let from = usize::from(head.value_offset.get());
        let len = usize::try_from(head.value_len.get()).unwrap_or(usize::MAX);
        let end = from.saturating_add(len);
        if end > rest.len() {
            let expected = "a value inside of the attribute";
            return Err(self.bad("value length", at + 16, len as u64, expected));
        }
        Ok(Body::Here(at + from..at + end))
    }

    fn mapped(&self, at: usize, rest: &[u8], head: &AttrHead) -> Result<Body> {
        let short = || self.bad("attribute", at, rest.len() as u64, "64 bytes or more");
        let (mapped, more) = MappedHead::read_from_prefix(rest).map_err(|_| short())?;
        let first = mapped.lowest_vcn.get();
        // If there are no clusters, the last one is the one before the first, mostly -1.
        let end = mapped.highest_vcn.get().wrapping_add(1);
        if end < first || end >= 1 << 62 {
            return Err(self.bad("highest_vcn", at + 24, end.wrapping_sub(1), "a cluster"));
        }
        let pairs = usize::from(mapped.pairs_offset.get());
        if pairs < size_of::<MappedHead>() || pairs > rest.len() {
            let expected = "a place inside of the attribute";
            return Err(self.bad("mapping pairs", at + 32, pairs as u64, expected));
        }
        let sizes = [mapped.allocated, mapped.size, mapped.initialized].map(|size| size.get());
        if first == 0
            && let Some(size) = sizes.iter().find(|size| **size >= 1 << 62)
        {
            return Err(self.bad("data size", at + 48, *size, "less than 2^62 bytes"));
        }
        let [allocated, size, initialized] = sizes;
        let has_holes = head.flags.get() & HOLES != 0 && first == 0;
        let taken = more.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        Ok(Body::Mapped(Mapping {
            first,
            end,
            pairs: at + pairs..at + rest.len(),
            unit: mapped.compression_unit,
            allocated,
            size,
            initialized,
            taken: taken.filter(|_| has_holes && pairs >= size_of::<MappedHead>() + 8),
        }))
    }
}
