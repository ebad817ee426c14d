//! Replies: turns results into the kernel's replies.

use crate::kernel::errno::{errno, errno_of_xattr};
use crate::kernel::told::Told;
use crate::kernel::types;
use crate::requests::locks::InTheWay;
use fuser::{
    Errno, FileHandle, FopenFlags, Generation, INodeNo, ReplyAttr, ReplyCreate, ReplyEmpty,
    ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use volary_core::{Attr, Caps, Entry, Error, OpenId, Result, StatFs};

impl Told {
    pub(crate) fn reply_entry(
        &self,
        reply: ReplyEntry,
        answer: Result<Entry>,
        errno: impl Fn(&Error) -> Errno,
    ) {
        match answer {
            Ok(entry) => {
                let given = self.give(&entry);
                reply.entry_with_ttls(&given.attrs, &given.names, &given.attr, given.generation);
            }
            Err(e) => reply.error(errno(&e)),
        }
    }

    pub(crate) fn reply_attr(&self, reply: ReplyAttr, answer: Result<Attr>) {
        match answer {
            Ok(attr) => reply.attr(&self.attrs_last(), &self.attr(&attr)),
            Err(e) => reply.error(plain(&e)),
        }
    }

    /// Replies to a lookup. The kernel also caches that a name does not exist.
    pub(crate) fn reply_found(&self, reply: ReplyEntry, answer: Result<Entry>) {
        let absence = self.absence_lasts();
        match answer {
            Err(e) if e == volary_core::Kind::NotFound && !absence.is_zero() => {
                reply.entry(&absence, &types::nothing(), Generation(0));
            }
            answer => self.reply_entry(reply, answer, plain),
        }
    }

    pub(crate) fn reply_created(&self, reply: ReplyCreate, answer: Result<(Entry, OpenId)>) {
        match answer {
            Ok((entry, open)) => {
                let given = self.give(&entry);
                // The reply has room for only one duration.
                let lasts = given.names.min(given.attrs);
                let open = FileHandle(open.0);
                reply.created(
                    &lasts,
                    &given.attr,
                    given.generation,
                    open,
                    self.file_flags(given.attr.ino),
                );
            }
            Err(e) => reply.error(plain(&e)),
        }
    }

    pub(crate) fn reply_statfs(&self, reply: ReplyStatfs, answer: Result<StatFs>) {
        match answer {
            Ok(stat) => {
                let (all, free, available, size) = crate::kernel::types::blocks(&stat);
                let name_max = self.caps.name_max.into();
                reply.statfs(
                    all,
                    free,
                    available,
                    stat.nodes,
                    stat.nodes_free,
                    size,
                    name_max,
                    size,
                );
            }
            Err(e) => reply.error(plain(&e)),
        }
    }

    /// Returns how the kernel must treat an open file.
    pub(crate) fn file_flags(&self, node: INodeNo) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        let keeps = self.wishes.sole && !self.take_stale(node);
        flags.set(FopenFlags::FOPEN_KEEP_CACHE, keeps);
        flags.set(FopenFlags::FOPEN_NOFLUSH, !self.wishes.session_locks);
        flags
    }

    /// Returns how the kernel must treat an open directory. It can cache the listing only if
    /// cookies are stable.
    pub(crate) fn dir_flags(&self, dir: INodeNo) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        if self.wishes.sole && self.caps.has(Caps::STABLE_COOKIES) {
            flags.insert(FopenFlags::FOPEN_CACHE_DIR);
            flags.set(FopenFlags::FOPEN_KEEP_CACHE, !self.take_stale(dir));
        }
        flags
    }
}

pub(crate) fn plain(error: &Error) -> Errno {
    errno(error.kind())
}

pub(crate) fn reply_empty(reply: ReplyEmpty, answer: Result<()>) {
    reply_empty_with(reply, answer, plain);
}

/// Replies to a request that returns no data. `errno` maps errors.
pub(crate) fn reply_empty_with(
    reply: ReplyEmpty,
    answer: Result<()>,
    errno: impl Fn(&Error) -> Errno,
) {
    match answer {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(errno(&e)),
    }
}

/// Replies to a request for an extended attribute. With no room, the reply is only the size.
pub(crate) fn reply_xattr(reply: ReplyXattr, answer: Result<Vec<u8>>, room: u32) {
    match answer {
        Ok(value) if room == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > room as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(errno_of_xattr(&e)),
    }
}

pub(crate) fn reply_open(reply: ReplyOpen, answer: Result<OpenId>, flags: FopenFlags) {
    match answer {
        Ok(open) => reply.opened(FileHandle(open.0), flags),
        Err(e) => reply.error(plain(&e)),
    }
}

/// Replies with the number of bytes written.
pub(crate) fn reply_count(reply: ReplyWrite, answer: Result<u32>) {
    match answer {
        Ok(count) => reply.written(count),
        Err(e) => reply.error(plain(&e)),
    }
}

/// Replies with the offset that was found in a file.
pub(crate) fn reply_place(reply: ReplyLseek, answer: Result<u64>) {
    match answer {
        Ok(found) => reply.offset(i64::try_from(found).unwrap_or(i64::MAX)),
        Err(e) if e == volary_core::Kind::NotFound => reply.error(Errno::ENXIO),
        Err(e) => reply.error(plain(&e)),
    }
}

/// Replies with a conflicting lock.
pub(crate) fn reply_lock(reply: ReplyLock, answer: Result<InTheWay>) {
    match answer {
        Ok(held) => reply.locked(held.first, held.last, held.kind, 0),
        Err(e) => reply.error(plain(&e)),
    }
}
