//! One attachment, and the way from a node to a descriptor of it.

use crate::ahead::Pays;
use crate::beneath::{DEPTH_MAX, Missed};
use crate::error::{from_errno, from_errno_on_node};
use crate::ids::Ids;
use crate::locks::Locks;
use crate::nodes::{Nodes, Seen, Way};
use crate::opens::Opens;
use crate::options::HostOptions;
use crate::resolve::{PATH, open_dir, open_in, open_up};
use crate::together::Rings;
use crate::watch::Watcher;
use crate::{probe, proc};
use parking_lot::RwLock;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{CWD, Mode as HostMode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use volary_core::{Attr, Caps, Entry, Error, FileKind, Kind, NodeId, Result};

/// An attached directory.
pub(crate) struct Host {
    pub(crate) caps: Caps,
    pub(crate) root: NodeId,
    root_fd: Arc<OwnedFd>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) nodes: Nodes,
    pub(crate) opens: Opens,
    pub(crate) locks: Locks,
    pub(crate) rings: Rings,
    pub(crate) ahead_pays: Pays,
    pub(crate) watchers: RwLock<Vec<Weak<Watcher>>>,
    /// The volume is a whole file system: every node of it is beneath the root.
    whole: bool,
    pub(crate) missed: Missed,
    /// What is made is given to the caller.
    pub(crate) gives_away: bool,
    pub(crate) set_ids: bool,
    pub(crate) tells_places: bool,
    /// Descriptors with this number or a higher one are not for opens.
    first_reserved: usize,
    detached: AtomicBool,
}

