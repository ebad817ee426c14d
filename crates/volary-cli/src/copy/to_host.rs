//! Writes trees to the host.
//!
//! Names come from the volume and may be anything. Each is checked to be one
//! name, and everything is made relative to the descriptor of its directory
//! without following symlinks: nothing is written outside of the target.

use super::How;
use super::helper::Helper;
use super::links::{Link, Made, Spot};
use super::losses::{Loss, Losses};
use super::stream::{Files, Meta, Sink, stops};
use super::xattrs::{self, Xattr};
use crate::exit::{Done, Exit, Fail, words};
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, ResolveFlags, SeekFrom, Stat, Timespec, Timestamps,
    Uid, XattrFlags,
};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use volary::{FileKind, Name, Time, escape};

/// Writes into a directory of the host.
pub(crate) struct HostSink {
    /// The directories that are open, the innermost last; the first is the
    /// place that the user named.
    dirs: Vec<Dir>,
    file: Option<Writing>,
    helper: Option<Helper>,
    /// Extended attributes of what comes next.
    xattrs: Vec<Xattr>,
    made: Made,
}

struct Dir {
    folder: Arc<Folder>,
    /// What it is to be like when it is left.
    meta: Option<Meta>,
    xattrs: Vec<Xattr>,
}

/// A directory, and what is to be known to write into it.
pub(super) struct Folder {
    how: How,
    fd: OwnedFd,
    is_new: bool,
    /// Its path, for messages.
    path: Vec<u8>,
    /// Its path below the place that the user named.
    below: Arc<Vec<u8>>,
    /// What was copied into it, by device and inode; kept where something was in it before.
    made: Mutex<HashSet<(u64, u64)>>,
    losses: Losses,
    /// Device and inode of the images that are open.
    images: Arc<Vec<(u64, u64)>>,
}

/// A file that is open to be written.
pub(super) struct Opened {
    fd: OwnedFd,
    is_new: bool,
}

struct Writing {
    folder: Arc<Folder>,
    opened: Opened,
    name: Vec<u8>,
    meta: Meta,
    xattrs: Vec<Xattr>,
    /// It ends with a hole.
    hole: bool,
}

/// From so many files in a row on, a helper writes them.
const HELPED_FROM: usize = 16;

/// Files that are given to the helper at once: each is open.
const HELPED: usize = 16;

