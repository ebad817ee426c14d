//! The form of a node: a file, a directory, or one of the kinds that Windows does not have. WSL,
//! Interix and ntfs-3g each store these in their own way.

use crate::attributes::reparse::{self, Reparse};
use crate::disk::names::{units, wtf8};
use crate::disk::ondisk::{fflag, kind};
use crate::files::node::Node;
use crate::mft::records::Mft;
use volary_core::{Error, FileKind, Kind, Result};

/// The most bytes of extended attributes.
pub(crate) const EA_MAX: u64 = 64 << 10;
/// The longest symlink target that Interix stores, in bytes of UTF-16.
const INTERIX_MAX: u64 = 2 * 4096;
/// The length of the signature at the start of Interix's special files.
const INTERIX_LEN: usize = 8;

/// The form of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Dir,
    File,
    Link(Vec<u8>),
    /// A special file, with its device number.
    Special(FileKind, u64),
    /// A file or directory whose reparse tag is unknown here.
    Other(FileKind, u32),
}

impl Form {
    pub(crate) fn kind(&self) -> FileKind {
        match self {
            Self::Dir => FileKind::Dir,
            Self::File => FileKind::File,
            Self::Link(_) => FileKind::Symlink,
            Self::Special(kind, _) | Self::Other(kind, _) => *kind,
        }
    }
}

/// The owner, group, mode and device number that WSL stores in extended attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wsl {
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) mode: Option<u32>,
    pub(crate) rdev: Option<u64>,
}

/// An extended attribute of OS/2, as `$EA` stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ea<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// Reads `$EA` ([MS-FSCC] 2.4.16), up to the first entry that is invalid.
pub(crate) fn eas(value: &[u8]) -> Vec<Ea<'_>> {
    let (mut all, mut rest) = (Vec::new(), value);
    while let Some((&[a, b, c, d, _, name_len, low, high], after)) = rest.split_first_chunk::<8>() {
        let name_len = usize::from(name_len);
        let len = usize::from(u16::from_le_bytes([low, high]));
        let name = after.get(..name_len);
        let found = after.get(name_len + 1..name_len + 1 + len);
        let (Some(name), Some(value)) = (name, found) else {
            break;
        };
        all.push(Ea { name, value });
        let next = u32::from_le_bytes([a, b, c, d]);
        let next = usize::try_from(next).unwrap_or(usize::MAX);
        // In the last entry, this is 0 or leads to the end of the value.
        if next < 8 {
            break;
        }
        rest = rest.get(next..).unwrap_or_default();
    }
    all
}

impl Wsl {
    /// Reads what WSL stores for a node.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(mft: &Mft, node: &Node) -> Result<Self> {
        if !node.has(kind::EA) {
            return Ok(Self::default());
        }
        let value = node.value(mft, kind::EA, "$EA", EA_MAX)?;
        Ok(Self::of(&value.unwrap_or_default()))
    }

    fn of(value: &[u8]) -> Self {
        let mut all = Self::default();
        for ea in eas(value) {
            let word = |at: usize| {
                let four = ea.value.get(at..at + 4)?.first_chunk()?;
                Some(u32::from_le_bytes(*four))
            };
            match ea.name {
                b"$LXUID" => all.uid = word(0),
                b"$LXGID" => all.gid = word(0),
                b"$LXMOD" => all.mode = word(0),
                b"$LXDEV" => {
                    let both = word(0).zip(word(4));
                    all.rdev = both.map(|(major, minor)| u64::from(major) << 32 | u64::from(minor));
                }
                _ => {}
            }
        }
        all
    }
}

fn is_special(kind: FileKind) -> bool {
    !matches!(kind, FileKind::File | FileKind::Dir | FileKind::Symlink)
}

