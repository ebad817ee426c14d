//! Extended attributes: named streams, and Windows metadata that has no other place in the
//! interface.

use crate::attributes::form::EA_MAX;
use crate::attributes::reparse;
use crate::attributes::secure::Secure;
use crate::disk::names::{utf16, wtf8};
use crate::disk::ondisk::kind;
use crate::files::node::Node;
use crate::mft::records::Mft;
use volary_core::{Error, Kind, Result};

/// The longest value, in bytes: Linux's limit. Longer streams can be read as `FILE:STREAM`.
pub(crate) const VALUE_MAX: u64 = 64 << 10;

const USER: &[u8] = b"user.";

/// The extended attributes of a node.
#[derive(Clone, Copy)]
pub(crate) struct Xattrs<'a> {
    mft: &'a Mft,
    secure: &'a Secure,
    node: &'a Node,
}

impl<'a> Xattrs<'a> {
    pub(crate) fn new(mft: &'a Mft, secure: &'a Secure, node: &'a Node) -> Self {
        Self { mft, secure, node }
    }

    /// Returns the names of the extended attributes: those of named streams. Those with the prefix
    /// `system.` are not listed, but can be read.
    pub(crate) fn names(&self) -> Vec<Vec<u8>> {
        if self.node.stream != 0 {
            return Vec::new();
        }
        let all = self.node.streams();
        let names = all.iter().map(|name| [USER, &wtf8(name)].concat());
        names
            .filter(|name| name.len() <= 255 && !name.contains(&0))
            .collect()
    }

    /// Returns the value of an extended attribute.
    ///
    /// # Errors
    /// `NoXattr`; `TooBig`; `Unsupported` for an encrypted stream; `Corrupt`; `Io`.
    pub(crate) fn value(&self, name: &[u8]) -> Result<Vec<u8>> {
        let (mft, node) = (self.mft, self.node);
        if node.stream != 0 {
            return Err(Kind::NoXattr.into());
        }
        if let Some(name) = name.strip_prefix(USER) {
            return self.stream_value(name);
        }
        let value = match name {
            b"system.ntfs_acl" => self.secure.descriptor(mft, node)?.map(|own| own.to_vec()),
            b"system.ntfs_attrib" => {
                let flags = node.standard()?.0.flags.get();
                Some(flags.to_le_bytes().to_vec())
            }
            b"system.ntfs_times" => Some(times(node)?),
            b"system.ntfs_reparse_data" => {
                let what = "$REPARSE_POINT";
                node.value(mft, kind::REPARSE_POINT, what, reparse::LEN_MAX)?
            }
            b"system.ntfs_ea" => node.value(mft, kind::EA, "$EA", EA_MAX)?,
            b"system.ntfs_dos_name" => self.dos_name()?,
            _ => None,
        };
        value.ok_or_else(|| Kind::NoXattr.into())
    }

    fn stream_value(&self, name: &[u8]) -> Result<Vec<u8>> {
        let name = utf16(name)
            .filter(|name| !name.is_empty())
            .ok_or(Kind::NoXattr)?;
        let stream = self.node.stream(self.mft, kind::DATA, &name)?;
        let stream = stream.ok_or(Kind::NoXattr)?;
        if stream.size > VALUE_MAX {
            let words = format!(
                "the stream has {} bytes, more than an attribute has; read it as FILE:STREAM",
                stream.size
            );
            return Err(Error::note(Kind::TooBig, words));
        }
        stream.all(self.mft, "$DATA", VALUE_MAX)
    }

    fn dos_name(&self) -> Result<Option<Vec<u8>>> {
        let names = self.node.names(self.mft)?;
        let dos = names.iter().find(|name| name.is_dos());
        Ok(dos.map(|name| wtf8(&name.name)))
    }
}

/// Returns the times as they are stored: birth, change of the content, access, change of the
/// record.
fn times(node: &Node) -> Result<Vec<u8>> {
    let (standard, _) = node.standard()?;
    let all = [
        standard.created,
        standard.modified,
        standard.accessed,
        standard.changed,
    ];
    Ok(all.map(|time| time.get().to_le_bytes()).concat())
}
