//! The operations, as requests to a worker.

use super::remote::Remote;
use super::running::Running;
use crate::wire::{DATA_MAX, FRAME_DATA, Listed, Request, finished};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use volary_core::{
    Access, Attr, Caps, ChangeSink, Cookie, Create, Cred, Ctx, DirBuf, Entry, Error, FileKind,
    FileSystem, Finding, Kind, Lock, Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr,
    StatFs, Time, Watch,
};

impl Remote {
    /// Makes a request whose reply has no content.
    fn do_it<'r>(
        &self,
        cx: &Ctx<'_>,
        request: impl FnOnce(&Running) -> Result<Request<'r>>,
    ) -> Result<()> {
        self.ask(cx, request, |_, body| finished(body))
    }

    fn attr<'r>(
        &self,
        cx: &Ctx<'_>,
        request: impl FnOnce(&Running) -> Result<Request<'r>>,
    ) -> Result<Attr> {
        let read = |running: &Running, body: &[u8]| running.attr_here(finished(body)?);
        self.ask(cx, request, read)
    }

    fn entry<'r>(
        &self,
        cx: &Ctx<'_>,
        request: impl FnOnce(&Running) -> Result<Request<'r>>,
    ) -> Result<Entry> {
        self.attr(cx, request).map(entry)
    }

    fn bytes<'r>(
        &self,
        cx: &Ctx<'_>,
        request: impl FnOnce(&Running) -> Result<Request<'r>>,
    ) -> Result<Vec<u8>> {
        self.ask(cx, request, |_, body| {
            finished::<&[u8]>(body).map(<[u8]>::to_vec)
        })
    }

    fn write_one(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<u64> {
        let request = |running: &Running| {
            let open = running.open_there(open)?;
            Ok(Request::Write { open, offset, data })
        };
        let len = data.len() as u64;
        self.ask(cx, request, |_, body| {
            let end: u64 = finished(body)?;
            let start = end.checked_sub(len)?;
            offset.is_none_or(|at| at == start).then_some(end)
        })
    }
}

fn entry(attr: Attr) -> Entry {
    Entry {
        node: attr.node,
        attr,
    }
}

