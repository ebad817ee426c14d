//! The kernel's requests, one by one: count, answer, reply.

use crate::attrs::Changes;
use crate::counts::RequestKind as Kind;
use crate::data::Part;
use crate::dirs::Listing;
use crate::errno::{errno, errno_of_flags, errno_of_maker, errno_of_xattr};
use crate::locks::LockRequest;
use crate::names::Making;
use crate::server::Server;
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileAttr, FileHandle, FileType,
    Filesystem, FopenFlags, Generation, INodeNo, IoctlFlags, KernelConfig, LockOwner, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use volary_core::{Attr, Caps, Entry, Error, OpenId, Result};

const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;
const F_UNLCK: i32 = 2;

impl Server {
    /// Counts the request and answers it. A fault of the program costs this
    /// one request only.
    fn answer<T>(&self, kind: Kind, request: impl FnOnce() -> Result<T>) -> Result<T> {
        self.counts.add(kind);
        catch_unwind(AssertUnwindSafe(request))
            .unwrap_or_else(|_| Err(volary_core::Kind::Io.into()))
    }

    fn reply_entry(
        &self,
        reply: ReplyEntry,
        answer: Result<Entry>,
        errno: impl Fn(&Error) -> Errno,
    ) {
        match answer {
            Ok(entry) => {
                let given = self.give(&entry);
                reply.entry_with_ttls(&given.attrs, &given.names, &given.attr, given.generation);
            }
            Err(e) => reply.error(errno(&e)),
        }
    }

    fn reply_attr(&self, reply: ReplyAttr, answer: Result<Attr>) {
        match answer {
            Ok(attr) => reply.attr(&self.attrs_last(), &self.attr(&attr)),
            Err(e) => reply.error(plain(&e)),
        }
    }

    /// How the kernel is to treat an open file.
    fn file_flags(&self) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        flags.set(FopenFlags::FOPEN_KEEP_CACHE, self.wishes.sole);
        flags.set(FopenFlags::FOPEN_NOFLUSH, !self.wishes.session_locks);
        flags
    }

    /// How the kernel is to treat an open directory. It can go on from a
    /// place that it remembers only where places last.
    fn dir_flags(&self) -> FopenFlags {
        if self.wishes.sole && self.caps.has(Caps::STABLE_COOKIES) {
            FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::empty()
        }
    }
}

fn plain(error: &Error) -> Errno {
    errno(error.kind())
}

fn reply_empty(reply: ReplyEmpty, answer: Result<()>) {
    match answer {
        Ok(()) => reply.ok(),
        Err(e) => reply.error(plain(&e)),
    }
}

