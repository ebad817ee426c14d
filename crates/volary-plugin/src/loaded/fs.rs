//! The operations.

#![expect(
    unsafe_code,
    reason = "each operation calls the plug-in, by a table that is as C says"
)]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: functions of this table, with what the table says they get"
)]

use super::Loaded;
use super::calls::{lie, list_of_names};
use crate::abi::*;
use crate::convert::{self, to_node, to_set};
use crate::slot::chars;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volary_core::{
    Access, Attr, Caps, ChangeSink, Cookie, Create, Ctx, DirBuf, Entry, FileKind, FileSystem,
    Finding, Kind, Lock, Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs, Watch,
};

/// The size of the buffer for an `ioctl`'s answer.
const IOCTL_ROOM: usize = 64 << 10;

type Fs = *mut c_void;
type Cx = *const VolaryContext;

impl Loaded {
    /// # Errors
    /// `Stale` once the volume is detached.
    fn alive(&self) -> Result<&VolaryTable> {
        match self.detached.load(Ordering::Acquire) {
            false => Ok(&*self.table),
            true => Err(Kind::Stale.into()),
        }
    }

    /// Returns the plug-in's open of a file that was opened for writing.
    ///
    /// # Errors
    /// `ReadOnly` if the volume is read-only; `Stale`; `Invalid` if the open is for reading only.
    fn to_write(&self, open: OpenId) -> Result<VolaryOpen> {
        match self.caps.has(Caps::WRITE) {
            true => self.opens.to_write(open),
            false => Err(Kind::ReadOnly.into()),
        }
    }

    /// Makes a call that returns attributes.
    fn attr_of(
        &self,
        what: &str,
        cx: &Ctx<'_>,
        call: impl FnOnce(Fs, Cx, *mut VolaryAttr) -> i32,
    ) -> Result<Attr> {
        let mut out = VolaryAttr::default();
        self.calls
            .done(what, cx, |fs, c| call(fs, c, &raw mut out))?;
        let attr = convert::attr(&out).map_err(|words| lie(what, &words))?;
        match attr.size > self.caps.size_max && attr.kind == FileKind::File {
            true => Err(lie(what, "gave a size that the volume cannot have")),
            false => Ok(attr),
        }
    }

    /// Does the same for a call that must return a node of this kind.
    fn made(
        &self,
        what: &str,
        kind: FileKind,
        cx: &Ctx<'_>,
        call: impl FnOnce(Fs, Cx, *mut VolaryAttr) -> i32,
    ) -> Result<Entry> {
        let attr = self.attr_of(what, cx, call)?;
        match attr.kind == kind {
            true => Ok(entry(attr)),
            false => Err(lie(what, "made something of another kind")),
        }
    }

