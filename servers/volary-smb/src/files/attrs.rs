//! Attributes of nodes as clients see them, and changes of these.
//!
//! DOS attributes come from the driver if it stores them ([`Attr::dos`]). Otherwise, they are in
//! the extended attribute `user.DOSATTRIB` (a hexadecimal number as text, as Samba had it), if the
//! volume has extended attributes. Otherwise, a file is read-only if nobody may write it, and no
//! other attributes are stored. By default, a file has the archive attribute, and a directory has
//! none.

use super::ea::{self, DOS_XATTR};
use super::known::Kept;
use super::open::Common;
use crate::wire::fscc::file::{FileFacts, TAG_SYMLINK, attribute};
use crate::wire::fscc::time;
use volary_core::{Attr, Caps, FileKind, Kind, NodeId, Result, SetAttr};
use volary_session::{Session, SetXattr};

/// The attributes that a driver can store.
const OF_DRIVER: u32 =
    attribute::READONLY | attribute::HIDDEN | attribute::SYSTEM | attribute::ARCHIVE;
/// The attributes that the extended attribute can store.
const KEPT: u32 = OF_DRIVER | attribute::TEMPORARY | attribute::OFFLINE | attribute::SPARSE;
const ANY_WRITE: u32 = 0o222;
const OWNER_WRITE: u32 = 0o200;

/// Returns the node's information for all levels, without the size of its extended attributes.
pub(crate) fn facts(common: &Common, attr: &Attr) -> FileFacts {
    let is_file = attr.kind == FileKind::File;
    let is_link = attr.kind == FileKind::Symlink;
    let birth = attr.btime.unwrap_or(attr.mtime.min(attr.ctime));
    FileFacts {
        created: time::from_time(birth),
        accessed: time::from_time(attr.atime),
        written: time::from_time(attr.mtime),
        changed: common.change_time(attr),
        attributes: shown(attr.kind, dos(common, attr)),
        size: if is_file { attr.size } else { 0 },
        allocated: if is_file { attr.allocated } else { 0 },
        links: if attr.kind == FileKind::Dir {
            1
        } else {
            attr.nlink
        },
        id: attr.node.ino.get(),
        ea_size: 0,
        tag: if is_link { TAG_SYMLINK } else { 0 },
    }
}

/// Returns `FILE_ATTRIBUTE_*` of a node with these DOS attributes.
fn shown(kind: FileKind, dos: u32) -> u32 {
    let all = dos
        | match kind {
            FileKind::Dir => attribute::DIRECTORY,
            FileKind::Symlink => attribute::REPARSE_POINT,
            _ => 0,
        };
    if all == 0 { attribute::NORMAL } else { all }
}

/// Returns the node's DOS attributes, and whether it is marked as sparse. This is the same for all
/// callers, because the client must know that a file is read-only.
pub(crate) fn dos(common: &Common, attr: &Attr) -> u32 {
    if let Some(own) = attr.dos {
        return u32::from(own) & OF_DRIVER;
    }
    if keeps_xattr(common.caps(), attr.kind) {
        return kept(common, attr).dos.unwrap_or(by_default(attr.kind));
    }
    let read_only = attr.kind == FileKind::File && attr.mode & ANY_WRITE == 0;
    by_default(attr.kind) | if read_only { attribute::READONLY } else { 0 }
}

/// Returns the length of the list of the node's extended attributes.
pub(crate) fn ea_size(common: &Common, attr: &Attr) -> u32 {
    if keeps_xattr(common.caps(), attr.kind) {
        kept(common, attr).ea_size
    } else {
        0
    }
}

/// Returns what the node's extended attributes say. The node may have none.
fn kept(common: &Common, attr: &Attr) -> Kept {
    if let Some(kept) = common.known.kept(attr.node) {
        return kept;
    }
    let as_of = common.known.as_of();
    let root = common.root_session();
    let Ok(names) = root.listxattr(attr.node) else {
        return Kept::NOTHING;
    };
    let mut kept = Kept::NOTHING;
    if names.iter().any(|name| name == DOS_XATTR) {
        let text = root.getxattr(attr.node, DOS_XATTR).ok();
        kept.dos = text.and_then(|text| parse(&text));
    }
    if names.iter().any(|name| name != DOS_XATTR) {
        kept.ea_size = ea::size(&root, attr.node);
    }
    common.known.keep(attr.node, kept, as_of);
    kept
}

fn by_default(kind: FileKind) -> u32 {
    if kind == FileKind::File {
        attribute::ARCHIVE
    } else {
        0
    }
}

fn keeps_xattr(caps: Caps, kind: FileKind) -> bool {
    caps.has(Caps::XATTRS) && matches!(kind, FileKind::File | FileKind::Dir)
}

fn parse(text: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(text).ok()?.trim_end_matches('\0');
    let number = u32::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    Some(number & KEPT)
}

/// Sets the DOS attributes. The sparse mark changes only if `sparse` is given.
///
/// # Errors
/// As [`Session::setattr`] and [`Session::setxattr`].
pub(crate) fn set_dos(
    session: &Session,
    common: &Common,
    attr: &Attr,
    attributes: u32,
    sparse: Option<bool>,
) -> Result<()> {
    if attr.dos.is_some() {
        let own = u8::try_from(attributes & OF_DRIVER).unwrap_or(0);
        let set = SetAttr {
            dos: Some(own),
            ..SetAttr::default()
        };
        return session.setattr(attr.node, &set).map(|_| ());
    }
    if keeps_xattr(session.caps(), attr.kind) {
        let was = dos(common, attr);
        let sparse = match sparse {
            None => was & attribute::SPARSE,
            Some(true) => attribute::SPARSE,
            Some(false) => 0,
        };
        let new = attributes & KEPT & !attribute::SPARSE | sparse;
        return if new == was {
            Ok(())
        } else {
            keep(session, attr.node, attr.kind, new)
        };
    }
    let protects = attributes & attribute::READONLY != 0;
    let mode = match (protects, attr.mode & ANY_WRITE) {
        (true, 1..) => attr.mode & !ANY_WRITE,
        (false, 0) => attr.mode | OWNER_WRITE,
        _ => return Ok(()),
    };
    if attr.kind == FileKind::File && session.caps().has(Caps::MODES) {
        session.setattr(attr.node, &SetAttr::mode(mode))?;
    }
    Ok(())
}

fn keep(session: &Session, node: NodeId, kind: FileKind, new: u32) -> Result<()> {
    if new == by_default(kind) {
        return match session.removexattr(node, DOS_XATTR) {
            Err(e) if e == Kind::NoXattr => Ok(()),
            removed => removed,
        };
    }
    let text = format!("{new:#x}");
    session.setxattr(node, DOS_XATTR, text.as_bytes(), SetXattr::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_attributes_are_read_and_nonsense_is_not() {
        assert_eq!(parse(b"0x22"), Some(0x22));
        assert_eq!(parse(b"0x23\0"), Some(0x23));
        assert_eq!(parse(b"0xffffffff"), Some(KEPT));
        assert_eq!(parse(b"22"), None);
        assert_eq!(parse(b"\xff"), None);
    }
}
