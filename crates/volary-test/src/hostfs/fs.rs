//! The `FileSystem` impl: each operation is a system call of the host.

use super::errno::from_errno;
use super::table::Table;
use super::{attr, entries};
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode as HostMode, OFlags, RenameFlags as HostRename,
    XattrFlags, openat,
};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Error, FileKind, FileSystem, Kind, Mode, Name,
    NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs,
};

/// A directory of the host as a file system.
pub struct HostFs {
    caps: Caps,
    root: NodeId,
    table: Table,
    detached: AtomicBool,
}

impl HostFs {
    pub(super) fn new(path: &Path, caps: Caps) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, HostMode::empty()).map_err(from_errno)?;
        let table = Table::default();
        let root = table.hold(fd)?.node;
        Ok(Self {
            caps,
            root,
            table,
            detached: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// `TooBig` if the host cannot represent the end of the range.
    fn check_range(offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len).map(i64::try_from) {
            Some(Ok(_)) => Ok(()),
            _ => Err(Kind::TooBig.into()),
        }
    }

    /// Sets the attributes that the creating call could not set.
    fn finish(&self, entry: &Entry, set: &SetAttr) -> Result<Entry> {
        let fd = self.table.node(entry.node)?;
        let set = if self.caps.has(Caps::MODES) {
            *set
        } else {
            SetAttr {
                mode: None,
                uid: None,
                gid: None,
                ..*set
            }
        };
        attr::set(&fd, entry.attr.kind, &set)?;
        Ok(Entry {
            node: entry.node,
            attr: attr::of(&fd)?,
        })
    }

    /// Creates an entry by `make`, and returns it. `lacking` is the capability bit it needs.
    fn make(
        &self,
        dir: NodeId,
        name: Name<'_>,
        lacking: u32,
        set: &SetAttr,
        make: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
    ) -> Result<Entry> {
        let fd = self.table.dir(dir)?;
        make(&fd).map_err(|e| self.refusal(e, lacking))?;
        self.finish(&self.table.find(&fd, name)?, set)
    }

    /// Converts an error: for operations that its file system does not support, the host answers
    /// `EPERM`.
    fn refusal(&self, errno: Errno, lacking: u32) -> Error {
        if errno == Errno::PERM && !self.caps.has(lacking) {
            Kind::Unsupported.into()
        } else {
            from_errno(errno)
        }
    }

    fn remove(&self, dir: NodeId, name: Name<'_>, flags: AtFlags) -> Result<()> {
        let fd = self.table.dir(dir)?;
        let old = Table::glance(&fd, name);
        rustix::fs::unlinkat(&*fd, name.as_bytes(), flags).map_err(from_errno)?;
        if let Some(old) = old {
            self.table.drop_if_gone(old.node);
        }
        Ok(())
    }

    fn swap_refusal(&self, errno: Errno, flags: RenameFlags) -> Error {
        if flags == RenameFlags::SWAP && !self.caps.has(Caps::SWAP) {
            Kind::Unsupported.into()
        } else {
            from_errno(errno)
        }
    }

    /// Returns whether `dir` is the node of `name`, or lies below it.
    fn is_below(&self, dir: &OwnedFd, from: &OwnedFd, name: Name<'_>) -> bool {
        let Some(top) = Table::glance(from, name) else {
            return false;
        };
        let mut at = dir.try_clone().ok();
        while let Some(fd) = at {
            let Ok(here) = attr::of(&fd) else { break };
            if here.node == top.node {
                return true;
            }
            if here.node == self.root {
                break;
            }
            let flags = OFlags::PATH | OFlags::CLOEXEC;
            at = openat(&fd, "..", flags, HostMode::empty()).ok();
        }
        false
    }

    fn xattr_path(&self, node: NodeId) -> Result<(std::sync::Arc<OwnedFd>, String)> {
        let fd = self.table.node(node)?;
        if !self.caps.has(Caps::XATTRS) {
            return Err(Kind::Unsupported.into());
        }
        let path = attr::path_of(&fd);
        Ok((fd, path))
    }
}

fn flags_of(mode: Mode) -> OFlags {
    OFlags::CLOEXEC
        | match mode {
            Mode::Read => OFlags::RDONLY,
            Mode::Write => OFlags::WRONLY,
            Mode::ReadWrite => OFlags::RDWR,
        }
}