    /// Opens a node for a table without the function `open`.
    fn open_by_default(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<u64> {
        let attr = self.getattr(cx, node)?;
        if mode != Mode::Read && attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        match mode == Mode::Read || self.caps.has(Caps::WRITE) {
            true => Ok(0),
            false => Err(Kind::ReadOnly.into()),
        }
    }
}

fn entry(attr: Attr) -> Entry {
    Entry {
        node: attr.node,
        attr,
    }
}

/// Returns a name in C's form: a pointer and a length.
fn parts(name: Name<'_>) -> (*const std::ffi::c_char, usize) {
    (chars(name.as_bytes()), name.as_bytes().len())
}

impl FileSystem for Loaded {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn commit_time(&self) -> Duration {
        self.commit
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        let Some(f) = self.alive()?.statfs else {
            return Ok(convert::untold());
        };
        let mut out = VolaryStatFs::default();
        self.calls
            .done("statfs", cx, |fs, c| unsafe { f(fs, c, &raw mut out) })?;
        Ok(convert::statfs(&out))
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        let Some(f) = self.alive()?.sync else {
            return Ok(());
        };
        self.calls.done("sync", cx, |fs, c| unsafe { f(fs, c) })
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        if self.detached.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let table = &*self.table;
        let mut first = Ok(());
        for open in self.opens.take_all() {
            if let Some(f) = table.close {
                let closed = self
                    .calls
                    .done("close", cx, |fs, c| unsafe { f(fs, c, open) });
                first = first.and(closed);
            }
        }
        match (table.detach, table.sync) {
            (Some(f), _) => {
                let done = self.calls.done("detach", cx, |fs, c| unsafe { f(fs, c) });
                first.and(done)
            }
            (None, Some(f)) => {
                let done = self.calls.done("sync", cx, |fs, c| unsafe { f(fs, c) });
                first.and(done)
            }
            (None, None) => first,
        }
    }

    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        self.alive()?;
        match self.caps.has(Caps::WATCH) {
            true => Ok(self.news.watch(sink)),
            false => Err(Kind::Unsupported.into()),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.news.take()
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let f = self.alive()?.lookup.ok_or(Kind::Unsupported)?;
        let (at, len) = parts(name);
        let attr = self.attr_of("lookup", cx, |fs, c, out| unsafe {
            f(fs, c, to_node(dir), at, len, out)
        })?;
        Ok(entry(attr))
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        match self.alive()?.parent {
            Some(f) => self.made("parent", FileKind::Dir, cx, |fs, c, out| unsafe {
                f(fs, c, to_node(dir), out)
            }),
            None if dir == self.root => self.getattr(cx, dir).map(entry),
            None => Err(Kind::Unsupported.into()),
        }
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let f = self.alive()?.readdir.ok_or(Kind::Unsupported)?;
        let open = self.opens.get(dir)?;
        self.calls.list(cx, from.0, out, |fs, c, list| unsafe {
            f(fs, c, open, from.0, list)
        })
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let f = self.alive()?.create.ok_or(Kind::ReadOnly)?;
        self.opens.check_room()?;
        let (at, len) = parts(name);
        let set = to_set(set, cx.now);
        let mut handle = 0;
        let entry = self.made("create", FileKind::File, cx, |fs, c, out| unsafe {
            let how = convert::to_create(how);
            let (set, handle) = (&raw const set, &raw mut handle);
            f(fs, c, to_node(dir), at, len, how, set, out, handle)
        })?;
        let open = VolaryOpen {
            node: to_node(entry.node),
            handle,
            mode: convert::to_mode(Mode::ReadWrite),
        };
        Ok((entry, self.opens.add(open)))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let f = self.alive()?.mkdir.ok_or(Kind::ReadOnly)?;
        let (at, len) = parts(name);
        let set = to_set(set, cx.now);
        self.made("mkdir", FileKind::Dir, cx, |fs, c, out| unsafe {
            f(fs, c, to_node(dir), at, len, &raw const set, out)
        })
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        let f = self.alive()?.mknod.ok_or(Kind::ReadOnly)?;
        let (at, len) = parts(name);
        let set = to_set(set, cx.now);
        self.made("mknod", kind, cx, |fs, c, out| unsafe {
            let (number, set) = (convert::to_file_kind(kind), &raw const set);
            f(fs, c, to_node(dir), at, len, number, rdev, set, out)
        })
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let f = self.alive()?.symlink.ok_or(Kind::ReadOnly)?;
        let (at, len) = parts(name);
        let set = to_set(set, cx.now);
        self.made("symlink", FileKind::Symlink, cx, |fs, c, out| unsafe {
            let (to, to_len, set) = (chars(target), target.len(), &raw const set);
            f(fs, c, to_node(dir), at, len, to, to_len, set, out)
        })
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let f = self.alive()?.link.ok_or(Kind::ReadOnly)?;
        let (at, len) = parts(name);
        let attr = self.attr_of("link", cx, |fs, c, out| unsafe {
            f(fs, c, to_node(node), to_node(dir), at, len, out)
        })?;
        same(node, entry(attr), "link")
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let f = self.alive()?.unlink.ok_or(Kind::ReadOnly)?;
        let (at, len) = parts(name);
        self.calls.done("unlink", cx, |fs, c| unsafe {
            f(fs, c, to_node(dir), at, len)
        })
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let f = self.alive()?.rmdir.ok_or(Kind::ReadOnly)?;
        let (at, len) = parts(name);
        self.calls.done("rmdir", cx, |fs, c| unsafe {
            f(fs, c, to_node(dir), at, len)
        })
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let f = self.alive()?.rename.ok_or(Kind::ReadOnly)?;
        let ((at, len), (new, new_len)) = (parts(name), parts(new_name));
        self.calls.done("rename", cx, |fs, c| unsafe {
            let (from, to) = (to_node(from), to_node(to));
            f(fs, c, from, at, len, to, new, new_len, flags.0)
        })
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let f = self.alive()?.getattr.ok_or(Kind::Unsupported)?;
        let attr = self.attr_of("getattr", cx, |fs, c, out| unsafe {
            f(fs, c, to_node(node), out)
        })?;
        same(node, entry(attr), "getattr").map(|entry| entry.attr)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let f = self.alive()?.setattr.ok_or(Kind::ReadOnly)?;
        let set = to_set(set, cx.now);
        let attr = self.attr_of("setattr", cx, |fs, c, out| unsafe {
            f(fs, c, to_node(node), &raw const set, out)
        })?;
        same(node, entry(attr), "setattr").map(|entry| entry.attr)
    }

    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        let f = self.alive()?.access.ok_or(Kind::Unsupported)?;
        let may = self.calls.number("access", cx, |fs, c| unsafe {
            f(fs, c, to_node(node), want.0.into())
        })?;
        match u8::try_from(may).map(Access) {
            Ok(may) if want.has(may) => Ok(may),
            _ => Err(lie("access", "grants what was not asked for")),
        }
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let f = self.alive()?.readlink.ok_or(Kind::Invalid)?;
        self.calls.filled("readlink", cx, |fs, c, buf| unsafe {
            f(fs, c, to_node(node), buf.as_mut_ptr().cast(), buf.len())
        })
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let f = self.alive()?.getxattr.ok_or(Kind::Unsupported)?;
        self.calls.filled("getxattr", cx, |fs, c, buf| unsafe {
            let (at, room) = (buf.as_mut_ptr().cast(), buf.len());
            f(fs, c, to_node(node), chars(name), name.len(), at, room)
        })
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let f = self.alive()?.setxattr.ok_or(Kind::Unsupported)?;
        self.calls.done("setxattr", cx, |fs, c| unsafe {
            let (at, len) = (value.as_ptr().cast(), value.len());
            f(fs, c, to_node(node), chars(name), name.len(), at, len)
        })
    }

