//! Files: a base record, and the extension records that its attribute list names.

use crate::disk::ondisk::{
    FileName, ListEntry, Reference, SECURITY_ID, StandardInformation, kind, number, space,
};
use crate::disk::runs::Part;
use crate::files::stream::Stream;
use crate::mft::record::{Attr, Record};
use crate::mft::records::Mft;
use std::num::NonZeroU64;
use std::ops::Deref;
use volary_core::{Error, Kind, NodeId, Result};
use zerocopy::FromBytes;

/// The longest attribute list, in bytes.
pub(crate) const LIST_MAX: u64 = 256 << 10;

/// The most records that are read for the names of one file: Windows gives a file at most 1,024 names,
/// and long ones fill a record each.
const NAME_RECORDS_MAX: usize = 1024;

/// The low bits of a node's number are its record number. The bits above are the number of its
/// stream.
const NUMBER_BITS: u32 = 48;
/// In the bits above: the node is record 0, because no node may have the number 0.
const OF_MFT: u64 = 0xffff;

/// A file or a directory.
pub(crate) struct Node {
    pub(crate) record: Record,
    pub(crate) list: Option<Vec<Listed>>,
    /// The number of the named stream, from 1; 0 for the unnamed data.
    pub(crate) stream: u64,
}

/// An entry of an attribute list.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) kind: u32,
    pub(crate) name: Vec<u16>,
    pub(crate) lowest: u64,
    pub(crate) reference: Reference,
    pub(crate) id: u16,
}

/// A name of a file.
#[derive(Clone, Debug)]
pub(crate) struct NameOf {
    pub(crate) parent: Reference,
    pub(crate) space: u8,
    pub(crate) name: Vec<u16>,
    pub(crate) flags: u32,
    /// The size of the file, as the name gives it.
    pub(crate) size: u64,
}

impl NameOf {
    /// Reads the value of a `$FILE_NAME`. `None` if it is too short for its name.
    pub(crate) fn of(value: &[u8]) -> Option<Self> {
        let (raw, name) = FileName::read_from_prefix(value).ok()?;
        let name = name.get(..2 * usize::from(raw.name_len))?;
        Some(Self {
            parent: raw.parent.get().into(),
            space: raw.space,
            name: crate::disk::names::units(name),
            flags: raw.flags.get(),
            size: raw.size.get(),
        })
    }

    /// Returns whether it is only the short name for DOS of a file that also has a long one.
    pub(crate) fn is_dos(&self) -> bool {
        self.space == space::DOS
    }
}

/// A record: the node's own, or one that was read for it.
pub(crate) enum Held<'a> {
    Own(&'a Record),
    Other(Box<Record>),
}

impl Deref for Held<'_> {
    type Target = Record;
    fn deref(&self) -> &Record {
        match self {
            Self::Own(record) => record,
            Self::Other(record) => record,
        }
    }
}

impl Node {
    pub(crate) fn number(&self) -> u64 {
        self.record.number
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.stream == 0 && self.record.is_dir()
    }

    pub(crate) fn id(&self) -> NodeId {
        let ino = ino_of(self.number(), self.stream);
        NodeId {
            ino,
            generation: self.record.head.sequence.get().into(),
        }
    }

    /// Returns whether there is an attribute of this type.
    pub(crate) fn has(&self, kind: u32) -> bool {
        match &self.list {
            None => self.record.attrs.iter().any(|attr| attr.kind == kind),
            Some(list) => list.iter().any(|one| one.kind == kind),
        }
    }

    /// Returns `$STANDARD_INFORMATION`, and its bytes.
    ///
    /// # Errors
    /// `Corrupt` if it is not in the base record.
    pub(crate) fn standard(&self) -> Result<(StandardInformation, &[u8])> {
        let value = self.record.value_of(kind::STANDARD_INFORMATION);
        let value = value.unwrap_or_default();
        let read = StandardInformation::read_from_prefix(value).map_err(|_| {
            let found = format!("{} bytes (record {})", value.len(), self.number());
            let at = self.record.at;
            Error::corrupt("$STANDARD_INFORMATION", at, found, "48 bytes or more")
        })?;
        Ok((read.0, value))
    }

    /// Returns the names of the attributes of a type, each once.
    pub(crate) fn names_of(&self, kind: u32) -> Vec<Vec<u16>> {
        match &self.list {
            None => {
                let own = self.record.attrs.iter().filter(|attr| attr.kind == kind);
                own.map(|attr| self.record.name_of(attr)).collect()
            }
            Some(list) => {
                let first = list
                    .iter()
                    .filter(|one| one.kind == kind && one.lowest == 0);
                first.map(|one| one.name.clone()).collect()
            }
        }
    }

    /// Returns the names of its named streams.
    pub(crate) fn streams(&self) -> Vec<Vec<u16>> {
        let mut all = self.names_of(kind::DATA);
        all.retain(|name| !name.is_empty());
        all
    }
}

