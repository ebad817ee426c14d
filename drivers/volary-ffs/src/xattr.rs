//! UFS2's extended attributes: one after the other in up to two blocks of the inode's own.

use crate::blocks::Reader;
use crate::inode::Inode;
use crate::ondisk::{EXTATTR_HEAD, EXTATTR_NAMESPACES, Stored};
use volary_core::{Error, Result};

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
fn area(reader: &Reader<'_>, inode: &Inode) -> Result<Vec<u8>> {
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
