//! Writes trees to the host.
//!
//! Names come from the volume and may be anything. Each is checked to be a single name. Every node
//! is made relative to the descriptor of its directory, without following symlinks, so nothing is
//! written outside of the target.

use crate::how::CopyOptions;
use crate::nodes::host_range::HostRange;
use crate::nodes::ids::{HostId, of_stat};
use crate::nodes::links::{Link, Made, OTHER_NAME, Spot};
use crate::nodes::xattrs::Xattr;
use crate::sinks::folder::{Folder, Opened, write_all};
use crate::sinks::helper::Helper;
use crate::stream::{Files, Meta, Sink, stops};
use crate::told::failure::{And, Done, Failure, Why};
use crate::told::losses::Losses;
use crate::told::observer::Observer;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Stat};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use volary_core::FileKind;

/// Writes into a directory of the host.
pub(crate) struct HostSink<'a> {
    /// The open directories, the innermost last; the first is the place that the user named.
    dirs: Vec<Dir>,
    file: Option<Writing>,
    helper: Option<Helper>,
    /// Extended attributes of the next node.
    xattrs: Vec<Xattr>,
    made: Made,
    observer: &'a dyn Observer,
}

struct Dir {
    folder: Arc<Folder>,
    /// The attributes to set when the directory is left.
    meta: Option<Meta>,
    xattrs: Vec<Xattr>,
}

struct Writing {
    folder: Arc<Folder>,
    opened: Opened,
    name: Vec<u8>,
    meta: Meta,
    xattrs: Vec<Xattr>,
    /// The file ends with a hole.
    hole: bool,
}

/// With at least this many files in a row, a helper writes them.
const HELPED_FROM: usize = 16;

/// The number of files in one job of the helper. All of them are open.
const HELPED: usize = 16;

impl<'a> HostSink<'a> {
    /// Returns a sink that writes into the directory at `path`.
    ///
    /// # Errors
    /// If the directory cannot be opened.
    pub(crate) fn new(
        path: &Path,
        how: &CopyOptions,
        images: Vec<HostId>,
        made: Made,
        losses: Losses,
        observer: &'a dyn Observer,
    ) -> Done<Self> {
        let base = Folder::at(path, how, images, losses)?;
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
            observer,
        })
    }

    /// Returns the innermost directory.
    fn folder(&self) -> Done<Arc<Folder>> {
        let dir = self.dirs.last().map(|dir| Arc::clone(&dir.folder));
        dir.ok_or_else(|| Failure::words("", "no directory to write into"))
    }

    /// Writes data. Closes the file after its last part; removes a new file if something fails.
    fn write(&mut self, mut file: Writing, data: &[u8], more: bool) -> Done {
        file.hole &= data.is_empty();
        let written = write_all(file.opened.fd.as_fd(), data);
        self.written(file, written, more)
    }

    /// Finishes a file if no more content follows.
    fn written(&mut self, file: Writing, mut written: Result<(), Errno>, more: bool) -> Done {
        let (folder, fd) = (&file.folder, file.opened.fd.as_fd());
        if !more {
            written = written
                .and_then(|()| if file.hole { end_here(fd) } else { Ok(()) })
                .and_then(|()| folder.finish(fd, &file.name, &file.meta, &file.xattrs))
                .and_then(|()| folder.take_back(&file.opened, &file.meta))
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
            id: of_stat(&stat?),
        };
        self.made.made(link, spot);
        Ok(())
    }

    /// Makes another name for a node that was made before; `None` if it was not.
    fn linked(&mut self, name: &[u8], meta: &Meta) -> Option<Done> {
        let link = meta.link.filter(|link| link.again)?;
        let spot = self.made.get(link.id)?;
        self.xattrs.clear();
        Some(self.make_link(name, meta, link, spot))
    }

    fn make_link(&self, name: &[u8], meta: &Meta, link: Link, spot: Spot) -> Done {
        let folder = self.folder()?;
        folder.check(name)?;
        let made = self.link_to(&folder, name, meta, &spot);
        match made {
            Ok(()) => {
                self.made.made(link, spot);
                Ok(())
            }
            Err(e) => {
                // The next name becomes a new node.
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
        if there.is_ok_and(|there| of_stat(&there) == *node) {
            return Ok(());
        }
        if !folder.replace(name, meta, &make)? {
            return Ok(());
        }
        // Another node may have replaced the first name meanwhile.
        let made = rustix::fs::statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if of_stat(&made) != *node {
            rustix::fs::unlinkat(&folder.fd, name, AtFlags::empty())?;
            return Err(Errno::STALE);
        }
        Ok(())
    }
}

/// Sets the file's length to the current position.
fn end_here(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    rustix::fs::ftruncate(fd, rustix::fs::tell(fd)?)
}

impl Sink for HostSink<'_> {
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done {
        let xattrs = std::mem::take(&mut self.xattrs);
        let folder = self.folder()?.enter(name, meta)?;
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
        folder.leave(&meta, &xattrs)
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

    /// Makes the files here, and lets a helper write them if there is a processor for it. If two
    /// threads made files in one directory, they would wait for each other.
    fn files(&mut self, files: &Files) -> Vec<Done> {
        let folder = match self.folder() {
            Ok(folder) => folder,
            Err(fail) => return vec![Err(fail)],
        };
        // In a directory that existed before, a file may replace one that is not written yet.
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

    fn host_range(&mut self, host_range: &HostRange) -> Done<Option<u64>> {
        let Some(mut file) = self.file.take() else {
            return Ok(Some(0));
        };
        let copied = host_range.copy_to(file.opened.fd.as_fd(), self.observer);
        file.hole &= copied == Ok(0);
        self.written(file, copied.map(drop), true)?;
        Ok(copied.ok())
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
        Err(Failure::words(place, And::NotWhole.words()))
    }

    fn xattr(&mut self, name: &[u8], value: &[u8]) {
        self.xattrs.push((name.to_vec(), value.to_vec()));
    }

    fn link(&mut self, name: &[u8], meta: &Meta) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        Err(Failure::words(self.folder()?.place(name), OTHER_NAME))
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
            return Err(Failure::new(folder.place(name), Why::Device));
        }
        let number = |n: u64| u32::try_from(n).unwrap_or(0);
        let dev = rustix::fs::makedev(number(meta.rdev >> 32), number(meta.rdev & 0xffff_ffff));
        let mode = Mode::from_raw_mode(meta.mode & 0o777);
        let make = |dir: BorrowedFd<'_>| rustix::fs::mknodat(dir, name, kind, mode, dev);
        self.make_unopened(name, meta, &make)
    }
}

impl HostSink<'_> {
    /// Makes a symlink, fifo, socket or device, and replaces an existing node.
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
