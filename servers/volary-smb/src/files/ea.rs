//! Extended attributes: those of the volume that begin with `user.`, with names that ignore case.
//! Those that the server uses itself are hidden.

use crate::answer::Failure;
use crate::wire::fscc::set::Ea;
use crate::wire::{Out, Status};
use volary_core::{Caps, Kind, NodeId};
use volary_session::{Session, SetXattr};

/// The attribute that stores DOS attributes.
pub(crate) const DOS_XATTR: &[u8] = b"user.DOSATTRIB";

const PREFIX: &[u8] = b"user.";
/// The prefix of attributes that volary uses itself.
const RESERVED: &[u8] = b"user.volary.";
/// The longest list that is reported, in bytes (MS-FSCC 2.4.15).
const LIST_MAX: usize = 64 << 10;

/// Returns whether the server uses the attribute itself.
fn is_ours(name: &[u8]) -> bool {
    name == DOS_XATTR || name.to_ascii_lowercase().starts_with(RESERVED)
}

/// Returns the names, without the prefix.
fn names(session: &Session, node: NodeId) -> Vec<Vec<u8>> {
    if !session.caps().has(Caps::XATTRS) {
        return Vec::new();
    }
    let all = session.listxattr(node).unwrap_or_default();
    let theirs = |name: &Vec<u8>| !is_ours(name);
    let bare = |name: Vec<u8>| name.strip_prefix(PREFIX).map(<[u8]>::to_vec);
    all.into_iter().filter(theirs).filter_map(bare).collect()
}

/// Returns the name under which the attribute is stored.
fn kept(session: &Session, node: NodeId, name: &[u8]) -> Vec<u8> {
    let found = names(session, node)
        .into_iter()
        .find(|other| other.eq_ignore_ascii_case(name));
    [PREFIX, &found.unwrap_or_else(|| name.to_vec())].concat()
}

/// Sets extended attributes. One with an empty value is removed.
///
/// # Errors
/// `EAS_NOT_SUPPORTED`; `INVALID_EA_NAME`; as [`Session::setxattr`].
pub(crate) fn set(session: &Session, node: NodeId, eas: &[Ea<'_>]) -> Result<(), Failure> {
    if !eas.is_empty() && !session.caps().has(Caps::XATTRS) {
        return Err(Status::EAS_NOT_SUPPORTED.into());
    }
    for ea in eas {
        let bad = |b: &u8| *b < 0x20 || b"\"*+,/:;<=>?[\\]|".contains(b);
        if ea.name.is_empty() || ea.name.iter().any(bad) {
            return Err(Status::INVALID_EA_NAME.into());
        }
        let name = kept(session, node, ea.name);
        if is_ours(&name) {
            return Err(Status::ACCESS_DENIED.into());
        }
        if !ea.value.is_empty() {
            session.setxattr(node, &name, ea.value, SetXattr::Any)?;
            continue;
        }
        match session.removexattr(node, &name) {
            Err(e) if e == Kind::NoXattr => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// Returns the length of the list of all attributes.
pub(crate) fn size(session: &Session, node: NodeId) -> u32 {
    let list = list(session, node, None);
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

/// Returns `FileFullEaInformation` with the requested attributes, or all. A requested one that does
/// not exist has an empty value.
pub(crate) fn list(session: &Session, node: NodeId, asked: Option<&[&[u8]]>) -> Vec<u8> {
    let all: Vec<Vec<u8>> = match asked {
        Some(asked) => asked.iter().map(|name| name.to_vec()).collect(),
        None => names(session, node),
    };
    let mut out = Out::new();
    let mut last = None;
    for name in all {
        let value = session
            .getxattr(node, &kept(session, node, &name))
            .unwrap_or_default();
        let len = name.len().saturating_add(value.len()).saturating_add(9);
        if out.len().saturating_add(len) > LIST_MAX || value.len() > usize::from(u16::MAX) {
            continue;
        }
        out.align(4);
        let start = out.len();
        if let Some(last) = last {
            out.put_u32(last, crate::wire::out::len32(start.saturating_sub(last)));
        }
        last = Some(start);
        out.u32(0).u8(0).len8(name.len()).len16(value.len());
        out.bytes(&name.to_ascii_uppercase()).u8(0).bytes(&value);
    }
    out.done()
}
