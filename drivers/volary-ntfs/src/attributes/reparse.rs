//! Reparse points, which make a file stand for something else.

use crate::disk::names::{units, wtf8};
use volary_core::FileKind;

/// The longest value, in bytes.
pub(crate) const LEN_MAX: u64 = 16 << 10;

/// The bytes before the data: the tag, the length of the data, and two unused bytes.
const HEAD: usize = 8;

mod tag {
    pub(super) const MOUNT_POINT: u32 = 0xa000_0003;
    pub(super) const SYMLINK: u32 = 0xa000_000c;
    pub(super) const LX_SYMLINK: u32 = 0xa000_001d;
    pub(super) const AF_UNIX: u32 = 0x8000_0023;
    pub(super) const LX_FIFO: u32 = 0x8000_0024;
    pub(super) const LX_CHR: u32 = 0x8000_0025;
    pub(super) const LX_BLK: u32 = 0x8000_0026;
}

/// The names of tags whose content is not read here.
const NAMES: &[(u32, &str)] = &[
    (0x8000_0013, "deduplicated"),
    (0x8000_0017, "compressed by WOF"),
    (0x8000_001b, "a link to a Windows app"),
    (0xc000_0004, "moved to hierarchical storage"),
    (0x8000_0006, "moved to hierarchical storage"),
    (0x8000_0007, "in a single instance store"),
    (0x8000_0008, "in a WIM image"),
    (0x8000_0009, "on a cluster shared volume"),
];

/// The form of the tags of files whose content a cloud service holds.
const CLOUD: u32 = 0x9000_001a;
const CLOUD_MASK: u32 = 0xffff_0fff;

/// The meaning of a reparse point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reparse {
    /// A symlink, with its target.
    Link(Vec<u8>),
    /// A special file of WSL. Its device number is in extended attributes.
    Special(FileKind),
    /// Another tag, which is unknown here.
    Other(u32),
}

/// Returns the meaning of a tag, in words.
pub(crate) fn words(tag: u32) -> String {
    let known = NAMES
        .iter()
        .find(|known| known.0 == tag)
        .map(|known| known.1);
    let known = known.or((tag & CLOUD_MASK == CLOUD).then_some("kept by a cloud service"));
    match known {
        Some(words) => format!("{words} (reparse tag {tag:#010x})"),
        None => format!("a reparse point of an unknown kind (tag {tag:#010x})"),
    }
}

/// Returns the tag at the start of a value.
pub(crate) fn tag_of(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// Reads a value ([MS-FSCC] 2.1.2). Returns `None` if it contradicts itself.
pub(crate) fn parse(value: &[u8]) -> Option<Reparse> {
    let tag = tag_of(value)?;
    let len = value.get(4..6).and_then(|two| two.first_chunk())?;
    let data = value.get(HEAD..HEAD + usize::from(u16::from_le_bytes(*len)))?;
    Some(match tag {
        tag::SYMLINK => Reparse::Link(target(data, 12)?),
        tag::MOUNT_POINT => Reparse::Link(target(data, 8)?),
        // A version, then the target in UTF-8.
        tag::LX_SYMLINK => Reparse::Link(data.get(4..)?.to_vec()),
        tag::AF_UNIX => Reparse::Special(FileKind::Socket),
        tag::LX_FIFO => Reparse::Special(FileKind::Fifo),
        tag::LX_CHR => Reparse::Special(FileKind::CharDevice),
        tag::LX_BLK => Reparse::Special(FileKind::BlockDevice),
        other => Reparse::Other(other),
    })
}

/// Returns the target of a symlink or mount point. Its names begin `head` bytes after the start of
/// the data.
fn target(data: &[u8], head: usize) -> Option<Vec<u8>> {
    let word = |at: usize| {
        let two = data.get(at..at + 2)?.first_chunk()?;
        Some(usize::from(u16::from_le_bytes(*two)))
    };
    let name = |at: usize| {
        let (from, len) = (word(at)?, word(at + 2)?);
        data.get(head + from..head + from + len).map(units)
    };
    let (substitute, printed) = (name(0)?, name(4)?);
    let is_relative = head == 12 && data.get(8).is_some_and(|flags| flags & 1 != 0);
    let chosen = match is_relative || printed.is_empty() {
        true => substitute,
        false => printed,
    };
    Some(readable(&chosen))
}

/// Returns a path of Windows with `/` in the place of backslashes, and without `\??\` at its start.
fn readable(path: &[u16]) -> Vec<u8> {
    let path = wtf8(path);
    let path = path.strip_prefix(br"\??\").unwrap_or(&path);
    let turned = path.iter().map(|byte| match byte {
        b'\\' => b'/',
        byte => *byte,
    });
    turned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn value(tag: u32, substitute: &str, printed: &str, flags: Option<u32>) -> Vec<u8> {
        let (substitute, printed) = (wide(substitute), wide(printed));
        let (first, second) = (substitute.len() as u16, printed.len() as u16);
        let mut data = [0, first, first, second].map(u16::to_le_bytes).concat();
        data.extend(flags.map(u32::to_le_bytes).into_iter().flatten());
        data.extend([substitute, printed].concat());
        let mut out = tag.to_le_bytes().to_vec();
        out.extend((data.len() as u32).to_le_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn targets_are_readable() {
        let link = |text: &str| Some(Reparse::Link(text.into()));
        let absolute = value(tag::SYMLINK, r"\??\C:\a\b", r"C:\a\b", Some(0));
        assert_eq!(parse(&absolute), link("C:/a/b"));
        let relative = value(tag::SYMLINK, r"..\ü\x", r"..\ü\x", Some(1));
        assert_eq!(parse(&relative), link("../ü/x"));
        let junction = value(tag::MOUNT_POINT, r"\??\Volume{1}\", "", None);
        assert_eq!(parse(&junction), link("Volume{1}/"));
        let lx = [
            &tag::LX_SYMLINK.to_le_bytes()[..],
            &[9, 0, 0, 0, 2, 0, 0, 0],
            b"to/it",
        ]
        .concat();
        assert_eq!(parse(&lx), link("to/it"));
    }

    #[test]
    fn values_that_are_cut_are_none() {
        let whole = value(tag::SYMLINK, r"..\x", r"..\x", Some(1));
        for len in 0..whole.len() {
            assert_eq!(parse(&whole[..len]), None, "{len}");
        }
        let mut long = whole;
        long[10] = 0xff;
        assert_eq!(parse(&long), None);
    }

    #[test]
    fn other_tags_are_named() {
        assert!(words(0x8000_0013).contains("deduplicated"));
        assert!(words(0x9000_701a).contains("cloud"));
        assert!(words(0x1234).contains("0x00001234"));
        let fifo = [&tag::LX_FIFO.to_le_bytes()[..], &[0; 4]].concat();
        assert_eq!(parse(&fifo), Some(Reparse::Special(FileKind::Fifo)));
    }
}
