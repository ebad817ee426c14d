//! UFS2's extended attributes, stored one after the other in up to two blocks of the inode.

use crate::disk::ondisk::{EXTATTR_HEAD, EXTATTR_NAMESPACES, Order, Stored};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use volary_core::{ACL_ACCESS, ACL_DEFAULT, Acl, AclEntry, Error, Kind, Result};

/// An attribute, as other systems name it: `user.name`, `system.name`.
pub(crate) struct Xattr {
    pub(crate) name: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Returns all extended attributes of an inode. Attributes in unknown namespaces are skipped.
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

/// Returns the bytes of the area that holds the attributes.
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

/// Returns the attributes of an area after a change: one is set, or removed if there is no value.
/// Attributes in other namespaces are kept.
///
/// # Errors
/// `Unsupported` for an unknown namespace; `NameTooLong`; `NoXattr`; `Corrupt`.
pub(crate) fn changed(
    order: Order,
    inode: &Inode,
    before: &[u8],
    name: &[u8],
    value: Option<&[u8]>,
) -> Result<Vec<u8>> {
    let known = EXTATTR_NAMESPACES.iter();
    let split = |(space, prefix): &(u8, &[u8])| Some((*space, name.strip_prefix(*prefix)?));
    let (space, short) = known.filter_map(split).next().ok_or(Kind::Unsupported)?;
    if short.len() > usize::from(u8::MAX) {
        return Err(Kind::NameTooLong.into());
    }
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
        Some(value) => after.extend(stored(order, space, short, value)),
        None if !was_there => return Err(Kind::NoXattr.into()),
        None => {}
    }
    Ok(after)
}

/// Access lists: their names on Linux, and on FreeBSD.
const ACLS: [(&[u8], &[u8]); 2] = [
    (ACL_ACCESS, b"system.posix1e.acl_access"),
    (ACL_DEFAULT, b"system.posix1e.acl_default"),
];
/// `struct oldacl` of FreeBSD's `<sys/acl.h>`: a count, and room for 32 entries of tag, id and
/// permissions.
const ACL_ENTRIES: usize = 32;
const ACL_ENTRY: usize = 12;
const ACL_LEN: usize = 4 + ACL_ENTRIES * ACL_ENTRY;

/// Returns the name under which an attribute is stored.
pub(crate) fn stored_name(name: &[u8]) -> &[u8] {
    let found = ACLS.iter().find(|(shown, _)| *shown == name);
    found.map_or(name, |(_, stored)| *stored)
}

/// Returns the name under which an attribute is shown.
pub(crate) fn shown_name(name: Vec<u8>) -> Vec<u8> {
    let found = ACLS.iter().find(|(_, stored)| *stored == name);
    found.map_or(name, |(shown, _)| shown.to_vec())
}

/// Returns the stored form of a value that was given under this name.
///
/// # Errors
/// `Invalid` for a malformed access list, and `TooBig` for one with more entries than the format
/// has room for.
pub(crate) fn stored_value(order: Order, name: &[u8], value: &[u8]) -> Result<Vec<u8>> {
    if stored_name(name) == name {
        return Ok(value.to_vec());
    }
    let entries = Acl::parse(value)?.entries();
    if entries.len() > ACL_ENTRIES {
        return Err(Kind::TooBig.into());
    }
    let mut out = vec![0; ACL_LEN];
    u32::try_from(entries.len())
        .unwrap_or(0)
        .put(order, &mut out, 0);
    for (at, (tag, bits, id)) in entries.into_iter().enumerate() {
        let at = 4 + at * ACL_ENTRY;
        u32::from(tag).put(order, &mut out, at);
        id.put(order, &mut out, at + 4);
        u16::from(bits).put(order, &mut out, at + 8);
    }
    Ok(out)
}

