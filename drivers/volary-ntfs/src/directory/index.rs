//! Indexes: a root in the record, blocks in `$INDEX_ALLOCATION`, and a bitmap of the blocks in use.

use crate::disk::fixup;
use crate::disk::ondisk::{IndexBlock, IndexEntry, IndexHead, IndexRoot, eflag, kind};
use crate::files::node::Node;
use crate::files::stream::Stream;
use crate::mft::records::Mft;
use std::cmp::Ordering;
use std::ops::Range;
use volary_core::{Error, Kind, Result};
use zerocopy::FromBytes;

/// The most levels of a valid index.
const DEPTH_MAX: u32 = 32;

/// The length of a block's header, which precedes the header of the entries.
const BLOCK_HEAD: usize = 24;

/// An index of a node.
pub(crate) struct Index {
    pub(crate) number: u64,
    /// The place of the root's value on the device.
    pub(crate) at: u64,
    pub(crate) root: IndexRoot,
    root_value: Vec<u8>,
    blocks: Option<Stream>,
    bits: Option<Stream>,
    /// The size of a block, and of the unit in which block numbers are stored, in bytes.
    pub(crate) block: u64,
    unit: u64,
}

/// Consecutive entries: those of the root, or of a block.
pub(crate) struct Entries {
    /// The place of their bytes on the device, if the block is in one piece.
    pub(crate) at: u64,
    bytes: Vec<u8>,
    range: Range<usize>,
    number: u64,
}

/// An entry of an index.
pub(crate) struct Entry<'a> {
    /// The offsets of its start and its end in the block.
    pub(crate) at: usize,
    pub(crate) end: usize,
    pub(crate) raw: IndexEntry,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    pub(crate) fn is_last(&self) -> bool {
        self.raw.flags.get() & eflag::END != 0
    }

    /// Returns the key. It is empty for the last entry, which has none.
    pub(crate) fn key(&self) -> &'a [u8] {
        let end = 16 + usize::from(self.raw.key_len.get());
        match self.is_last() {
            true => &[],
            false => self.bytes.get(16..end).unwrap_or_default(),
        }
    }

    /// Returns the data beside the key. Only an index of something else than names has such data.
    pub(crate) fn data(&self) -> &'a [u8] {
        let place = self.raw.reference.get();
        let (from, len) = ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize);
        self.bytes.get(from..from + len).unwrap_or_default()
    }

    /// Returns the block with the entries that come before this one.
    pub(crate) fn below(&self) -> Option<u64> {
        let has_node = self.raw.flags.get() & eflag::NODE != 0;
        let last = self.bytes.last_chunk().filter(|_| has_node)?;
        Some(u64::from_le_bytes(*last))
    }
}

impl Entries {
    fn bad(
        &self,
        what: &'static str,
        at: usize,
        found: impl std::fmt::Display,
        expected: &str,
    ) -> Error {
        let found = format!("{found} (record {})", self.number);
        Error::corrupt(what, self.at.saturating_add(at as u64), found, expected)
    }

    /// Checks the header of the entries, which is at offset `head` in the bytes of a root or block.
    fn of(number: u64, at: u64, bytes: Vec<u8>, head: usize) -> Result<Self> {
        let mut entries = Self {
            at,
            bytes,
            range: 0..0,
            number,
        };
        let rest = entries.bytes.get(head..).unwrap_or_default();
        let raw = IndexHead::read_from_prefix(rest).ok().map(|(raw, _)| raw);
        let raw = raw.ok_or_else(|| entries.bad("index", head, rest.len(), "16 bytes or more"))?;
        let place = |n: u32| usize::try_from(n).unwrap_or(usize::MAX);
        let from = place(raw.entries_offset.get());
        let len = place(raw.entries_len.get());
        if from < size_of::<IndexHead>() || from > len || len > rest.len() {
            let found = format!("entries from {from} to {len}");
            return Err(entries.bad("index", head, found, "inside of the index"));
        }
        entries.range = head + from..head + len;
        Ok(entries)
    }

