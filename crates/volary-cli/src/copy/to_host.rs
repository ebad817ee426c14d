//! Writes trees to the host.
//!
//! Names come from the volume and may be anything. Each is checked to be one
//! name, and everything is made relative to the descriptor of its directory
//! without following symlinks: nothing is written outside of the target.

use super::How;
use super::helper::Helper;
use super::stream::{Files, Meta, Sink, stops};
use crate::exit::{Done, Exit, Fail, words};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use volary::{FileKind, Name, Time, escape};

/// Writes into a directory of the host.
pub(crate) struct HostSink {
    /// The directories that are open, the innermost last; the first is the
    /// place that the user named.
    dirs: Vec<Dir>,
    file: Option<Writing>,
    helper: Option<Helper>,
}

struct Dir {
    folder: Arc<Folder>,
    /// What it is to be like when it is left.
    meta: Option<Meta>,
}

/// A directory, and what is to be known to write into it.
pub(super) struct Folder {
    how: How,
    fd: OwnedFd,
    is_new: bool,
    /// Its path, for messages.
    path: Vec<u8>,
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
    pub(crate) fn new(path: &Path, how: &How) -> Done<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|e| Fail::host(path.display(), e))?;
        let base = Folder {
            how: *how,
            fd,
            is_new: false,
            path: path.as_os_str().as_encoded_bytes().to_vec(),
        };
        Ok(Self {
            dirs: vec![Dir {
                folder: Arc::new(base),
                meta: None,
            }],
            file: None,
            helper: None,
        })
    }

    /// The innermost directory.
    fn folder(&self) -> Done<Arc<Folder>> {
        let dir = self.dirs.last().map(|dir| Arc::clone(&dir.folder));
        dir.ok_or_else(|| Fail::new(Exit::Failed, "no directory to write into"))
    }

    /// Writes; the file is closed after its last part, and taken away if
    /// something fails.
    fn write(&mut self, file: Writing, data: &[u8], more: bool) -> Done {
        let (folder, opened) = (&file.folder, &file.opened);
        folder.write(opened, &file.name, &file.meta, data, !more)?;
        self.file = Some(file).filter(|_| more);
        Ok(())
    }
}

impl Folder {
    fn fail(&self, name: &[u8], e: Errno) -> Fail {
        let path = crate::volumes::join(&self.path, name);
        let exit = match e {
            Errno::NOSPC | Errno::DQUOT | Errno::ROFS => Exit::Stopped,
            _ => Exit::Failed,
        };
        let why = match e {
            Errno::LOOP => "is a symlink; not followed".into(),
            e => words(&e.into()),
        };
        Fail::new(exit, format!("{}: {why}", escape(&path)))
    }

    /// Makes a file, or opens what is there. `None` if it is to be left.
    fn opened(&self, name: &[u8], meta: &Meta) -> Done<Option<Opened>> {
        self.check(name)?;
        self.open(name, meta).map_err(|e| self.fail(name, e))
    }

