//! Files and other nodes of one directory of the host: made, written and finished.

use super::{Folder, Opened, id};
use crate::copy::losses::Loss;
use crate::copy::stream::Meta;
use crate::copy::xattrs::{self, Xattr};
use crate::exit::{Done, Exit, Fail, words};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::PoisonError;
use volary::{FileKind, Name, Time, escape};

impl Folder {
    pub(crate) fn place(&self, name: &[u8]) -> String {
        escape(&crate::volumes::join(&self.path, name)).to_string()
    }

    pub(crate) fn fail(&self, name: &[u8], e: Errno) -> Fail {
        let exit = match e {
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => Exit::Stopped,
            _ => Exit::Failed,
        };
        let why = match e {
            Errno::LOOP => "is a symlink; not followed".into(),
            MADE_BEFORE => "something of that name was copied there before; left out".into(),
            OWN_IMAGE => "is the volume that is copied from; left as it is".into(),
            e => words(&e.into()),
        };
        Fail::new(exit, format!("{}: {why}", self.place(name)))
    }

    /// Returns what was written goes, if it is new; else what is there is said to be no copy.
    pub(crate) fn not_whole(&self, name: &[u8], file: &Opened, e: Errno) -> Fail {
        let mut fail = self.fail(name, e);
        if !self.take_away(name, file) {
            fail.line.push_str("; what is there of it now is not whole");
        }
        fail
    }

    /// Makes a file, or opens what is there. `None` if it is to be left.
    pub(crate) fn opened(&self, name: &[u8], meta: &Meta) -> Done<Option<Opened>> {
        self.check(name)?;
        self.open(name, meta).map_err(|e| self.fail(name, e))
    }

    /// Makes a file that holds `data`.
    pub(crate) fn make(&self, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        match self.opened(name, meta)? {
            Some(file) => self.write(&file, name, meta, data),
            None => Ok(()),
        }
    }

    /// One name, and nothing that leads elsewhere.
    pub(crate) fn check(&self, name: &[u8]) -> Done {
        Name::new(name)
            .map(drop)
            .map_err(|_| self.fail(name, Errno::INVAL))
    }