    /// Returns the offset of the first entry.
    pub(crate) fn start(&self) -> usize {
        self.range.start
    }

    /// Returns the entry at an offset. `None` at the end.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn entry(&self, at: usize) -> Result<Option<Entry<'_>>> {
        if at >= self.range.end {
            return Ok(None);
        }
        let rest = self.bytes.get(at..self.range.end).unwrap_or_default();
        let bad = |found: usize, expected| self.bad("index entry", at, found, expected);
        let (raw, _) =
            IndexEntry::read_from_prefix(rest).map_err(|_| bad(rest.len(), "16 bytes or more"))?;
        let len = usize::from(raw.len.get());
        let of_node = match raw.flags.get() & eflag::NODE {
            0 => 0,
            _ => 8,
        };
        let key = match raw.flags.get() & eflag::END {
            0 => usize::from(raw.key_len.get()),
            _ => 0,
        };
        if len < 16 + key + of_node || len > rest.len() || !len.is_multiple_of(8) {
            return Err(bad(len, "room for the key, inside of the index"));
        }
        Ok(Some(Entry {
            at,
            end: at + len,
            raw,
            bytes: rest.get(..len).unwrap_or_default(),
        }))
    }

    /// Returns the place of an entry on the device.
    pub(crate) fn at_of(&self, entry: &Entry<'_>) -> u64 {
        self.at.saturating_add(entry.at as u64)
    }
}

