//! Changing attributes.

use crate::change::edit::Step;
use crate::change::file::File;
use crate::disk::inode::kept;
use volary_core::{Kind, SetAttr, SetTime, Time};

/// The attributes of an inode, its size among them.
pub(crate) struct Attrs<'e, 'a> {
    pub(crate) file: File<'e, 'a>,
}

impl Attrs<'_, '_> {
    /// Changes attributes, but for the time of change.
    ///
    /// # Errors
    /// `Unsupported` for what the format has no room for; `TooBig`; `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn set(&mut self, set: &SetAttr) -> Step<()> {
        let now = self.file.map.edit.now;
        let short = |id: Option<u32>, old: u16| match id {
            None => Ok(old),
            Some(id) => u16::try_from(id).map_err(|_| Kind::Unsupported),
        };
        if set.dos.is_some() {
            return Err(Kind::Unsupported.into());
        }
        let old = self.file.map.inode()?;
        let (uid, gid) = (short(set.uid, old.uid)?, short(set.gid, old.gid)?);
        if let Some(size) = set.size {
            self.file.resize(size)?;
        }
        let time = |time: Option<SetTime>, old: Time| match time {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::To(time)) => kept(time),
        };
        let mem = self.file.map.mem()?;
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