impl Form {
    /// Returns the form of a node.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn of(mft: &Mft, node: &Node, wsl: &Wsl) -> Result<Self> {
        if node.stream != 0 {
            return Ok(Self::File);
        }
        let plain = match node.is_dir() {
            true => Self::Dir,
            false => Self::File,
        };
        let flags = node.standard()?.0.flags.get();
        if flags & fflag::REPARSE_POINT != 0 && node.has(kind::REPARSE_POINT) {
            let (kind, what) = (kind::REPARSE_POINT, "$REPARSE_POINT");
            let value = node.value(mft, kind, what, reparse::LEN_MAX)?;
            let value = value.unwrap_or_default();
            let found = reparse::parse(&value).ok_or_else(|| {
                let found = format!("{} bytes (record {})", value.len(), node.number());
                let expected = "a tag and what belongs to it";
                Error::corrupt("$REPARSE_POINT", node.record.at, found, expected)
            })?;
            return Ok(match found {
                Reparse::Link(target) => Self::Link(target),
                Reparse::Special(kind) => Self::Special(kind, wsl.rdev.unwrap_or(0)),
                Reparse::Other(tag) => Self::Other(plain.kind(), tag),
            });
        }
        if flags & fflag::SYSTEM != 0 && !node.is_dir() {
            return Self::interix(mft, node);
        }
        // Linux's ntfs3 stores the kind in the mode only.
        let kind = wsl.mode.and_then(FileKind::from_mode);
        if let Some(kind) = kind.filter(|kind| is_special(*kind) && !node.is_dir()) {
            return Ok(Self::Special(kind, wsl.rdev.unwrap_or(0)));
        }
        Ok(plain)
    }

    /// Returns the form of a file with the system attribute of DOS, which may be a special file of
    /// Interix.
    fn interix(mft: &Mft, node: &Node) -> Result<Self> {
        // Any damage of the content is reported when it is read.
        let Ok(Some(stream)) = node.stream(mft, kind::DATA, &[]) else {
            return Ok(Self::File);
        };
        match stream.size {
            0 => return Ok(Self::Special(FileKind::Fifo, 0)),
            1 => return Ok(Self::Special(FileKind::Socket, 0)),
            len if len > INTERIX_MAX + INTERIX_LEN as u64 => return Ok(Self::File),
            _ => {}
        }
        let bytes = match stream.all(mft, "$DATA", INTERIX_MAX + INTERIX_LEN as u64) {
            Err(e) if e == Kind::Io => return Err(e),
            read => read.unwrap_or_default(),
        };
        let (magic, rest) = bytes.split_at_checked(INTERIX_LEN).unwrap_or_default();
        let device = |kind| match rest {
            &[a, b, c, d, _, _, _, _, e, f, g, h, _, _, _, _] => {
                let major = u64::from(u32::from_le_bytes([a, b, c, d]));
                let minor = u64::from(u32::from_le_bytes([e, f, g, h]));
                Self::Special(kind, major << 32 | minor)
            }
            _ => Self::File,
        };
        Ok(match magic {
            b"IntxLNK\x01" => Self::Link(wtf8(&units(rest))),
            b"IntxCHR\0" => device(FileKind::CharDevice),
            b"IntxBLK\0" => device(FileKind::BlockDevice),
            _ => Self::File,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ea(next: u32, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut out = next.to_le_bytes().to_vec();
        out.extend([0, name.len() as u8]);
        out.extend((value.len() as u16).to_le_bytes());
        out.extend([name, b"\0", value].concat());
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    #[test]
    fn what_wsl_keeps_is_read() {
        let device = [4u32, 64].map(u32::to_le_bytes).concat();
        let all = [
            ea(20, b"$LXUID", &1000u32.to_le_bytes()),
            ea(20, b"$LXMOD", &0o20_644u32.to_le_bytes()),
            ea(0, b"$LXDEV", &device),
        ];
        let wsl = Wsl::of(&all.concat());
        assert_eq!(
            (wsl.uid, wsl.gid, wsl.mode),
            (Some(1000), None, Some(0o20_644))
        );
        assert_eq!(wsl.rdev, Some(4 << 32 | 64));
        let bytes = all.concat();
        for len in 0..bytes.len() {
            Wsl::of(&bytes[..len]);
        }
    }
}
