//! Where a directory ends whose size is too large. By that size, its last block would take
//! fragments that other files own.

use crate::directory::dir::{Dir, size_max};
use crate::disk::ondisk::{DIRBLKSIZ, UFS_NDADDR};
use crate::inodes::blocks::{Block, Reader};
use crate::inodes::inode::Inode;
use volary_core::{Kind, Result};

/// Returns where a directory ends, if that is before its size. Its own count of sectors must match
/// the blocks up to there, and no valid entries of it may follow.
///
/// # Errors
/// `Io`.
pub(super) fn end(reader: &Reader<'_>, dir: &Inode) -> Result<Option<u64>> {
    let attributes = sectors(reader, &cut(dir, 0))?.unwrap_or(dir.blocks);
    let end = dir.blocks.saturating_sub(attributes).saturating_mul(512);
    let direct = UFS_NDADDR * reader.volume.bsize;
    if end == 0 || end >= dir.size || end > direct {
        return Ok(None);
    }
    let is_all = sectors(reader, &cut(dir, end))? == Some(dir.blocks);
    let most = dir.size.min(direct).min(size_max(reader.volume));
    let ends = is_all && !goes_on(reader, &cut(dir, most), end)?;
    Ok(ends.then_some(end))
}

fn cut(dir: &Inode, size: u64) -> Inode {
    Inode {
        size,
        ..dir.clone()
    }
}

/// Returns the sectors that an inode's blocks take, or `None` if a block is invalid.
fn sectors(reader: &Reader<'_>, inode: &Inode) -> Result<Option<u64>> {
    let mut fragments = 0;
    let all = reader.blocks(inode, &mut |block: Block| {
        fragments += block.fragments;
        Ok(())
    });
    match all {
        Err(e) if e == Kind::Corrupt => Ok(None),
        all => all.map(|()| Some(fragments * (reader.volume.fsize / 512))),
    }
}

/// Returns whether entries from byte `from` on can be the directory's own. They can if a chunk
/// consists of valid entries alone, and none of these is `.` or `..`.
fn goes_on(reader: &Reader<'_>, inode: &Inode, from: u64) -> Result<bool> {
    let mut dir = Dir::new(*reader, inode)?;
    for chunk in (from..inode.size).step_by(DIRBLKSIZ) {
        let (mut at, mut is_used) = (chunk, false);
        let is_own = loop {
            match dir.entry(at) {
                Err(e) if e != Kind::Corrupt => return Err(e),
                Ok(Some(entry)) if !(entry.is_used() && entry.is_dots()) => {
                    is_used |= entry.is_used();
                    at = entry.end;
                }
                _ => break false,
            }
            if at >= Dir::next_chunk(chunk) {
                break is_used;
            }
        };
        if is_own {
            return Ok(true);
        }
    }
    Ok(false)
}
