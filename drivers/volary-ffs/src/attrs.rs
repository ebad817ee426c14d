//! Changing attributes, and UFS2's extended attributes.

use crate::alloc::Run;
use crate::edit::{Edit, Step};
use crate::inode::Inode;
use crate::policy;
use crate::store::kept;
use crate::volume::Variant;
use crate::xattr;
use volary_block::Stage;
use volary_core::{FileKind, Kind, NodeId, SetAttr, SetTime, Time};

impl Edit<'_> {
    /// Changes attributes of a node.
    ///
    /// # Errors
    /// `Unsupported`; for a size `IsDir`, `Invalid`, `TooBig`; `NoSpace`.
    pub(crate) fn setattr(&mut self, id: NodeId, set: &SetAttr) -> Step<Inode> {
        let inode = self.load(id)?;
        if let Some(size) = set.size {
            self.quotas.check_not_one(inode.ino)?;
            match inode.kind() {
                Some(FileKind::File) => self.resize(inode.ino, size)?,
                Some(FileKind::Dir) => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
            let now = self.now;
            self.node(inode.ino)?.mem.times[1] = now;
        }
        self.set_attributes(inode.ino, &SetAttr { size: None, ..*set })?;
        let now = self.now;
        self.node(inode.ino)?.mem.times[2] = now;
        Ok(self.inode(inode.ino)?)
    }

    /// The same for a node that is known, without the time of change.
    ///
    /// # Errors
    /// As [`setattr`](Self::setattr).
    pub(crate) fn set_attributes(&mut self, ino: u32, set: &SetAttr) -> Step<()> {
        let (variant, now) = (self.volume.variant, self.now);
        let too_large = |id: Option<u32>| id.is_some_and(|id| id > u16::MAX.into());
        let narrow = variant == Variant::Bsd43 && (too_large(set.uid) || too_large(set.gid));
        if narrow || set.dos.is_some() {
            return Err(Kind::Unsupported.into());
        }
        if let Some(size) = set.size {
            self.resize(ino, size)?;
        }
        let time = |time: Option<SetTime>, old: Time| match time {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::To(time)) => kept(variant, time),
        };
        let mem = &mut self.node(ino)?.mem;
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

    /// Sets an extended attribute, or takes it away.
    ///
    /// # Errors
    /// `Unsupported` for a namespace that the format has none for; `NoXattr`; `TooBig`;
    /// `NoSpace`.
    pub(crate) fn set_xattr(&mut self, id: NodeId, name: &[u8], value: Option<&[u8]>) -> Step<()> {
        let volume = self.volume;
        let inode = self.load(id)?;
        let before = xattr::area(&self.reader(), &inode)?;
        let after = xattr::changed(volume.order, &inode, &before, (name, value))?;
        if after.len() as u64 > 2 * volume.bsize {
            return Err(Kind::TooBig.into());
        }
        self.free_attributes(&inode)?;
        for (at, part) in after
            .chunks(usize::try_from(volume.bsize).unwrap_or(1))
            .enumerate()
        {
            let count = (part.len() as u64).div_ceil(volume.fsize);
            let wish = policy::block(volume, self.alloc, inode.ino, 0, None);
            let run = self.take(count, wish)?;
            let mut bytes = part.to_vec();
            bytes.resize(usize::try_from(count * volume.fsize).unwrap_or(0), 0);
            let place = run.first * volume.fsize;
            self.cache.write(place, &bytes, Stage::DATA)?;
            let mem = &mut self.node(inode.ino)?.mem;
            mem.blocks = mem.blocks.saturating_add(count * (volume.fsize / 512));
            if let Some(slot) = mem.extb.get_mut(at) {
                *slot = run.first;
            }
        }
        let now = self.now;
        let mem = &mut self.node(inode.ino)?.mem;
        mem.extsize = u32::try_from(after.len()).unwrap_or(0);
        mem.times[2] = now;
        Ok(())
    }

    /// Frees the blocks of extended attributes.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn free_attributes(&mut self, inode: &Inode) -> Step<()> {
        let volume = self.volume;
        let mut left = u64::from(inode.extsize);
        for &first in &inode.extb {
            let len = left.min(volume.bsize);
            left -= len;
            if first == 0 || len == 0 {
                continue;
            }
            let count = len.div_ceil(volume.fsize);
            let block = self
                .reader()
                .checked(inode, "di_extb", first, count, true)?;
            self.free_of(
                inode.ino,
                Run {
                    first: block.first,
                    count,
                },
            )?;
        }
        if inode.extsize > 0 {
            let mem = &mut self.node(inode.ino)?.mem;
            (mem.extsize, mem.extb) = (0, [0; 2]);
        }
        Ok(())
    }
}
