//! UFS2's extended attributes: one after the other in up to two blocks of the inode's own.

use crate::blocks::Reader;
use crate::inode::Inode;
use crate::ondisk::{EXTATTR_HEAD, EXTATTR_NAMESPACES, Order, Stored};
use volary_core::{Error, Kind, Result};

/// An attribute, as other systems name it: `user.name`, `system.name`.
pub(crate) struct Xattr {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// All extended attributes of an inode. Those of namespaces that are not known are passed
/// over.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(crate) fn all(reader: &Reader<'_>, inode: &Inode) -> Result<Vec<Xattr>> {
    let bytes = area(reader, inode)?;
    let order = reader.volume.order;
    let mut found = Vec::new();
    let mut rest = bytes.as_slice();
    while rest.len() > EXTATTR_HEAD {
        let len = usize::try_from(u32::get(order, rest, 0)).unwrap_or(usize::MAX);
        if len == 0 {
            break;
        }
        let namespace = u8::get(order, rest, 4);
        let pad = usize::from(u8::get(order, rest, 5));
        let name_end = EXTATTR_HEAD + usize::from(u8::get(order, rest, 6));
        let content = name_end.next_multiple_of(8);
        let bad = |what, found: usize, expected| {
            Error::corrupt(
                what,
                inode.at,
                format!("{found} (inode {})", inode.ino),
                expected,
            )
        };
        let one = rest.get(..len).filter(|_| len.is_multiple_of(8));
        let one = one.ok_or_else(|| bad("ea_length", len, "a multiple of 8 inside of the area"))?;
        let value = len.checked_sub(pad).and_then(|end| one.get(content..end));
        let value = value.ok_or_else(|| {
            bad(
                "ea_contentpadlen",
                pad,
                "name and value inside of the attribute",
            )
        })?;
        let prefix = EXTATTR_NAMESPACES.iter().find(|known| known.0 == namespace);
        if let Some((_, prefix)) = prefix {
            let name = one.get(EXTATTR_HEAD..name_end).unwrap_or_default();
            found.push(Xattr {
                name: [*prefix, name].concat(),
                value: value.to_vec(),
            });
        }
        rest = rest.get(len..).unwrap_or_default();
    }
    Ok(found)
}

/// The bytes that attributes are in.
pub(crate) fn area(reader: &Reader<'_>, inode: &Inode) -> Result<Vec<u8>> {
    let volume = reader.volume;
    let mut bytes = Vec::new();
    let mut left = u64::from(inode.extsize);
    for &first in inode.extb.iter().take_while(|&&first| first != 0) {
        let len = left.min(volume.bsize);
        let block = reader.checked(inode, "di_extb", first, len.div_ceil(volume.fsize), true)?;
        let mut part = vec![0; usize::try_from(len).unwrap_or(0)];
        reader.cache.read(block.first * volume.fsize, &mut part)?;
        bytes.extend(part);
        left -= len;
    }
    Ok(bytes)
}

/// The attributes of an area, with one set, or taken away where there is no value. Those of
/// other namespaces stay.
///
/// # Errors
/// `Unsupported` for a namespace that is not known; `NameTooLong`; `NoXattr`; `Corrupt`.
pub(crate) fn changed(
    order: Order,
    inode: &Inode,
    before: &[u8],
    (name, value): (&[u8], Option<&[u8]>),
) -> Result<Vec<u8>> {
    let known = EXTATTR_NAMESPACES.iter();
    let split = |(space, prefix): &(u8, &[u8])| Some((*space, name.strip_prefix(*prefix)?));
    let (space, short) = known.filter_map(split).next().ok_or(Kind::Unsupported)?;
    let name_len = u8::try_from(short.len()).map_err(|_| Kind::NameTooLong)?;
    let (mut after, mut rest, mut was_there) = (Vec::new(), before, false);
    while rest.len() > EXTATTR_HEAD {
        let len = usize::try_from(u32::get(order, rest, 0)).unwrap_or(usize::MAX);
        if len == 0 {
            break;
        }
        let Some((one, later)) = rest.split_at_checked(len) else {
            let found = format!("{len} (inode {})", inode.ino);
            let expected = "a multiple of 8 inside of the area";
            return Err(Error::corrupt("ea_length", inode.at, found, expected));
        };
        let its_name = EXTATTR_HEAD..EXTATTR_HEAD + usize::from(u8::get(order, one, 6));
        if u8::get(order, one, 4) == space && one.get(its_name) == Some(short) {
            was_there = true;
        } else {
            after.extend_from_slice(one);
        }
        rest = later;
    }
    match value {
        Some(value) => after.extend(stored(order, (space, short, name_len), value)),
        None if !was_there => return Err(Kind::NoXattr.into()),
        None => {}
    }
    Ok(after)
}

/// An attribute as it is stored.
fn stored(order: Order, (space, name, name_len): (u8, &[u8], u8), value: &[u8]) -> Vec<u8> {
    let content = (EXTATTR_HEAD + name.len()).next_multiple_of(8);
    let len = (content + value.len()).next_multiple_of(8);
    let mut bytes = vec![0; EXTATTR_HEAD];
    u32::try_from(len).unwrap_or(0).put(order, &mut bytes, 0);
    space.put(order, &mut bytes, 4);
    let pad = u8::try_from(len - content - value.len()).unwrap_or(0);
    pad.put(order, &mut bytes, 5);
    name_len.put(order, &mut bytes, 6);
    bytes.extend_from_slice(name);
    bytes.resize(content, 0);
    bytes.extend_from_slice(value);
    bytes.resize(len, 0);
    bytes
}