impl HostSink {
    /// A sink that writes into the directory at `path`.
    ///
    /// # Errors
    /// In one line why it cannot be opened.
    pub(crate) fn new(
        path: &Path,
        how: &How,
        images: Vec<(u64, u64)>,
        (made, losses): (Made, Losses),
    ) -> Done<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|e| Fail::host(path.display(), e))?;
        let base = Folder {
            how: *how,
            fd,
            is_new: false,
            path: path.as_os_str().as_encoded_bytes().to_vec(),
            below: Arc::default(),
            made: Mutex::default(),
            losses,
            images: Arc::new(images),
        };
        Ok(Self {
            dirs: vec![Dir {
                folder: Arc::new(base),
                meta: None,
                xattrs: Vec::new(),
            }],
            file: None,
            helper: None,
            xattrs: Vec::new(),
            made,
        })
    }

    /// The innermost directory.
    fn folder(&self) -> Done<Arc<Folder>> {
        let dir = self.dirs.last().map(|dir| Arc::clone(&dir.folder));
        dir.ok_or_else(|| Fail::new(Exit::Failed, "no directory to write into"))
    }

    /// Writes; the file is closed after its last part, and taken away if
    /// something fails.
    fn write(&mut self, mut file: Writing, data: &[u8], more: bool) -> Done {
        file.hole &= data.is_empty();
        let written = write_all(file.opened.fd.as_fd(), data);
        self.written(file, written, more)
    }

    /// Ends a file if nothing more comes.
    fn written(&mut self, file: Writing, mut written: Result<(), Errno>, more: bool) -> Done {
        let (folder, fd) = (&file.folder, file.opened.fd.as_fd());
        if !more {
            written = written
                .and_then(|()| if file.hole { end_here(fd) } else { Ok(()) })
                .and_then(|()| folder.finish(fd, &file.name, &file.meta, &file.xattrs))
                .and_then(|()| {
                    self.keep_link(folder, &file.name, &file.meta, rustix::fs::fstat(fd))
                });
        }
        written.map_err(|e| folder.not_whole(&file.name, &file.opened, e))?;
        self.file = Some(file).filter(|_| more);
        Ok(())
    }

    /// Remembers where the first name of a node was made.
    fn keep_link(
        &self,
        folder: &Folder,
        name: &[u8],
        meta: &Meta,
        stat: Result<Stat, Errno>,
    ) -> Result<(), Errno> {
        let Some(link) = meta.link else { return Ok(()) };
        let spot = Spot::Host {
            dir: Arc::clone(&folder.below),
            name: name.to_vec(),
            id: id(&stat?),
        };
        self.made.made(link, spot);
        Ok(())
    }

    /// Makes a name for a node that was made before; `None` if none was.
    fn linked(&mut self, name: &[u8], meta: &Meta) -> Option<Done> {
        let link = meta.link.filter(|link| link.again)?;
        let spot = self.made.get(link.id)?;
        self.xattrs.clear();
        Some(self.make_link(name, meta, (link, spot)))
    }

    fn make_link(&self, name: &[u8], meta: &Meta, (link, spot): (Link, Spot)) -> Done {
        let folder = self.folder()?;
        folder.check(name)?;
        let made = self.link_to(&folder, name, meta, &spot);
        match made {
            Ok(()) => {
                self.made.made(link, spot);
                Ok(())
            }
            Err(e) => {
                // Its next name is copied anew.
                self.made.forget(link.id);
                Err(folder.fail(name, e))
            }
        }
    }

    fn link_to(&self, folder: &Folder, name: &[u8], meta: &Meta, spot: &Spot) -> Result<(), Errno> {
        let (
            Spot::Host {
                dir,
                name: first,
                id: node,
            },
            Some(base),
        ) = (spot, self.dirs.first())
        else {
            return Err(Errno::NOENT);
        };
        let path = match dir.as_slice() {
            b"" => b".".as_slice(),
            path => path,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let from = rustix::fs::openat2(&base.folder.fd, path, flags, Mode::empty(), resolve)?;
        let make = |dir: BorrowedFd<'_>| {
            rustix::fs::linkat(&from, first.as_slice(), dir, name, AtFlags::empty())
        };
        let there = rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        if there.is_ok_and(|there| id(&there) == *node) {
            return Ok(());
        }
        if !folder.replace(name, meta, &make)? {
            return Ok(());
        }
        // Somebody may have put another thing in the first name's place.
        let made = rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if id(&made) != *node {
            rustix::fs::unlinkat(&folder.fd, name, AtFlags::empty())?;
            return Err(Errno::STALE);
        }
        Ok(())
    }
}

/// Device and inode.
const fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The file ends where it is written.
fn end_here(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::ftruncate(fd, rustix::fs::tell(fd)?)
}

impl Folder {
    fn place(&self, name: &[u8]) -> String {
        escape(&crate::volumes::join(&self.path, name)).to_string()
    }

