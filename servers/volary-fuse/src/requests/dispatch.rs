//! The kernel's requests, one by one, with their handlers and replies.

use crate::kernel::errno::{errno_of_maker, errno_of_xattr};
use crate::requests::apart::Served;
use crate::requests::attrs::Changes;
use crate::requests::counts::RequestKind as Kind;
use crate::requests::data::Part;
use crate::requests::dirs::Listing;
use crate::requests::locks::LockRequest;
use crate::requests::names::{At, Making};
use crate::requests::reply::{
    plain, reply_count, reply_empty, reply_empty_with, reply_lock, reply_place, reply_xattr,
};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, INodeNo,
    IoctlFlags, KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;
use volary_core::{Caps, OpenId};
use volary_session::Range;

impl Filesystem for Served {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        self.told.wishes.ask(config);
        Ok(())
    }

    // ---- Names ----

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let req = &self.turn(req);
        let answer = self.answer(Kind::Lookup, || self.find(req, parent, name));
        self.told.reply_found(reply, answer);
    }

    fn forget(&self, req: &Request, node: INodeNo, lookups: u64) {
        let _turn = self.turn(req);
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
        let req = &self.turn(req);
        self.create_apart(req, At { parent, name }, mode, umask, flags, reply);
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
        let req = &self.turn(req);
        let making = Making {
            parent,
            name,
            mode,
            umask,
        };
        let answer = self.answer(Kind::MkDir, || self.make_dir(req, &making));
        self.told.reply_entry(reply, answer, plain);
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
        let req = &self.turn(req);
        let making = Making {
            parent,
            name,
            mode,
            umask,
        };
        let answer = self.answer(Kind::MkNod, || self.make_node(req, &making, rdev));
        self.told.reply_entry(reply, answer, errno_of_maker);
    }

    fn symlink(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let req = &self.turn(req);
        let target = target.as_os_str().as_bytes();
        let answer = self.answer(Kind::Symlink, || {
            self.make_symlink(req, parent, name, target)
        });
        self.told.reply_entry(reply, answer, errno_of_maker);
    }

    fn link(&self, req: &Request, node: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let req = &self.turn(req);
        self.link_apart(req, node, At { parent, name }, reply);
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let req = &self.turn(req);
        self.unlink_apart(req, At { parent, name }, reply);
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let req = &self.turn(req);
        self.rmdir_apart(req, At { parent, name }, reply);
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
        let req = &self.turn(req);
        let to = At {
            parent: new_parent,
            name: new_name,
        };
        self.rename_apart(req, At { parent, name }, to, flags, reply);
    }

    // ---- Attributes ----

    fn getattr(&self, req: &Request, node: INodeNo, open: Option<FileHandle>, reply: ReplyAttr) {
        let req = &self.turn(req);
        let answer = self.answer(Kind::GetAttr, || self.attr_of(req, node, open));
        self.told.reply_attr(reply, answer);
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
        let req = &self.turn(req);
        let changes = Changes {
            mode,
            uid,
            gid,
            size,
            atime,
            mtime,
        };
        self.setattr_apart(req, node, open, changes, reply);
    }

    fn readlink(&self, req: &Request, node: INodeNo, reply: ReplyData) {
        let req = &self.turn(req);
        match self.answer(Kind::ReadLink, || self.link_target(req, node)) {
            Ok(target) => reply.data(&target),
            Err(e) => reply.error(plain(&e)),
        }
    }

    fn access(&self, req: &Request, node: INodeNo, want: AccessFlags, reply: ReplyEmpty) {
        let req = &self.turn(req);
        self.end(reply, Kind::Access, || self.check_access(req, node, want));
    }

    fn statfs(&self, req: &Request, _node: INodeNo, reply: ReplyStatfs) {
        let req = &self.turn(req);
        let answer = self.answer(Kind::StatFs, || self.sessions.of(req).statfs());
        self.told.reply_statfs(reply, answer);
    }

    fn getxattr(&self, req: &Request, node: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        let req = &self.turn(req);
        if !self.told.caps.has(Caps::XATTRS) {
            // The kernel then does not ask again.
            return reply.error(Errno::ENOSYS);
        }
        let answer = self.answer(Kind::GetXattr, || self.xattr(req, node, name));
        reply_xattr(reply, answer, room);
    }

    fn listxattr(&self, req: &Request, node: INodeNo, room: u32, reply: ReplyXattr) {
        let req = &self.turn(req);
        if !self.told.caps.has(Caps::XATTRS) {
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
        let req = &self.turn(req);
        if !self.told.caps.has(Caps::XATTRS) {
            return reply.error(Errno::ENOSYS);
        }
        let answer = self.answer(Kind::SetXattr, || {
            self.set_xattr(req, node, name, value, flags)
        });
        reply_empty_with(reply, answer, errno_of_xattr);
    }

    fn removexattr(&self, req: &Request, node: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let req = &self.turn(req);
        if !self.told.caps.has(Caps::XATTRS) {
            return reply.error(Errno::ENOSYS);
        }
        let answer = self.answer(Kind::RemoveXattr, || self.remove_xattr(req, node, name));
        reply_empty_with(reply, answer, errno_of_xattr);
    }

    // ---- Directories ----

    fn opendir(&self, req: &Request, node: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let req = &self.turn(req);
        self.open_dir_apart(req, node, reply);
    }

    fn readdir(
        &self,
        req: &Request,
        node: INodeNo,
        open: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let req = &self.turn(req);
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
        let req = &self.turn(req);
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
        let req = &self.turn(req);
        let open = OpenId(open.0);
        self.end(reply, Kind::ReleaseDir, || {
            self.sessions.of(req).close(open)
        });
    }

    fn fsyncdir(
        &self,
        req: &Request,
        _node: INodeNo,
        _open: FileHandle,
        _data_only: bool,
        reply: ReplyEmpty,
    ) {
        let req = &self.turn(req);
        self.end(reply, Kind::FSyncDir, || self.sessions.of(req).sync());
    }

    // ---- Data ----

    fn open(&self, req: &Request, node: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let req = &self.turn(req);
        self.open_apart(req, node, flags.0, reply);
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
        let req = &self.turn(req);
        let part = Part {
            open: OpenId(open.0),
            offset,
            len: size.into(),
        };
        self.reply_part(req, part, reply);
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
        let req = &self.turn(req);
        let write = || self.write_part(req, open, offset, data, write_flags);
        reply_count(reply, self.answer(Kind::Write, write));
    }

    fn flush(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let req = &self.turn(req);
        let answer = self.answer(Kind::Flush, || {
            self.sessions.of(req).unlock_owner(OpenId(open.0), owner.0)
        });
        if self.told.wishes.session_locks {
            reply_empty(reply, answer);
        } else {
            // There is nothing to do, now or later, so the kernel need not ask again.
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
        let req = &self.turn(req);
        let open = OpenId(open.0);
        self.end(reply, Kind::Release, || self.sessions.of(req).close(open));
    }

    fn fsync(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        data_only: bool,
        reply: ReplyEmpty,
    ) {
        let req = &self.turn(req);
        let open = OpenId(open.0);
        let sync = || self.sessions.of(req).fsync(open, data_only);
        self.end(reply, Kind::FSync, sync);
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
        let req = &self.turn(req);
        let open = OpenId(open.0);
        let part = Part { open, offset, len };
        self.end(reply, Kind::FAllocate, || {
            self.allocate_part(req, part, mode)
        });
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
        let req = &self.turn(req);
        if !self.told.knows_holes() {
            // The kernel then treats the whole file as data, without asking again.
            return reply.error(Errno::ENOSYS);
        }
        let open = OpenId(open.0);
        let answer = self.answer(Kind::LSeek, || self.seek(req, open, offset, whence));
        reply_place(reply, answer);
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
        let req = &self.turn(req);
        let from = Part {
            open: OpenId(open_in.0),
            offset: offset_in,
            len,
        };
        let copy = || self.copy_part(req, from, OpenId(open_out.0), offset_out);
        reply_count(reply, self.answer(Kind::CopyFileRange, copy));
    }

    fn ioctl(
        &self,
        req: &Request,
        _node: INodeNo,
        open: FileHandle,
        _flags: IoctlFlags,
        code: u32,
        input: &[u8],
        _output_max: u32,
        reply: ReplyIoctl,
    ) {
        let req = &self.turn(req);
        let call = || self.sessions.of(req).ioctl(OpenId(open.0), code, input);
        match self.answer(Kind::Ioctl, call) {
            Ok(output) => reply.ioctl(0, &output),
            Err(e) if e == volary_core::Kind::Unsupported => reply.error(Errno::ENOTTY),
            Err(e) => reply.error(plain(&e)),
        }
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
        let req = &self.turn(req);
        let want = LockRequest {
            open,
            owner,
            range: Range {
                first: start,
                last: end,
            },
            kind,
        };
        let answer = self.answer(Kind::GetLk, || want.test(&self.sessions.of(req)));
        reply_lock(reply, answer);
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
        let req = &self.turn(req);
        let want = LockRequest {
            open,
            owner,
            range: Range {
                first: start,
                last: end,
            },
            kind,
        };
        // If a fault drops the reply, it is an I/O error.
        let _ = self.answer(Kind::SetLk, || {
            let waiters = waits.then_some(&self.waiters);
            want.set(&self.sessions.of(req), req.pid, waiters, reply);
            Ok(())
        });
    }
}
