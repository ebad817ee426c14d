//! Reads trees of the host by descriptors of directories and single names. No path is resolved
//! twice, and each file costs an open, a stat, a read and a close.

use crate::how::CopyOptions;
use crate::nodes::ids::{HostId, Id, of_stat};
use crate::nodes::links::Links;
use crate::nodes::xattrs::{self, ROOM, is_virtual};
use crate::sources::content::{Bytes, Content, Unread};
use crate::stream::{Meta, Outlet, Piece, Pieces};
use crate::told::failure::{Done, Failure, Why, words};
use crate::told::losses::{Loss, Losses};
use crate::told::observer::{Observer, Report};
use rustix::fs::{CWD, FileType, Mode, OFlags, RawDir, SeekFrom, Stat};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use volary_core::{FileKind, Time, escape};
use volary_session::PATH_MAX;

/// Reads trees of the host into an [`Outlet`].
pub(crate) struct HostSource<'a, 'scope, 'env> {
    to: &'a mut Outlet<'scope, 'env>,
    /// Whether to enter directories.
    recursive: bool,
    /// Whether to follow symlinks.
    follow: bool,
    shared: &'a Shared<'a>,
    links: &'a mut Links,
    /// The path so far, for messages.
    path: Vec<u8>,
    /// Device and inode of the directories that are open. They reveal a directory that leads into
    /// itself by symlinks.
    above: Vec<HostId>,
}

/// The state that sources share.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    /// Hard links and extended attributes are kept too.
    pub(crate) all: bool,
    /// Modes that a volume without modes shows are taken as real.
    pub(crate) shown_modes: bool,
    pub(crate) report: Report<'a>,
    pub(crate) losses: Losses,
    /// Device and inode of the images that are open.
    pub(crate) images: Vec<HostId>,
}

/// Why an image that is open is not copied.
pub(crate) const INTO_IMAGE: &str = "is the volume that is copied to";

/// A stream that is read to its end.
pub(crate) struct Input<'a> {
    pub(crate) from: &'a mut dyn Read,
    /// Its name, for messages.
    pub(crate) place: &'a str,
}

struct InputPieces<'i, 'o> {
    input: Input<'i>,
    observer: &'o dyn Observer,
}

impl Pieces for InputPieces<'_, '_> {
    fn next(&mut self, _: u64, room: &mut [u8]) -> Done<Piece> {
        loop {
            match self.input.from.read(room) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => self.observer.check()?,
                Err(e) => return Err(Failure::host(self.place(), e)),
                Ok(0) => return Ok(Piece::End),
                Ok(n) => return Ok(Piece::Data(n)),
            }
        }
    }

    fn place(&self) -> String {
        self.input.place.to_owned()
    }
}

/// The entries of a directory: names with their zero bytes, and the range and type of each.
struct Listing {
    names: Vec<u8>,
    entries: Vec<(usize, usize, FileType)>,
}

impl<'a, 'scope, 'env> HostSource<'a, 'scope, 'env> {
    /// Returns a source that reads into `to`.
    pub(crate) fn new(
        to: &'a mut Outlet<'scope, 'env>,
        how: &CopyOptions,
        shared: &'a Shared<'a>,
        links: &'a mut Links,
    ) -> Self {
        Self {
            to,
            recursive: how.recursive,
            follow: how.dereference,
            shared,
            links,
            path: Vec::new(),
            above: Vec::new(),
        }
    }

    /// Reads the node at `path`, and copies it as `name`. Without a name, reads the entries of the
    /// directory there.
    ///
    /// # Errors
    /// Those that end the copy. Nodes that are left out are reported.
    pub(crate) fn tree(&mut self, path: &Path, name: Option<&[u8]>) -> Done {
        self.path = path.as_os_str().as_bytes().to_vec();
        let Ok(at) = CString::new(self.path.clone()) else {
            return self.failed(Errno::INVAL);
        };
        // As in cp, without -r a symlink that the user names is followed.
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

    /// Reads `input`, and copies it as a file named `name`.
    ///
    /// # Errors
    /// As [`tree`](Self::tree).
    pub(crate) fn input(&mut self, input: Input<'_>, name: &[u8], now: Time) -> Done {
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
            id: None,
            keeps_modes: true,
            link: None,
            has_xattrs: false,
        };
        let mut pieces = InputPieces {
            input,
            observer: self.shared.report.observer,
        };
        self.to.file(name, meta, &mut pieces)
    }

    /// Reads an entry of a directory.
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

    /// Reads a node that must not be opened: a symlink, fifo or device.
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
        // Does not block on a fifo that replaced the file.
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        if !follow {
            flags |= OFlags::NOFOLLOW;
        }
        let file = match rustix::fs::openat(dir, at, flags, Mode::empty()) {
            Ok(file) => file,
            // It is a symlink or a socket.
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
        if self.shared.images.contains(&of_stat(stat)) {
            return self.left_out(Why::Words(INTO_IMAGE.into()));
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
        let bytes = HostBytes {
            file,
            path,
            observer: self.shared.report.observer,
        };
        let mut content = Content::new(bytes, len, room, &self.shared.report);
        match self.to.file(name, meta, &mut content) {
            Err(failure) if !failure.stops() => {
                self.shared.report.failed(&failure);
                Ok(())
            }
            done => done,
        }
    }

    fn meta(&mut self, stat: &Stat) -> Meta {
        let mut meta = meta(stat);
        if self.shared.all && meta.kind != FileKind::Dir {
            let names = u32::try_from(stat.st_nlink).unwrap_or(u32::MAX);
            meta.link = self.links.meet(Id::Host(of_stat(stat)), names);
        }
        meta
    }

    /// Sends the extended attributes of a file or directory; returns whether there are any.
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
                // The attribute was removed meanwhile.
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
            return self.left_out(Why::Directory);
        }
        if self.path.len() > PATH_MAX {
            let words = format!("deeper than {PATH_MAX} bytes of path; not entered");
            return self.left_out(Why::Words(words.into()));
        }
        let id = of_stat(stat);
        if self.above.contains(&id) {
            return self.left_out(Why::Words("a directory that leads into itself".into()));
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

    /// Reads the entries of a directory in sorted order, so that the same tree gives the same
    /// volume.
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
        self.left_out(Why::Host(e.into()))
    }

    fn left_out(&self, why: Why) -> Done {
        let place = escape(&self.path).to_string();
        self.shared.report.failed(&Failure::new(place, why));
        Ok(())
    }
}

fn list(dir: &OwnedFd) -> Result<Listing, Errno> {
    // Not on the stack, which deep trees need for themselves.
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
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
        id: Some(Id::Host(of_stat(stat))),
        keeps_modes: true,
        link: None,
        has_xattrs: false,
    }
}

fn time(secs: i64, nanos: i128) -> Time {
    Time::new(secs, u32::try_from(nanos).unwrap_or(0))
}

/// An open file of the host.
struct HostBytes<'a> {
    file: &'a OwnedFd,
    path: &'a [u8],
    observer: &'a dyn Observer,
}

impl Bytes for HostBytes<'_> {
    fn read(&mut self, offset: u64, room: &mut [u8]) -> Result<usize, Unread> {
        loop {
            match rustix::io::pread(self.file, &mut *room, offset) {
                Err(Errno::INTR) => self.observer.check().map_err(Unread::Fail)?,
                Err(e @ Errno::IO) => return Err(Unread::Damage(words(&e.into()))),
                Err(e) => return Err(Unread::Fail(Failure::host(self.place(), e))),
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
