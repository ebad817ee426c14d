//! An export as a [`FileSystem`], with a client of its own. With it the conformance suite runs
//! through the server.
//!
//! NFS transmits no generations and change counts. A node is identified by its handle. Its
//! generation here is the number of earlier handles with the same file number.

use super::client::{Client, Fattr, Fh, How, Nfs, Set, post};
use super::wire::Args;
use crate::remote::{Attached, Opens};
use std::collections::HashMap;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, FileKind, FileSystem, Kind, Mode, Name, NodeId,
    OpenId, RenameFlags, Result, SetAttr, SetTime, StatFs, Time,
};

/// The greatest size of one READ or WRITE, in bytes.
const STEP: usize = 1 << 20;

/// An export as a file system. Only for volumes that nobody else changes at the same time.
pub struct Remote {
    caps: Caps,
    root: NodeId,
    state: Attached<State>,
}

struct State {
    client: Client,
    nodes: HashMap<NodeId, Fh>,
    ids: HashMap<Fh, NodeId>,
    opens: Opens<Held>,
}

struct Held {
    node: NodeId,
    /// The cookie verifier of a listing.
    verifier: u64,
}

impl Remote {
    /// Returns the export that tests use, as a file system that claims `caps`.
    ///
    /// # Panics
    /// If the root cannot be accessed.
    pub fn new(mut client: Client, caps: Caps) -> Self {
        let fh = client.root();
        let attr = client.getattr(&fh).unwrap();
        let mut state = State {
            client,
            nodes: HashMap::new(),
            ids: HashMap::new(),
            opens: Opens::new(),
        };
        let root = state.entry(fh, &attr).node;
        Self {
            caps,
            root,
            state: Attached::new(state),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.state.with(work)
    }

    fn dir(
        &self,
        dir: NodeId,
        work: impl FnOnce(&mut State, &Fh) -> Result<Entry>,
    ) -> Result<Entry> {
        self.with(|state| {
            let fh = state.fh(dir)?;
            work(state, &fh)
        })
    }
}

/// Converts a status to an error. Statuses without an equivalent become `Io`.
fn kind(status: u32) -> volary_core::Error {
    let kind = match status {
        1 => Kind::NotPermitted,
        2 => Kind::NotFound,
        13 => Kind::Access,
        17 => Kind::Exists,
        18 => Kind::CrossVolume,
        20 => Kind::NotDir,
        21 => Kind::IsDir,
        22 | 10003 | 10007 => Kind::Invalid,
        27 => Kind::TooBig,
        28 => Kind::NoSpace,
        30 => Kind::ReadOnly,
        31 => Kind::TooManyLinks,
        63 => Kind::NameTooLong,
        66 => Kind::NotEmpty,
        69 => Kind::Quota,
        70 | 10001 => Kind::Stale,
        10004 => Kind::Unsupported,
        10008 => Kind::Locked,
        _ => Kind::Io,
    };
    kind.into()
}

fn done<T>(answer: Nfs<T>) -> Result<T> {
    answer.map_err(kind)
}

fn set_of(set: &SetAttr) -> Result<Set> {
    if set.btime.is_some() || set.dos.is_some() {
        return Err(Kind::Unsupported.into());
    }
    let time = |time: Option<SetTime>| {
        time.map(|time| match time {
            SetTime::Now => None,
            SetTime::To(t) => Some((t.secs as u32, t.nanos)),
        })
    };
    Ok(Set {
        mode: set.mode,
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: time(set.atime),
        mtime: time(set.mtime),
    })
}

fn kind_of(number: u32) -> FileKind {
    [
        FileKind::File,
        FileKind::Dir,
        FileKind::BlockDevice,
        FileKind::CharDevice,
        FileKind::Symlink,
        FileKind::Socket,
        FileKind::Fifo,
    ][number as usize - 1]
}

impl State {
    fn fh(&self, node: NodeId) -> Result<Fh> {
        self.nodes.get(&node).cloned().ok_or(Kind::Stale.into())
    }

    fn opened(&mut self, open: OpenId) -> Result<Fh> {
        let node = self.opens.get(open)?.node;
        self.fh(node)
    }

    fn open(&mut self, node: NodeId) -> OpenId {
        self.opens.add(Held { node, verifier: 0 })
    }