    /// The same, with the host's error.
    fn open(&self, name: &[u8], meta: &Meta) -> Result<Option<Opened>, Errno> {
        let (dir, dir_is_new) = (&self.fd, self.is_new);
        let base = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Extended attributes are set by who may write it.
        let writable = if meta.has_xattrs { 0o200 } else { 0 };
        let mode = Mode::from_raw_mode(meta.mode & 0o777 | writable);
        let new = rustix::fs::openat(dir, name, base | OFlags::CREATE | OFlags::EXCL, mode);
        match new {
            Err(Errno::EXIST) if !dir_is_new => {}
            made => {
                let fd = made?;
                self.remember(|| rustix::fs::fstat(&fd))?;
                return Ok(Some(Opened { fd, is_new: true }));
            }
        }
        if !self.gives_way(name, meta)? {
            return Ok(None);
        }
        let there = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        // Opening a device or a fifo does something of itself.
        let kind = FileType::from_raw_mode(there.st_mode);
        if !matches!(
            kind,
            FileType::RegularFile | FileType::Symlink | FileType::Directory
        ) {
            return Err(Errno::EXIST);
        }
        let fd = rustix::fs::openat(dir, name, base | OFlags::NONBLOCK, mode)?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::EXIST);
        }
        if self.images.contains(&id(&stat)) {
            return Err(OWN_IMAGE);
        }
        rustix::fs::ftruncate(&fd, 0)?;
        self.remember(|| Ok(stat))?;
        Ok(Some(Opened { fd, is_new: false }))
    }

    /// Returns whether what is there is to be replaced.
    ///
    /// # Errors
    /// [`MADE_BEFORE`], [`OWN_IMAGE`].
    fn gives_way(&self, name: &[u8], meta: &Meta) -> Result<bool, Errno> {
        let there = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mtime = Time::new(
            there.st_mtime,
            u32::try_from(there.st_mtime_nsec).unwrap_or(0),
        );
        if self.how.keeps(mtime, meta.mtime) {
            return Ok(false);
        }
        if self.images.contains(&id(&there)) {
            return Err(OWN_IMAGE);
        }
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(&id(&there)) {
            return Err(MADE_BEFORE);
        }
        Ok(true)
    }

    /// Remembers what was made in a directory that had entries before.
    pub(crate) fn remember(&self, stat: impl FnOnce() -> Result<Stat, Errno>) -> Result<(), Errno> {
        if !self.is_new {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.insert(id(&stat()?));
        }
        Ok(())
    }

    /// Writes a whole file; takes it away if that fails.
    pub(crate) fn write(&self, file: &Opened, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        let fd = file.fd.as_fd();
        write_all(fd, data)
            .and_then(|()| self.finish(fd, name, meta, &[]))
            .map_err(|e| self.not_whole(name, file, e))
    }

    /// Extended attributes and times, and with -p the owner and the exact mode.
    pub(crate) fn finish(
        &self,
        fd: BorrowedFd<'_>,
        name: &[u8],
        meta: &Meta,
        xattrs: &[Xattr],
    ) -> Result<(), Errno> {
        let preserve = self.how.preserve && meta.keeps_modes;
        let mut mode = meta.mode;
        if preserve {
            mode = given(meta, |uid, gid| rustix::fs::fchown(fd, uid, gid))?;
        }
        for (xattr, value) in xattrs {
            self.set_xattr(fd, name, (xattr, value))?;
        }
        let hiding = meta.dos.unwrap_or(0) & xattrs::DOS_HIDING;
        if hiding != 0 && self.losses.tells(Loss::Dos) {
            let value = xattrs::dos_value(meta.dos.unwrap_or(0));
            self.set_xattr(fd, name, (xattrs::DOS, &value))?;
        }
        if preserve {
            rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?;
        }
        rustix::fs::futimens(fd, &times(meta))
    }

    /// Sets an extended attribute, or notes that it cannot be kept.
    ///
    /// # Errors
    /// What would keep others from being set as well.
    fn set_xattr(
        &self,
        fd: BorrowedFd<'_>,
        at: &[u8],
        (name, value): (&[u8], &[u8]),
    ) -> Result<(), Errno> {
        match rustix::fs::fsetxattr(fd, name, value, XattrFlags::empty()) {
            Err(e @ (Errno::DQUOT | Errno::IO | Errno::ROFS)) => return Err(e),
            Err(_) if !xattrs::is_label(name) => {
                self.losses.note(Loss::Xattrs, || self.place(at));
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes away what was made just now; false if it cannot be, or was there before.
    pub(crate) fn take_away(&self, name: &[u8], file: &Opened) -> bool {
        file.is_new && rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).is_ok()
    }

    /// Makes something, in place of what is there unless that is to be left: then false.
    pub(crate) fn replace(
        &self,
        name: &[u8],
        meta: &Meta,
        make: &dyn Fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Result<bool, Errno> {
        let dir = self.fd.as_fd();
        match make(dir) {
            Err(Errno::EXIST) if !self.is_new => {}
            made => return made.map(|()| true),
        }
        if !self.gives_way(name, meta)? {
            return Ok(false);
        }
        rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
        make(dir).map(|()| true)
    }
}

/// Something that this copy made has that name, as another source's, or in another case.
const MADE_BEFORE: Errno = Errno::ALREADY;

/// It is an image that is open.
const OWN_IMAGE: Errno = Errno::TXTBSY;

/// Gives a node to its owner and group, as far as we may; what mode it is to have. As cp has
/// it, who may not give files away keeps them, but not as set-uid files of their own.
fn given(
    meta: &Meta,
    chown: impl Fn(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
) -> Result<u32, Errno> {
    let (uid, gid) = (Uid::from_raw(meta.uid), Gid::from_raw(meta.gid));
    match chown(Some(uid), Some(gid)) {
        Ok(()) => return Ok(meta.mode),
        Err(Errno::PERM | Errno::INVAL) => {}
        Err(e) => return Err(e),
    }
    match chown(None, Some(gid)) {
        Ok(()) => Ok(meta.mode & !0o4000),
        Err(Errno::PERM | Errno::INVAL) => Ok(meta.mode & !0o6000),
        Err(e) => Err(e),
    }
}

pub(super) fn write_all(fd: BorrowedFd<'_>, mut data: &[u8]) -> Result<(), Errno> {
    while !data.is_empty() {
        match rustix::io::write(fd, data) {
            Ok(n) => data = data.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn times(meta: &Meta) -> Timestamps {
    let spec = |t: Time| Timespec {
        tv_sec: t.secs,
        tv_nsec: t.nanos.into(),
    };
    Timestamps {
        last_access: spec(meta.atime),
        last_modification: spec(meta.mtime),
    }
}

impl Folder {
    /// The same as [`finish`](Self::finish) for what must not be opened.
    pub(crate) fn finish_unopened(
        &self,
        name: &[u8],
        meta: &Meta,
        xattrs: &[Xattr],
    ) -> Result<(), Errno> {
        let (dir, nofollow) = (&self.fd, AtFlags::SYMLINK_NOFOLLOW);
        let preserve = self.how.preserve && meta.keeps_modes;
        let mut mode = meta.mode;
        if preserve {
            mode = given(meta, |uid, gid| {
                rustix::fs::chownat(dir, name, uid, gid, nofollow)
            })?;
        }
        let path = [
            format!("/proc/self/fd/{}/", dir.as_raw_fd()).as_bytes(),
            name,
        ]
        .concat();
        for (xattr, value) in xattrs {
            let flags = XattrFlags::empty();
            let set = rustix::fs::lsetxattr(path.as_slice(), xattr.as_slice(), value, flags);
            if set.is_err() && !xattrs::is_label(xattr) {
                self.losses.note(Loss::Xattrs, || self.place(name));
            }
        }
        if preserve && meta.kind != FileKind::Symlink {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let node = rustix::fs::openat(dir, name, flags, Mode::empty())?;
            // Of the node itself, whatever has its name by now.
            let path = format!("/proc/self/fd/{}", node.as_raw_fd());
            rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
        }
        rustix::fs::utimensat(dir, name, &times(meta), nofollow)
    }
}