/// Returns the shown form of a stored value.
///
/// # Errors
/// `Corrupt` for an invalid access list.
pub(crate) fn shown_value(order: Order, name: &[u8], stored: Vec<u8>) -> Result<Vec<u8>> {
    if stored_name(name) == name {
        return Ok(stored);
    }
    let bad = || {
        Error::corrupt(
            "access list",
            0,
            format!("{} bytes", stored.len()),
            "a struct oldacl",
        )
    };
    let count = usize::try_from(u32::get(order, stored.get(..4).ok_or_else(bad)?, 0));
    let count = count.unwrap_or(usize::MAX);
    if stored.len() != ACL_LEN || count > ACL_ENTRIES {
        return Err(bad());
    }
    let entries = stored
        .get(4..)
        .unwrap_or_default()
        .chunks(ACL_ENTRY)
        .take(count);
    let narrow = |entry: &[u8]| {
        let tag = u16::try_from(u32::get(order, entry, 0)).unwrap_or(0);
        let bits = u8::try_from(u16::get(order, entry, 8)).unwrap_or(u8::MAX);
        (tag, bits, u32::get(order, entry, 4))
    };
    let mut entries: Vec<AclEntry> = entries.map(narrow).collect();
    for (tag, _, id) in &mut entries {
        // In FreeBSD's entries, ids mean nothing for tags other than user and group.
        if *tag != 0x02 && *tag != 0x08 {
            *id = u32::MAX;
        }
    }
    Ok(Acl::from_entries(&entries).map_err(|_| bad())?.emit())
}

/// Returns the stored form of an attribute.
fn stored(order: Order, space: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
    let content = (EXTATTR_HEAD + name.len()).next_multiple_of(8);
    let len = (content + value.len()).next_multiple_of(8);
    let mut bytes = vec![0; EXTATTR_HEAD];
    u32::try_from(len).unwrap_or(0).put(order, &mut bytes, 0);
    space.put(order, &mut bytes, 4);
    let pad = u8::try_from(len - content - value.len()).unwrap_or(0);
    pad.put(order, &mut bytes, 5);
    let name_len = u8::try_from(name.len()).unwrap_or(u8::MAX);
    name_len.put(order, &mut bytes, 6);
    bytes.extend_from_slice(name);
    bytes.resize(content, 0);
    bytes.extend_from_slice(value);
    bytes.resize(len, 0);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list `user::rw-, user:1001:r--, group::---, mask::r--, other::---` in Linux's form.
    const LINUX: [u8; 44] = [
        2, 0, 0, 0, //
        1, 0, 6, 0, 255, 255, 255, 255, //
        2, 0, 4, 0, 0xe9, 3, 0, 0, //
        4, 0, 0, 0, 255, 255, 255, 255, //
        16, 0, 4, 0, 255, 255, 255, 255, //
        32, 0, 0, 0, 255, 255, 255, 255,
    ];

    #[test]
    fn an_access_list_is_stored_as_freebsd_has_it() {
        for (order, count, user) in [
            (
                Order::Little,
                [5, 0, 0, 0],
                [2, 0, 0, 0, 0xe9, 3, 0, 0, 4, 0, 0, 0],
            ),
            (
                Order::Big,
                [0, 0, 0, 5],
                [0, 0, 0, 2, 0, 0, 3, 0xe9, 0, 4, 0, 0],
            ),
        ] {
            let stored = stored_value(order, ACL_ACCESS, &LINUX).unwrap();
            assert_eq!(stored.len(), 388);
            assert_eq!((&stored[..4], &stored[16..28]), (&count[..], &user[..]));
            let shown = shown_value(order, ACL_ACCESS, stored.clone());
            assert_eq!(shown.unwrap(), LINUX);
            for bad in [&stored[..387], &[0xff; 388], &[0; 388], &[]] {
                let shown = shown_value(order, ACL_ACCESS, bad.to_vec());
                assert!(shown.is_err_and(|e| e == Kind::Corrupt), "{}", bad.len());
            }
        }
        assert_eq!(stored_name(ACL_DEFAULT), b"system.posix1e.acl_default");
        assert_eq!(
            shown_name(b"system.posix1e.acl_access".to_vec()),
            ACL_ACCESS
        );
    }

    #[test]
    fn a_list_that_freebsd_has_no_room_for_is_too_big() {
        let users = (0..29).map(|uid| (0x02, 4, uid));
        let fixed = [1, 4, 16, 32].map(|tag| (tag, 4, u32::MAX));
        let entries: Vec<AclEntry> = users.chain(fixed).collect();
        let value = Acl::from_entries(&entries).unwrap().emit();
        let stored = stored_value(Order::Little, ACL_ACCESS, &value);
        assert!(stored.is_err_and(|e| e == Kind::TooBig));
    }
}
