//! A directory of the host, and the nodes in it: made, written and finished.

use crate::how::CopyOptions;
use crate::nodes::ids::{HostId, Id, of_stat};
use crate::nodes::xattrs::{self, Xattr};
use crate::sinks::target::{ITSELF_WORDS, OWN_IMAGE_WORDS, SYMLINK_WORDS};
use crate::stream::Meta;
use crate::told::failure::{And, Done, Failure};
use crate::told::losses::{Loss, Losses};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, XattrFlags,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use volary_core::{FileKind, Name, Time, escape};

/// A directory that is written into.
pub(super) struct Folder {
    pub(super) how: CopyOptions,
    pub(super) fd: OwnedFd,
    pub(super) is_new: bool,
    /// Its path, for messages.
    path: Vec<u8>,
    /// Its path below the place that the user named.
    pub(super) below: Arc<Vec<u8>>,
    /// Device and inode of everything copied into it. Only filled if the directory existed before.
    made: Mutex<HashSet<HostId>>,
    losses: Losses,
    /// Device and inode of the images that are open.
    images: Arc<Vec<HostId>>,
}

/// A file that is open for writing.
pub(super) struct Opened {
    pub(super) fd: OwnedFd,
    is_new: bool,
}

impl Folder {
    /// Opens a directory by a path that the user gave.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub(super) fn at(
        path: &Path,
        how: &CopyOptions,
        images: Vec<HostId>,
        losses: Losses,
    ) -> Done<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|e| Failure::host(path.display().to_string(), e))?;
        Ok(Self {
            how: *how,
            fd,
            is_new: false,
            path: path.as_os_str().as_encoded_bytes().to_vec(),
            below: Arc::default(),
            made: Mutex::default(),
            losses,
            images: Arc::new(images),
        })
    }

    /// Opens a subdirectory, which is made if it does not exist.
    pub(super) fn enter(&self, name: &[u8], meta: &Meta) -> Done<Self> {
        self.check(name)?;
        // The directory must stay writable for its entries, whatever its final mode is.
        let mode = Mode::from_raw_mode(meta.mode & 0o777 | 0o700);
        let is_new = match rustix::fs::mkdirat(&self.fd, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) if !self.is_new => false,
            Err(e) => return Err(self.fail(name, e)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty())
            .map_err(|e| self.fail(name, e))?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| self.fail(name, e))?;
        if !is_new && self.is_made(&stat) {
            return Err(self.fail(name, MADE_BEFORE));
        }
        self.remember(|| Ok(stat)).map_err(|e| self.fail(name, e))?;
        let below = match self.below.as_slice() {
            b"" => name.to_vec(),
            dir => crate::nodes::place::join(dir, name),
        };
        Ok(Self {
            how: self.how,
            fd,
            is_new,
            path: crate::nodes::place::join(&self.path, name),
            below: Arc::new(below),
            made: Mutex::default(),
            losses: self.losses.clone(),
            images: Arc::clone(&self.images),
        })
    }

    /// Sets the attributes of the directory itself, once its entries are complete.
    pub(super) fn leave(&self, meta: &Meta, xattrs: &[Xattr]) -> Done {
        let reset = if self.is_new && meta.mode & 0o700 != 0o700 {
            rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(meta.mode & 0o777))
        } else {
            Ok(())
        };
        reset
            .and_then(|()| self.finish(self.fd.as_fd(), b"", meta, xattrs))
            .map_err(|e| Failure::host(escape(&self.path).to_string(), e))
    }

    pub(super) fn place(&self, name: &[u8]) -> String {
        escape(&crate::nodes::place::join(&self.path, name)).to_string()
    }

    pub(super) fn fail(&self, name: &[u8], e: Errno) -> Failure {
        let place = self.place(name);
        let words = match e {
            Errno::LOOP => SYMLINK_WORDS,
            MADE_BEFORE => "something of that name was copied there before; left out",
            OWN_IMAGE => OWN_IMAGE_WORDS,
            ITSELF => ITSELF_WORDS,
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => {
                return Failure::host(place, e).stopping();
            }
            e => return Failure::host(place, e),
        };
        Failure::words(place, words)
    }

    /// Returns the failure to write a file. Removes a new file; for one that existed before, adds
    /// that it is incomplete.
    pub(super) fn not_whole(&self, name: &[u8], file: &Opened, e: Errno) -> Failure {
        let failure = self.fail(name, e);
        match self.take_away(name, file) {
            true => failure,
            false => failure.and(And::NotWhole),
        }
    }

    /// Makes a file, or opens an existing one. Returns `None` if the existing one must be kept.
    pub(super) fn opened(&self, name: &[u8], meta: &Meta) -> Done<Option<Opened>> {
        self.check(name)?;
        self.open(name, meta).map_err(|e| self.fail(name, e))
    }

    /// Makes a file with `data` as its content.
    pub(super) fn make(&self, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        match self.opened(name, meta)? {
            Some(file) => self.write(&file, name, meta, data),
            None => Ok(()),
        }
    }

    /// Refuses anything but a single name, as it could lead elsewhere.
    pub(super) fn check(&self, name: &[u8]) -> Done {
        Name::new(name)
            .map(drop)
            .map_err(|_| self.fail(name, Errno::INVAL))
    }

    /// Makes a file, or opens it for writing. Errors are the host's.
    fn open(&self, name: &[u8], meta: &Meta) -> Result<Option<Opened>, Errno> {
        let (dir, dir_is_new) = (&self.fd, self.is_new);
        let base = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Setting extended attributes needs write permission on the file.
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
        // Opening a device or a fifo can have side effects.
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
        self.spare(&stat, meta)?;
        rustix::fs::ftruncate(&fd, 0)?;
        self.remember(|| Ok(stat))?;
        Ok(Some(Opened { fd, is_new: false }))
    }

    /// Returns whether an existing node must be replaced.
    ///
    /// # Errors
    /// As [`spare`](Self::spare), and those of the host.
    fn gives_way(&self, name: &[u8], meta: &Meta) -> Result<bool, Errno> {
        let there = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mtime = Time::new(
            there.st_mtime,
            u32::try_from(there.st_mtime_nsec).unwrap_or(0),
        );
        if self.how.keeps(mtime, meta.mtime) {
            return Ok(false);
        }
        self.spare(&there, meta)?;
        Ok(true)
    }

    /// # Errors
    /// [`ITSELF`], [`MADE_BEFORE`], [`OWN_IMAGE`], if the copy must not replace this node.
    fn spare(&self, there: &Stat, meta: &Meta) -> Result<(), Errno> {
        let id = of_stat(there);
        if meta.id == Some(Id::Host(id)) {
            return Err(ITSELF);
        }
        if self.images.contains(&id) {
            return Err(OWN_IMAGE);
        }
        match self.is_made(there) {
            true => Err(MADE_BEFORE),
            false => Ok(()),
        }
    }

    /// Returns whether this copy made the node, or entered it as a directory.
    fn is_made(&self, there: &Stat) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.contains(&of_stat(there))
    }

    /// Remembers a node that was made in a directory that existed before.
    pub(super) fn remember(&self, stat: impl FnOnce() -> Result<Stat, Errno>) -> Result<(), Errno> {
        if !self.is_new {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.insert(of_stat(&stat()?));
        }
        Ok(())
    }

    /// Writes a whole file; removes a new one if that fails.
    pub(super) fn write(&self, file: &Opened, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        let fd = file.fd.as_fd();
        write_all(fd, data)
            .and_then(|()| self.finish(fd, name, meta, &[]))
            .map_err(|e| self.not_whole(name, file, e))
    }

    /// Sets extended attributes and times, and if attributes are preserved, the owner and the exact
    /// mode.
    pub(super) fn finish(
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
            self.set_xattr(fd, name, xattr, value)?;
        }
        let hiding = meta.dos.unwrap_or(0) & xattrs::DOS_HIDING;
        if hiding != 0 && self.losses.tells(Loss::Dos) {
            let value = xattrs::dos_value(meta.dos.unwrap_or(0));
            self.set_xattr(fd, name, xattrs::DOS, &value)?;
        }
        if preserve {
            rustix::fs::fchmod(fd, Mode::from_raw_mode(mode))?;
        }
        rustix::fs::futimens(fd, &times(meta))
    }

    /// Takes back the write permission that a new file had for its extended attributes.
    pub(super) fn take_back(&self, file: &Opened, meta: &Meta) -> Result<(), Errno> {
        let was_given = file.is_new && meta.has_xattrs && meta.mode & 0o200 == 0;
        if !was_given || self.how.preserve && meta.keeps_modes {
            return Ok(());
        }
        let mode = rustix::fs::fstat(&file.fd)?.st_mode & 0o7777 & !0o200;
        rustix::fs::fchmod(&file.fd, Mode::from_raw_mode(mode))
    }

    /// Sets an extended attribute, or records that it cannot be kept.
    ///
    /// # Errors
    /// Those that would affect other attributes too.
    fn set_xattr(
        &self,
        fd: BorrowedFd<'_>,
        at: &[u8],
        name: &[u8],
        value: &[u8],
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

    /// Removes a file that was just made. Returns false if that fails, or if the file existed
    /// before.
    pub(super) fn take_away(&self, name: &[u8], file: &Opened) -> bool {
        file.is_new && rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).is_ok()
    }

    /// Makes a node, and replaces an existing one. Returns false if the existing one must be kept.
    pub(super) fn replace(
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

/// This copy already made a node of that name: for another source, or in another case.
const MADE_BEFORE: Errno = Errno::ALREADY;

/// The node is an open image.
const OWN_IMAGE: Errno = Errno::REMCHG;

/// The node is the one that is copied.
const ITSELF: Errno = Errno::NOTUNIQ;

/// Gives a node to its owner and group, as far as we may. Returns the mode to set. As in cp, a user
/// who may not give files away stays their owner, but loses their set-uid and set-gid bits.
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
    /// Sets owner, mode and times as [`finish`](Self::finish) does, for nodes that must not be
    /// opened.
    pub(super) fn finish_unopened(
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
            // Changes this node, even if its name leads to another one by now.
            let path = format!("/proc/self/fd/{}", node.as_raw_fd());
            rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
        }
        rustix::fs::utimensat(dir, name, &times(meta), nofollow)
    }
}
