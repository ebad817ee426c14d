//! Scans all inodes of a volume, a block of them at a time.

use crate::groups::cg::Group;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use volary_core::{Error, Kind, Result};

/// What a scan calls. An error from it ends the scan.
pub(crate) trait Visitor {
    /// Called for a cylinder group, before its inodes.
    fn group(&mut self, number: u64, group: &Result<Group>) -> Result<()>;
    /// Called for an initialised inode. `used` is its bit in the group's map, or `None` if the
    /// group is damaged.
    fn inode(&mut self, inode: Inode, used: Option<bool>) -> Result<()>;
}

/// Visits all inodes, in order. A damaged group is passed on with its error, and all of its inodes
/// are visited as if initialised.
///
/// # Errors
/// `Io`; those of `visitor`.
pub(crate) fn scan(reader: &Reader<'_>, visitor: &mut dyn Visitor) -> Result<()> {
    for number in 0..reader.volume.ncg {
        let group = Group::read(reader, number);
        if let Err(e) = &group
            && *e == Kind::Io
        {
            return Err(Error::note(Kind::Io, e.to_string()));
        }
        visitor.group(number, &group)?;
        inodes(reader, number, group.ok().as_ref(), visitor)?;
    }
    Ok(())
}

fn inodes(
    reader: &Reader<'_>,
    number: u64,
    group: Option<&Group>,
    visitor: &mut dyn Visitor,
) -> Result<()> {
    let volume = reader.volume;
    let count = group.map_or(volume.ipg, |group| group.initialised);
    let size = usize::try_from(volume.inode_size()).unwrap_or(1);
    let mut block = vec![0; usize::try_from(volume.bsize).unwrap_or(0)];
    let mut index = 0;
    while index < count {
        let first = number * volume.ipg + index;
        let last = volume.inode_at(first + volume.inopb() - 1);
        let (Some(at), Some(_)) = (volume.inode_at(first), last) else {
            // A short last group ends before its inodes do.
            return Ok(());
        };
        reader.cache.read_once(at, &mut block)?;
        for (bytes, ino) in block.chunks_exact(size).zip(first..) {
            let index = ino % volume.ipg;
            if index >= count || ino < 2 {
                continue;
            }
            let at = at + (ino - first) * volume.inode_size();
            let ino = u32::try_from(ino).unwrap_or(0);
            let used = group.map(|group| group.is_used(index));
            visitor.inode(Inode::parse(volume, ino, at, bytes), used)?;
        }
        index += volume.inopb();
    }
    Ok(())
}
