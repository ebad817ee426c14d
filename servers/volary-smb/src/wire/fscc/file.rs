//! Information about a file (MS-FSCC 2.4).

use crate::wire::Out;

/// `FILE_ATTRIBUTE_*` (MS-FSCC 2.6).
pub(crate) mod attribute {
    pub(crate) const READONLY: u32 = 0x1;
    pub(crate) const HIDDEN: u32 = 0x2;
    pub(crate) const SYSTEM: u32 = 0x4;
    pub(crate) const DIRECTORY: u32 = 0x10;
    pub(crate) const ARCHIVE: u32 = 0x20;
    pub(crate) const NORMAL: u32 = 0x80;
    pub(crate) const TEMPORARY: u32 = 0x100;
    pub(crate) const SPARSE: u32 = 0x200;
    pub(crate) const REPARSE_POINT: u32 = 0x400;
    pub(crate) const OFFLINE: u32 = 0x1000;
    /// The attributes that a client may set.
    pub(crate) const ALL: u32 = 0x7fb7;
}

/// `IO_REPARSE_TAG_SYMLINK`.
pub(crate) const TAG_SYMLINK: u32 = 0xa000_000c;

/// The information about a file for all levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileFacts {
    /// Times, as FILETIMEs.
    pub(crate) created: u64,
    pub(crate) accessed: u64,
    pub(crate) written: u64,
    pub(crate) changed: u64,
    pub(crate) attributes: u32,
    /// Sizes, in bytes.
    pub(crate) size: u64,
    pub(crate) allocated: u64,
    pub(crate) links: u32,
    pub(crate) id: u64,
    /// The size of its extended attributes as a `FullEa` list, in bytes.
    pub(crate) ea_size: u32,
    /// The tag of a reparse point.
    pub(crate) tag: u32,
}

impl FileFacts {
    pub(crate) fn is_dir(&self) -> bool {
        self.attributes & attribute::DIRECTORY != 0
    }
}

/// The information about an open for all levels.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFacts {
    pub(crate) file: FileFacts,
    pub(crate) delete_pending: bool,
    pub(crate) access: u32,
    pub(crate) position: u64,
    pub(crate) mode: u32,
    /// The path from the share's root, in UTF-16LE.
    pub(crate) path: Vec<u8>,
}

pub(crate) fn basic(out: &mut Out, facts: &FileFacts) {
    times(out, facts);
    out.u32(facts.attributes).u32(0);
}

fn times(out: &mut Out, facts: &FileFacts) {
    out.u64(facts.created).u64(facts.accessed);
    out.u64(facts.written).u64(facts.changed);
}

pub(crate) fn standard(out: &mut Out, open: &OpenFacts) {
    let file = &open.file;
    let links = match file.links {
        // An entry that is removed with the last close no longer counts.
        0 => 0,
        links => links.saturating_sub(u32::from(open.delete_pending)),
    };
    out.u64(file.allocated).u64(file.size).u32(links);
    out.u8(u8::from(open.delete_pending))
        .u8(u8::from(file.is_dir()));
    out.u16(0);
}

/// The length of `FileAllInformation` before the name.
pub(crate) const ALL_FIXED: usize = 100;

pub(crate) fn all(out: &mut Out, open: &OpenFacts) {
    basic(out, &open.file);
    standard(out, open);
    out.u64(open.file.id)
        .u32(open.file.ea_size)
        .u32(open.access);
    out.u64(open.position).u32(open.mode).u32(0);
    name(out, &open.path);
}

/// Appends `FileNameInformation`. The alternate and the normalized name have the same form.
pub(crate) fn name(out: &mut Out, utf16: &[u8]) {
    out.len32(utf16.len()).bytes(utf16);
}

pub(crate) fn network_open(out: &mut Out, facts: &FileFacts) {
    times(out, facts);
    out.u64(facts.allocated).u64(facts.size);
    out.u32(facts.attributes).u32(0);
}

pub(crate) fn attribute_tag(out: &mut Out, facts: &FileFacts) {
    out.u32(facts.attributes).u32(facts.tag);
}

/// Appends that the file is not compressed.
pub(crate) fn compression(out: &mut Out, facts: &FileFacts) {
    out.u64(facts.allocated.min(facts.size)).zeros(8);
}

pub(crate) fn id(out: &mut Out, serial: u64, facts: &FileFacts) {
    out.u64(serial).u64(facts.id).u64(0);
}

/// Appends the streams. A file has one, and a directory has none.
pub(crate) fn streams(out: &mut Out, facts: &FileFacts) {
    if facts.is_dir() {
        return;
    }
    let name: Vec<u8> = "::$DATA"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    out.u32(0).len32(name.len());
    out.u64(facts.size).u64(facts.allocated).bytes(&name);
}
