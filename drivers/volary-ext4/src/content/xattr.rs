//! Extended attributes (attributes.rst, eainode.rst).

use crate::content::map::BlockMap;
use crate::disk::blocks::Blocks;
use crate::disk::csum;
use crate::disk::ondisk::{
    XATTR_ENTRY, XATTR_HEADER, XATTR_MAGIC, XattrEntry, XattrHeader, iflag, incompat,
};
use crate::disk::volume::Volume;
use crate::fast::Fast;
use crate::inodes::inode::Inode;
use crate::inodes::tables::InodeTables;
use volary_core::{ACL_ACCESS, ACL_DEFAULT, Acl, AclEntry, Error, Kind, Result};
use volary_ondisk::Ranges;
use zerocopy::FromBytes;

/// Longest value, as Linux has it, in bytes.
const VALUE_MAX: u32 = 64 << 10;

/// Prefixes by their indices. Those of access lists are whole names; others are not shown.
const PREFIXES: &[(u8, &[u8])] = &[
    (0, b""),
    (1, b"user."),
    (INDEX_ACL_ACCESS, ACL_ACCESS),
    (INDEX_ACL_DEFAULT, ACL_DEFAULT),
    (4, b"trusted."),
    (6, b"security."),
    (INDEX_SYSTEM, b"system."),
    (8, b"system.richacl"),
    (10, b"gnu."),
];
const INDEX_ACL_ACCESS: u8 = 2;
const INDEX_ACL_DEFAULT: u8 = 3;
const INDEX_SYSTEM: u8 = 7;
/// The attribute that holds data of files in their inodes.
const DATA: &[u8] = b"data";

/// An attribute whose value is not read yet.
#[derive(Clone)]
pub(crate) struct Xattr {
    index: u8,
    name: Vec<u8>,
    value: Value,
}

#[derive(Clone)]
enum Value {
    Here(Vec<u8>),
    /// In an inode of its own, with its length.
    Inode(u32, u32),
}

impl Xattr {
    /// Returns the name that it is shown by, if it is shown.
    pub(crate) fn shown(&self) -> Option<Vec<u8>> {
        let prefix = PREFIXES.iter().find(|prefix| prefix.0 == self.index)?.1;
        let is_hidden = self.index == INDEX_SYSTEM && self.name == DATA;
        let name = [prefix, &self.name].concat();
        (!is_hidden && !name.is_empty()).then_some(name)
    }
}

/// The extended attributes of an inode.
#[derive(Clone, Copy)]
pub(crate) struct Xattrs<'a> {
    inodes: InodeTables<'a>,
    fast: &'a Fast,
    inode: &'a Inode,
}

impl<'a> Xattrs<'a> {
    pub(crate) fn new(inodes: InodeTables<'a>, fast: &'a Fast, inode: &'a Inode) -> Self {
        Self {
            inodes,
            fast,
            inode,
        }
    }

    fn blocks(&self) -> &'a Blocks {
        self.inodes.blocks()
    }

    /// Returns all attributes: those in it, then those in its block.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn all(&self) -> Result<Vec<Xattr>> {
        let mut all = in_inode(self.blocks().volume(), self.inode)?;
        all.extend(self.in_block()?);
        Ok(all)
    }

    fn in_block(&self) -> Result<Vec<Xattr>> {
        let (inode, volume) = (self.inode, self.blocks().volume());
        if inode.file_acl == 0 {
            return Ok(Vec::new());
        }
        let (_, bytes) = self.block()?;
        let at = inode.file_acl * volume.block;
        parse(volume, inode, at, &bytes, XATTR_HEADER)
    }

    /// Returns the block of attributes, and its head.
    ///
    /// # Errors
    /// `Corrupt`, also for a wrong checksum; `Io`.
    pub(crate) fn block(&self) -> Result<(XattrHeader, Vec<u8>)> {
        let (blocks, inode) = (self.blocks(), self.inode);
        let volume = blocks.volume();
        let bytes = blocks.block("i_file_acl", inode.at, inode.file_acl)?;
        let at = inode.file_acl * volume.block;
        let bad = |what, found: u32, expected| {
            let found = format!("{found:#x} (inode {})", inode.ino);
            Error::corrupt(what, at, found, expected)
        };
        let (head, _) = XattrHeader::read_from_prefix(&bytes)
            .map_err(|_| bad("extended attributes", 0, "32 bytes"))?;
        if head.h_magic.get() != XATTR_MAGIC {
            return Err(bad("h_magic", head.h_magic.get(), "0xea020000"));
        }
        if head.h_blocks.get() != 1 {
            return Err(bad("h_blocks", head.h_blocks.get(), "1"));
        }
        if volume.verifies() {
            let (before, rest) = bytes.split_at_checked(16).unwrap_or_default();
            let sum = csum::crc32c(volume.seed, &inode.file_acl.to_le_bytes());
            let sum = csum::crc32c(csum::crc32c(sum, before), &[0; 4]);
            let sum = csum::crc32c(sum, rest.get(4..).unwrap_or_default());
            blocks.verify("h_checksum", at, head.h_checksum.get(), sum)?;
        }
        Ok((head, bytes))
    }

    /// Returns the value of an attribute, as it is shown.
    ///
    /// # Errors
    /// `TooBig` past what Linux takes; `Corrupt`; `Io`.
    pub(crate) fn value(&self, xattr: &Xattr) -> Result<Vec<u8>> {
        let stored = match &xattr.value {
            Value::Here(bytes) => bytes.clone(),
            Value::Inode(ino, size) => self.value_in_inode(*ino, *size)?,
        };
        match xattr.index {
            INDEX_ACL_ACCESS | INDEX_ACL_DEFAULT => acl(self.inode, &stored),
            _ => Ok(stored),
        }
    }

    fn value_in_inode(&self, ino: u32, size: u32) -> Result<Vec<u8>> {
        if size > VALUE_MAX {
            return Err(Kind::TooBig.into());
        }
        let bad = |found: String, expected: &str| {
            Error::corrupt("e_value_inum", self.inode.at, found, expected)
        };
        let holder = match self.inodes.inode(ino) {
            Err(e) if e == Kind::Stale => return Err(bad(ino.to_string(), "an inode")),
            other => other?,
        };
        if !holder.has(iflag::EA_INODE) || holder.size != size.into() {
            let found = format!("inode {ino} of {} bytes", holder.size);
            return Err(bad(found, &format!("a value of {size} bytes")));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        BlockMap::new(self.blocks(), self.fast, &holder).read(0, &mut bytes)?;
        // Its time of access is the checksum of the value (eainode.rst).
        let sum = csum::crc32c(self.blocks().volume().seed, &bytes);
        self.blocks().verify(
            "value of ea_inode",
            holder.at,
            holder.head.i_atime.get(),
            sum,
        )?;
        Ok(bytes)
    }
}

