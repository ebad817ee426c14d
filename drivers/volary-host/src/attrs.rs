//! Attributes: read and set.

use crate::error::{from_errno, from_errno_on_node};
use crate::proc::path_of;
use crate::stat::{from_statx, look};
use crate::volume::Host;
use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, Gid, Mode as HostMode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};
use rustix::io::Errno;
use volary_core::{Attr, FileKind, Kind, NodeId, Result, SetAttr, SetTime};

const SET_IDS: u32 = 0o6000;

impl Host {
    /// See [`getattr`](volary_core::FileSystem::getattr).
    pub(crate) fn attr(&self, node: NodeId) -> Result<Attr> {
        let (_, fd) = self.node(node)?;
        self.attr_by(node, &fd)
    }

    /// Returns the attributes of a node by a descriptor of it.
    ///
    /// # Errors
    /// `Stale` if it has neither a name nor an open.
    pub(crate) fn attr_by(&self, node: NodeId, fd: impl AsFd) -> Result<Attr> {
        let attr = from_statx(node, &look(fd, b"")?)?;
        if attr.nlink == 0 && !self.nodes.is_open(node) {
            self.nodes.remove(node);
            return Err(Kind::Stale.into());
        }
        Ok(attr)
    }

    /// See [`setattr`](volary_core::FileSystem::setattr).
    pub(crate) fn change(&self, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.check_writable()?;
        let (kind, fd) = self.node(node)?;
        let old = self.attr_by(node, &fd)?;
        let set = &self.allowed(kind, set);
        self.check_change(kind, set)?;
        if let Some(size) = set.size {
            self.resize(node, &fd, size)?;
        }
        self.change_others(&fd, &old, set)?;
        self.attr_by(node, &fd)
    }

    /// Returns what may be set of this: see [`HostOptions::set_ids`].
    pub(crate) fn allowed(&self, kind: FileKind, set: &SetAttr) -> SetAttr {
        let keeps = self.set_ids || kind == FileKind::Dir;
        let mode = set.mode.map(|mode| match keeps {
            true => mode,
            false => mode & !SET_IDS,
        });
        SetAttr { mode, ..*set }
    }

    fn check_change(&self, kind: FileKind, set: &SetAttr) -> Result<()> {
        match (set.size, kind) {
            (Some(size), _) if size > self.caps.size_max => return Err(Kind::TooBig.into()),
            (Some(_), FileKind::Dir) => return Err(Kind::IsDir.into()),
            (None, _) | (_, FileKind::File) => {}
            (Some(_), _) => return Err(Kind::Invalid.into()),
        }
        if set.dos.is_some() || set.btime.is_some() {
            return Err(Kind::Unsupported.into());
        }
        Ok(())
    }

    /// Cuts or grows through an open if there is one: a file that was open for
    /// writing can be cut whatever its mode is now.
    fn resize(&self, node: NodeId, fd: impl AsFd, size: u64) -> Result<()> {
        if let Some(open) = self.nodes.open_to_write(node) {
            return rustix::fs::ftruncate(&open.fd, size).map_err(from_errno);
        }
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open(path_of(fd), flags, HostMode::empty());
        rustix::fs::ftruncate(file.map_err(from_errno_on_node)?, size).map_err(from_errno)
    }

