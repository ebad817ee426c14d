//! Storage of descriptors: records in an extended attribute that only root can set.
//!
//! A record is valid for one owner, group and set of permission bits. While these are being
//! changed, there are two records, for the old and the new values. So one of them is valid at every
//! moment, after a crash too. None must be undone if the change is refused.

use super::descriptor::{Dacl, Descriptor};
use crate::wire::Out;
use crate::wire::fscc::le::{slice_at, u8_at, u32_at};
use volary_core::{Attr, Caps, Kind, NodeId, Result};
use volary_session::{Session, SetXattr};

/// The attribute's possible names. The first one that the volume accepts is used.
const NAMES: [&[u8]; 3] = [
    b"security.volary.descriptor",
    b"system.volary.descriptor",
    b"user.volary.descriptor",
];
/// The format of earlier releases: a single record, up to the end.
const SINGLE: u8 = 1;
/// Several records, each with its length.
const SEVERAL: u8 = 2;
/// Permission bits. Set-uid, set-gid and sticky do not matter for a record.
const BITS: u32 = 0o777;

/// A descriptor, and the owner, group and permission bits for which it is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) bits: u32,
    pub(super) descriptor: Vec<u8>,
}

impl Record {
    /// Returns whether it is valid for a node with these attributes.
    pub(super) fn counts(&self, attr: &Attr) -> bool {
        (self.uid, self.gid, self.bits) == (attr.uid, attr.gid, attr.mode & BITS)
    }

    /// Returns the record with rules that grant nothing to anybody.
    fn closed(&self) -> Self {
        let closed = Descriptor {
            dacl: Some(Dacl::Rules(Vec::new())),
            ..Descriptor::default()
        };
        Self {
            descriptor: closed.emit(),
            ..self.clone()
        }
    }
}

/// A node's stored attribute: its name, and its value.
pub(super) type Found = Option<(&'static [u8], Vec<u8>)>;

/// Reads the stored attribute. `root` must be a session that may read everything.
pub(super) fn find(root: &Session, node: NodeId) -> Found {
    if !root.caps().has(Caps::XATTRS) {
        return None;
    }
    let mut names = NAMES.into_iter();
    names.find_map(|name| Some((name, root.getxattr(node, name).ok()?)))
}

/// Returns the record in a value that is valid for a node with these attributes.
pub(super) fn counting(value: &[u8], attr: &Attr) -> Option<Record> {
    let record = |at: usize, len: usize| {
        Some(Record {
            uid: u32_at(value, at)?,
            gid: u32_at(value, at.checked_add(4)?)?,
            bits: u32_at(value, at.checked_add(8)?)? & BITS,
            descriptor: slice_at(value, at.checked_add(12)?, len)?.to_vec(),
        })
    };
    match u8_at(value, 0)? {
        SINGLE => record(1, value.len().checked_sub(13)?).filter(|one| one.counts(attr)),
        SEVERAL => {
            let mut at = 1_usize;
            loop {
                let len = usize::try_from(u32_at(value, at)?).ok()?;
                let one = record(at.checked_add(4)?, len)?;
                if one.counts(attr) {
                    return Some(one);
                }
                at = at.checked_add(16)?.checked_add(len)?;
            }
        }
        _ => None,
    }
}

fn value_of(records: &[&Record]) -> Vec<u8> {
    let mut out = Out::new();
    out.u8(SEVERAL);
    for record in records {
        out.u32(crate::wire::out::len32(record.descriptor.len()));
        out.u32(record.uid).u32(record.gid).u32(record.bits);
        out.bytes(&record.descriptor);
    }
    out.done()
}

/// Stores `new`, together with the valid record `old`. If there is no room for both, `old` is
/// replaced by one that grants nothing to anybody. Returns false if the volume cannot store the
/// attribute for this node.
///
/// # Errors
/// `TooBig`, `NoSpace` and others of the volume. The stored value is then unchanged.
pub(super) fn keep(
    root: &Session,
    node: NodeId,
    new: &Record,
    old: Option<&Record>,
) -> Result<bool> {
    let both: Vec<&Record> = [new].into_iter().chain(old).collect();
    match (put(root, node, &value_of(&both)), old) {
        (Err(e), Some(old)) if e == Kind::TooBig || e == Kind::NoSpace => {
            put(root, node, &value_of(&[new, &old.closed()]))
        }
        (kept, _) => kept,
    }
}

/// Stores a value under the first name that the volume accepts. Returns false if it accepts none.
fn put(root: &Session, node: NodeId, value: &[u8]) -> Result<bool> {
    for name in NAMES {
        match root.setxattr(node, name, value, SetXattr::Any) {
            Err(e) if e == Kind::Unsupported || e == Kind::NotPermitted => {}
            kept => return kept.map(|()| true),
        }
    }
    Ok(false)
}

/// Restores the attribute that [`find`] returned. If that fails, the formerly valid record is still
/// among the stored ones.
pub(super) fn restore(root: &Session, node: NodeId, found: Found) {
    let _ = match found {
        Some((name, value)) => root.setxattr(node, name, &value, SetXattr::Any),
        None => {
            let mut names = NAMES.into_iter();
            names.try_for_each(|name| match root.removexattr(node, name) {
                Err(e) if e == Kind::NoXattr || e == Kind::Unsupported => Ok(()),
                removed => removed,
            })
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::access::tests::attr;
    use volary_core::FileKind;

    fn record(uid: u32, bits: u32, len: usize) -> Record {
        Record {
            uid,
            gid: 20,
            bits,
            descriptor: vec![u8::try_from(len).unwrap(); len],
        }
    }

    #[test]
    fn each_record_counts_for_its_owner_and_bits() {
        let (new, old) = (record(11, 0o700, 5), record(10, 0o777, 9));
        let value = value_of(&[&new, &old]);
        let node = |mode, uid| attr(FileKind::File, mode, uid, 20);
        assert_eq!(counting(&value, &node(0o777, 10)), Some(old.clone()));
        assert_eq!(counting(&value, &node(0o4777, 10)), Some(old));
        assert_eq!(counting(&value, &node(0o700, 11)), Some(new));
        assert_eq!(counting(&value, &node(0o700, 10)), None);
        assert_eq!(counting(&value[..value.len() - 1], &node(0o777, 10)), None);
    }

    #[test]
    fn what_earlier_releases_kept_counts() {
        let mut out = Out::new();
        out.u8(SINGLE).u32(10).u32(20).u32(0o4755).bytes(&[7; 3]);
        let found = counting(&out.done(), &attr(FileKind::File, 0o755, 10, 20));
        assert_eq!(found.unwrap().descriptor, [7; 3]);
    }
}