/// Returns the entries of a listing, if they are valid: with valid names, and cookies that go on.
fn listed<'a>(
    running: &Running,
    caps: Caps,
    from: Cookie,
    body: &'a [u8],
) -> Option<(bool, Vec<Listed<'a>>)> {
    let (is_end, mut all) = finished::<(bool, Vec<Listed<'a>>)>(body)?;
    let mut last = from;
    for one in &mut all {
        let is_name = Name::new(one.name).is_ok() && one.name.len() <= caps.name_max.into();
        let goes_on = one.next != Cookie::START && one.next != last && one.next != from;
        if !is_name || !goes_on {
            return None;
        }
        last = one.next;
        one.attr = match one.attr {
            Some(attr) if attr.node != one.node => return None,
            Some(attr) => Some(running.attr_here(attr)?),
            None => None,
        };
        one.node = running.here(one.node)?;
    }
    (is_end || !all.is_empty()).then_some((is_end, all))
}

impl FileSystem for Remote {
    /// Returns the plug-in's capabilities and `WATCH`: when a new worker follows, anything may have
    /// changed.
    fn caps(&self) -> Caps {
        let caps = self.hello.caps;
        let elsewhere = Caps::SHARED | Caps::SHARED_LOCKS | Caps::CHECKS_ACCESS;
        match caps.bits & elsewhere {
            0 => caps.with(Caps::WATCH),
            // For a shared volume, `WATCH` would promise reports of all changes by others.
            _ => caps,
        }
    }

    fn root(&self) -> NodeId {
        self.hello.root
    }

    fn commit_time(&self) -> Duration {
        Duration::from_millis(self.hello.commit_ms)
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        self.ask(cx, |_| Ok(Request::StatFs {}), |_, body| finished(body))
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        self.durable(|| self.do_it(cx, |_| Ok(Request::Sync {})))
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        if self.is_detached.load(Ordering::Acquire) {
            return Ok(());
        }
        let done = self.durable(|| match self.is_running() {
            true => self.do_it(cx, |_| Ok(Request::Detach {})),
            // A worker that has ended has nothing to detach.
            false => Ok(()),
        });
        self.end();
        done
    }

    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        match self.caps().has(Caps::WATCH) {
            true => Ok(self.news.watch(sink)),
            false => Err(Kind::Unsupported.into()),
        }
    }

    fn findings(&self) -> Vec<Finding> {
        self.news.take()
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.entry(cx, |running| {
            Ok(Request::Lookup {
                dir: running.there(dir)?,
                name: name.as_bytes(),
            })
        })
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.entry(cx, |running| {
            let dir = running.there(dir)?;
            Ok(Request::Parent { dir })
        })
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let with_attr = out.wants_attr();
        let request = |running: &Running| {
            Ok(Request::ReadDir {
                dir: running.open_there(dir)?,
                from,
                with_attr,
            })
        };
        self.ask(cx, request, |running, body| {
            let (is_end, all) = listed(running, self.hello.caps, from, body)?;
            for one in all {
                if !out.push(one.next, one.node, one.kind, one.name, one.attr) {
                    return Some(false);
                }
            }
            Some(is_end)
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
        let request = |running: &Running| {
            Ok(Request::Create {
                dir: running.there(dir)?,
                name: name.as_bytes(),
                how,
                set: *set,
            })
        };
        self.ask(cx, request, |running, body| {
            let (attr, open) = finished::<(Attr, OpenId)>(body)?;
            let attr = running.attr_here(attr)?;
            Some((entry(attr), running.open_here(open)?))
        })
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.entry(cx, |running| {
            Ok(Request::MkDir {
                dir: running.there(dir)?,
                name: name.as_bytes(),
                set: *set,
            })
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
        self.entry(cx, |running| {
            Ok(Request::MkNod {
                dir: running.there(dir)?,
                name: name.as_bytes(),
                kind,
                rdev,
                set: *set,
            })
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
        check_len(target)?;
        self.entry(cx, |running| {
            Ok(Request::Symlink {
                dir: running.there(dir)?,
                name: name.as_bytes(),
                target,
                set: *set,
            })
        })
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.entry(cx, |running| {
            Ok(Request::Link {
                node: running.there(node)?,
                dir: running.there(dir)?,
                name: name.as_bytes(),
            })
        })
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.do_it(cx, |running| {
            Ok(Request::Unlink {
                dir: running.there(dir)?,
                name: name.as_bytes(),
            })
        })
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.do_it(cx, |running| {
            Ok(Request::RmDir {
                dir: running.there(dir)?,
                name: name.as_bytes(),
            })
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
        self.do_it(cx, |running| {
            Ok(Request::Rename {
                from: running.there(from)?,
                name: name.as_bytes(),
                to: running.there(to)?,
                new_name: new_name.as_bytes(),
                flags: flags.0,
            })
        })
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let request = |running: &Running| {
            let node = running.there(node)?;
            Ok(Request::GetAttr { node })
        };
        self.ask(cx, request, |running, body| {
            let attr = running.attr_here(finished(body)?)?;
            (attr.node == node).then_some(attr)
        })
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let request = |running: &Running| {
            let node = running.there(node)?;
            Ok(Request::SetAttr { node, set: *set })
        };
        self.ask(cx, request, |running, body| {
            let attr = running.attr_here(finished(body)?)?;
            (attr.node == node).then_some(attr)
        })
    }

    fn access(&self, cx: &Ctx<'_>, node: NodeId, want: Access) -> Result<Access> {
        let request = |running: &Running| {
            let node = running.there(node)?;
            Ok(Request::Access { node, want })
        };
        self.ask(cx, request, |_, body| {
            finished(body).filter(|may| want.has(*may))
        })
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.bytes(cx, |running| {
            let node = running.there(node)?;
            Ok(Request::ReadLink { node })
        })
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        check_len(name)?;
        self.bytes(cx, |running| {
            let node = running.there(node)?;
            Ok(Request::GetXattr { node, name })
        })
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        check_len(name)?;
        check_len(value)?;
        self.do_it(cx, |running| {
            let node = running.there(node)?;
            Ok(Request::SetXattr { node, name, value })
        })
    }

    fn listxattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        let request = |running: &Running| {
            let node = running.there(node)?;
            Ok(Request::ListXattr { node })
        };
        self.ask(cx, request, |_, body| {
            let names: Vec<&[u8]> = finished(body)?;
            Some(names.into_iter().map(<[u8]>::to_vec).collect())
        })
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        check_len(name)?;
        self.do_it(cx, |running| {
            let node = running.there(node)?;
            Ok(Request::RemoveXattr { node, name })
        })
    }

    fn forget(&self, node: NodeId, lookups: u64) {
        if !self.hello.forgets || !self.is_running() {
            return;
        }
        let cx = Ctx {
            cred: &Cred::root(),
            now: Time::EPOCH,
            cancel: &volary_core::Cancel::new(),
        };
        // It is a hint, so an error does not matter.
        let _ = self.do_it(&cx, |running| {
            let node = running.there(node)?;
            Ok(Request::Forget { node, lookups })
        });
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let request = |running: &Running| {
            let node = running.there(node)?;
            Ok(Request::Open { node, mode })
        };
        self.ask(cx, request, |running, body| {
            running.open_here(finished(body)?)
        })
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        for part in buf.chunks_mut(FRAME_DATA) {
            let offset = offset.saturating_add(done as u64);
            let len = part.len();
            let request = |running: &Running| {
                Ok(Request::Read {
                    open: running.open_there(open)?,
                    offset,
                    len: u32::try_from(len).unwrap_or(u32::MAX),
                })
            };
            let read = self.read_into(cx, request, part)?;
            done += read;
            if read < len {
                return Ok(done);
            }
        }
        if buf.is_empty() {
            // Even so, an invalid open must be reported.
            let request = |running: &Running| {
                let open = running.open_there(open)?;
                Ok(Request::Read {
                    open,
                    offset,
                    len: 0,
                })
            };
            return self.read_into(cx, request, &mut []);
        }
        Ok(done)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        if data.len() <= DATA_MAX {
            return self.write_one(cx, open, offset, data);
        }
        let Some(mut at) = offset else {
            let words = "one write at the end of a file can have 16 MiB here";
            return Err(Error::note(Kind::TooBig, words));
        };
        for part in data.chunks(DATA_MAX) {
            at = self.write_one(cx, open, Some(at), part)?;
        }
        Ok(at)
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, data_only: bool) -> Result<()> {
        self.do_it(cx, |running| {
            let open = running.open_there(open)?;
            Ok(Request::FSync { open, data_only })
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
        self.do_it(cx, |running| {
            Ok(Request::Allocate {
                open: running.open_there(open)?,
                offset,
                len,
                hole,
            })
        })
    }

    fn lock(&self, cx: &Ctx<'_>, open: OpenId, lock: Lock) -> Result<()> {
        self.do_it(cx, |running| {
            let open = running.open_there(open)?;
            Ok(Request::Lock { open, lock })
        })
    }

    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        check_len(input)?;
        self.bytes(cx, |running| {
            let open = running.open_there(open)?;
            Ok(Request::Ioctl { open, code, input })
        })
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.do_it(cx, |running| {
            let there = running.open_there(open)?;
            running.close(there)?;
            Ok(Request::Close { open: there })
        })
    }
}

/// # Errors
/// `TooBig` if no request can carry these bytes.
fn check_len(bytes: &[u8]) -> Result<()> {
    match bytes.len() <= DATA_MAX / 4 {
        true => Ok(()),
        false => Err(Kind::TooBig.into()),
    }
}