    fn listxattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let f = self.alive()?.listxattr.ok_or(Kind::Unsupported)?;
        let all = self.calls.filled("listxattr", cx, |fs, c, buf| unsafe {
            f(fs, c, to_node(node), buf.as_mut_ptr().cast(), buf.len())
        })?;
        list_of_names(&all)
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        let f = self.alive()?.removexattr.ok_or(Kind::Unsupported)?;
        self.calls.done("removexattr", cx, |fs, c| unsafe {
            f(fs, c, to_node(node), chars(name), name.len())
        })
    }

    fn forget(&self, node: NodeId, lookups: u64) {
        if let Ok(VolaryTable {
            forget: Some(f),
            fs,
            ..
        }) = self.alive()
        {
            unsafe { f(*fs, to_node(node), lookups) }
        }
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let table = self.alive()?;
        self.opens.check_room()?;
        let number = convert::to_mode(mode);
        let handle = match table.open {
            None => self.open_by_default(cx, node, mode)?,
            Some(f) => {
                let mut handle = 0;
                self.calls.done("open", cx, |fs, c| unsafe {
                    f(fs, c, to_node(node), number, &raw mut handle)
                })?;
                handle
            }
        };
        Ok(self.opens.add(VolaryOpen {
            node: to_node(node),
            handle,
            mode: number,
        }))
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let f = self.alive()?.read.ok_or(Kind::Unsupported)?;
        let open = self.opens.get(open)?;
        let room = buf.len();
        let read = self.calls.number("read", cx, |fs, c| unsafe {
            f(fs, c, open, offset, buf.as_mut_ptr().cast(), room)
        })?;
        let fits = usize::try_from(read).ok().filter(|&n| n <= room);
        fits.ok_or_else(|| {
            lie(
                "read",
                &format!("gave {read} bytes where {room} were asked for"),
            )
        })
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let table = self.alive()?;
        let open = self.to_write(open)?;
        let f = table.write.ok_or(Kind::ReadOnly)?;
        let end = self.calls.number("write", cx, |fs, c| unsafe {
            let (at, append) = (offset.unwrap_or(0), u32::from(offset.is_none()));
            f(fs, c, open, at, append, data.as_ptr().cast(), data.len())
        })?;
        let len = data.len() as u64;
        let is_right = match offset {
            Some(at) => at.checked_add(len) == Some(end),
            None => end >= len,
        };
        match is_right {
            true => Ok(end),
            false => Err(lie("write", &format!("ended at {end}, after {len} bytes"))),
        }
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        let table = self.alive()?;
        let open = self.opens.get(open)?;
        let Some(f) = table.fsync else { return Ok(()) };
        self.calls.done("fsync", cx, |fs, c| unsafe {
            f(fs, c, open, data_only.into())
        })
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        let table = self.alive()?;
        let open = self.to_write(open)?;
        let f = table.allocate.ok_or(Kind::Unsupported)?;
        self.calls.done("allocate", cx, |fs, c| unsafe {
            f(fs, c, open, offset, len, hole.into())
        })
    }

    fn lock(&self, cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        let table = self.alive()?;
        let open = self.opens.get(open)?;
        let f = table.lock.ok_or(Kind::Unsupported)?;
        let flag = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let lock = VolaryLock {
            owner: lock.owner,
            offset: lock.offset,
            len: lock.len,
            flags: flag(lock.exclusive, VOLARY_LOCK_EXCLUSIVE)
                | flag(lock.unlock, VOLARY_LOCK_UNLOCK)
                | flag(lock.test, VOLARY_LOCK_TEST),
        };
        self.calls.done("lock", cx, |fs, c| unsafe {
            f(fs, c, open, &raw const lock)
        })
    }

    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        let table = self.alive()?;
        let open = self.opens.get(open)?;
        let f = table.ioctl.ok_or(Kind::Unsupported)?;
        let mut buf = vec![0_u8; IOCTL_ROOM];
        let len = self.calls.number("ioctl", cx, |fs, c| unsafe {
            let (given, to) = (input.as_ptr().cast(), buf.as_mut_ptr().cast());
            f(fs, c, open, code, given, input.len(), to, IOCTL_ROOM)
        })?;
        let fits = usize::try_from(len).ok().filter(|&n| n <= IOCTL_ROOM);
        buf.truncate(fits.ok_or_else(|| lie("ioctl", "gave more than there was room for"))?);
        Ok(buf)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let table = self.alive()?;
        let open = self.opens.remove(open)?;
        let Some(f) = table.close else { return Ok(()) };
        self.calls
            .done("close", cx, |fs, c| unsafe { f(fs, c, open) })
    }
}

/// # Errors
/// `Io` if the entry is not this node.
fn same(node: NodeId, entry: Entry, what: &str) -> Result<Entry> {
    match entry.node == node {
        true => Ok(entry),
        false => Err(lie(what, "answered about another node")),
    }
}
