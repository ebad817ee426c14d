//! Infers what an inode was before its mode or its size was damaged, from its other fields and its
//! blocks.

use crate::directory::dir::{Damage, Dir, entries};
use crate::disk::ondisk::{DIRBLKSIZ, UFS_NDADDR, UFS_ROOTINO};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::sweep::{Below, Pointer, Slot, sweep};
use crate::inodes::xattr;
use std::fmt;
use volary_core::{Error, FileKind, Result};

/// Permissions for an inode whose mode was 0.
const PERMISSIONS: [(FileKind, u16); 2] = [(FileKind::Dir, 0o700), (FileKind::File, 0o600)];

/// The fields of an inode that a repair changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    mode: Option<u16>,
    size: Option<u64>,
    extsize: Option<u32>,
    /// Whether the entry's type can decide the kind, because the inode does not.
    is_open: bool,
}

/// What an inode likely was.
pub(super) enum Found {
    Fields(Fields),
    /// It holds nothing.
    Nothing,
}

impl Fields {
    /// Changes the size.
    pub(super) fn of_size(size: u64) -> Self {
        Self {
            size: Some(size),
            ..Self::default()
        }
    }

    /// Changes the kind, and keeps the permissions.
    pub(super) fn of_kind(inode: &Inode, kind: FileKind) -> Self {
        Self {
            mode: Some(bits(kind) | inode.mode & 0o7777),
            ..Self::default()
        }
    }

    /// Returns the kind, if it changes.
    pub(super) fn kind(&self) -> Option<FileKind> {
        self.mode.and_then(|mode| FileKind::from_mode(mode.into()))
    }

    /// Takes the kind that the entry states, if nothing in the inode's content decides it.
    pub(super) fn is_named(&mut self, kind: Option<FileKind>) {
        let kind = kind.filter(|&kind| self.is_open && kind != FileKind::Dir);
        if let (Some(kind), Some(mode)) = (kind, self.mode) {
            self.mode = Some(bits(kind) | mode & 0o7777);
        }
    }

    /// Returns the inode with these fields replaced.
    pub(super) fn apply(&self, inode: &Inode) -> Inode {
        let mut inode = inode.clone();
        inode.mode = self.mode.unwrap_or(inode.mode);
        inode.size = self.size.unwrap_or(inode.size);
        if let Some(extsize) = self.extsize {
            inode.extsize = extsize;
        }
        if inode.extsize == 0 {
            inode.extb = [0; 2];
        }
        inode
    }
}

impl fmt::Display for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = Vec::new();
        if let Some(kind) = self.kind() {
            words.push(format!("it counts as {}", article(kind)));
        }
        words.extend(self.size.map(|size| format!("it ends after {size} bytes")));
        words.extend(self.extsize.map(|size| match size {
            0 => "its extended attributes are taken away".to_owned(),
            size => format!("its extended attributes end after {size} bytes"),
        }));
        f.write_str(&words.join(", "))
    }
}

fn article(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "a file",
        FileKind::Dir => "a directory",
        FileKind::Symlink => "a symlink",
        FileKind::Fifo => "a fifo",
        FileKind::Socket => "a socket",
        FileKind::CharDevice => "a character device",
        FileKind::BlockDevice => "a block device",
    }
}

/// Returns how the fields of an inode contradict each other, if they do. `used` is its bit in the
/// group's map, if known.
pub(super) fn contradiction(
    reader: &Reader<'_>,
    inode: &Inode,
    used: Option<bool>,
) -> Option<Error> {
    let has_blocks = inode.size > 0 && inode.blocks > 0;
    let expected = match inode.kind() {
        None if inode.mode == 0 && !(has_blocks && inode.nlink > 0 && used == Some(true)) => {
            return None;
        }
        None | Some(FileKind::File | FileKind::Dir | FileKind::Symlink) => None,
        // Attributes count in `di_blocks`, but not in the size.
        Some(_) => Some("a file's or directory's, with bytes in blocks"),
    };
    match expected.filter(|_| has_blocks) {
        Some(expected) => {
            let found = format!("{:#o}", inode.mode);
            Some(Error::corrupt("di_mode", inode.at, found, expected))
        }
        None => inode.clone().check(reader.volume).err(),
    }
}

