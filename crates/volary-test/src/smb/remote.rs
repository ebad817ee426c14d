//! A share as a [`FileSystem`]. With it the conformance suite runs through an SMB server.
//!
//! SMB opens nodes by path, so a node is identified here by the path at which it was last seen. SMB
//! transmits no owners, modes and change counts. Modes have fixed values.

use crate::remote::{Attached, Opens};
use std::collections::HashMap;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, FileKind, FileSystem, Kind, Mode, Name, NodeId,
    OpenId, RenameFlags, Result, SetAttr, SetTime, StatFs, Time,
};
use volary_smb_client::wire::{u32_at, u64_at};
use volary_smb_client::{Client, Fail, How, Listed, Open, access, disposition, status};

/// A share as a file system. Only for volumes that nobody else changes at the same time.
pub struct Remote {
    caps: Caps,
    root: NodeId,
    state: Attached<State>,
}

struct State {
    client: Client,
    paths: HashMap<NodeId, String>,
    opens: Opens<Held>,
}

struct Held {
    open: Open,
    node: NodeId,
    /// The entries that were found when the listing began.
    listed: Vec<Listed>,
}

/// Options of an open (MS-SMB2 2.2.13).
const DIRECTORY: u32 = 1;
const NOT_DIRECTORY: u32 = 0x40;
const ATTRIBUTES: u32 = 0x100;

/// `FILE_ATTRIBUTE_DIRECTORY` (MS-FSCC 2.6).
const ATTRIBUTE_DIRECTORY: u32 = 0x10;

/// Information classes (MS-FSCC 2.4, 2.5).
const BASIC: u8 = 4;
const ALL: u8 = 18;
const FULL_SIZE: u8 = 7;

/// Converts a status to an error. Statuses without an equivalent become `Io`.
fn kind(fail: Fail) -> volary_core::Error {
    let kind = match fail {
        Fail::Gone => Kind::Io,
        Fail::Status(status) => match status {
            status::OBJECT_NAME_NOT_FOUND | 0xC000_003A => Kind::NotFound,
            status::OBJECT_NAME_COLLISION => Kind::Exists,
            status::ACCESS_DENIED => Kind::Access,
            status::MEDIA_WRITE_PROTECTED => Kind::ReadOnly,
            status::DISK_FULL => Kind::NoSpace,
            0xC000_00BB => Kind::Unsupported,
            0xC000_000D | 0xC000_0033 => Kind::Invalid,
            // The request is invalid for a directory.
            0xC000_0010 | 0xC000_00BA => Kind::IsDir,
            0xC000_0101 => Kind::NotEmpty,
            0xC000_0103 => Kind::NotDir,
            0xC000_0106 => Kind::NameTooLong,
            0xC000_0128 => Kind::Stale,
            0xC000_040C => Kind::TooBig,
            _ => Kind::Io,
        },
    };
    kind.into()
}

fn done<T>(answer: std::result::Result<T, Fail>) -> Result<T> {
    answer.map_err(kind)
}

/// The time from 1601 to 1970, in units of 100 ns.
const EPOCH: i64 = 116_444_736_000_000_000;

fn time(filetime: u64) -> Time {
    let ticks = filetime as i64 - EPOCH;
    let nanos = ticks.rem_euclid(10_000_000) * 100;
    Time::new(ticks.div_euclid(10_000_000), nanos as u32)
}

fn filetime(time: Option<SetTime>, now: Time) -> u64 {
    let time = match time {
        // Leaves the time as it is.
        None => return 0,
        Some(SetTime::Now) => now,
        Some(SetTime::To(time)) => time,
    };
    let ticks = time.secs.saturating_mul(10_000_000);
    let since_1601 = ticks.saturating_add(i64::from(time.nanos / 100) + EPOCH);
    // 0 and negative values have special meanings.
    since_1601.max(1) as u64
}

