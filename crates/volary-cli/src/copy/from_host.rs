//! Reads trees of the host, by descriptors of directories and one name at a
//! time: no path is walked twice, and each file costs an open, a stat, a read
//! and a close.

use super::content::{Bytes, Content, Unread};
use super::links::{Id, Links};
use super::losses::{Loss, Losses};
use super::stream::{Meta, Outlet};
use super::xattrs::{self, ROOM, is_virtual};
use crate::exit::{Done, Exit, Fail, words};
use crate::log::warn;
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::ops::Range;
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
    shared: &'a Shared,
    links: &'a mut Links,
    /// The path so far, for messages.
    path: Vec<u8>,
    /// Device and inode of the directories that are open, to know one that is
    /// in itself by way of symlinks.
    above: Vec<(u64, u64)>,
}

/// What sources share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Everything is to be kept: hard links and extended attributes too.
    pub(crate) all: bool,
    /// Modes of volumes without modes are to be taken as they are shown.
    pub(crate) shown_modes: bool,
    /// Set when something was left out.
    pub(crate) failed: AtomicBool,
    pub(crate) losses: Losses,
    /// Device and inode of the images that are open.
    pub(crate) images: Vec<(u64, u64)>,
}

/// What a directory holds: names with their zero bytes, and where each begins.
struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, FileType)>,
}

impl<'a, 'scope, 'env> HostSource<'a, 'scope, 'env> {
    /// Returns a source that reads into `to`.
    pub(crate) fn new(
        to: &'a mut Outlet<'scope, 'env>,
        (recursive, follow): (bool, bool),
        shared: &'a Shared,
        links: &'a mut Links,
    ) -> Self {
        Self {
            to,
            recursive,
            follow,
            shared,
            links,
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
            keeps_modes: true,
            link: None,
            has_xattrs: false,
        };
        self.to.file(name, meta, &mut |_, room: &mut [u8]| loop {
            match rustix::io::read(rustix::stdio::stdin(), &mut *room) {
                Err(Errno::INTR) => crate::interrupt::check()?,
                read => return read.map_err(|e| Fail::host("standard input", e)),
            }
        })
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
        let meta = self.meta(&stat);
        if self.links.is_made(meta.link) {
            return self.to.link(name, meta);
        }
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
        let kind = FileKind::from_mode(stat.st_mode);
        match kind.unwrap_or(FileKind::File) {
            FileKind::File => self.file(&file, &stat, name),
            FileKind::Dir => self.dir(&file, &stat, name),
            _ => {
                drop(file);
                self.unopened(dir, at, name)
            }
        }
    }

    fn file(&mut self, file: &OwnedFd, stat: &Stat, name: &[u8]) -> Done {
        if self.shared.images.contains(&(stat.st_dev, stat.st_ino)) {
            return self.left_out("is the volume that is copied to");
        }
        let mut meta = self.meta(stat);
        if self.links.is_made(meta.link) {
            return self.to.link(name, meta);
        }
        meta.has_xattrs = self.xattrs(file.as_fd())?;
        let len = meta.len.unwrap_or(0);
        let room = u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(512);
        let path = &self.path;
        let bytes = HostBytes { file, path };
        let mut content = Content::new(bytes, len, room, &self.shared.failed);
        match self.to.file(name, meta, &mut content) {
            Err(fail) if fail.exit != Exit::Stopped => {
                fail.report();
                self.shared.failed.store(true, Ordering::Relaxed);
                Ok(())
            }
            done => done,
        }
    }

    fn meta(&mut self, stat: &Stat) -> Meta {
        let mut meta = meta(stat);
        if self.shared.all && meta.kind != FileKind::Dir {
            let names = u32::try_from(stat.st_nlink).unwrap_or(u32::MAX);
            meta.link = self.links.meet(Id::Host(stat.st_dev, stat.st_ino), names);
        }
        meta
    }

    /// Sends the extended attributes of a file or directory; true if there are any.
    fn xattrs(&mut self, file: BorrowedFd<'_>) -> Done<bool> {
        if !self.shared.all {
            return Ok(false);
        }
        let list = xattrs::with_room(|room| rustix::fs::flistxattr(file, room));
        let names = match list {
            Ok(names) => names,
            Err(Errno::NOTSUP) => return Ok(false),
            Err(e) => return self.failed(e).map(|()| false),
        };
        let (mut sent, mut room) = (false, ROOM);
        for name in names.split(|&b| b == 0) {
            if name.is_empty() || is_virtual(name) {
                continue;
            }
            let value = xattrs::with_room(|room| rustix::fs::fgetxattr(file, name, room));
            match value {
                Ok(value) if value.len() <= room => {
                    room -= value.len();
                    self.to.xattr(name, &value)?;
                    sent = true;
                }
                // It went meanwhile.
                Err(Errno::NODATA) => {}
                _ => self
                    .shared
                    .losses
                    .note(Loss::Xattrs, || escape(&self.path).to_string()),
            }
        }
        Ok(sent)
    }

    fn dir(&mut self, dir: &OwnedFd, stat: &Stat, name: &[u8]) -> Done {
        if !self.recursive {
            return self.left_out("is a directory; use cp -r");
        }
        let id = (stat.st_dev, stat.st_ino);
        if self.above.contains(&id) {
            return self.left_out("a directory that leads into itself");
        }
        self.above.push(id);
        let mut meta = meta(stat);
        meta.has_xattrs = self.xattrs(dir.as_fd())?;
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
        self.shared.failed.store(true, Ordering::Relaxed);
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
        keeps_modes: true,
        link: None,
        has_xattrs: false,
    }
}

fn time(secs: i64, nanos: i128) -> Time {
    Time::new(secs, u32::try_from(nanos).unwrap_or(0))
}

/// An open file.
struct HostBytes<'a> {
    file: &'a OwnedFd,
    path: &'a [u8],
}

impl Bytes for HostBytes<'_> {
    fn read(&mut self, offset: u64, room: &mut [u8]) -> Result<usize, Unread> {
        loop {
            match rustix::io::pread(self.file, &mut *room, offset) {
                Err(Errno::INTR) => crate::interrupt::check().map_err(Unread::Fail)?,
                Err(e @ Errno::IO) => return Err(Unread::Damage(words(&e.into()))),
                Err(e) => return Err(Unread::Fail(Fail::host(escape(self.path), e))),
                Ok(n) => return Ok(n),
            }
        }
    }

    fn holes(&mut self, range: Range<u64>) -> Option<Vec<(Range<u64>, bool)>> {
        let seek = |to| match rustix::fs::seek(self.file, to) {
            Ok(at) => Some(at.min(range.end)),
            Err(Errno::NXIO) => Some(range.end),
            Err(_) => None,
        };
        let data = seek(SeekFrom::Data(range.start))?;
        if data > range.start {
            return Some(vec![(range.start..data, true)]);
        }
        let hole = seek(SeekFrom::Hole(data))?.max(data);
        Some(vec![(data..hole, false)])
    }

    fn place(&self) -> String {
        escape(self.path).to_string()
    }
}