    /// Sets what `set` says but the size: the owner first, then the mode, which
    /// the host changes with the owner, then the times.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn change_others(&self, fd: impl AsFd, old: &Attr, set: &SetAttr) -> Result<()> {
        let mut mode = set.mode;
        if set.uid.is_some() || set.gid.is_some() {
            let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
            rustix::fs::chownat(&fd, "", uid, gid, AtFlags::EMPTY_PATH).map_err(from_errno)?;
            if old.mode & SET_IDS != 0 {
                let kept = SetAttr {
                    mode: mode.or(Some(old.mode)),
                    ..SetAttr::default()
                };
                mode = self.allowed(old.kind, &kept).mode;
            }
        }
        if let Some(mode) = mode.filter(|_| old.kind != FileKind::Symlink) {
            let mode = HostMode::from_raw_mode(mode & 0o7777);
            rustix::fs::chmod(path_of(&fd), mode).map_err(from_errno_on_node)?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let times = Timestamps {
                last_access: spec(set.atime),
                last_modification: spec(set.mtime),
            };
            rustix::fs::utimensat(&fd, "", &times, AtFlags::EMPTY_PATH).map_err(from_errno)?;
        }
        Ok(())
    }

    /// Returns what a symlink holds.
    ///
    /// # Errors
    /// `Invalid` if it is not a symlink.
    pub(crate) fn target(&self, node: NodeId) -> Result<Vec<u8>> {
        let (kind, fd) = self.node(node)?;
        if kind != FileKind::Symlink {
            return Err(Kind::Invalid.into());
        }
        let target = rustix::fs::readlinkat(&fd, "", Vec::new()).map_err(from_errno_on_node)?;
        Ok(target.into_bytes())
    }
}

fn spec(time: Option<SetTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, UTIME_OMIT),
        Some(SetTime::Now) => (0, UTIME_NOW),
        Some(SetTime::To(t)) => (t.secs, t.nanos.into()),
    };
    Timespec { tv_sec, tv_nsec }
}

/// The names of extended attributes that a volume keeps begin so. Others change
/// what the host lets its own users do.
const USER: &[u8] = b"user.";

impl Host {
    fn xattr_path(&self, node: NodeId) -> Result<(std::sync::Arc<rustix::fd::OwnedFd>, String)> {
        let (_, fd) = self.node(node)?;
        let path = path_of(&fd);
        Ok((fd, path))
    }

    /// See [`getxattr`](volary_core::FileSystem::getxattr).
    pub(crate) fn xattr(&self, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.check_xattrs()?;
        if !name.starts_with(USER) {
            return Err(Kind::NoXattr.into());
        }
        let (_fd, path) = self.xattr_path(node)?;
        with_room(|room| rustix::fs::getxattr(&path, name, room))
    }

    /// See [`listxattr`](volary_core::FileSystem::listxattr).
    pub(crate) fn xattrs(&self, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.check_xattrs()?;
        let (_fd, path) = self.xattr_path(node)?;
        let all = with_room(|room| rustix::fs::listxattr(&path, room))?;
        let names = all.split(|&b| b == 0).filter(|n| n.starts_with(USER));
        Ok(names.map(<[u8]>::to_vec).collect())
    }

    /// See [`setxattr`](volary_core::FileSystem::setxattr).
    pub(crate) fn set_xattr(&self, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.check_xattrs()?;
        self.check_writable()?;
        if !name.starts_with(USER) {
            return Err(Kind::Unsupported.into());
        }
        let (_fd, path) = self.xattr_path(node)?;
        let flags = rustix::fs::XattrFlags::empty();
        rustix::fs::setxattr(&path, name, value, flags).map_err(from_errno_on_node)
    }

    /// See [`removexattr`](volary_core::FileSystem::removexattr).
    pub(crate) fn remove_xattr(&self, node: NodeId, name: &[u8]) -> Result<()> {
        self.check_xattrs()?;
        self.check_writable()?;
        if !name.starts_with(USER) {
            return Err(Kind::NoXattr.into());
        }
        let (_fd, path) = self.xattr_path(node)?;
        rustix::fs::removexattr(&path, name).map_err(from_errno_on_node)
    }
}

/// The longest that Linux gives: `XATTR_SIZE_MAX`, `XATTR_LIST_MAX`.
const XATTR_MAX: usize = 64 << 10;

/// Calls `get` with little room, then with enough for all that there can be.
fn with_room(get: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Result<Vec<u8>> {
    let mut room = vec![0; 1024];
    let got = match get(&mut room) {
        Err(Errno::RANGE) => {
            room = vec![0; XATTR_MAX];
            get(&mut room)
        }
        got => got,
    };
    room.truncate(got.map_err(from_errno_on_node)?);
    Ok(room)
}