/// The first reply to an extended attribute's reader is its size.
fn reply_xattr(reply: ReplyXattr, answer: Result<Vec<u8>>, room: u32) {
    match answer {
        Ok(value) if room == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
        Ok(value) if value.len() > room as usize => reply.error(Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(e) => reply.error(errno_of_xattr(&e)),
    }
}

/// What stands for "there is no such name" in a reply that is remembered.
fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

impl Filesystem for Server {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        self.wishes.ask(config);
        Ok(())
    }

    // ---- Names ----

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let answer = self.answer(Kind::Lookup, || self.find(req, parent, name));
        let absence = self.absence_lasts();
        match answer {
            Err(e) if e == volary_core::Kind::NotFound && !absence.is_zero() => {
                reply.entry(&absence, &nothing(), Generation(0));
            }
            answer => self.reply_entry(reply, answer, plain),
        }
    }

    fn forget(&self, _req: &Request, node: INodeNo, lookups: u64) {
        let _ = self.answer(Kind::Forget, || {
            self.drop_lookups(node.0, lookups);
            Ok(())
        });
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let making = Making {
            parent,
            name,
            mode,
            umask,
        };
        match self.answer(Kind::Create, || self.make_file(req, &making, flags)) {
            Ok((entry, open)) => {
                let given = self.give(&entry);
                // The reply has room for one duration only.
                let lasts = given.names.min(given.attrs);
                let open = FileHandle(open.0);
                reply.created(
                    &lasts,
                    &given.attr,
                    given.generation,
                    open,
                    self.file_flags(),
                );
            }
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let making = Making {
            parent,
            name,
            mode,
            umask,
        };
        let answer = self.answer(Kind::MkDir, || self.make_dir(req, &making));
        self.reply_entry(reply, answer, plain);
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        rdev: u32,
        reply: ReplyEntry,
    ) {
        let making = Making {
            parent,
            name,
            mode,
            umask,
        };
        let answer = self.answer(Kind::MkNod, || self.make_node(req, &making, rdev));
        self.reply_entry(reply, answer, errno_of_maker);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let target = target.as_os_str().as_bytes();
        let answer = self.answer(Kind::Symlink, || {
            self.make_symlink(req, parent, name, target)
        });
        self.reply_entry(reply, answer, errno_of_maker);
    }

    fn link(&self, req: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let answer = self.answer(Kind::Link, || self.make_link(req, node, parent, name));
        self.reply_entry(reply, answer, errno_of_maker);
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(
            reply,
            self.answer(Kind::Unlink, || self.remove_name(req, parent, name)),
        );
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply_empty(
            reply,
            self.answer(Kind::RmDir, || self.remove_dir(req, parent, name)),
        );
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (from, to) = ((parent, name), (new_parent, new_name));
        match self.answer(Kind::Rename, || self.move_name(req, from, to, flags)) {
            Ok(()) => reply.ok(),
            Err(e) if flags.is_empty() => reply.error(plain(&e)),
            Err(e) => reply.error(errno_of_flags(&e)),
        }
    }

    // ---- Attributes ----

    fn getattr(&self, req: &Request, node: INodeNo, open: Option<FileHandle>, reply: ReplyAttr) {
        let answer = self.answer(Kind::GetAttr, || self.attr_of(req, node, open));
        self.reply_attr(reply, answer);
    }

    fn setattr(
        &self,
        req: &Request,
        node: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        open: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let changes = Changes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        };
        let answer = self.answer(Kind::SetAttr, || {
            self.change_attr(req, node, open, &changes)
        });
        self.reply_attr(reply, answer);
    }

    fn readlink(&self, req: &Request, node: INodeNo, reply: ReplyData) {
        match self.answer(Kind::ReadLink, || self.link_target(req, node)) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn access(&self, req: &Request, node: INodeNo, want: AccessFlags, reply: ReplyEmpty) {
        reply_empty(
            reply,
            self.answer(Kind::Access, || self.check_access(req, node, want)),
        );
    }

    fn statfs(&self, req: &Request, _node: INodeNo, reply: ReplyStatfs) {
        match self.answer(Kind::StatFs, || self.session(req).statfs()) {
            Ok(stat) => {
                let (all, free, available, size) = crate::kernel::blocks(&stat);
                let name_max = self.caps.name_max.into();
                reply.statfs(
                    all,
                    free,
                    available,
                    stat.nodes,
                    stat.nodes_free,
                    size,
                    name_max,
                    size,
                );
            }
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn getxattr(&self, req: &Request, node: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        if !self.caps.has(Caps::XATTRS) {
            // The kernel then does not ask again.
            return reply.error(Errno::ENOSYS);
        }
        let answer = self.answer(Kind::GetXattr, || self.xattr(req, node, name));
        reply_xattr(reply, answer, room);
    }

    fn listxattr(&self, req: &Request, node: INodeNo, room: u32, reply: ReplyXattr) {
        if !self.caps.has(Caps::XATTRS) {
            return reply.error(Errno::ENOSYS);
        }
        let answer = self.answer(Kind::ListXattr, || self.xattr_names(req, node));
        reply_xattr(reply, answer, room);
    }

    fn setxattr(
        &self,
        req: &Request,
        node: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if !self.caps.has(Caps::XATTRS) {
            return reply.error(Errno::ENOSYS);
        }
        let set = (name, value);
        match self.answer(Kind::SetXattr, || self.set_xattr(req, node, set, flags)) {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno_of_xattr(&e)),
        }
    }

    fn removexattr(&self, req: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        if !self.caps.has(Caps::XATTRS) {
            return reply.error(Errno::ENOSYS);
        }
        let answer = self.answer(Kind::RemoveXattr, || self.remove_xattr(req, node, name));
        match answer {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(errno_of_xattr(&e)),
        }
    }

    // ---- Directories ----

    fn opendir(&self, req: &Request, node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.answer(Kind::OpenDir, || self.open_dir(req, node)) {
            Ok(open) => reply.opened(FileHandle(open.0), self.dir_flags()),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn readdir(
        &self,
        req: &Request,
        node: INodeNo,
        open: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let open = OpenId(open.0);
        let at = Listing { node, open, offset };
        match self.answer(Kind::ReadDir, || self.list(req, at, &mut reply)) {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn readdirplus(
        &self,
        req: &Request,
        node: INodeNo,
        open: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let open = OpenId(open.0);
        let at = Listing { node, open, offset };
        match self.answer(Kind::ReadDirPlus, || self.list_plus(req, at, &mut reply)) {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn releasedir(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        let open = OpenId(open.0);
        reply_empty(
            reply,
            self.answer(Kind::ReleaseDir, || self.session(req).close(open)),
        );
    }

    fn fsyncdir(
        &self,
        req: &Request,
        _node: INodeNo,
        _open: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        reply_empty(reply, self.answer(Kind::FSyncDir, || self.sync_dir(req)));
    }

    // ---- Data ----

    fn open(&self, req: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.answer(Kind::Open, || self.open_file(req, node, flags.0)) {
            Ok(open) => reply.opened(FileHandle(open.0), self.file_flags()),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn read(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let part = Part {
            open: OpenId(open.0),
            offset,
            len: size.into(),
        };
        let mut reply = Some(reply);
        let answer = self.answer(Kind::Read, || {
            self.read_part(req, part, |data| {
                if let Some(reply) = reply.take() {
                    reply.data(data);
                }
            })
        });
        if let (Err(e), Some(reply)) = (answer, reply) {
            reply.error(plain(&e));
        }
    }

    fn write(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let write = || self.write_part(req, open, offset, data, write_flags);
        match self.answer(Kind::Write, write) {
            Ok(count) => reply.written(count),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn flush(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let answer = self.answer(Kind::Flush, || self.end_locks(req, open, owner));
        if self.wishes.session_locks {
            reply_empty(reply, answer);
        } else {
            // Nothing to do, nor ever.
            reply.error(Errno::ENOSYS);
        }
    }

    fn release(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let open = OpenId(open.0);
        reply_empty(
            reply,
            self.answer(Kind::Release, || self.session(req).close(open)),
        );
    }

    fn fsync(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let open = OpenId(open.0);
        let sync = || self.session(req).fsync(open, data_only);
        reply_empty(reply, self.answer(Kind::FSync, sync));
    }

    fn fallocate(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        offset: u64,
        len: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let open = OpenId(open.0);
        let part = Part { open, offset, len };
        reply_empty(
            reply,
            self.answer(Kind::FAllocate, || self.allocate_part(req, part, mode)),
        );
    }

    fn lseek(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        if !self.knows_holes() {
            // The kernel then finds the whole file to be data, by itself.
            return reply.error(Errno::ENOSYS);
        }
        let (Ok(from), SEEK_DATA | SEEK_HOLE) = (u64::try_from(offset), whence) else {
            return reply.error(Errno::EINVAL);
        };
        let open = OpenId(open.0);
        match self.answer(Kind::LSeek, || {
            self.seek(req, open, from, whence == SEEK_DATA)
        }) {
            Ok(found) => reply.offset(i64::try_from(found).unwrap_or(i64::MAX)),
            Err(e) if e == volary_core::Kind::NotFound => reply.error(Errno::ENXIO),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn copy_file_range(
        &self,
        req: &Request,
        _node_in: INodeNo,
        open_in: FileHandle,
        offset_in: u64,
        _node_out: INodeNo,
        open_out: FileHandle,
        offset_out: u64,
        len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        let from = Part {
            open: OpenId(open_in.0),
            offset: offset_in,
            len,
        };
        let copy = || self.copy_part(req, from, OpenId(open_out.0), offset_out);
        match self.answer(Kind::CopyFileRange, copy) {
            Ok(count) => reply.written(count),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn ioctl(
        &self,
        _req: &Request,
        _node: INodeNo,
        _open: FileHandle,
        _flags: IoctlFlags,
        _code: u32,
        _input: &[u8],
        _output_max: u32,
        reply: ReplyIoctl,
    ) {
        self.counts.add(Kind::Ioctl);
        reply.error(Errno::ENOTTY);
    }

    // ---- Locks ----

    fn getlk(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        reply: ReplyLock,
    ) {
        let want = LockRequest {
            open,
            owner,
            range: (start, end),
            kind,
        };
        match self.answer(Kind::GetLk, || self.test_lock(req, &want)) {
            Ok(Some(held)) => reply.locked(held.first, held.last, held.kind, 0),
            Ok(None) => reply.locked(start, end, F_UNLCK, 0),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn setlk(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _pid: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let want = LockRequest {
            open,
            owner,
            range: (start, end),
            kind,
        };
        // A reply that is dropped by a fault is answered with an I/O error.
        let _ = self.answer(Kind::SetLk, || {
            self.set_lock(req, &want, waits, reply);
            Ok(())
        });
    }
}
