//! Extended attributes: all of a node, one after the other, in its parts.

use crate::attached::attrs::Attrs;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::uid_of;
use crate::change::versions::Versions;
use crate::disk::ondisk::get_u16;
use crate::name_table::entry::Part;
use volary_core::{Ctx, Error, Kind, NodeId, Result};

/// On the files of a remote, the path there of what a node stands for: no other node may have it.
pub(crate) const REMOTE: &[u8] = b"user.cedar.remote";

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

/// How many versions of a file are kept, as a number; of a directory, how many
/// of each new file in it.
const KEEP: &[u8] = b"user.cedar.keep";
/// The versions of a file that there are, the newest first, with blanks between.
/// It is not listed, and only read.
const VERSIONS: &[u8] = b"user.cedar.versions";

/// Extended attributes of nodes.
pub(crate) struct Xattrs<'a> {
    files: &'a mut Files,
}

impl<'a> Xattrs<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Returns all attributes of a node, those that stand for its versions too.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn list(&mut self, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let keep = Attrs::of(self.files).head(node)?.keep;
        let all = self.stored(node)?.into_iter().map(|(name, _)| name);
        let keep = (keep > 1).then(|| KEEP.to_vec());
        Ok(all.chain(keep).collect())
    }

    /// Returns an attribute that stands for the versions of a node.
    fn of_versions(&mut self, node: NodeId, name: &[u8]) -> Result<Option<Vec<u8>>> {
        if name != KEEP && name != VERSIONS {
            return Ok(None);
        }
        let head = Attrs::of(self.files).head(node)?;
        if name == KEEP {
            return Ok((head.keep > 1).then(|| head.keep.to_string().into_bytes()));
        }
        let mut all = vec![head.version];
        all.extend(Versions::of(self.files).older(&head)?);
        let words: Vec<String> = all.iter().map(u32::to_string).collect();
        Ok((head.line != 0).then(|| words.join(" ").into_bytes()))
    }

    /// Sets how many versions are kept; one, if nothing is said.
    fn set_keep(&mut self, cx: &Ctx<'_>, uid: u64, value: Option<&[u8]>) -> Result<()> {
        let number = |v| std::str::from_utf8(v).ok()?.parse().ok();
        let keep = match value {
            None => 0,
            Some(value) => number(value).filter(|n| *n > 0).unwrap_or(u16::MAX),
        };
        self.files
            .change(cx.now, |c| Versions::of(c).set_keep(uid, keep, cx.now))?;
        Versions::of(self.files).shed(uid, cx.now)
    }

    /// Returns all attributes of a node that are stored.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    fn stored(&mut self, node: NodeId) -> Result<Vec<Xattr>> {
        let head = Attrs::of(self.files).head(node)?;
        let bytes = Nodes::of(self.files).parts(&head, Part::Xattrs)?;
        decode(&bytes).ok_or_else(bad)
    }

    /// # Errors
    /// `NoXattr`.
    pub(crate) fn get(&mut self, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        if let Some(value) = self.of_versions(node, name)? {
            return Ok(value);
        }
        let all = self.stored(node)?;
        let found = all.into_iter().find(|(n, _)| n == name);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| Kind::NoXattr.into())
    }

    /// Sets an attribute, or takes it away.
    ///
    /// # Errors
    /// `Invalid` for what is no number of versions to keep; `NotPermitted` for the
    /// versions that there are; `Unsupported` for a node of the remote to stand for; `NoXattr` for one to take away; `TooBig`, `NoSpace`.
    pub(crate) fn set(
        &mut self,
        cx: &Ctx<'_>,
        node: NodeId,
        name: &[u8],
        value: Option<&[u8]>,
    ) -> Result<()> {
        let uid = uid_of(node)?;
        self.files.core.writable()?;
        if name == KEEP && (value.is_some() || Attrs::of(self.files).head(node)?.keep > 1) {
            return self.set_keep(cx, uid, value);
        }
        if name == VERSIONS {
            return Err(Kind::NotPermitted.into());
        }
        if name == REMOTE {
            let words = "a volume that was made without a remote";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let mut all = self.stored(node)?;
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
        self.files.change(cx.now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            Nodes::of(c).set_parts(&mut head, Part::Xattrs, &bytes)?;
            head.touch(cx.now, false);
            Nodes::of(c).keep(&place, head)
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
