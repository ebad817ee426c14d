//! The operations.

#![expect(
    unsafe_code,
    reason = "each operation calls the plug-in, by a table that is as C says"
)]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: functions of this table, with what the table says they get"
)]

use super::Paths;
use super::ask::{gone, number, text};
use super::moves::Place;
use crate::abi::{VolaryPathTable, VolaryStatFs};
use crate::convert::{self, to_set};
use crate::loaded::calls::{lie, list_of_names};
use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volary_core::{
    Access, Attr, Caps, ChangeSink, Cookie, Create, Ctx, DirBuf, Entry, FileKind, FileSystem,
    Finding, Kind, Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs, Watch,
};

/// How often `create` tries if names come and go.
const TRIES: usize = 16;

impl Paths {
    /// Makes a call for a node, by its path.
    fn at<T>(
        &self,
        node: NodeId,
        call: impl FnOnce(&VolaryPathTable, *const c_char) -> Result<T>,
    ) -> Result<T> {
        let table = self.alive()?;
        let _turn = self.turn.read();
        let path = text(self.tree.path(number(node))?)?;
        call(table, path.as_ptr()).map_err(gone)
    }
}

impl FileSystem for Paths {
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
        let mut first = Ok(());
        for open in self.opens.all() {
            if let Ok(open) = self.opens.remove(open) {
                first = first.and(self.end(cx, &open));
            }
        }
        let done = match self.table.detach.or(self.table.sync) {
            Some(f) => self.calls.done("detach", cx, |fs, c| unsafe { f(fs, c) }),
            None => Ok(()),
        };
        first.and(done)
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
        self.alive()?;
        let _turn = self.turn.read();
        self.find(cx, number(dir), name.as_bytes())
            .map(|(entry, _)| entry)
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.alive()?;
        let _turn = self.turn.read();
        let parent = self.tree.parent(number(dir))?;
        let attr = self.attr(cx, parent)?;
        Ok(Entry {
            node: attr.node,
            attr,
        })
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let f = self.alive()?.readdir.ok_or(Kind::Unsupported)?;
        let open = self.opens.get(dir)?;
        if open.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let _turn = self.turn.read();
        let path = text(self.tree.path(open.node)?)?;
        let begin = |room| {
            let names = self.calls.names(cx, room, |fs, c, list| unsafe {
                f(fs, c, path.as_ptr(), list)
            });
            names.map_err(gone)
        };
        self.opens.listing(&open, from.0 == 0, begin, |listing| {
            self.give(cx, open.node, listing, from.0, out)
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
        self.changing()?;
        self.opens.check_room()?;
        let (dir, name) = (number(dir), name.as_bytes());
        for _ in 0..TRIES {
            if how != Create::New
                && let Some(opened) = self.create_over(cx, dir, name, how == Create::Truncate)?
            {
                return Ok(opened);
            }
            match self.create_new(cx, dir, name, set) {
                Err(e) if e == Kind::Exists && how != Create::New => {}
                done => return done,
            }
        }
        Err(Kind::Busy.into())
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let f = self.changing()?.mkdir.ok_or(Kind::ReadOnly)?;
        let set = to_set(set, cx.now);
        let _turn = self.turn.read();
        self.make(
            cx,
            number(dir),
            name.as_bytes(),
            "mkdir",
            FileKind::Dir,
            |fs, c, path| unsafe { f(fs, c, path, &raw const set) },
        )
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
        let table = self.changing()?;
        let f = table.mknod.filter(|_| self.caps.has(Caps::DEVICES));
        let f = f.ok_or(Kind::Unsupported)?;
        let set = to_set(set, cx.now);
        let _turn = self.turn.read();
        let c_kind = convert::to_file_kind(kind);
        self.make(
            cx,
            number(dir),
            name.as_bytes(),
            "mknod",
            kind,
            |fs, c, path| unsafe { f(fs, c, path, c_kind, rdev, &raw const set) },
        )
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let table = self.changing()?;
        let f = table.symlink.filter(|_| self.caps.has(Caps::SYMLINKS));
        let f = f.ok_or(Kind::Unsupported)?;
        let (target, set) = (text(target)?, to_set(set, cx.now));
        let _turn = self.turn.read();
        self.make(
            cx,
            number(dir),
            name.as_bytes(),
            "symlink",
            FileKind::Symlink,
            |fs, c, path| unsafe { f(fs, c, path, target.as_ptr(), &raw const set) },
        )
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let table = self.changing()?;
        let f = table.link.filter(|_| self.caps.has(Caps::HARD_LINKS));
        let f = f.ok_or(Kind::Unsupported)?;
        // Runs alone, so that an open file is not removed meanwhile: its reserved name must get no
        // link.
        let _turn = self.turn.write();
        let attr = self.attr(cx, number(node))?;
        if attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        if self.tree.is_hidden(number(node)) {
            return Err(Kind::Stale.into());
        }
        let old = text(self.tree.path(number(node))?)?;
        let made = self.make(
            cx,
            number(dir),
            name.as_bytes(),
            "link",
            attr.kind,
            |fs, c, path| unsafe { f(fs, c, old.as_ptr(), path) },
        )?;
        match made.node == node {
            true => Ok(made),
            false => Err(lie(
                "getattr",
                "tells two names of one file to be two files",
            )),
        }
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.changing()?;
        self.unlink_at(cx, Place::new(dir, name))
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.changing()?;
        self.rmdir_at(cx, Place::new(dir, name))
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
        self.changing()?;
        let (from, to) = (Place::new(from, name), Place::new(to, new_name));
        self.rename_at(cx, from, to, flags)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.alive()?;
        let _turn = self.turn.read();
        self.attr(cx, number(node))
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let f = self.changing()?.setattr.ok_or(Kind::ReadOnly)?;
        if set.size.is_some_and(|size| size > self.caps.size_max) {
            return Err(Kind::TooBig.into());
        }
        let set = to_set(set, cx.now);
        self.at(node, |_, path| {
            self.calls.done("setattr", cx, |fs, c| unsafe {
                f(fs, c, path, &raw const set)
            })?;
            self.attr(cx, number(node))
        })
    }

    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        let may = self.at(node, |table, path| {
            let f = table.access.ok_or(Kind::Unsupported)?;
            self.calls.number("access", cx, |fs, c| unsafe {
                f(fs, c, path, want.0.into())
            })
        })?;
        match u8::try_from(may).map(Access) {
            Ok(may) if want.has(may) => Ok(may),
            _ => Err(lie("access", "grants what was not asked for")),
        }
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.alive()?;
        if self.tree.kind(number(node))? != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        self.at(node, |table, path| {
            let f = table.readlink.ok_or(Kind::Invalid)?;
            self.calls.filled("readlink", cx, |fs, c, buf| unsafe {
                f(fs, c, path, buf.as_mut_ptr().cast(), buf.len())
            })
        })
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let name = text(name)?;
        self.at(node, |table, path| {
            let f = table.getxattr.ok_or(Kind::Unsupported)?;
            self.calls.filled("getxattr", cx, |fs, c, buf| unsafe {
                f(
                    fs,
                    c,
                    path,
                    name.as_ptr(),
                    buf.as_mut_ptr().cast(),
                    buf.len(),
                )
            })
        })
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let f = self.changing()?.setxattr.ok_or(Kind::Unsupported)?;
        let name = text(name)?;
        self.at(node, |_, path| {
            self.calls.done("setxattr", cx, |fs, c| unsafe {
                f(
                    fs,
                    c,
                    path,
                    name.as_ptr(),
                    value.as_ptr().cast(),
                    value.len(),
                )
            })
        })
    }

