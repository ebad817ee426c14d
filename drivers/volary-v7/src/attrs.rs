//! Changing attributes.

use crate::edit::{Edit, Step};
use crate::inode::{Inode, kept};
use volary_core::{FileKind, Kind, NodeId, SetAttr, SetTime, Time};

impl Edit<'_> {
    /// Changes attributes of a node.
    ///
    /// # Errors
    /// `Unsupported`; for a size `IsDir`, `Invalid`, `TooBig`; `NoSpace`.
    pub(crate) fn setattr(&mut self, id: NodeId, set: &SetAttr) -> Step<Inode> {
        let inode = self.load(id)?;
        if set.size.is_some() {
            match inode.kind() {
                Some(FileKind::File) => {}
                Some(FileKind::Dir) => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
        }
        let now = self.now;
        self.set_attributes(inode.ino, set)?;
        let [_, mtime, ctime] = &mut self.node(inode.ino)?.mem.times;
        *ctime = now;
        if set.size.is_some() && set.mtime.is_none() {
            *mtime = now;
        }
        Ok(self.inode(inode.ino)?)
    }

    /// The same for a node that is known, without the time of change.
    ///
    /// # Errors
    /// As [`setattr`](Self::setattr).
    pub(crate) fn set_attributes(&mut self, ino: u32, set: &SetAttr) -> Step<()> {
        let now = self.now;
        let short = |id: Option<u32>, old: u16| match id {
            None => Ok(old),
            Some(id) => u16::try_from(id).map_err(|_| Kind::Unsupported),
        };
        if set.dos.is_some() {
            return Err(Kind::Unsupported.into());
        }
        let old = self.inode(ino)?;
        let (uid, gid) = (short(set.uid, old.uid)?, short(set.gid, old.gid)?);
        if let Some(size) = set.size {
            self.resize(ino, size)?;
        }
        let time = |time: Option<SetTime>, old: Time| match time {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::To(time)) => kept(time),
        };
        let mem = &mut self.node(ino)?.mem;
        if let Some(mode) = set.mode {
            let mode = u16::try_from(mode & 0o7777).unwrap_or(0);
            mem.mode = mem.mode & !0o7777 | mode;
        }
        (mem.uid, mem.gid) = (uid, gid);
        let [atime, mtime, _] = &mut mem.times;
        (*atime, *mtime) = (time(set.atime, *atime), time(set.mtime, *mtime));
        Ok(())
    }
}
