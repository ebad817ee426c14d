//! Reads trees of the host, by descriptors of directories and one name at a
//! time: no path is walked twice, and each file costs an open, a stat, a read
//! and a close.

use super::stream::{Meta, Outlet};
use crate::exit::{Done, Exit, Fail, warn, words};
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use volary::{FileKind, Time, escape};

/// Reads trees of the host into an [`Outlet`].
pub(crate) struct HostSource<'a, 'scope, 'env> {
    to: &'a mut Outlet<'scope, 'env>,
    /// Go into directories.
    recursive: bool,
    /// Follow symlinks.
    follow: bool,
    /// Set when something was left out.
    failed: &'a AtomicBool,
    /// The path so far, for messages.
    path: Vec<u8>,
    /// Device and inode of the directories that are open, to know one that is
    /// in itself by way of symlinks.
    above: Vec<(u64, u64)>,
}

/// What a directory holds: names with their zero bytes, and where each begins.
struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, FileType)>,
}

impl<'a, 'scope, 'env> HostSource<'a, 'scope, 'env> {
    /// A source that reads into `to`.
    pub(crate) fn new(
        to: &'a mut Outlet<'scope, 'env>,
        recursive: bool,
        follow: bool,
        failed: &'a AtomicBool,
    ) -> Self {
        Self {
            to,
            recursive,
            follow,
            failed,
            path: Vec::new(),
            above: Vec::new(),
        }
    }