fn child(dir: &str, name: Name<'_>) -> Result<String> {
    let name = std::str::from_utf8(name.as_bytes()).map_err(|_| Kind::Invalid)?;
    Ok(if dir.is_empty() {
        name.to_owned()
    } else {
        format!("{dir}\\{name}")
    })
}

/// Converts `FileAllInformation`.
fn entry(all: &[u8]) -> Entry {
    let node = NodeId::new(u64_at(all, 64), 0).expect("an index");
    let is_dir = all[61] != 0;
    Entry {
        node,
        attr: Attr {
            node,
            kind: if is_dir {
                FileKind::Dir
            } else {
                FileKind::File
            },
            mode: if is_dir { 0o755 } else { 0o644 },
            nlink: u32_at(all, 56),
            uid: 0,
            gid: 0,
            rdev: 0,
            size: u64_at(all, 48),
            allocated: u64_at(all, 40),
            io_size: 4096,
            atime: time(u64_at(all, 8)),
            mtime: time(u64_at(all, 16)),
            ctime: time(u64_at(all, 24)),
            btime: Some(time(u64_at(all, 0))),
            change: 0,
            dos: None,
        },
    }
}

impl State {
    fn path(&self, node: NodeId) -> Result<&str> {
        let path = self.paths.get(&node).ok_or(Kind::Stale)?;
        Ok(path)
    }

    fn held(&mut self, open: OpenId) -> Result<&mut Held> {
        self.opens.get(open)
    }

    fn hold(&mut self, open: Open, node: NodeId) -> OpenId {
        let listed = Vec::new();
        self.opens.add(Held { open, node, listed })
    }

    /// Opens a path, calls `work`, and closes the path again.
    fn at<T>(
        &mut self,
        path: &str,
        how: &How,
        work: impl FnOnce(&Client, Open) -> std::result::Result<T, Fail>,
    ) -> Result<T> {
        let open = done(self.client.open(path, how))?.open;
        let answer = work(&self.client, open);
        done(self.client.close(open))?;
        done(answer)
    }

    /// Queries the node at a path, and remembers the path.
    fn seen(&mut self, path: &str) -> Result<Entry> {
        let all = done(self.client.query_at(path, &any(0), 1, ALL))?;
        let entry = entry(&all);
        self.paths.insert(entry.node, path.to_owned());
        Ok(entry)
    }

    /// Returns what a listing tells of the node at a path, and remembers the path.
    fn listed(&mut self, path: String, entry: &Listed) -> Result<(NodeId, FileKind, Option<Attr>)> {
        let node = NodeId::new(entry.index, 0).ok_or(Kind::Io)?;
        let kind = match entry.attributes & ATTRIBUTE_DIRECTORY {
            0 => FileKind::File,
            _ => FileKind::Dir,
        };
        self.paths.insert(node, path);
        Ok((node, kind, None))
    }

    /// Returns the path of a name in a directory, after checking that it is a directory.
    fn place(&mut self, dir: NodeId, name: Name<'_>) -> Result<String> {
        let path = self.path(dir)?.to_owned();
        if self.seen(&path)?.attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        child(&path, name)
    }

    fn remove(&mut self, dir: NodeId, name: Name<'_>, options: u32) -> Result<()> {
        let path = self.place(dir, name)?;
        let how = How {
            options,
            ..any(access::DELETE)
        };
        self.at(&path, &how, |client, open| client.set_delete(open, true))?;
        self.paths.retain(|_, known| *known != path);
        Ok(())
    }

    /// Replaces `from` by `to` in the paths of all nodes at and below `from`.
    fn moved(&mut self, from: &str, to: &str) {
        for path in self.paths.values_mut() {
            if let Some(rest) = path.strip_prefix(from)
                && (rest.is_empty() || rest.starts_with('\\'))
            {
                *path = format!("{to}{rest}");
            }
        }
    }
}

/// Returns the parameters for opening a node of any kind.
fn any(access: u32) -> How {
    How {
        options: 0,
        ..How::open(access)
    }
}