    /// Makes a file that holds `data`.
    fn make(&self, name: &[u8], meta: &Meta, data: &[u8]) -> Done {
        match self.opened(name, meta)? {
            Some(file) => self.write(&file, name, meta, data, true),
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
        let mode = Mode::from_raw_mode(meta.mode & 0o777);
        let new = rustix::fs::openat(dir, name, base | OFlags::CREATE | OFlags::EXCL, mode);
        match new {
            Err(Errno::EXIST) if !dir_is_new => {}
            made => return made.map(|fd| Some(Opened { fd, is_new: true })),
        }
        let there = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let mtime = Time::new(
            there.st_mtime,
            u32::try_from(there.st_mtime_nsec).unwrap_or(0),
        );
        if self.how.keeps(mtime, meta.mtime) {
            return Ok(None);
        }
        let fd = rustix::fs::openat(dir, name, base | OFlags::NONBLOCK, mode)?;
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::EXIST);
        }
        rustix::fs::ftruncate(&fd, 0)?;
        Ok(Some(Opened { fd, is_new: false }))
    }

    /// Writes a part of a file, which is the last if it ends; takes the file away if that
    /// fails.
    pub(super) fn write(
        &self,
        file: &Opened,
        name: &[u8],
        meta: &Meta,
        data: &[u8],
        ends: bool,
    ) -> Done {
        let fd = file.fd.as_fd();
        let mut written = write_all(fd, data);
        if ends {
            written = written.and_then(|()| self.finish(fd, meta));
        }
        written.map_err(|e| {
            self.take_away(name, file);
            self.fail(name, e)
        })
    }

    /// Times, and with -p the owner and the exact mode.
    fn finish(&self, fd: BorrowedFd<'_>, meta: &Meta) -> Result<(), Errno> {
        if self.how.preserve {
            let (uid, gid) = (
                rustix::fs::Uid::from_raw(meta.uid),
                rustix::fs::Gid::from_raw(meta.gid),
            );
            match rustix::fs::fchown(fd, Some(uid), Some(gid)) {
                // As cp has it: who may not give files away keeps them.
                Ok(()) | Err(Errno::PERM) => {}
                Err(e) => return Err(e),
            }
            rustix::fs::fchmod(fd, Mode::from_raw_mode(meta.mode))?;
        }
        rustix::fs::futimens(fd, &times(meta))
    }

    fn take_away(&self, name: &[u8], file: &Opened) {
        if file.is_new {
            // It was made just now; if it cannot be taken away, the message
            // that comes with this names it.
            let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
        }
    }

    /// Makes something, in place of what is there unless that is to be left.
    fn replacing(
        &self,
        name: &[u8],
        meta: &Meta,
        make: &dyn Fn(BorrowedFd<'_>) -> Result<(), Errno>,
    ) -> Done {
        self.check(name)?;
        let dir = self.fd.as_fd();
        let again = |e: Errno| {
            if e != Errno::EXIST {
                return Err(e);
            }
            let there = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let mtime = Time::new(
                there.st_mtime,
                u32::try_from(there.st_mtime_nsec).unwrap_or(0),
            );
            if self.how.keeps(mtime, meta.mtime) {
                return Ok(false);
            }
            rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
            make(dir).map(|()| true)
        };
        let made = make(dir)
            .map(|()| true)
            .or_else(again)
            .map_err(|e| self.fail(name, e))?;
        if !made {
            return Ok(());
        }
        rustix::fs::utimensat(dir, name, &times(meta), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|e| self.fail(name, e))
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
        let folder = Folder {
            how: above.how,
            fd,
            is_new,
            path: crate::volumes::join(&above.path, name),
        };
        self.dirs.push(Dir {
            folder: Arc::new(folder),
            meta: Some(*meta),
        });
        Ok(())
    }

    fn leave(&mut self) -> Done {
        if self.dirs.len() < 2 {
            return Ok(());
        }
        let Some(Dir { folder, meta }) = self.dirs.pop() else {
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
            .and_then(|()| folder.finish(folder.fd.as_fd(), &meta))
            .map_err(|e| Fail::host(escape(&folder.path), e))
    }

    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done {
        let folder = self.folder()?;
        if !more {
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

    fn broken(&mut self) {
        if let Some(file) = self.file.take() {
            file.folder.take_away(&file.name, &file.opened);
        }
    }

    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done {
        let make = |dir: BorrowedFd<'_>| rustix::fs::symlinkat(target, dir, name);
        self.folder()?.replacing(name, meta, &make)
    }

    fn special(&mut self, name: &[u8], meta: &Meta) -> Done {
        let kind = match meta.kind {
            FileKind::Fifo => FileType::Fifo,
            FileKind::CharDevice => FileType::CharacterDevice,
            FileKind::BlockDevice => FileType::BlockDevice,
            _ => FileType::Socket,
        };
        let number = |n: u64| u32::try_from(n).unwrap_or(0);
        let dev = rustix::fs::makedev(number(meta.rdev >> 32), number(meta.rdev & 0xffff_ffff));
        let mode = Mode::from_raw_mode(meta.mode & 0o777);
        let make = |dir: BorrowedFd<'_>| rustix::fs::mknodat(dir, name, kind, mode, dev);
        self.folder()?.replacing(name, meta, &make)
    }
}
