//! Extended attributes: named streams, and what Windows keeps that has no other place.

use crate::form::EA_MAX;
use crate::names::{utf16, wtf8};
use crate::node::Node;
use crate::ondisk::kind;
use crate::reparse;
use crate::store::Store;
use volary_core::{Error, Kind, Result};

/// Longest value, as Linux has it, in bytes. Longer streams are read by their own names.
pub(crate) const VALUE_MAX: u64 = 64 << 10;

const USER: &[u8] = b"user.";

impl Store {
    /// Returns the names of attributes: of named streams. Those of the system are there if asked for.
    pub(crate) fn xattrs(&self, node: &Node) -> Vec<Vec<u8>> {
        if node.stream != 0 {
            return Vec::new();
        }
        let all = node.streams();
        let names = all.iter().map(|name| [USER, &wtf8(name)].concat());
        names
            .filter(|name| name.len() <= 255 && !name.contains(&0))
            .collect()
    }

    /// Returns the value of an attribute.
    ///
    /// # Errors
    /// `NoXattr`; `TooBig`; `Unsupported` for what is encrypted; `Corrupt`; `Io`.
    pub(crate) fn xattr(&self, node: &Node, name: &[u8]) -> Result<Vec<u8>> {
        if node.stream != 0 {
            return Err(Kind::NoXattr.into());
        }
        if let Some(name) = name.strip_prefix(USER) {
            return self.stream_value(node, name);
        }
        let value = match name {
            b"system.ntfs_acl" => self.descriptor(node)?.map(|own| own.to_vec()),
            b"system.ntfs_attrib" => {
                let flags = node.standard()?.0.flags.get();
                Some(flags.to_le_bytes().to_vec())
            }
            b"system.ntfs_times" => Some(times(node)?),
            b"system.ntfs_reparse_data" => {
                let what = (kind::REPARSE_POINT, "$REPARSE_POINT");
                self.value(node, what, reparse::LEN_MAX)?
            }
            b"system.ntfs_ea" => self.value(node, (kind::EA, "$EA"), EA_MAX)?,
            b"system.ntfs_dos_name" => self.dos_name(node)?,
            _ => None,
        };
        value.ok_or_else(|| Kind::NoXattr.into())
    }

    fn stream_value(&self, node: &Node, name: &[u8]) -> Result<Vec<u8>> {
        let name = utf16(name)
            .filter(|name| !name.is_empty())
            .ok_or(Kind::NoXattr)?;
        let stream = self.stream(node, kind::DATA, &name)?.ok_or(Kind::NoXattr)?;
        if stream.size > VALUE_MAX {
            let words = format!(
                "the stream has {} bytes, more than an attribute has; read it as FILE:STREAM",
                stream.size
            );
            return Err(Error::note(Kind::TooBig, words));
        }
        stream.all(self, "$DATA", VALUE_MAX)
    }

    fn dos_name(&self, node: &Node) -> Result<Option<Vec<u8>>> {
        let names = self.names(node)?;
        let dos = names.iter().find(|name| name.is_dos());
        Ok(dos.map(|name| wtf8(&name.name)))
    }
}

/// Birth, change of the content, access, change of the record, as they are stored.
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
