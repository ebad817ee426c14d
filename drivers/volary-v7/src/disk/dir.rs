//! Directories: entries of sixteen bytes, a number and a name.

use crate::disk::blocks::{Reader, Walker};
use crate::disk::inode::Inode;
use crate::disk::ondisk::ENTRY_LEN;
use crate::disk::volume::Volume;
use std::ops::ControlFlow;
use volary_core::{FileKind, Kind, Result};

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Where it is in the directory.
    pub(crate) at: u64,
    /// What it leads to; 0 if it is free.
    pub(crate) ino: u32,
    pub(crate) name: &'a [u8],
}

impl Entry<'_> {
    /// Returns whether it is `.` or `..`.
    pub(crate) fn is_dots(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// Returns an entry out of its bytes.
pub(crate) fn parse<'a>(volume: &Volume, at: u64, bytes: &'a [u8]) -> Entry<'a> {
    let name = bytes.get(2..ENTRY_LEN).unwrap_or_default();
    let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
    Entry {
        at,
        ino: volume.order.get16(bytes, 0).into(),
        name: name.get(..end).unwrap_or_default(),
    }
}

/// Returns the bytes of an entry. A name that is too long is cut.
pub(crate) fn bytes(volume: &Volume, ino: u32, name: &[u8]) -> [u8; ENTRY_LEN] {
    let mut bytes = [0; ENTRY_LEN];
    volume
        .order
        .put16(&mut bytes, 0, u16::try_from(ino).unwrap_or(0));
    for (to, from) in bytes.iter_mut().skip(2).zip(name) {
        *to = *from;
    }
    bytes
}

/// Gives `each` the entries from byte `from` on, free ones too, but those in holes.
///
/// # Errors
/// `NotDir`; `Corrupt`; `Io`; of `each`.
pub(crate) fn entries(
    reader: &Reader<'_>,
    dir: &Inode,
    from: u64,
    each: &mut dyn FnMut(Entry<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    if dir.kind() != Some(FileKind::Dir) {
        return Err(Kind::NotDir.into());
    }
    let bsize = reader.volume.bsize;
    let mut walker = Walker::new(*reader, dir);
    let mut bytes = vec![0; reader.volume.block_len()];
    let mut at = from;
    while at < dir.size {
        let (block, count) = walker.next(at / bsize)?;
        let stop = ((at / bsize + count) * bsize).min(dir.size);
        if block != 0 {
            reader.cache.read(u64::from(block) * bsize, &mut bytes)?;
            let within = usize::try_from(at % bsize).unwrap_or(0)
                ..usize::try_from(stop - at / bsize * bsize).unwrap_or(0);
            let part = bytes.get(within).unwrap_or_default();
            for (i, entry) in part.chunks_exact(ENTRY_LEN).enumerate() {
                let place = at + (i * ENTRY_LEN) as u64;
                if each(parse(reader.volume, place, entry))?.is_break() {
                    return Ok(());
                }
            }
        }
        at = stop;
    }
    Ok(())
}

/// Searches a directory for a name. Returns the inode that it leads to and where its entry is.
///
/// # Errors
/// `NotDir`; `Corrupt`; `Io`.
pub(crate) fn search(reader: &Reader<'_>, dir: &Inode, name: &[u8]) -> Result<Option<(u32, u64)>> {
    let mut found = None;
    entries(reader, dir, 0, &mut |entry| {
        if entry.ino != 0 && entry.name == name {
            found = Some((entry.ino, entry.at));
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// Returns whether a directory holds nothing but itself and its parent.
///
/// # Errors
/// `NotDir`; `Corrupt`; `Io`.
pub(crate) fn is_empty(reader: &Reader<'_>, dir: &Inode) -> Result<bool> {
    let mut is_empty = true;
    entries(reader, dir, 0, &mut |entry| {
        is_empty = entry.ino == 0 || entry.is_dots();
        Ok(match is_empty {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(is_empty)
}

/// Returns where the first free entry is, behind the end if there is none.
///
/// # Errors
/// `NotDir`; `Corrupt`; `Io`.
pub(crate) fn room(reader: &Reader<'_>, dir: &Inode) -> Result<u64> {
    let mut room = dir.size;
    entries(reader, dir, 0, &mut |entry| {
        if entry.ino == 0 {
            room = entry.at;
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(room)
}