    fn entry(&mut self, fh: Fh, attr: &Fattr) -> Entry {
        let nodes = &mut self.nodes;
        let node = *self.ids.entry(fh.clone()).or_insert_with(|| {
            let id = |generation| NodeId::new(attr.fileid, generation).unwrap();
            let free = (0..).map(id).find(|id| !nodes.contains_key(id)).unwrap();
            nodes.insert(free, fh);
            free
        });
        let time = |(secs, nanos): (u32, u32)| Time::new(secs.into(), nanos);
        Entry {
            node,
            attr: Attr {
                node,
                kind: kind_of(attr.kind),
                mode: attr.mode,
                nlink: attr.nlink,
                uid: attr.uid,
                gid: attr.gid,
                rdev: attr.rdev,
                size: attr.size,
                allocated: attr.used,
                io_size: 4096,
                atime: time(attr.atime),
                mtime: time(attr.mtime),
                ctime: time(attr.ctime),
                btime: None,
                change: 0,
                dos: None,
            },
        }
    }

    fn list_part(&mut self, open: OpenId, from: Cookie, out: &mut DirBuf) -> Result<Option<bool>> {
        let fh = self.opened(open)?;
        let verifier = self.opens.get(open)?.verifier;
        let page = done(
            self.client
                .readdirplus(&fh, (from.0, verifier), (4096, 1 << 16)),
        )?;
        self.opens.get(open)?.verifier = page.verifier;
        for listed in page.entries {
            if listed.name == b"." || listed.name == b".." {
                continue;
            }
            let attr = listed.attr.unwrap();
            let entry = self.entry(listed.fh.unwrap(), &attr);
            let shown = out.wants_attr().then_some(entry.attr);
            let next = Cookie(listed.cookie);
            if !out.push(next, entry.node, entry.attr.kind, &listed.name, shown) {
                return Ok(Some(false));
            }
        }
        Ok(page.eof.then_some(true))
    }
}

impl FileSystem for Remote {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn statfs(&self, _: &Ctx<'_>) -> Result<StatFs> {
        self.with(|state| {
            let fh = state.fh(self.root)?;
            let mut reply = state.client.nfs(18, &Args::new().opaque(&fh));
            assert_eq!(reply.u32(), 0);
            post(&mut reply);
            Ok(StatFs {
                block_size: 4096,
                size: reply.u64(),
                free: reply.u64(),
                available: reply.u64(),
                nodes: reply.u64(),
                nodes_free: reply.u64(),
            })
        })
    }

    fn sync(&self, _: &Ctx<'_>) -> Result<()> {
        self.with(|_| Ok(()))
    }

    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        self.state.detach();
        Ok(())
    }

    fn lookup(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.dir(dir, |state, fh| {
            let (fh, attr) = done(state.client.lookup(fh, name.as_bytes()))?;
            Ok(state.entry(fh, &attr))
        })
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.dir(dir, |state, fh| {
            let (fh, attr) = done(state.client.lookup(fh, b".."))?;
            Ok(state.entry(fh, &attr))
        })
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.with(|state| {
            let mut from = from;
            loop {
                let before = out.len();
                if let Some(end) = state.list_part(dir, from, out)? {
                    return Ok(end);
                }
                match out.last_cookie() {
                    Some(last) if out.len() > before => from = last,
                    // The page held only `.` and `..`.
                    _ => from = Cookie(2),
                }
            }
        })
    }

    fn create(
        &self,
        _: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.with(|state| {
            let fh = state.fh(dir)?;
            let set = set_of(set)?;
            let (set, way): (Set, fn(Set) -> How) = match how {
                Create::New => (set, How::Guarded),
                Create::Open => (set, How::Unchecked),
                Create::Truncate => (
                    Set {
                        size: Some(0),
                        ..set
                    },
                    How::Unchecked,
                ),
            };
            let made = state.client.create(&fh, name.as_bytes(), way(set));
            let (fh, attr) = match made {
                // NFS reports only that the name exists, so its kind must be looked up.
                Err(17) if how != Create::New => {
                    let (_, attr) = done(state.client.lookup(&fh, name.as_bytes()))?;
                    let is_dir = attr.kind == 2;
                    return Err(if is_dir { Kind::IsDir } else { Kind::Invalid }.into());
                }
                made => done(made)?,
            };
            let entry = state.entry(fh, &attr);
            Ok((entry, state.open(entry.node)))
        })
    }