impl Host {
    pub(crate) fn new(path: &Path, options: &HostOptions) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root_fd =
            rustix::fs::openat(CWD, path, flags, HostMode::empty()).map_err(from_errno)?;
        proc::check()?;
        let ids = Ids::new(&root_fd, options.by_handle)?;
        let root = ids.of(&root_fd)?.node;
        let whole = probe::is_whole(&root_fd, ids.mount());
        let caps = probe::caps(&root_fd, &ids, options.read_only)?;
        let descriptors_max = options.descriptors_max.unwrap_or_else(probe::descriptors);
        Ok(Self {
            caps,
            root,
            root_fd: Arc::new(root_fd),
            nodes: Nodes::new(options.nodes_max, descriptors_max),
            opens: Opens::default(),
            locks: Locks::default(),
            rings: Rings::new(options.rings),
            ahead_pays: Pays::default(),
            watchers: RwLock::default(),
            whole,
            missed: Missed::default(),
            gives_away: probe::may_give_away(),
            set_ids: options.set_ids,
            tells_places: options.places,
            first_reserved: probe::descriptors_for_opens(),
            detached: AtomicBool::new(false),
            ids: Arc::new(ids),
        })
    }

    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn check_attached(&self) -> Result<()> {
        if self.detached.load(Ordering::Acquire) {
            return Err(Kind::Stale.into());
        }
        Ok(())
    }

    /// # Errors
    /// `Stale`, `ReadOnly`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_attached()?;
        if self.caps.has(Caps::WRITE) {
            Ok(())
        } else {
            Err(Kind::ReadOnly.into())
        }
    }

    pub(crate) fn check_xattrs(&self) -> Result<()> {
        if self.caps.has(Caps::XATTRS) {
            Ok(())
        } else {
            Err(Kind::Unsupported.into())
        }
    }

    /// Lets go of everything; false if that was done before.
    pub(crate) fn end(&self) -> bool {
        if self.detached.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.locks.clear();
        self.nodes.clear();
        self.opens.clear();
        true
    }

    /// Returns the descriptor of the root: nothing is read through it.
    pub(crate) fn root_fd(&self) -> &OwnedFd {
        &self.root_fd
    }

    /// Returns a real descriptor of the root directory.
    pub(crate) fn real_root(&self) -> Result<OwnedFd> {
        open_dir(&self.root_fd)
    }

    /// Returns what a node is, and a descriptor of it.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn node(&self, node: NodeId) -> Result<(FileKind, Arc<OwnedFd>)> {
        self.check_attached()?;
        if node == self.root {
            return Ok((FileKind::Dir, Arc::clone(&self.root_fd)));
        }
        let seen = self.nodes.get(node);
        if let Some(Seen {
            kind, fd: Some(fd), ..
        }) = seen
        {
            return Ok((kind, fd));
        }
        let kind = seen.map(|seen| seen.kind);
        if self.ids.open_by_handle() {
            return self.by_id(node, kind);
        }
        Ok((kind.ok_or(Kind::Stale)?, self.by_way(node)?))
    }

    /// Returns a descriptor of a directory.
    ///
    /// # Errors
    /// `Stale`, `NotDir`.
    pub(crate) fn dir(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        match self.node(node)? {
            (FileKind::Dir, fd) => Ok(fd),
            _ => Err(Kind::NotDir.into()),
        }
    }

    /// Opens a node by its id; of one that was not given out (by this
    /// attachment, lately), that it is beneath the root is found out first.
    /// Descriptors of directories are held, as names will be looked up in them;
    /// others are not, as they would keep the room of what is removed.
    fn by_id(&self, node: NodeId, kind: Option<FileKind>) -> Result<(FileKind, Arc<OwnedFd>)> {
        let fd = self.open_id(node, PATH)?;
        let kind = match kind {
            Some(kind) => kind,
            None => {
                let attr = self.attr_by(node, &fd)?;
                if !self.whole && !self.is_beneath(&attr, &fd)? {
                    return Err(Kind::Stale.into());
                }
                self.nodes.note(node, attr.kind, 0, None, None);
                attr.kind
            }
        };
        let fd = Arc::new(fd);
        if kind == FileKind::Dir {
            self.hold(node, &fd);
        }
        Ok((kind, fd))
    }

    /// Opens a node by its id; lets go of one that is gone.
    ///
    /// # Errors
    /// `Stale` if there is no such node; the host's.
    pub(crate) fn open_id(&self, node: NodeId, flags: OFlags) -> Result<OwnedFd> {
        self.nodes
            .with_descriptors(|| self.ids.open(node, flags))
            .inspect_err(|e| {
                if *e == Kind::Stale {
                    self.nodes.remove(node);
                }
            })
    }

    fn hold(&self, node: NodeId, fd: &Arc<OwnedFd>) {
        self.watch_dir(fd);
        self.nodes.hold(node, Arc::clone(fd));
    }

    /// Finds a node again where it was found last.
    fn by_way(&self, node: NodeId) -> Result<Arc<OwnedFd>> {
        let (mut below, mut at) = (Vec::new(), node);
        let mut fd = loop {
            if at == self.root {
                break Arc::clone(&self.root_fd);
            }
            let seen = self.nodes.get(at).ok_or(Kind::Stale)?;
            if let Some(fd) = seen.fd {
                break fd;
            }
            let way = seen.way.ok_or(Kind::Stale)?;
            let Way { dir, name } = way;
            below.push((at, name));
            at = dir;
            if below.len() > DEPTH_MAX {
                return Err(Kind::Stale.into());
            }
        };
        while let Some((node, name)) = below.pop() {
            let next = open_in(&self.nodes, &fd, &name, PATH, HostMode::empty())
                .map_err(from_errno_on_node)?;
            if self.ids.node_at(&next, b"")? != node {
                return Err(Kind::Stale.into());
            }
            fd = Arc::new(next);
            self.nodes.hold(node, Arc::clone(&fd));
        }
        Ok(fd)
    }

    /// Checks that an open may keep this descriptor. The system gives the lowest number that is
    /// free, so a high one says that as many descriptors are in use.
    ///
    /// # Errors
    /// `TooManyOpen`.
    pub(crate) fn check_number(&self, fd: &OwnedFd) -> Result<()> {
        let number = usize::try_from(fd.as_raw_fd()).unwrap_or(usize::MAX);
        if number < self.first_reserved {
            Ok(())
        } else {
            Err(from_errno(Errno::MFILE))
        }
    }

    /// Checks that one more open may be had, before something is made for it.
    ///
    /// # Errors
    /// `TooManyOpen`.
    pub(crate) fn check_room(&self) -> Result<()> {
        self.nodes.with_descriptors(|| {
            let next = rustix::io::fcntl_dupfd_cloexec(&self.root_fd, 0).map_err(from_errno)?;
            self.check_number(&next)
        })
    }

    /// See [`parent`](volary_core::FileSystem::parent).
    pub(crate) fn above(&self, dir: NodeId) -> Result<Entry> {
        let fd = self.dir(dir)?;
        if dir == self.root {
            return self.given(self.ids.of(&fd)?, None, None);
        }
        // A removed directory has none above it.
        self.attr_by(dir, &fd)?;
        let up = open_up(&fd)?;
        let attr = self.ids.of(&up).map_err(|_| Kind::Stale)?;
        if !self.whole && !self.meets_root(attr.node, &up)? {
            return Err(Kind::Stale.into());
        }
        self.given(attr, None, Some(up))
    }

    /// Notes that a node is given out, found by `way`, and gives it. Without the
    /// right to open by handle `fd` is held; with it, the id is enough.
    pub(crate) fn given(
        &self,
        attr: Attr,
        way: Option<(NodeId, &[u8])>,
        fd: Option<OwnedFd>,
    ) -> Result<Entry> {
        let node = attr.node;
        if node != self.root {
            let by_handle = self.ids.open_by_handle();
            let fd = fd.filter(|_| !by_handle).map(Arc::new);
            if let Some(fd) = &fd
                && attr.kind == FileKind::Dir
            {
                self.watch_dir(fd);
            }
            let way = way.filter(|_| !by_handle);
            self.nodes.note(node, attr.kind, 1, way, fd);
        }
        Ok(Entry { node, attr })
    }

    /// Returns what the host says of an entry that is not there, or of a directory that
    /// is not: `Stale` for the latter.
    pub(crate) fn in_dir(&self, dir: NodeId, fd: impl AsFd, e: Error) -> Error {
        if e != Kind::NotFound {
            return e;
        }
        match self.attr_by(dir, fd) {
            Err(gone) if gone == Kind::Stale => gone,
            Ok(attr) if attr.nlink == 0 => Kind::Stale.into(),
            _ => e,
        }
    }
}