impl Index {
    /// Reads an index of a node. `None` if the node has none with this name.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn of(mft: &Mft, node: &Node, name: &[u16]) -> Result<Option<Self>> {
        let Some(root) = node.stream(mft, kind::INDEX_ROOT, name)? else {
            return Ok(None);
        };
        let bad = |at, found: String, expected: &str| {
            let found = format!("{found} (record {})", node.number());
            Error::corrupt("$INDEX_ROOT", at, found, expected)
        };
        let at = root.at;
        let value = root.all(mft, "$INDEX_ROOT", mft.volume().record as u64)?;
        let (raw, _) = IndexRoot::read_from_prefix(&value)
            .map_err(|_| bad(at, format!("{} bytes", value.len()), "16 bytes or more"))?;
        let block = u64::from(raw.block_len.get());
        if !block.is_power_of_two() || !(512..=65536).contains(&block) {
            return Err(bad(at, format!("blocks of {block}"), "512 to 65536 bytes"));
        }
        let cluster = mft.volume().cluster;
        let unit = match block >= cluster {
            true => cluster,
            false => crate::disk::ondisk::STRIDE as u64,
        };
        let blocks = node.stream(mft, kind::INDEX_ALLOCATION, name)?;
        let most = mft.volume().there().saturating_mul(cluster);
        if let Some(all) = blocks.as_ref().filter(|all| all.size > most) {
            return Err(bad(
                all.at,
                format!("{} bytes", all.size),
                "no more than the volume has",
            ));
        }
        Ok(Some(Self {
            number: node.number(),
            at: at.saturating_add(24),
            root: raw,
            root_value: value,
            blocks,
            bits: node.stream(mft, kind::BITMAP, name)?,
            block,
            unit,
        }))
    }

    /// Returns how many blocks there are.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
            .as_ref()
            .map_or(0, |blocks| blocks.size / self.block.max(1))
    }

    /// Returns the number of the block that begins at `vcn`, which counts units.
    pub(crate) fn block_of(&self, vcn: u64) -> Option<u64> {
        let offset = vcn.checked_mul(self.unit)?;
        let number = offset / self.block.max(1);
        let is_whole = offset.is_multiple_of(self.block.max(1));
        (is_whole && number < self.blocks()).then_some(number)
    }

    /// Returns the entries of the root.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn root(&self) -> Result<Entries> {
        let head = size_of::<IndexRoot>();
        Entries::of(self.number, self.at, self.root_value.clone(), head)
    }

    /// Returns whether the bitmap has a block as in use. Without a bitmap, all blocks are.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn is_used(&self, mft: &Mft, number: u64) -> Result<bool> {
        let Some(bits) = &self.bits else {
            return Ok(true);
        };
        let mut byte = [0];
        bits.read(mft, number / 8, &mut byte)?;
        Ok(byte
            .first()
            .is_some_and(|byte| byte >> (number % 8) & 1 == 1))
    }

    /// Returns the entries of a block.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn entries(&self, mft: &Mft, number: u64) -> Result<Entries> {
        let blocks = self.blocks.as_ref().ok_or(Kind::Corrupt)?;
        let offset = number.saturating_mul(self.block);
        let mut bytes = vec![0; usize::try_from(self.block).unwrap_or(0)];
        let cluster = mft.volume().cluster;
        let place = blocks.run(mft, offset / cluster)?.place;
        let at = place.map_or(blocks.at, |place| {
            place
                .saturating_mul(cluster)
                .saturating_add(offset % cluster)
        });
        if blocks.read(mft, offset, &mut bytes)? < bytes.len() {
            let found = format!("block {number} (record {})", self.number);
            return Err(Error::corrupt("index", at, found, "blocks inside of it"));
        }
        if !bytes.starts_with(b"INDX") {
            let found = format!("block {number} (record {})", self.number);
            return Err(Error::corrupt("index block", at, found, "\"INDX\""));
        }
        fixup::restore("index block", at, &mut bytes)?;
        let (head, _) = IndexBlock::read_from_prefix(&bytes).map_err(|_| Kind::Corrupt)?;
        let vcn = offset / self.unit.max(1);
        if head.vcn.get() != vcn {
            let found = format!("{} (record {})", head.vcn.get(), self.number);
            return Err(Error::corrupt(
                "index block",
                at + 16,
                found,
                format!("{vcn}"),
            ));
        }
        Entries::of(self.number, at, bytes, BLOCK_HEAD)
    }

    /// Returns the entries of the root if `block` is 0, or else those of block `block - 1`. `None`
    /// for a block that is not in use.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn entries_of(&self, mft: &Mft, block: u64) -> Result<Option<Entries>> {
        let Some(number) = block.checked_sub(1) else {
            return self.root().map(Some);
        };
        match self.is_used(mft, number)? {
            true => self.entries(mft, number).map(Some),
            false => Ok(None),
        }
    }

    /// Goes down the tree to the place of a key. `order` compares entries with that key. It is
    /// called for every entry that the search passes.
    ///
    /// # Errors
    /// `Corrupt`, also for a tree that is too deep; `Io`; those of `order` and `take`.
    pub(crate) fn find<T>(
        &self,
        mft: &Mft,
        mut order: impl FnMut(&Entry<'_>) -> Result<Ordering>,
        mut take: impl FnMut(&Entry<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut entries = self.root()?;
        for _ in 0..DEPTH_MAX {
            let mut at = entries.start();
            let below = loop {
                let entry = entries.entry(at)?;
                let entry =
                    entry.ok_or_else(|| entries.bad("index", at, "no end", "a last entry"))?;
                if entry.is_last() {
                    break entry.below();
                }
                match order(&entry)? {
                    Ordering::Less => at = entry.end,
                    Ordering::Equal => return take(&entry).map(Some),
                    Ordering::Greater => break entry.below(),
                }
            };
            let Some(vcn) = below else { return Ok(None) };
            let number = self.block_of(vcn).ok_or_else(|| {
                let found = format!("a block at {vcn}");
                entries.bad("index", at, found, "one that the index has")
            })?;
            entries = self.entries(mft, number)?;
        }
        Err(entries.bad("index", 0, "more levels than any has", "a tree"))
    }
}
