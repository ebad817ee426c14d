//! Writes trees to the host.
//!
//! Names come from the volume and may be anything. Each is checked to be one
//! name, and everything is made relative to the descriptor of its directory
//! without following symlinks: nothing is written outside of the target.

use super::How;
use super::stream::{Meta, Sink};
use crate::exit::{Done, Exit, Fail, words};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use volary::{FileKind, Name, Time, escape};

/// Writes into a directory of the host.
pub(crate) struct HostSink<'a> {
    how: &'a How,
    /// The directories that are open, the innermost last; the first is the
    /// place that the user named.
    dirs: Vec<Dir>,
    /// The path of the innermost, for messages.
    path: Vec<u8>,
    file: Option<Writing>,
}

struct Dir {
    fd: OwnedFd,
    is_new: bool,
    meta: Option<Meta>,
    /// Length of the path above it.
    above: usize,
}

struct Writing {
    fd: OwnedFd,
    name: Vec<u8>,
    meta: Meta,
    is_new: bool,
}

impl<'a> HostSink<'a> {
    /// A sink that writes into the directory at `path`.
    ///
    /// # Errors
    /// In one line why it cannot be opened.
    pub(crate) fn new(path: &Path, how: &'a How) -> Done<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())
            .map_err(|e| Fail::host(path.display(), e))?;
        let base = Dir {
            fd,
            is_new: false,
            meta: None,
            above: 0,
        };
        let path = path.as_os_str().as_encoded_bytes().to_vec();
        Ok(Self {
            how,
            dirs: vec![base],
            path,
            file: None,
        })
    }

    fn dir(&self) -> (BorrowedFd<'_>, bool) {
        self.dirs
            .last()
            .map_or((CWD, false), |d| (d.fd.as_fd(), d.is_new))
    }

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

    /// One name, and nothing that leads elsewhere.
    fn check(&self, name: &[u8]) -> Done {
        Name::new(name)
            .map(drop)
            .map_err(|_| self.fail(name, Errno::INVAL))
    }

    /// Makes the file, or opens what is there. `None` if it is to be left.
    fn open(&self, name: &[u8], meta: &Meta) -> Result<Option<(OwnedFd, bool)>, Errno> {
        let (dir, dir_is_new) = self.dir();
        let base = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let mode = Mode::from_raw_mode(meta.mode & 0o777);
        let new = rustix::fs::openat(dir, name, base | OFlags::CREATE | OFlags::EXCL, mode);
        match new {
            Err(Errno::EXIST) if !dir_is_new => {}
            made => return made.map(|fd| Some((fd, true))),
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
        Ok(Some((fd, false)))
    }

    /// Writes; the file is closed after its last part, and taken away if
    /// something fails.
    fn write(&mut self, file: Writing, data: &[u8], more: bool) -> Done {
        let mut written = write_all(file.fd.as_fd(), data);
        if !more {
            written = written.and_then(|()| self.finish(file.fd.as_fd(), &file.meta));
        }
        match written {
            Ok(()) if more => self.file = Some(file),
            Ok(()) => {}
            Err(e) => {
                let fail = self.fail(&file.name, e);
                self.take_away(&file);
                return Err(fail);
            }
        }
        Ok(())
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

    fn take_away(&self, file: &Writing) {
        if file.is_new {
            // It was made just now; if it cannot be taken away, the message
            // that comes with this names it.
            let _ = rustix::fs::unlinkat(self.dir().0, file.name.as_slice(), AtFlags::empty());
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
        let (dir, _) = self.dir();
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

impl Sink for HostSink<'_> {
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done {
        self.check(name)?;
        let (dir, dir_is_new) = self.dir();
        // What is copied into it must get in, whatever its mode will be.
        let mode = Mode::from_raw_mode(meta.mode & 0o777 | 0o700);
        let is_new = match rustix::fs::mkdirat(dir, name, mode) {
            Ok(()) => true,
            Err(Errno::EXIST) if !dir_is_new => false,
            Err(e) => return Err(self.fail(name, e)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd =
            rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(|e| self.fail(name, e))?;
        let above = self.path.len();
        self.path = crate::volumes::join(&self.path, name);
        self.dirs.push(Dir {
            fd,
            is_new,
            meta: Some(*meta),
            above,
        });
        Ok(())
    }

    fn leave(&mut self) -> Done {
        if self.dirs.len() < 2 {
            return Ok(());
        }
        let Some(dir) = self.dirs.pop() else {
            return Ok(());
        };
        let fail = |e: Errno| Fail::host(escape(&self.path), e);
        let done = match dir.meta {
            Some(meta) if dir.is_new || self.how.preserve => {
                let reset = if dir.is_new && meta.mode & 0o700 != 0o700 {
                    rustix::fs::fchmod(&dir.fd, Mode::from_raw_mode(meta.mode & 0o777))
                } else {
                    Ok(())
                };
                reset
                    .and_then(|()| self.finish(dir.fd.as_fd(), &meta))
                    .map_err(fail)
            }
            _ => Ok(()),
        };
        self.path.truncate(dir.above);
        done
    }

    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done {
        self.check(name)?;
        let Some((fd, is_new)) = self.open(name, meta).map_err(|e| self.fail(name, e))? else {
            return Ok(());
        };
        self.write(
            Writing {
                fd,
                name: name.to_vec(),
                meta: *meta,
                is_new,
            },
            data,
            more,
        )
    }

    fn data(&mut self, data: &[u8], more: bool) -> Done {
        match self.file.take() {
            Some(file) => self.write(file, data, more),
            None => Ok(()),
        }
    }

    fn broken(&mut self) {
        if let Some(file) = self.file.take() {
            self.take_away(&file);
        }
    }

    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done {
        self.replacing(name, meta, &|dir| rustix::fs::symlinkat(target, dir, name))
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
        self.replacing(name, meta, &|dir| {
            rustix::fs::mknodat(dir, name, kind, mode, dev)
        })
    }
}