    fn fail(&self, name: &[u8], e: Errno) -> Fail {
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

    /// What was written goes, if it is new; else what is there is said to be no copy.
    fn not_whole(&self, name: &[u8], file: &Opened, e: Errno) -> Fail {
        let mut fail = self.fail(name, e);
        if !self.take_away(name, file) {
            fail.line.push_str("; what is there of it now is not whole");
        }
        fail
    }

    /// Makes a file, or opens what is there. `None` if it is to be left.
    fn opened(&self, name: &[u8], meta: &Meta) -> Done<Option<Opened>> {
        self.check(name)?;
        self.open(name, meta).map_err(|e| self.fail(name, e))
    }

    /// Makes a file that holds `data`.
    fn make(&self, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        match self.opened(name, meta)? {
            Some(file) => self.write(&file, name, meta, data),
            None => Ok(()),
        }
    }

    /// One name, and nothing that leads elsewhere.
    fn check(&self, name: &[u8]) -> Done {
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

    /// Whether what is there is to be replaced.
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
    fn remember(&self, stat: impl FnOnce() -> Result<Stat, Errno>) -> Result<(), Errno> {
        if !self.is_new {
            let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
            made.insert(id(&stat()?));
        }
        Ok(())
    }

    /// Writes a whole file; takes it away if that fails.
    pub(super) fn write(&self, file: &Opened, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        let fd = file.fd.as_fd();
        write_all(fd, data)
            .and_then(|()| self.finish(fd, name, meta, &[]))
            .map_err(|e| self.not_whole(name, file, e))
    }

    /// Extended attributes and times, and with -p the owner and the exact mode.
    fn finish(
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
    fn take_away(&self, name: &[u8], file: &Opened) -> bool {
        file.is_new && rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()).is_ok()
    }

    /// Makes something, in place of what is there unless that is to be left: then false.
    fn replace(
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

fn write_all(fd: BorrowedFd<'_>, mut data: &[u8]) -> Result<(), Errno> {
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

impl Sink for HostSink {
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done {
        let xattrs = std::mem::take(&mut self.xattrs);
        let above = self.folder()?;
        above.check(name)?;
        // What is copied into it must get in, whatever its mode will be.
        let mode = Mode::from_raw_mode(meta.mode & 0o777 | 0o700);
        let is_new = match rustix::fs::mkdirat(&above.fd, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) if !above.is_new => false,
            Err(e) => return Err(above.fail(name, e)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&above.fd, name, flags, Mode::empty())
            .map_err(|e| above.fail(name, e))?;
        let below = match above.below.as_slice() {
            b"" => name.to_vec(),
            dir => crate::volumes::join(dir, name),
        };
        let folder = Folder {
            how: above.how,
            fd,
            is_new,
            path: crate::volumes::join(&above.path, name),
            below: Arc::new(below),
            made: Mutex::default(),
            losses: above.losses.clone(),
            images: Arc::clone(&above.images),
        };
        self.dirs.push(Dir {
            folder: Arc::new(folder),
            meta: Some(*meta),
            xattrs,
        });
        Ok(())
    }

    fn leave(&mut self) -> Done {
        if self.dirs.len() < 2 {
            return Ok(());
        }
        let Some(Dir {
            folder,
            meta,
            xattrs,
        }) = self.dirs.pop()
        else {
            return Ok(());
        };
        let Some(meta) = meta.filter(|_| folder.is_new || folder.how.preserve) else {
            return Ok(());
        };
        let reset = if folder.is_new && meta.mode & 0o700 != 0o700 {
            rustix::fs::fchmod(&folder.fd, Mode::from_raw_mode(meta.mode & 0o777))
        } else {
            Ok(())
        };
        reset
            .and_then(|()| folder.finish(folder.fd.as_fd(), b"", &meta, &xattrs))
            .map_err(|e| Fail::host(escape(&folder.path), e))
    }

    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        let xattrs = std::mem::take(&mut self.xattrs);
        let folder = self.folder()?;
        if !more && meta.link.is_none() && xattrs.is_empty() {
            return folder.make(name, meta, data);
        }
        let Some(opened) = folder.opened(name, meta)? else {
            return Ok(());
        };
        let file = Writing {
            folder,
            opened,
            name: name.to_vec(),
            meta: *meta,
            xattrs,
            hole: false,
        };
        self.write(file, data, more)
    }

    /// They are made here, and written by a helper if there is a processor for it: two threads that
    /// make files in one directory would wait for each other.
    fn files(&mut self, files: &Files) -> Vec<Done> {
        let folder = match self.folder() {
            Ok(folder) => folder,
            Err(fail) => return vec![Err(fail)],
        };
        // Where files were before, one may come in place of another that is not written yet.
        let helps = files.len() >= HELPED_FROM && folder.is_new;
        if helps && self.helper.is_none() {
            self.helper = Helper::new();
        }
        let Some(helper) = self.helper.as_mut().filter(|_| helps) else {
            return files.each(|name, meta, data| folder.make(name, meta, data));
        };
        let mut done = Vec::new();
        for part in files.parts(HELPED) {
            let opened = part.each(|name, meta, _| folder.opened(name, meta));
            let ends = opened.last().is_some_and(stops);
            done.extend(helper.write((Arc::clone(&folder), part, opened)));
            if ends {
                break;
            }
        }
        done
    }

    fn settle(&mut self) -> Vec<Done> {
        let helper = self.helper.as_mut();
        helper.map(Helper::settle).unwrap_or_default()
    }

    fn data(&mut self, data: &[u8], more: bool) -> Done {
        match self.file.take() {
            Some(file) => self.write(file, data, more),
            None => Ok(()),
        }
    }

    fn hole(&mut self, len: u64, more: bool) -> Done {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        file.hole = true;
        let fd = file.opened.fd.as_fd();
        let past = i64::try_from(len).map_err(|_| Errno::FBIG);
        let moved = past.and_then(|len| rustix::fs::seek(fd, SeekFrom::Current(len)));
        self.written(file, moved.map(drop), more)
    }

    fn broken(&mut self) -> Done {
        self.xattrs.clear();
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        if file.folder.take_away(&file.name, &file.opened) {
            return Ok(());
        }
        let place = file.folder.place(&file.name);
        let line = format!("{place}: what is there of it now is not whole");
        Err(Fail::new(Exit::Failed, line))
    }

    fn xattr(&mut self, name: &[u8], value: &[u8]) {
        self.xattrs.push((name.to_vec(), value.to_vec()));
    }

    fn link(&mut self, name: &[u8], meta: &Meta) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        let line = format!(
            "{}: another name of a file that could not be copied; left out",
            self.folder()?.place(name)
        );
        Err(Fail::new(Exit::Failed, line))
    }

    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        let make = |dir: BorrowedFd<'_>| rustix::fs::symlinkat(target, dir, name);
        self.make_unopened(name, meta, &make)
    }

    fn special(&mut self, name: &[u8], meta: &Meta) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        let kind = match meta.kind {
            FileKind::Fifo => FileType::Fifo,
            FileKind::CharDevice => FileType::CharacterDevice,
            FileKind::BlockDevice => FileType::BlockDevice,
            _ => FileType::Socket,
        };
        let folder = self.folder()?;
        let is_device = matches!(meta.kind, FileKind::CharDevice | FileKind::BlockDevice);
        if is_device && !folder.how.preserve {
            self.xattrs.clear();
            let line = format!(
                "{}: a device; left out (cp -a makes it, if root runs it)",
                folder.place(name)
            );
            return Err(Fail::new(Exit::Failed, line));
        }
        let number = |n: u64| u32::try_from(n).unwrap_or(0);
        let dev = rustix::fs::makedev(number(meta.rdev >> 32), number(meta.rdev & 0xffff_ffff));
        let mode = Mode::from_raw_mode(meta.mode & 0o777);
        let make = |dir: BorrowedFd<'_>| rustix::fs::mknodat(dir, name, kind, mode, dev);
        self.make_unopened(name, meta, &make)
    }
}

impl HostSink {
    /// Makes a symlink, fifo, socket or device, in place of what is there.
    fn make_unopened(
        &mut self,
        name: &[u8],
        meta: &Meta,
        make: &dyn Fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Done {
        let xattrs = std::mem::take(&mut self.xattrs);
        let folder = self.folder()?;
        folder.check(name)?;
        let made = folder.replace(name, meta, make).and_then(|made| {
            if !made {
                return Ok(());
            }
            let stat = || rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW);
            folder.remember(stat)?;
            folder.finish_unopened(name, meta, &xattrs)?;
            self.keep_link(&folder, name, meta, stat())
        });
        made.map_err(|e| folder.fail(name, e))
    }
}

impl Folder {
    /// The same as [`finish`](Self::finish) for what must not be opened.
    fn finish_unopened(&self, name: &[u8], meta: &Meta, xattrs: &[Xattr]) -> Result<(), Errno> {
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