/// Returns where a directory ends whose size is 0 but which has content.
///
/// # Errors
/// `Io`.
pub(super) fn end_of_empty(reader: &Reader<'_>, inode: &Inode) -> Result<Option<u64>> {
    if inode.kind() != Some(FileKind::Dir) || inode.size > 0 || !holds_itself(reader, inode)? {
        return Ok(None);
    }
    Ok(Some(size(reader, inode)?).filter(|&size| size > 0))
}

/// Returns whether a directory's inode does not look like one: it does not begin with the entry
/// `.`, and none of its chunks is full of entries.
///
/// # Errors
/// `Io`.
pub(super) fn is_no_directory(reader: &Reader<'_>, inode: &Inode) -> Result<bool> {
    if inode.kind() != Some(FileKind::Dir) || inode.ino == UFS_ROOTINO {
        return Ok(false);
    }
    if inode.size == 0 || holds_itself(reader, inode)? {
        return Ok(false);
    }
    let mut dir = Dir::new(*reader, inode)?;
    let mut damage = Damage::default();
    let mut at = 0;
    while at < inode.size {
        let chunk = at - at % DIRBLKSIZ as u64;
        match dir.entry(at) {
            Ok(None) => break,
            Ok(Some(entry)) => at = entry.end,
            Err(e) => match damage.pass(e) {
                Ok(()) => {
                    at = Dir::next_chunk(chunk);
                    continue;
                }
                Err(_) => break,
            },
        }
        if at == Dir::next_chunk(chunk) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns what an inode with contradictory fields likely was.
///
/// # Errors
/// `Io`.
pub(super) fn of(reader: &Reader<'_>, inode: &Inode) -> Result<Found> {
    let mut fields = Fields::default();
    let is_special = !matches!(
        inode.kind(),
        Some(FileKind::File | FileKind::Dir | FileKind::Symlink)
    );
    if is_special {
        let kind = kind(reader, inode)?;
        let permissions = match inode.mode & 0o7777 {
            0 => PERMISSIONS
                .iter()
                .find(|of| of.0 == kind)
                .map_or(0, |of| of.1),
            permissions => permissions,
        };
        fields.mode = Some(bits(kind) | permissions);
        fields.is_open = kind == FileKind::File && inode.blocks == 0;
    }
    let most = |inode: &Inode| match inode.kind() {
        Some(FileKind::Dir) => reader
            .volume
            .size_max()
            .min(reader.volume.size * reader.volume.fsize),
        _ => reader.volume.size_max(),
    };
    let so_far = fields.apply(inode);
    if so_far.size > most(&so_far) {
        fields.size = Some(size(reader, &so_far)?);
    }
    if u64::from(inode.extsize) > 2 * reader.volume.bsize {
        fields.extsize = Some(extsize(reader, inode));
    }
    let is_empty = so_far.kind() == Some(FileKind::Dir) && fields.size == Some(0);
    let is_right = fields.apply(inode).check(reader.volume).is_ok();
    Ok(match is_right && !is_empty {
        true => Found::Fields(fields),
        false => Found::Nothing,
    })
}

fn bits(kind: FileKind) -> u16 {
    u16::try_from(kind.mode_bits()).unwrap_or(0)
}

/// Returns the kind that an inode's content looks like. A directory begins with the entry `.`, and
/// a short symlink has text in the place of pointers.
fn kind(reader: &Reader<'_>, inode: &Inode) -> Result<FileKind> {
    if holds_itself(reader, inode)? {
        return Ok(FileKind::Dir);
    }
    let text = inode.text_len(reader.volume);
    let is_text = inode.blocks == 0 && text.is_some_and(|len| len == inode.size);
    Ok(match is_text {
        true => FileKind::Symlink,
        false => FileKind::File,
    })
}

/// Returns whether the inode's first block begins with an entry `.` that leads to this inode.
///
/// # Errors
/// `Io`.
pub(super) fn holds_itself(reader: &Reader<'_>, inode: &Inode) -> Result<bool> {
    let first = inode.db.first().copied().unwrap_or(0);
    let block = reader.checked(inode, "di_db", first, 1, true);
    let Some(block) = block.ok().filter(|_| first != 0) else {
        return Ok(false);
    };
    let mut chunk = [0; DIRBLKSIZ];
    reader
        .cache
        .read(block.first * reader.volume.fsize, &mut chunk)?;
    let own = entries(reader.volume, &chunk).next();
    Ok(own.is_some_and(|entry| entry.ino == inode.ino && entry.name == b"."))
}

/// Returns the size of an inode judging by its blocks. If flipping one bit makes the stored size
/// fit, returns that size, otherwise the end of the last block.
fn size(reader: &Reader<'_>, inode: &Inode) -> Result<u64> {
    let (end, unit) = end(reader, inode)?;
    let is_dir = inode.kind() == Some(FileKind::Dir);
    let step = if is_dir { DIRBLKSIZ as u64 } else { 1 };
    let fits = |size: &u64| end - unit < *size && *size <= end && size.is_multiple_of(step);
    let mut one_bit = (0..u64::BITS).map(|bit| inode.size ^ 1 << bit);
    Ok(one_bit.find(fits).unwrap_or(end))
}

/// Returns where an inode's last block ends, and the length of the range before that in which the
/// file may end.
fn end(reader: &Reader<'_>, inode: &Inode) -> Result<(u64, u64)> {
    let volume = reader.volume;
    let all = Inode {
        size: volume.size_max(),
        ..inode.clone()
    };
    // Damaged indirect blocks can form a cycle.
    let mut left = volume.size / volume.frag + 1;
    let (mut fragments, mut last) = (0, None);
    sweep(reader, &all, &mut |pointer: &Pointer| {
        let Some(rest) = left.checked_sub(1) else {
            return Ok(Below::Skip);
        };
        left = rest;
        let is_piece = matches!(pointer.slot, Slot::Direct(_)) && pointer.first < volume.size;
        match &pointer.block {
            Ok(block) if !pointer.is_junk => {
                fragments += block.fragments;
                if block.is_data && !pointer.blocks.is_empty() {
                    last = last.max(Some((pointer.blocks.start, block.fragments)));
                }
            }
            // Its size makes it look like a whole block, but it is a shorter one.
            _ if is_piece => last = last.max(Some((pointer.blocks.start, 0))),
            _ => return Ok(Below::Skip),
        }
        Ok(Below::Go)
    })?;
    let Some((lbn, its)) = last else {
        return Ok((0, 0));
    };
    let before = fragments - its;
    let rest = (inode.blocks / (volume.fsize / 512)).saturating_sub(before);
    Ok(
        match lbn < UFS_NDADDR && (1..=volume.frag).contains(&rest) {
            true => (lbn * volume.bsize + rest * volume.fsize, volume.fsize),
            false => ((lbn + 1) * volume.bsize, volume.bsize),
        },
    )
}

/// Returns the size of the extended attributes, if flipping one bit of the stored size makes it
/// right. Otherwise returns 0.
fn extsize(reader: &Reader<'_>, inode: &Inode) -> u32 {
    let one_bit = (0..u32::BITS).map(|bit| inode.extsize ^ 1 << bit);
    let mut fitting = one_bit.filter(|&extsize| {
        let inode = Inode {
            extsize,
            ..inode.clone()
        };
        let fits = u64::from(extsize) <= 2 * reader.volume.bsize;
        fits && xattr::all(reader, &inode).is_ok_and(|all| !all.is_empty())
    });
    fitting.next().unwrap_or(0)
}