    fn mkdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.dir(dir, |state, fh| {
            let made = state.client.mkdir(fh, name.as_bytes(), &set_of(set)?);
            let (fh, attr) = done(made)?;
            Ok(state.entry(fh, &attr))
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
        let number = match kind {
            FileKind::File => 1,
            FileKind::Dir => 2,
            FileKind::BlockDevice => 3,
            FileKind::CharDevice => 4,
            FileKind::Symlink => 5,
            FileKind::Socket => 6,
            FileKind::Fifo => 7,
        };
        self.dir(dir, |state, fh| {
            let set = set_of(set)?;
            let made = state.client.mknod(fh, name.as_bytes(), number, &set, rdev);
            let (fh, attr) = done(made)?;
            Ok(state.entry(fh, &attr))
        })
    }

    fn symlink(
        &self,
        _: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        _: &SetAttr,
    ) -> Result<Entry> {
        if target.len() > 4096 {
            return Err(Kind::NameTooLong.into());
        }
        self.dir(dir, |state, fh| {
            let (fh, attr) = done(state.client.symlink(fh, name.as_bytes(), target))?;
            Ok(state.entry(fh, &attr))
        })
    }

    fn link(&self, _: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.dir(dir, |state, dir| {
            let fh = state.fh(node)?;
            let attr = done(state.client.link(&fh, dir, name.as_bytes()))?;
            Ok(state.entry(fh, &attr))
        })
    }

    fn unlink(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.with(|state| {
            let fh = state.fh(dir)?;
            done(state.client.remove(&fh, name.as_bytes())).map(drop)
        })
    }

    fn rmdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.with(|state| {
            let fh = state.fh(dir)?;
            done(state.client.rmdir(&fh, name.as_bytes())).map(drop)
        })
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
        if flags == RenameFlags::SWAP {
            return Err(Kind::Unsupported.into());
        }
        self.with(|state| {
            let (from, to) = (state.fh(from)?, state.fh(to)?);
            let (name, new_name) = (name.as_bytes(), new_name.as_bytes());
            if flags == RenameFlags::KEEP {
                done(state.client.lookup(&from, name))?;
                if state.client.lookup(&to, new_name).is_ok() {
                    return Err(Kind::Exists.into());
                }
            }
            done(state.client.rename((&from, name), (&to, new_name))).map(drop)
        })
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.with(|state| {
            let fh = state.fh(node)?;
            let attr = done(state.client.getattr(&fh))?;
            Ok(state.entry(fh, &attr).attr)
        })
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let set = set_of(set)?;
        self.with(|state| {
            let fh = state.fh(node)?;
            done(state.client.setattr(&fh, &set, None))
        })?;
        self.getattr(cx, node)
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.with(|state| {
            let fh = state.fh(node)?;
            done(state.client.readlink(&fh))
        })
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.with(|state| {
            let fh = state.fh(node)?;
            let attr = done(state.client.getattr(&fh))?;
            match attr.kind {
                1 => {}
                2 if mode == Mode::Read => {}
                2 => return Err(Kind::IsDir.into()),
                _ => return Err(Kind::Invalid.into()),
            }
            Ok(state.open(node))
        })
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.with(|state| {
            let fh = state.opened(open)?;
            let mut read = 0;
            loop {
                let want = (buf.len() - read).min(STEP) as u32;
                let at = offset.saturating_add(read as u64);
                let (data, eof) = done(state.client.read(&fh, at, want))?;
                buf[read..read + data.len()].copy_from_slice(&data);
                read += data.len();
                if eof || read == buf.len() {
                    return Ok(read);
                }
            }
        })
    }

    fn write(&self, _: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.with(|state| {
            let fh = state.opened(open)?;
            let mut at = match offset {
                Some(offset) => offset,
                None => done(state.client.getattr(&fh))?.size,
            };
            if data.is_empty() {
                done(state.client.write(&fh, at, data, 0))?;
            }
            for part in data.chunks(STEP) {
                done(state.client.write(&fh, at, part, 0))?;
                at += part.len() as u64;
            }
            Ok(at)
        })
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.with(|state| {
            let fh = state.opened(open)?;
            done(state.client.commit(&fh)).map(drop)
        })
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.with(|state| state.opens.end(open).map(drop))
    }
}