    /// Reads what is at `path`, as `name`; with no name, what is in the
    /// directory that is there.
    ///
    /// # Errors
    /// What stops the copy; what is left out has its line and sets `failed`.
    pub(crate) fn tree(&mut self, path: &Path, name: Option<&[u8]>) -> Done {
        self.path = path.as_os_str().as_bytes().to_vec();
        let Ok(at) = CString::new(self.path.clone()) else {
            return self.failed(Errno::INVAL);
        };
        // As cp has it: without -r a symlink that the user names is followed.
        let follow = self.follow || !self.recursive;
        match name {
            Some(name) => self.node(CWD, &at, FileType::Unknown, name, follow),
            None => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                match rustix::fs::openat(CWD, &at, flags, Mode::empty()) {
                    Ok(dir) => self.below(&dir),
                    Err(e) => self.failed(e),
                }
            }
        }
    }

    /// Standard input, as a file called `name`.
    ///
    /// # Errors
    /// As [`tree`](Self::tree).
    pub(crate) fn standard_input(&mut self, name: &[u8], now: Time) -> Done {
        self.path = b"standard input".to_vec();
        let meta = Meta {
            kind: FileKind::File,
            mode: 0o644,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            len: None,
            rdev: 0,
            atime: now,
            mtime: now,
            dos: None,
            node: None,
        };
        self.content(rustix::stdio::stdin(), name, meta)
    }

    /// One entry of a directory.
    fn node(
        &mut self,
        dir: BorrowedFd<'_>,
        at: &CStr,
        kind: FileType,
        name: &[u8],
        follow: bool,
    ) -> Done {
        if matches!(
            kind,
            FileType::RegularFile | FileType::Directory | FileType::Unknown
        ) || follow && kind == FileType::Symlink
        {
            return self.opened(dir, at, name, follow);
        }
        self.unopened(dir, at, name)
    }

    /// What must not be opened: symlinks, fifos, devices.
    fn unopened(&mut self, dir: BorrowedFd<'_>, at: &CStr, name: &[u8]) -> Done {
        let stat = match rustix::fs::statat(dir, at, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(e) => return self.failed(e),
        };
        let meta = meta(&stat);
        if meta.kind != FileKind::Symlink {
            return self.to.special(name, meta);
        }
        match rustix::fs::readlinkat(dir, at, Vec::new()) {
            Ok(target) => self.to.symlink(name, meta, target.as_bytes()),
            Err(e) => self.failed(e),
        }
    }

    fn opened(&mut self, dir: BorrowedFd<'_>, at: &CStr, name: &[u8], follow: bool) -> Done {
        // Not to wait for a fifo that took a file's place.
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        let file = match rustix::fs::openat(dir, at, flags, Mode::empty()) {
            Ok(file) => file,
            // A symlink, or a socket.
            Err(Errno::LOOP | Errno::NXIO) if !follow => return self.unopened(dir, at, name),
            Err(e) => return self.failed(e),
        };
        let stat = match rustix::fs::fstat(&file) {
            Ok(stat) => stat,
            Err(e) => return self.failed(e),
        };
        let meta = meta(&stat);
        match meta.kind {
            FileKind::File => self.content(file.as_fd(), name, meta),
            FileKind::Dir => self.dir(&file, &stat, name, meta),
            _ => {
                drop(file);
                self.unopened(dir, at, name)
            }
        }
    }

    fn content(&mut self, file: BorrowedFd<'_>, name: &[u8], meta: Meta) -> Done {
        let Self { to, path, .. } = self;
        let done = to.file(name, meta, &mut |_, room| loop {
            match rustix::io::read(file, &mut *room) {
                Err(Errno::INTR) => crate::interrupt::check()?,
                read => return read.map_err(|e| Fail::host(escape(path), e)),
            }
        });
        match done {
            Err(fail) if fail.exit != Exit::Stopped => {
                fail.report();
                self.failed.store(true, Ordering::Relaxed);
                Ok(())
            }
            done => done,
        }
    }

    fn dir(&mut self, dir: &OwnedFd, stat: &Stat, name: &[u8], meta: Meta) -> Done {
        if !self.recursive {
            return self.left_out("is a directory; use cp -r");
        }
        let id = (stat.st_dev, stat.st_ino);
        if self.above.contains(&id) {
            return self.left_out("a directory that leads into itself");
        }
        self.above.push(id);
        self.to.enter(name, meta)?;
        let done = self.below(dir);
        self.above.pop();
        done?;
        self.to.leave()
    }

    /// All that is in a directory, sorted, so that the same tree gives the
    /// same volume.
    fn below(&mut self, dir: &OwnedFd) -> Done {
        let mut listing = match list(dir) {
            Ok(listing) => listing,
            Err(e) => return self.failed(e),
        };
        let Listing { names, entries } = &mut listing;
        entries.sort_unstable_by(|a, b| names.get(a.0..a.1).cmp(&names.get(b.0..b.1)));
        for (start, end, kind) in entries {
            let Some(Ok(at)) = names.get(*start..*end).map(CStr::from_bytes_with_nul) else {
                continue;
            };
            let len = self.path.len();
            if self.path.last() != Some(&b'/') {
                self.path.push(b'/');
            }
            self.path.extend_from_slice(at.to_bytes());
            self.node(dir.as_fd(), at, *kind, at.to_bytes(), self.follow)?;
            self.path.truncate(len);
        }
        Ok(())
    }

    fn failed(&self, e: Errno) -> Done {
        self.left_out(&words(&e.into()))
    }

    fn left_out(&self, why: &str) -> Done {
        self.failed.store(true, Ordering::Relaxed);
        warn(&format!("{}: {why}", escape(&self.path)));
        Ok(())
    }
}

fn list(dir: &OwnedFd) -> Result<Listing, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 32 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
    let mut listing = Listing {
        names: Vec::new(),
        entries: Vec::new(),
    };
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let start = listing.names.len();
        listing.names.extend_from_slice(name.to_bytes_with_nul());
        listing
            .entries
            .push((start, listing.names.len(), entry.file_type()));
    }
    Ok(listing)
}

fn meta(stat: &Stat) -> Meta {
    let kind = FileKind::from_mode(stat.st_mode).unwrap_or(FileKind::File);
    let (major, minor) = (
        rustix::fs::major(stat.st_rdev),
        rustix::fs::minor(stat.st_rdev),
    );
    Meta {
        kind,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        len: u64::try_from(stat.st_size).ok(),
        rdev: u64::from(major) << 32 | u64::from(minor),
        atime: time(stat.st_atime, stat.st_atime_nsec.into()),
        mtime: time(stat.st_mtime, stat.st_mtime_nsec.into()),
        dos: None,
        node: None,
    }
}

fn time(secs: i64, nanos: i128) -> Time {
    Time::new(secs, u32::try_from(nanos).unwrap_or(0))
}
