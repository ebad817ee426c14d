//! Extended attributes: all of a node, one after the other, in its parts.

use crate::attached::Attached;
use crate::entry::Part;
use crate::nodes::uid_of;
use crate::ondisk::get_u16;
use volary_core::{Ctx, Error, Kind, NodeId, Result};

/// Name and value.
type Xattr = (Vec<u8>, Vec<u8>);

/// From what is stored: lengths of name and value in two bytes each, name, value.
fn decode(mut bytes: &[u8]) -> Option<Vec<Xattr>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let name_len = usize::from(get_u16(bytes, 0));
        let len = usize::from(get_u16(bytes, 2));
        let name = bytes.get(4..4 + name_len)?;
        let value = bytes.get(4 + name_len..4 + name_len + len)?;
        out.push((name.to_vec(), value.to_vec()));
        bytes = bytes.get(4 + name_len + len..)?;
    }
    Some(out)
}

fn encode(all: &[Xattr]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for (name, value) in all {
        out.extend(u16::try_from(name.len()).ok()?.to_le_bytes());
        out.extend(u16::try_from(value.len()).ok()?.to_le_bytes());
        out.extend(name);
        out.extend(value);
    }
    Some(out)
}

fn bad() -> Error {
    Error::corrupt("extended attributes", 0, "cut short", "names and values")
}

impl Attached {
    /// All attributes of a node.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn xattrs(&mut self, node: NodeId) -> Result<Vec<Xattr>> {
        let head = self.head(node)?;
        let bytes = self.core.parts(&head, Part::Xattrs)?;
        decode(&bytes).ok_or_else(bad)
    }

    /// # Errors
    /// `NoXattr`.
    pub(crate) fn get_xattr(&mut self, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let all = self.xattrs(node)?;
        let found = all.into_iter().find(|(n, _)| n == name);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| Kind::NoXattr.into())
    }

    /// Sets an attribute, or takes it away.
    ///
    /// # Errors
    /// `NoXattr` for one to take away; `TooBig`, `NoSpace`.
    pub(crate) fn set_xattr(
        &mut self,
        cx: &Ctx<'_>,
        node: NodeId,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        let uid = uid_of(node)?;
        self.core.writable()?;
        let mut all = self.xattrs(node)?;
        let at = all.iter().position(|(n, _)| n == name);
        match (at, value) {
            (None, None) => return Err(Kind::NoXattr.into()),
            (Some(at), None) => drop(all.remove(at)),
            (Some(at), Some(value)) => {
                if let Some(old) = all.get_mut(at) {
                    old.1 = value.to_vec();
                }
            }
            (None, Some(value)) => all.push((name.to_vec(), value.to_vec())),
        }
        let bytes = encode(&all).ok_or(Kind::TooBig)?;
        self.core.change(cx.now, |c| {
            let (place, mut head) = c.home(uid)?;
            c.set_parts(&mut head, Part::Xattrs, &bytes)?;
            head.touch(cx.now, false);
            c.keep(&place, head)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_comes_back_and_what_is_cut_does_not() {
        let all = vec![
            (b"user.a".to_vec(), vec![1; 300]),
            (b"b".to_vec(), Vec::new()),
        ];
        let bytes = encode(&all).unwrap();
        assert_eq!(decode(&bytes), Some(all));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(encode(&[(vec![0; 1], vec![0; 70_000])]), None);
    }
}