/// Returns the attributes in an inode itself.
fn in_inode(volume: &Volume, inode: &Inode) -> Result<Vec<Xattr>> {
    let body = inode.body();
    match body.split_first_chunk() {
        Some((magic, entries)) if u32::from_le_bytes(*magic) == XATTR_MAGIC => {
            parse(volume, inode, inode.at, entries, 0)
        }
        _ => Ok(Vec::new()),
    }
}

/// Returns the attributes whose entries begin at `first` in `area`; values are counted from its start.
fn parse(volume: &Volume, inode: &Inode, at: u64, area: &[u8], first: usize) -> Result<Vec<Xattr>> {
    let (mut all, mut place, mut taken) = (Vec::new(), first, Ranges::default());
    loop {
        let rest = area.get(place..).unwrap_or_default();
        // The first four bytes after the last entry are zeros, or there are none.
        if rest.len() < 4 || rest.starts_with(&[0; 4]) {
            return Ok(all);
        }
        let bad = |what, found: u64, expected| {
            let found = format!("{found} (inode {})", inode.ino);
            Error::corrupt(what, at, found, expected)
        };
        let (raw, rest) = XattrEntry::read_from_prefix(rest)
            .map_err(|_| bad("e_name_len", place as u64, "an entry inside of the area"))?;
        let len = usize::from(raw.e_name_len);
        let name = rest.get(..len);
        let name = name.ok_or_else(|| bad("e_name_len", len as u64, "less than what is left"))?;
        let size = raw.e_value_size.get();
        let value = match raw.e_value_inum.get() {
            0 => {
                let from = usize::from(raw.e_value_offs.get());
                let to = usize::try_from(size)
                    .ok()
                    .and_then(|size| from.checked_add(size));
                let value = to.and_then(|to| area.get(from..to));
                // Values that share bytes would be more together than the area is.
                let value = value.filter(|value| {
                    value.is_empty() || taken.take(from as u64, value.len() as u64)
                });
                let expected = "a value of its own inside of the area";
                Value::Here(
                    value
                        .ok_or_else(|| bad("e_value_size", size.into(), expected))?
                        .to_vec(),
                )
            }
            ino if volume.has_incompat(incompat::EA_INODE) => Value::Inode(ino, size),
            ino => return Err(bad("e_value_inum", ino.into(), "0 without ea_inode")),
        };
        all.push(Xattr {
            index: raw.e_name_index,
            name: name.to_vec(),
            value,
        });
        place += (XATTR_ENTRY + len).next_multiple_of(4);
    }
}

/// Returns the part of a file's data that stands behind its inode.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn inline_rest(volume: &Volume, inode: &Inode) -> Result<Vec<u8>> {
    let all = in_inode(volume, inode)?;
    let data = all
        .into_iter()
        .find(|one| one.index == INDEX_SYSTEM && one.name == DATA);
    match data.map(|one| one.value) {
        Some(Value::Here(bytes)) => Ok(bytes),
        Some(Value::Inode(ino, _)) => {
            let found = format!("inode {ino}");
            let expected = "a value inside of the inode";
            Err(Error::corrupt("system.data", inode.at, found, expected))
        }
        None => Ok(Vec::new()),
    }
}

/// Returns an access list in the form that it is shown in; it is stored without the ids that name
/// nobody (attributes.rst, "POSIX ACLs").
///
/// # Errors
/// `Corrupt`.
fn acl(inode: &Inode, stored: &[u8]) -> Result<Vec<u8>> {
    let bad = || {
        let found = format!("{} bytes (inode {})", stored.len(), inode.ino);
        Error::corrupt("access list", inode.at, found, "a sound one of version 1")
    };
    let mut rest = stored.strip_prefix(&[1, 0, 0, 0]).ok_or_else(bad)?;
    let mut entries: Vec<AclEntry> = Vec::new();
    while let Some(([tag, 0, bits, 0], after)) = rest.split_first_chunk() {
        let names_one = matches!(tag, 0x02 | 0x08);
        let (id, after) = match names_one {
            true => {
                let (id, after) = after.split_first_chunk().ok_or_else(bad)?;
                (u32::from_le_bytes(*id), after)
            }
            false => (u32::MAX, after),
        };
        entries.push((u16::from(*tag), *bits, id));
        rest = after;
    }
    if !rest.is_empty() {
        return Err(bad());
    }
    Ok(Acl::from_entries(&entries).map_err(|_| bad())?.emit())
}