impl Remote {
    /// Returns a share as a file system that claims `caps`, with time steps of 100 ns or more.
    ///
    /// # Panics
    /// If the root cannot be accessed.
    pub fn new(client: Client, caps: Caps) -> Self {
        let mut state = State {
            client,
            paths: HashMap::new(),
            opens: Opens::new(),
        };
        let root = state.seen("").expect("the root").node;
        Self {
            caps: Caps {
                time_step: caps.time_step.max(100),
                ..caps
            },
            root,
            state: Attached::new(state),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        self.state.with(work)
    }

    /// Returns the error for an operation that SMB, or this client, does not support.
    fn refuse<T>(&self) -> Result<T> {
        let writes = self.caps.has(Caps::WRITE);
        Err(if writes {
            Kind::Unsupported
        } else {
            Kind::ReadOnly
        }
        .into())
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
            let all = done(state.client.query_at("", &any(0), 2, FULL_SIZE))?;
            let unit = u64::from(u32_at(&all, 24)) * u64::from(u32_at(&all, 28));
            Ok(StatFs {
                block_size: unit as u32,
                size: u64_at(&all, 0) * unit,
                free: u64_at(&all, 16) * unit,
                available: u64_at(&all, 8) * unit,
                nodes: 0,
                nodes_free: 0,
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
        self.with(|state| {
            let path = state.place(dir, name)?;
            state.seen(&path)
        })
    }

    fn parent(&self, _: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.with(|state| {
            let path = state.path(dir)?.to_owned();
            if state.seen(&path)?.attr.kind != FileKind::Dir {
                return Err(Kind::NotDir.into());
            }
            state.seen(path.rsplit_once('\\').map_or("", |(parent, _)| parent))
        })
    }

    fn readdir(&self, _: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.with(|state| {
            let node = state.held(dir)?.node;
            let path = state.path(node)?.to_owned();
            if from == Cookie::START {
                let listed = done(state.client.entries(&path))?;
                state.held(dir)?.listed = listed;
            }
            let listed = state.held(dir)?.listed.clone();
            if from.0 > listed.len() as u64 {
                return Err(Kind::Invalid.into());
            }
            for (at, entry) in listed.iter().enumerate().skip(from.0 as usize) {
                let name = Name::new(entry.name.as_bytes())?;
                let path = child(&path, name)?;
                let (node, kind, attr) = match out.wants_attr() {
                    false => state.listed(path, entry)?,
                    // The entry may have been removed since.
                    true => match state.seen(&path) {
                        Ok(seen) => (seen.node, seen.attr.kind, Some(seen.attr)),
                        Err(_) => continue,
                    },
                };
                let next = Cookie(at as u64 + 1);
                if !out.push(next, node, kind, name.as_bytes(), attr) {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    fn create(
        &self,
        _: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        _: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.with(|state| {
            let path = state.place(dir, name)?;
            let how = How {
                disposition: match how {
                    Create::New => disposition::CREATE,
                    Create::Open => disposition::OPEN_IF,
                    Create::Truncate => disposition::OVERWRITE_IF,
                },
                ..How::open(access::READ | access::WRITE)
            };
            let open = done(state.client.open(&path, &how))?.open;
            let entry = state.seen(&path)?;
            Ok((entry, state.hold(open, entry.node)))
        })
    }

    fn mkdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>, _: &SetAttr) -> Result<Entry> {
        self.with(|state| {
            let path = state.place(dir, name)?;
            done(state.client.make_dir(&path))?;
            state.seen(&path)
        })
    }

    fn mknod(
        &self,
        _: &Ctx<'_>,
        _: NodeId,
        _: Name<'_>,
        _: FileKind,
        _: u64,
        _: &SetAttr,
    ) -> Result<Entry> {
        self.refuse()
    }

    fn symlink(&self, _: &Ctx<'_>, _: NodeId, _: Name<'_>, _: &[u8], _: &SetAttr) -> Result<Entry> {
        self.refuse()
    }

    fn link(&self, _: &Ctx<'_>, _: NodeId, _: NodeId, _: Name<'_>) -> Result<Entry> {
        self.refuse()
    }

    fn unlink(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.with(|state| state.remove(dir, name, NOT_DIRECTORY))
    }

    fn rmdir(&self, _: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.with(|state| state.remove(dir, name, DIRECTORY))
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
            return self.refuse();
        }
        self.with(|state| {
            let (from, to) = (state.place(from, name)?, state.place(to, new_name)?);
            let replaces = flags != RenameFlags::KEEP;
            let (moves, replaced) = (state.seen(&from)?.node, state.seen(&to).ok());
            state.at(&from, &any(access::DELETE), |client, open| {
                client.rename_to(open, &to, replaces)
            })?;
            if let Some(old) = replaced.filter(|old| old.node != moves) {
                state.paths.remove(&old.node);
            }
            // If only the case of the name changed, `seen(&to)` has stored the new path for the
            // same node.
            state.paths.insert(moves, from.clone());
            state.moved(&from, &to);
            Ok(())
        })
    }

    fn getattr(&self, _: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        self.with(|state| {
            let path = state.path(node)?.to_owned();
            Ok(state.seen(&path)?.attr)
        })
    }

    fn readlink(&self, _: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.with(|state| {
            state.path(node)?;
            Err(Kind::Invalid.into())
        })
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let attr = self.getattr(cx, node)?;
        let other = |want: Option<u32>, is| want.is_some_and(|want| want != is);
        if other(set.mode, attr.mode) || other(set.uid, attr.uid) || other(set.gid, attr.gid) {
            return self.refuse();
        }
        if set.dos.is_some() {
            return self.refuse();
        }
        self.with(|state| {
            let path = state.path(node)?.to_owned();
            if let Some(size) = set.size {
                let how = How::open(access::WRITE);
                state.at(&path, &how, |client, open| client.set_size(open, size))?;
            }
            let times = [set.btime, set.atime, set.mtime, None];
            if times.iter().any(Option::is_some) {
                let times = times.map(|time| filetime(time, cx.now).to_le_bytes());
                let data = [times.as_flattened(), &[0; 8]].concat();
                let how = any(ATTRIBUTES);
                state.at(&path, &how, |client, open| {
                    client.set_info(open, BASIC, &data)
                })?;
            }
            Ok(state.seen(&path)?.attr)
        })
    }

    fn open(&self, _: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.with(|state| {
            let path = state.path(node)?.to_owned();
            let access = match mode {
                Mode::Read => access::READ,
                Mode::Write => access::WRITE,
                Mode::ReadWrite => access::READ | access::WRITE,
            };
            if state.seen(&path)?.attr.kind == FileKind::Dir && mode != Mode::Read {
                return Err(Kind::IsDir.into());
            }
            let open = done(state.client.open(&path, &any(access)))?.open;
            Ok(state.hold(open, node))
        })
    }

    fn read(&self, _: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        // The greatest range of a file in SMB: reads past it would be refused.
        let longest = (i64::MAX as u64).saturating_sub(offset);
        let len = buf
            .len()
            .min(usize::try_from(longest).unwrap_or(usize::MAX));
        if len == 0 {
            return Ok(0);
        }
        let (client, open) =
            self.with(|state| Ok((state.client.clone(), state.held(open)?.open)))?;
        let data = done(client.read(open, offset, len))?;
        buf[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }

    fn write(&self, _: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.with(|state| {
            let (open, client) = (state.held(open)?.open, &state.client);
            let offset = match offset {
                Some(offset) => offset,
                None => entry(&done(client.query(open, 1, ALL))?).attr.size,
            };
            done(client.write(open, offset, data))?;
            Ok(offset + data.len() as u64)
        })
    }

    fn fsync(&self, _: &Ctx<'_>, open: OpenId, _: bool) -> Result<()> {
        self.with(|state| {
            let open = state.held(open)?.open;
            done(state.client.flush(open))
        })
    }

    fn close(&self, _: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.with(|state| {
            let held = state.opens.end(open)?;
            done(state.client.close(held.open))
        })
    }
}