/// Calls `get` with ever larger buffers until the value fits.
fn with_room(get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Result<Vec<u8>> {
    let mut room = vec![0; 4096];
    loop {
        match get(&mut room) {
            Ok(n) => {
                room.truncate(n);
                return Ok(room);
            }
            Err(Errno::RANGE) if room.len() < 1 << 24 => room = vec![0; room.len() * 8],
            Err(e) => return Err(from_errno(e)),
        }
    }
}

impl FileSystem for HostFs {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        let s = rustix::fs::fstatvfs(&*self.table.node(self.root)?).map_err(from_errno)?;
        let bytes = |blocks: u64| blocks.saturating_mul(s.f_frsize);
        Ok(StatFs {
            block_size: u32::try_from(s.f_frsize).unwrap_or(4096),
            size: bytes(s.f_blocks),
            free: bytes(s.f_bfree),
            available: bytes(s.f_bavail),
            nodes: s.f_files,
            nodes_free: s.f_ffree,
        })
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        let root = self.table.node(self.root)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = openat(&*root, ".", flags, HostMode::empty()).map_err(from_errno)?;
        rustix::fs::syncfs(fd).map_err(from_errno)
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        if self.detached.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let synced = self.sync(cx);
        self.table.clear();
        synced
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.table.find(&*self.table.dir(dir)?, name)
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let fd = self.table.dir(dir)?;
        let up = if dir == self.root { b"." } else { &b".."[..] };
        self.table.find_bytes(&fd, up)
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        entries::list(&self.table, &*self.table.open(dir)?, from, out)
    }

    fn create(
        &self,
        _: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let fd = self.table.dir(dir)?;
        let old = Table::glance(&fd, name).map(|a| a.kind);
        if how != Create::New && !matches!(old, None | Some(FileKind::File | FileKind::Dir)) {
            return Err(Kind::Invalid.into());
        }
        let flags = flags_of(Mode::ReadWrite)
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | match how {
                Create::New => OFlags::EXCL,
                Create::Open => OFlags::empty(),
                Create::Truncate => OFlags::TRUNC,
            };
        let mode = HostMode::from_raw_mode(set.mode.unwrap_or(0o644));
        let file = openat(&*fd, name.as_bytes(), flags, mode).map_err(from_errno)?;
        let path = attr::path_of(&file);
        let node = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, HostMode::empty())
            .map_err(from_errno)?;
        let mut entry = self.table.hold(node)?;
        if old.is_none() {
            entry = self.finish(&entry, set)?;
        }
        Ok((entry, self.table.add_open(entry.node, file)))
    }

    fn mkdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let mode = HostMode::from_raw_mode(set.mode.unwrap_or(0o755));
        self.make(dir, name, 0, set, |fd| {
            rustix::fs::mkdirat(fd, name.as_bytes(), mode)
        })
    }

    fn mknod(
        &self,
        _: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        let major = u32::try_from(rdev >> 32).map_err(|_| Kind::Invalid)?;
        let minor = u32::try_from(rdev & 0xffff_ffff).map_err(|_| Kind::Invalid)?;
        let device = rustix::fs::makedev(major, minor);
        let mode = HostMode::from_raw_mode(set.mode.unwrap_or(0o600));
        let kind = FileType::from_raw_mode(kind.mode_bits());
        self.make(dir, name, Caps::DEVICES, set, |fd| {
            rustix::fs::mknodat(fd, name.as_bytes(), kind, mode, device)
        })
    }

    fn symlink(
        &self,
        _: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make(dir, name, Caps::SYMLINKS, set, |fd| {
            rustix::fs::symlinkat(target, fd, name.as_bytes())
        })
    }

    fn link(&self, _: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let from = self.table.node(node)?;
        if attr::of(&from)?.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let path = attr::path_of(&from);
        self.make(dir, name, Caps::HARD_LINKS, &SetAttr::default(), |fd| {
            rustix::fs::linkat(CWD, path, fd, name.as_bytes(), AtFlags::SYMLINK_FOLLOW)
        })
    }

    fn unlink(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.remove(dir, name, AtFlags::empty())
    }

    fn rmdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.remove(dir, name, AtFlags::REMOVEDIR)
    }

    fn rename(
        &self,
        _: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let (from, to) = (self.table.dir(from)?, self.table.dir(to)?);
        let kind = Table::glance(&from, name).map(|a| a.kind);
        let old = Table::glance(&to, new_name);
        let how = match flags {
            RenameFlags::KEEP => HostRename::NOREPLACE,
            RenameFlags::SWAP => HostRename::EXCHANGE,
            _ => HostRename::empty(),
        };
        rustix::fs::renameat_with(&*from, name.as_bytes(), &*to, new_name.as_bytes(), how)
            .map_err(|e| match e {
                // Linux checks for loops after the new name, and before kinds.
                Errno::NOTEMPTY if kind != Some(FileKind::Dir) => Kind::IsDir.into(),
                Errno::EXIST if self.is_below(&to, &from, name) => Kind::Invalid.into(),
                e => self.swap_refusal(e, flags),
            })?;
        if let Some(old) = old {
            self.table.drop_if_gone(old.node);
        }
        Ok(())
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        attr::of(&*self.table.node(node)?)
    }

    fn setattr(&self, _: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let fd = self.table.node(node)?;
        attr::set(&fd, attr::of(&fd)?.kind, set)?;
        attr::of(&fd)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let fd = self.table.node(node)?;
        if attr::of(&fd)?.kind != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        let target = rustix::fs::readlinkat(&*fd, "", Vec::new()).map_err(from_errno)?;
        Ok(target.into_bytes())
    }

    fn getxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let (_fd, path) = self.xattr_path(node)?;
        with_room(|room| rustix::fs::getxattr(&path, name, room))
    }

    fn setxattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let (_fd, path) = self.xattr_path(node)?;
        rustix::fs::setxattr(&path, name, value, XattrFlags::empty()).map_err(|e| match e {
            Errno::TOOBIG => Kind::TooBig.into(),
            e => from_errno(e),
        })
    }

    fn listxattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let (_fd, path) = self.xattr_path(node)?;
        let all = with_room(|room| rustix::fs::listxattr(&path, room))?;
        let names = all.split(|&b| b == 0).filter(|n| !n.is_empty());
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    fn removexattr(&self, _: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        let (_fd, path) = self.xattr_path(node)?;
        rustix::fs::removexattr(&path, name).map_err(from_errno)
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let fd = self.table.node(node)?;
        // Opening a device could have side effects, and opening a fifo would block.
        if !matches!(attr::of(&fd)?.kind, FileKind::File | FileKind::Dir) {
            return Err(Kind::Invalid.into());
        }
        let path = attr::path_of(&fd);
        let file = openat(CWD, path, flags_of(mode), HostMode::empty()).map_err(from_errno)?;
        Ok(self.table.add_open(node, file))
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let opened = self.table.open(open)?;
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..).filter(|r| !r.is_empty()) {
            let at = offset.saturating_add(done as u64);
            // The host refuses ranges that extend past its greatest offset.
            let room = (i64::MAX as u64).saturating_sub(at);
            let len = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let Some(rest) = rest.get_mut(..len).filter(|r| !r.is_empty()) else {
                break;
            };
            match rustix::io::pread(&opened.fd, rest, at).map_err(from_errno)? {
                0 => break,
                n => done += n,
            }
        }
        Ok(done)
    }

    fn write(&self, _: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let opened = self.table.open(open)?;
        if let Some(offset) = offset {
            Self::check_range(offset, data.len() as u64)?;
            let mut done = 0;
            while let Some(rest) = data.get(done..).filter(|r| !r.is_empty()) {
                let at = offset + done as u64;
                match rustix::io::pwrite(&opened.fd, rest, at).map_err(from_errno)? {
                    0 => return Err(Kind::TooBig.into()),
                    n => done += n,
                }
            }
            return Ok(offset + data.len() as u64);
        }
        // Appends atomically. The descriptor's own offset then tells where the data ends.
        let _offset = opened.offset.lock();
        let (parts, here) = ([IoSlice::new(data)], u64::MAX);
        rustix::io::pwritev2(&opened.fd, &parts, here, ReadWriteFlags::APPEND)
            .map_err(from_errno)?;
        if data.is_empty() {
            return Ok(attr::of(&opened.fd)?.size);
        }
        rustix::fs::tell(&opened.fd).map_err(from_errno)
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        let opened = self.table.open(open)?;
        let done = if data_only {
            rustix::fs::fdatasync(&opened.fd)
        } else {
            rustix::fs::fsync(&opened.fd)
        };
        done.map_err(from_errno)
    }

    fn allocate(&self, _: &Ctx<'_>, open: OpenId, offset: u64, len: u64, hole: bool) -> Result<()> {
        let opened = self.table.open(open)?;
        let mut flags = FallocateFlags::KEEP_SIZE;
        flags.set(FallocateFlags::PUNCH_HOLE, hole);
        rustix::fs::fallocate(&opened.fd, flags, offset, len).map_err(from_errno)
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.table.close(open)
    }
}