fn ino_of(number: u64, stream: u64) -> NonZeroU64 {
    let number = match (number, stream) {
        (0, 0) => OF_MFT << NUMBER_BITS,
        _ => number | stream << NUMBER_BITS,
    };
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}

/// Returns the id of the node of a record.
pub(crate) fn id_of(to: Reference) -> NodeId {
    NodeId {
        ino: ino_of(to.number, 0),
        generation: to.sequence.into(),
    }
}

/// Returns the record number and the stream number of a node id.
pub(crate) fn number_of(id: NodeId) -> (u64, u64) {
    let ino = id.ino.get();
    match ino >> NUMBER_BITS {
        OF_MFT => (number::MFT, 0),
        stream => (ino & ((1 << NUMBER_BITS) - 1), stream),
    }
}

/// Reads an attribute list.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn entries(list: &[u8], record: &Record) -> Result<Vec<Listed>> {
    let (mut all, mut rest) = (Vec::new(), list);
    while !rest.is_empty() {
        let bad = |found: usize| {
            let found = format!("{found} (record {})", record.number);
            let expected = "an entry of 26 bytes or more inside of the list";
            Error::corrupt("attribute list", record.at, found, expected)
        };
        let (raw, _) = ListEntry::read_from_prefix(rest).map_err(|_| bad(rest.len()))?;
        let len = usize::from(raw.len.get());
        let from = usize::from(raw.name_offset);
        let name_end = from.saturating_add(2 * usize::from(raw.name_len));
        let is_whole = len >= size_of::<ListEntry>() && len <= rest.len();
        if !is_whole || raw.name_len > 0 && name_end > len {
            return Err(bad(len));
        }
        let name = match raw.name_len {
            0 => Vec::new(),
            _ => crate::disk::names::units(rest.get(from..name_end).unwrap_or_default()),
        };
        all.push(Listed {
            kind: raw.kind.get(),
            name,
            lowest: raw.lowest_vcn.get(),
            reference: raw.reference.get().into(),
            id: raw.id.get(),
        });
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(all)
}

/// Returns the parts of an attribute after the first.
///
/// # Errors
/// `Corrupt` for parts that are not in order.
pub(crate) fn parts(
    entries: &[Listed],
    kind: u32,
    name: &[u16],
    record: &Record,
) -> Result<Vec<Part>> {
    let (mut all, mut before) = (Vec::new(), 0);
    let of = entries
        .iter()
        .filter(|one| one.kind == kind && one.name == name);
    for one in of.filter(|one| one.lowest > 0) {
        if one.lowest <= before {
            let found = format!("{} after {before} (record {})", one.lowest, record.number);
            let expected = "parts in order";
            return Err(Error::corrupt("attribute list", record.at, found, expected));
        }
        before = one.lowest;
        all.push(Part {
            first: one.lowest,
            record: one.reference,
            id: one.id,
        });
    }
    Ok(all)
}

impl Node {
    /// Reads the node with an id.
    ///
    /// # Errors
    /// `Stale` for a node that is gone or never existed; `Corrupt`; `Io`.
    pub(crate) fn read(mft: &Mft, id: NodeId) -> Result<Self> {
        let (number, stream) = number_of(id);
        let mut node = Self::of(mft, number)?;
        let is_same = u32::from(node.record.head.sequence.get()) == id.generation;
        let index = usize::try_from(stream).unwrap_or(usize::MAX);
        if !is_same || index > node.streams().len() {
            return Err(Kind::Stale.into());
        }
        node.stream = stream;
        Ok(node)
    }

