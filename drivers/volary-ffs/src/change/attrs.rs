//! Changing attributes, and UFS2's extended attributes.

use crate::change::bmap::Map;
use crate::change::edit::Step;
use crate::change::file::File;
use crate::disk::volume::Variant;
use crate::groups::alloc::Run;
use crate::inodes::inode::Inode;
use crate::inodes::store::kept;
use crate::inodes::xattr;
use volary_block::Stage;
use volary_core::{Kind, SetAttr, SetTime, Time};

/// The attributes of an inode, its size among them.
pub(crate) struct Attrs<'e, 'a> {
    pub(crate) file: File<'e, 'a>,
}

impl Attrs<'_, '_> {
    /// Changes attributes, but not the time of change.
    ///
    /// # Errors
    /// `Unsupported` for an attribute that the format cannot store; `TooBig`; `NoSpace`; `Corrupt`;
    /// `Io`.
    pub(crate) fn set(&mut self, set: &SetAttr) -> Step<()> {
        let map = &self.file.map;
        let (variant, now) = (map.volume().variant, map.edit.now);
        let too_large = |id: Option<u32>| id.is_some_and(|id| id > u16::MAX.into());
        let narrow = variant == Variant::Bsd43 && (too_large(set.uid) || too_large(set.gid));
        if narrow || set.dos.is_some() {
            return Err(Kind::Unsupported.into());
        }
        if let Some(size) = set.size {
            self.file.resize(size)?;
        }
        let time = |time: Option<SetTime>, old: Time| match time {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::To(time)) => kept(variant, time),
        };
        let mem = self.file.map.mem()?;
        if let Some(mode) = set.mode {
            let mode = u16::try_from(mode & 0o7777).unwrap_or(0);
            mem.mode = mem.mode & !0o7777 | mode;
        }
        mem.uid = set.uid.unwrap_or(mem.uid);
        mem.gid = set.gid.unwrap_or(mem.gid);
        let [atime, mtime, _] = &mut mem.times;
        (*atime, *mtime) = (time(set.atime, *atime), time(set.mtime, *mtime));
        if let Some(birth) = mem.birth {
            mem.birth = Some(time(set.btime, birth));
        }
        Ok(())
    }
}

/// The extended attributes of an inode.
pub(crate) struct Xattrs<'e, 'a> {
    pub(crate) map: Map<'e, 'a>,
}

impl Xattrs<'_, '_> {
    /// Sets an extended attribute, or removes it if `value` is `None`.
    ///
    /// # Errors
    /// `Unsupported` for a namespace that the format does not have; `NoXattr`; `TooBig`; `NoSpace`.
    pub(crate) fn set(&mut self, name: &[u8], value: Option<&[u8]>) -> Step<()> {
        let volume = self.map.volume();
        let inode = self.map.inode()?;
        let before = xattr::area(&self.map.reader(), &inode)?;
        let after = xattr::changed(volume.order, &inode, &before, name, value)?;
        if after.len() as u64 > 2 * volume.bsize {
            return Err(Kind::TooBig.into());
        }
        self.free(&inode)?;
        for (at, part) in after
            .chunks(usize::try_from(volume.bsize).unwrap_or(1))
            .enumerate()
        {
            let count = (part.len() as u64).div_ceil(volume.fsize);
            let wish = self.map.room.wish(inode.ino, 0, None);
            let run = self.map.room.take(count, wish)?;
            let mut bytes = part.to_vec();
            bytes.resize(usize::try_from(count * volume.fsize).unwrap_or(0), 0);
            let place = run.first * volume.fsize;
            self.map.reader().cache.write(place, &bytes, Stage::DATA)?;
            self.map.count_more(count)?;
            if let Some(slot) = self.map.mem()?.extb.get_mut(at) {
                *slot = run.first;
            }
        }
        let now = self.map.edit.now;
        let mem = self.map.mem()?;
        mem.extsize = u32::try_from(after.len()).unwrap_or(0);
        mem.times[2] = now;
        Ok(())
    }

    /// Frees the blocks of extended attributes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free(&mut self, inode: &Inode) -> Step<()> {
        let volume = self.map.volume();
        let mut left = u64::from(inode.extsize);
        for &first in &inode.extb {
            let len = left.min(volume.bsize);
            left -= len;
            if first == 0 || len == 0 {
                continue;
            }
            let count = len.div_ceil(volume.fsize);
            let block = self
                .map
                .reader()
                .checked(inode, "di_extb", first, count, true)?;
            self.map.free_of(Run {
                first: block.first,
                count,
            })?;
        }
        if inode.extsize > 0 {
            let mem = self.map.mem()?;
            (mem.extsize, mem.extb) = (0, [0; 2]);
        }
        Ok(())
    }
}