    fn listxattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let all = self.at(node, |table, path| {
            let f = table.listxattr.ok_or(Kind::Unsupported)?;
            self.calls.filled("listxattr", cx, |fs, c, buf| unsafe {
                f(fs, c, path, buf.as_mut_ptr().cast(), buf.len())
            })
        })?;
        list_of_names(&all)
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        let f = self.changing()?.removexattr.ok_or(Kind::Unsupported)?;
        let name = text(name)?;
        self.at(node, |_, path| {
            self.calls.done("removexattr", cx, |fs, c| unsafe {
                f(fs, c, path, name.as_ptr())
            })
        })
    }

    fn forget(&self, node: NodeId, _lookups: u64) {
        // Other callers may use the node too, so it stays while there is room.
        self.tree.cool(number(node));
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        match mode {
            Mode::Read => self.alive()?,
            Mode::Write | Mode::ReadWrite => self.changing()?,
        };
        self.open_node(cx, number(node), mode)
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let f = self.alive()?.read.ok_or(Kind::Unsupported)?;
        let open = self.opens.get(open)?;
        match open.kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        let _turn = self.turn.read();
        let path = text(self.tree.path(open.node)?)?;
        // No file is longer than this, and some drivers cannot take larger offsets.
        let left = usize::try_from(self.caps.size_max.saturating_sub(offset));
        let (handle, room) = (
            open.handle.unwrap_or(0),
            buf.len().min(left.unwrap_or(usize::MAX)),
        );
        let offset = offset.min(self.caps.size_max);
        let read = self.calls.number("read", cx, |fs, c| unsafe {
            let to = buf.as_mut_ptr().cast();
            f(fs, c, path.as_ptr(), handle, offset, to, room)
        });
        let read = read.map_err(gone)?;
        let fits = usize::try_from(read).ok().filter(|&n| n <= room);
        let words = || format!("gave {read} bytes where {room} were asked for");
        fits.ok_or_else(|| lie("read", &words()))
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let f = self.changing()?.write.ok_or(Kind::ReadOnly)?;
        let open = self.opens.get(open)?;
        if open.mode == Mode::Read {
            return Err(Kind::Invalid.into());
        }
        let _turn = self.turn.read();
        let ends = self.ends.get(open.node as usize % self.ends.len());
        let (_shared, _alone, at) = match offset {
            Some(at) => (ends.map(|ends| ends.read()), None, at),
            None => {
                let alone = ends.map(|ends| ends.write());
                (None, alone, self.attr(cx, open.node)?.size)
            }
        };
        let end = at.checked_add(data.len() as u64);
        let end = end.filter(|&end| end <= self.caps.size_max);
        let end = end.ok_or(Kind::TooBig)?;
        let path = text(self.tree.path(open.node)?)?;
        let handle = open.handle.unwrap_or(0);
        let done = self.calls.done("write", cx, |fs, c| unsafe {
            let from = data.as_ptr().cast();
            f(fs, c, path.as_ptr(), handle, at, from, data.len())
        });
        done.map_err(gone).map(|()| end)
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        let f = self.alive()?.fsync;
        let open = self.opens.get(open)?;
        let Some(f) = f.filter(|_| open.kind == FileKind::File) else {
            return Ok(());
        };
        let _turn = self.turn.read();
        let path = text(self.tree.path(open.node)?)?;
        let handle = open.handle.unwrap_or(0);
        let done = self.calls.done("fsync", cx, |fs, c| unsafe {
            f(fs, c, path.as_ptr(), handle, data_only.into())
        });
        done.map_err(gone)
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        let f = self.changing()?.allocate;
        let open = self.opens.get(open)?;
        if open.mode == Mode::Read {
            return Err(Kind::Invalid.into());
        }
        let f = f.ok_or(Kind::Unsupported)?;
        let _turn = self.turn.read();
        let path = text(self.tree.path(open.node)?)?;
        let handle = open.handle.unwrap_or(0);
        let done = self.calls.done("allocate", cx, |fs, c| unsafe {
            f(fs, c, path.as_ptr(), handle, offset, len, hole.into())
        });
        done.map_err(gone)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.alive()?;
        let open = self.opens.remove(open)?;
        self.end(cx, &open)
    }
}