    /// Reads the node of a record.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub(crate) fn of(mft: &Mft, number: u64) -> Result<Self> {
        let record = mft.record(number)?;
        if !record.is_used() || record.base().is_some() {
            return Err(Kind::Stale.into());
        }
        Self::with_list(mft, record)
    }

    /// Returns the node of a base record that is in use.
    ///
    /// # Errors
    /// `Corrupt` for a damaged attribute list; `Io`.
    pub(crate) fn with_list(mft: &Mft, record: Record) -> Result<Self> {
        let is_list = |attr: &Attr| attr.kind == kind::ATTRIBUTE_LIST;
        let list = match record.attrs.iter().position(is_list) {
            None => None,
            Some(index) => {
                let stream = Stream::of(mft, &record, index, &[])?;
                let bytes = stream.all(mft, "attribute list", LIST_MAX)?;
                Some(entries(&bytes, &record)?)
            }
        };
        Ok(Self {
            record,
            list,
            stream: 0,
        })
    }

    /// Returns the record that an entry of the list leads to.
    pub(crate) fn held(&self, mft: &Mft, listed: &Listed) -> Result<Held<'_>> {
        match listed.reference.number == self.number() {
            true => Ok(Held::Own(&self.record)),
            false => {
                let record = mft.extension(self.number(), listed.reference)?;
                Ok(Held::Other(Box::new(record)))
            }
        }
    }

    /// Returns the content of the attribute with a type and name, if there is one.
    ///
    /// # Errors
    /// `Corrupt`; `Unsupported`; `Io`.
    pub(crate) fn stream(&self, mft: &Mft, kind: u32, name: &[u16]) -> Result<Option<Stream>> {
        let record = &self.record;
        let Some(list) = &self.list else {
            let mut all = record.attrs.iter();
            let index = all.position(|attr| attr.kind == kind && record.name_of(attr) == name);
            let stream = index.map(|index| Stream::of(mft, record, index, &[]));
            return stream.transpose();
        };
        let mut of = list
            .iter()
            .filter(|one| one.kind == kind && one.name == name);
        let Some(first) = of.find(|one| one.lowest == 0) else {
            return Ok(None);
        };
        let held = self.held(mft, first)?;
        let is_it = |attr: &Attr| attr.kind == kind && attr.id == first.id;
        let index = held
            .attrs
            .iter()
            .position(|attr| is_it(attr) && held.name_of(attr) == name);
        let index = index.ok_or_else(|| {
            let found = format!("no attribute {kind:#x} (record {})", held.number);
            Error::corrupt("attribute list", held.at, found, "one that the list has")
        })?;
        let more = parts(list, kind, name, record)?;
        Stream::of(mft, &held, index, &more).map(Some)
    }

    /// Returns the content of the node: the unnamed data, or a named stream.
    ///
    /// # Errors
    /// Those of [`stream`](Self::stream).
    pub(crate) fn content(&self, mft: &Mft) -> Result<Option<Stream>> {
        let name = match self.stream.checked_sub(1) {
            None => Vec::new(),
            Some(index) => {
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                self.streams().into_iter().nth(index).ok_or(Kind::Stale)?
            }
        };
        self.stream(mft, kind::DATA, &name)
    }

    /// Returns the value of the unnamed attribute of a type, if there is one.
    ///
    /// # Errors
    /// Those of [`stream`](Self::stream); `Corrupt`, naming `what`, if it has more than `most`
    /// bytes.
    pub(crate) fn value(
        &self,
        mft: &Mft,
        kind: u32,
        what: &'static str,
        most: u64,
    ) -> Result<Option<Vec<u8>>> {
        let stream = self.stream(mft, kind, &[])?;
        stream.map(|stream| stream.all(mft, what, most)).transpose()
    }

    /// Returns all names, including the short names for DOS. Reads at most `NAME_RECORDS_MAX` other
    /// records for them.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn names(&self, mft: &Mft) -> Result<Vec<NameOf>> {
        let mut all = Vec::new();
        let Some(list) = &self.list else {
            add_names(&self.record, None, &mut all)?;
            return Ok(all);
        };
        let mut left = NAME_RECORDS_MAX;
        let mut last: Option<(Reference, Held<'_>)> = None;
        for listed in list.iter().filter(|one| one.kind == kind::FILE_NAME) {
            let is_there = last.as_ref().is_some_and(|(of, _)| *of == listed.reference);
            if !is_there {
                let Some(less) = left.checked_sub(1) else {
                    break;
                };
                left = less;
                last = Some((listed.reference, self.held(mft, listed)?));
            }
            if let Some((_, held)) = &last {
                add_names(held, Some(listed.id), &mut all)?;
            }
        }
        Ok(all)
    }

    /// Returns the directory that holds the node, by the node's first name.
    ///
    /// # Errors
    /// `Corrupt` if it has no name; `Io`.
    pub(crate) fn parent(&self, mft: &Mft) -> Result<Reference> {
        let names = self.names(mft)?;
        let name = names.first().ok_or_else(|| {
            let found = format!("no name (record {})", self.number());
            Error::corrupt("$FILE_NAME", self.record.at, found, "one at least")
        })?;
        Ok(name.parent)
    }

    /// Returns the id of the security descriptor that the node shares. Only volumes of version 3
    /// have such ids.
    ///
    /// # Errors
    /// Those of [`standard`](Self::standard).
    pub(crate) fn security_id(&self) -> Result<Option<u32>> {
        let (_, value) = self.standard()?;
        let id = value.get(SECURITY_ID..).and_then(|rest| rest.first_chunk());
        Ok(id.map(|id| u32::from_le_bytes(*id)))
    }
}

/// Adds the names in a record: all of them, or the one with an attribute id.
fn add_names(record: &Record, id: Option<u16>, all: &mut Vec<NameOf>) -> Result<()> {
    let own = record
        .attrs
        .iter()
        .filter(|attr| attr.kind == kind::FILE_NAME);
    for attr in own.filter(|attr| id.is_none_or(|id| attr.id == id)) {
        let name = record.value(attr).and_then(NameOf::of).ok_or_else(|| {
            let found = format!("too few bytes (record {})", record.number);
            Error::corrupt("$FILE_NAME", record.at_of(attr), found, "a name")
        })?;
        all.push(name);
    }
    Ok(())
}
