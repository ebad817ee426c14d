//! Names: look up, make, link, remove, rename.

use crate::error::from_errno;
use crate::proc::path_of;
use crate::resolve::{PATH, SAFE, open_in};
use crate::stat::look;
use crate::volume::Host;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, FileType, Mode as HostMode, OFlags, RenameFlags as HostRename};
use rustix::io::Errno;
use volary_core::{
    Attr, Caps, Create, Ctx, Entry, Error, FileKind, Kind, Mode, Name, NodeId, OpenId, RenameFlags,
    Result, SetAttr,
};

/// How often an entry may come and go while it is being opened.
const RACES_MAX: u32 = 16;

/// What a new node is to be, beside its kind.
#[derive(Clone, Copy)]
struct Making<'a> {
    cx: &'a Ctx<'a>,
    dir: NodeId,
    name: Name<'a>,
    kind: FileKind,
    set: SetAttr,
}

impl Making<'_> {
    /// Returns the permission bits to make it with; the host's umask may take some.
    fn mode(&self) -> HostMode {
        let usual = match self.kind {
            FileKind::Dir => 0o755,
            _ => 0o644,
        };
        HostMode::from_raw_mode(self.set.mode.unwrap_or(usual) & 0o7777)
    }
}

impl Host {
    /// See [`lookup`](volary_core::FileSystem::lookup).
    pub(crate) fn find(&self, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let fd = self.dir(dir)?;
        self.find_in(dir, &fd, name.as_bytes())
            .map_err(|e| self.in_dir(dir, &fd, e))
    }

    /// Returns the node that `name` leads to, given out.
    fn find_in(&self, dir: NodeId, fd: &OwnedFd, name: &[u8]) -> Result<Entry> {
        let way = Some((dir, name));
        if self.ids.open_by_handle() {
            return self.given(self.ids.at(fd, name)?, way, None);
        }
        let found = self.open_path(fd, name)?;
        self.given(self.ids.of(&found)?, way, Some(found))
    }

    /// Returns a descriptor of what `name` leads to, for anything but its content.
    fn open_path(&self, dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd> {
        open_in(&self.nodes, dir, name, PATH, HostMode::empty()).map_err(from_errno)
    }

    /// See [`create`](volary_core::FileSystem::create).
    pub(crate) fn create_file(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.check_writable()?;
        self.check_room()?;
        let fd = self.dir(dir)?;
        let making = Making {
            cx,
            dir,
            name,
            kind: FileKind::File,
            set: self.allowed(FileKind::File, set),
        };
        for _ in 0..RACES_MAX {
            match self.create_new(&fd, &making) {
                Err(e) if e == Kind::Exists && how != Create::New => {}
                Err(e) => return Err(self.in_dir(dir, &fd, e)),
                Ok(made) => return Ok(made),
            }
            match self.open_there(&fd, dir, name, how) {
                Err(e) if e == Kind::NotFound => {}
                opened => return opened,
            }
        }
        Err(Kind::Busy.into())
    }

    fn create_new(&self, dir: &OwnedFd, making: &Making<'_>) -> Result<(Entry, OpenId)> {
        let name = making.name.as_bytes();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | SAFE;
        let file = open_in(&self.nodes, dir, name, flags, making.mode()).map_err(from_errno)?;
        let made = self.ids.of(&file)?;
        let attr = self.dressed(dir, &file, &made, making)?;
        self.entered(attr, dir, making.dir, name, file)
    }

    /// Opens the file that is there.
    fn open_there(
        &self,
        fd: &OwnedFd,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
    ) -> Result<(Entry, OpenId)> {
        let name = name.as_bytes();
        check_file(FileKind::from_mode(look(fd, name)?.stx_mode.into()))?;
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | SAFE;
        flags.set(OFlags::TRUNC, how == Create::Truncate);
        let file =
            open_in(&self.nodes, fd, name, flags, HostMode::empty()).map_err(|e| match e {
                Errno::LOOP | Errno::NXIO => Kind::Invalid.into(),
                e => from_errno(e),
            })?;
        let attr = self.ids.of(&file)?;
        check_file(Some(attr.kind))?;
        self.entered(attr, fd, dir, name, file)
    }

    /// Gives out a file that was opened by its name.
    fn entered(
        &self,
        attr: Attr,
        dir_fd: &OwnedFd,
        dir: NodeId,
        name: &[u8],
        file: OwnedFd,
    ) -> Result<(Entry, OpenId)> {
        let by_handle = self.ids.open_by_handle();
        let held = if by_handle {
            None
        } else {
            // The open ends before the node is forgotten.
            let held = self.open_path(dir_fd, name).ok();
            held.filter(|held| {
                self.ids
                    .node_at(held, b"")
                    .is_ok_and(|node| node == attr.node)
            })
        };
        let entry = self.given(attr, Some((dir, name)), held)?;
        let open = self.enter(entry.node, FileKind::File, Mode::ReadWrite, file);
        Ok((entry, open))
    }

    /// See [`mkdir`](volary_core::FileSystem::mkdir).
    pub(crate) fn make_dir(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        let making = Making {
            cx,
            dir,
            name,
            kind: FileKind::Dir,
            set: self.allowed(FileKind::Dir, set),
        };
        self.make(&making, |fd| {
            rustix::fs::mkdirat(fd, name.as_bytes(), making.mode())
        })
    }

    /// See [`mknod`](volary_core::FileSystem::mknod).
    pub(crate) fn make_node(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.check_can(Caps::DEVICES)?;
        if matches!(kind, FileKind::Dir | FileKind::Symlink) {
            return Err(Kind::Invalid.into());
        }
        let part = |n: u64| u32::try_from(n & 0xffff_ffff).unwrap_or(u32::MAX);
        let device = rustix::fs::makedev(part(rdev >> 32), part(rdev));
        let making = Making {
            cx,
            dir,
            name,
            kind,
            set: self.allowed(kind, set),
        };
        let file_type = FileType::from_raw_mode(kind.mode_bits());
        self.make(&making, |fd| {
            rustix::fs::mknodat(fd, name.as_bytes(), file_type, making.mode(), device)
        })
    }

    /// See [`symlink`](volary_core::FileSystem::symlink).
    pub(crate) fn make_symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.check_can(Caps::SYMLINKS)?;
        let making = Making {
            cx,
            dir,
            name,
            kind: FileKind::Symlink,
            set: self.allowed(FileKind::Symlink, set),
        };
        self.make(&making, |fd| {
            rustix::fs::symlinkat(target, fd, name.as_bytes())
        })
    }

    fn check_can(&self, ability: u32) -> Result<()> {
        self.check_writable()?;
        if self.caps.has(ability) {
            Ok(())
        } else {
            Err(Kind::Unsupported.into())
        }
    }

    /// Makes an entry by `make`, and of it what it is to be.
    fn make(
        &self,
        making: &Making<'_>,
        make: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
    ) -> Result<Entry> {
        self.check_writable()?;
        let fd = self.dir(making.dir)?;
        make(&fd).map_err(|e| self.in_dir(making.dir, &fd, from_errno(e)))?;
        let name = making.name.as_bytes();
        let way = Some((making.dir, name));
        if self.ids.open_by_handle() {
            let attr = self.ids.at(&fd, name)?;
            if self.lacks(&attr, making) == SetAttr::default() {
                return self.given(attr, way, None);
            }
        }
        let made = self.open_path(&fd, name)?;
        let attr = self.ids.of(&made)?;
        check_fresh(&attr, making.kind)?;
        let attr = self.dressed(&fd, &made, &attr, making)?;
        self.given(attr, way, Some(made))
    }

    /// Returns what has to be set on a new node with these attributes.
    fn lacks(&self, made: &Attr, making: &Making<'_>) -> SetAttr {
        let (set, cred) = (making.set, making.cx.cred);
        let mut lacking = SetAttr { size: None, ..set };
        lacking.uid = Some(set.uid.unwrap_or(cred.uid));
        // A group that is not ours comes from the directory.
        let ours = rustix::process::getegid().as_raw();
        let group = (made.gid == ours).then_some(cred.gid);
        lacking.gid = set.gid.or(group);
        if !self.gives_away {
            (lacking.uid, lacking.gid) = (None, None);
        }
        lacking.uid = lacking.uid.filter(|&uid| uid != made.uid);
        lacking.gid = lacking.gid.filter(|&gid| gid != made.gid);
        let mode = set.mode.filter(|_| making.kind != FileKind::Symlink);
        let owner = lacking.uid.is_some() || lacking.gid.is_some();
        let set_ids = |mode: u32| owner && mode & 0o6000 != 0;
        lacking.mode = mode.filter(|&mode| mode & 0o7777 != made.mode || set_ids(mode));
        lacking
    }

    /// Makes of a new node what it is to be; takes it away if that fails.
    fn dressed(
        &self,
        dir: &OwnedFd,
        fd: &OwnedFd,
        made: &Attr,
        making: &Making<'_>,
    ) -> Result<Attr> {
        let lacking = self.lacks(made, making);
        if lacking == SetAttr::default() {
            return Ok(*made);
        }
        let dressed = self
            .change_others(fd, made, &lacking)
            .and_then(|()| self.ids.of(fd));
        if dressed.is_err() {
            let name = making.name.as_bytes();
            let still = self.ids.node_at(dir, name);
            let flags = if made.kind == FileKind::Dir {
                AtFlags::REMOVEDIR
            } else {
                AtFlags::empty()
            };
            if still.is_ok_and(|node| node == made.node) {
                // The first error is the one to tell.
                let _ = rustix::fs::unlinkat(dir, name, flags);
            }
        }
        dressed
    }

    /// See [`link`](volary_core::FileSystem::link).
    pub(crate) fn link_node(&self, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.check_can(Caps::HARD_LINKS)?;
        let (kind, from) = self.node(node)?;
        if kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let to = self.dir(dir)?;
        let flags = AtFlags::SYMLINK_FOLLOW;
        rustix::fs::linkat(CWD, path_of(&from), &to, name.as_bytes(), flags).map_err(|e| {
            let e = self.in_dir(dir, &to, from_errno(e));
            // The name is there, then, but the node has none.
            match self.attr_by(node, &from) {
                Err(gone) if e == Kind::NotFound => gone,
                _ => e,
            }
        })?;
        let attr = self.attr_by(node, &from)?;
        self.given(attr, Some((dir, name.as_bytes())), None)
    }

    /// See [`unlink`](volary_core::FileSystem::unlink) and
    /// [`rmdir`](volary_core::FileSystem::rmdir).
    pub(crate) fn remove(&self, dir: NodeId, name: Name<'_>, is_dir: bool) -> Result<()> {
        self.check_writable()?;
        let fd = self.dir(dir)?;
        let flags = if is_dir {
            AtFlags::REMOVEDIR
        } else {
            AtFlags::empty()
        };
        let old = self.glance(&fd, name);
        rustix::fs::unlinkat(&fd, name.as_bytes(), flags)
            .map_err(|e| self.in_dir(dir, &fd, from_errno(e)))?;
        self.let_go(old);
        Ok(())
    }

    /// Returns the node that is about to lose a name.
    fn glance(&self, dir: &OwnedFd, name: Name<'_>) -> Option<NodeId> {
        self.ids.node_at(dir, name.as_bytes()).ok()
    }

    /// Lets go of a node that has lost a name, if it was the last; what is open
    /// goes with its last close.
    fn let_go(&self, node: Option<NodeId>) {
        let Some((node, seen)) = node.and_then(|node| Some((node, self.nodes.get(node)?))) else {
            return;
        };
        // If it is gone, both answer `Stale`, and let go.
        if let Some(fd) = seen.fd {
            drop(self.attr_by(node, fd));
        } else if self.ids.open_by_handle()
            && let Ok(fd) = self.open_id(node, PATH)
        {
            drop(self.attr_by(node, fd));
        }
    }

    /// See [`rename`](volary_core::FileSystem::rename).
    pub(crate) fn move_name(
        &self,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        self.check_writable()?;
        let how = match flags {
            RenameFlags::SWAP => {
                self.check_can(Caps::SWAP)?;
                HostRename::EXCHANGE
            }
            RenameFlags::KEEP => HostRename::NOREPLACE,
            _ => HostRename::empty(),
        };
        let (from_fd, to_fd) = (self.dir(from)?, self.dir(to)?);
        let by_way = !self.ids.open_by_handle();
        let moved = by_way.then(|| self.glance(&from_fd, name)).flatten();
        let replaced = self.glance(&to_fd, new_name);
        let (old, new) = (name.as_bytes(), new_name.as_bytes());
        rustix::fs::renameat_with(&from_fd, old, &to_fd, new, how).map_err(|e| {
            let refused = self.refusal(e, (from, &from_fd, name), &to_fd);
            self.in_dir(from, &from_fd, self.in_dir(to, &to_fd, refused))
        })?;
        self.moved(moved, to, new);
        if flags == RenameFlags::SWAP {
            self.moved(replaced.filter(|_| by_way), from, old);
        } else {
            self.let_go(replaced);
        }
        Ok(())
    }

    /// Linux answers in another order than we promise: it looks at the new name
    /// before it looks for a loop, and at what is in it before its kind.
    fn refusal(
        &self,
        errno: Errno,
        (from, from_fd, name): (NodeId, &OwnedFd, Name<'_>),
        to_fd: &OwnedFd,
    ) -> Error {
        let moved = || self.find_in(from, from_fd, name.as_bytes()).ok();
        match errno {
            Errno::NOTEMPTY => match moved() {
                Some(entry) if entry.attr.kind != FileKind::Dir => Kind::IsDir.into(),
                Some(entry) if self.is_at_or_below(to_fd, entry.node) => Kind::Invalid.into(),
                _ => Kind::NotEmpty.into(),
            },
            Errno::EXIST => match moved() {
                Some(entry) if self.is_at_or_below(to_fd, entry.node) => Kind::Invalid.into(),
                _ => Kind::Exists.into(),
            },
            errno => from_errno(errno),
        }
    }

    /// Where a node that was moved is found from now on.
    fn moved(&self, node: Option<NodeId>, dir: NodeId, name: &[u8]) {
        if let Some(node) = node
            && let Some(seen) = self.nodes.get(node)
        {
            self.nodes.note(node, seen.kind, 0, Some((dir, name)), None);
        }
    }

    /// Returns whether the directory is the node, or lies in it.
    fn is_at_or_below(&self, dir: &OwnedFd, top: NodeId) -> bool {
        let Ok(here) = self.ids.node_at(dir, b"") else {
            return false;
        };
        let mut at = Some(here);
        while let Some(node) = at {
            if node == top {
                return true;
            }
            if node == self.root {
                return false;
            }
            at = self.above(node).ok().map(|entry| entry.node);
        }
        false
    }
}

/// # Errors
/// `IsDir`; `Invalid` for what is neither file nor directory.
fn check_file(kind: Option<FileKind>) -> Result<()> {
    match kind {
        Some(FileKind::File) => Ok(()),
        Some(FileKind::Dir) => Err(Kind::IsDir.into()),
        _ => Err(Kind::Invalid.into()),
    }
}

/// Checks that what has the name is what was just made, before it is given to
/// somebody: it is of that kind, ours, and without other names.
///
/// # Errors
/// `Busy` if somebody put something else there.
fn check_fresh(attr: &Attr, kind: FileKind) -> Result<()> {
    let ours = attr.uid == rustix::process::geteuid().as_raw();
    let alone = attr.nlink == 1 || kind == FileKind::Dir && attr.nlink == 2;
    if attr.kind == kind && ours && alone {
        Ok(())
    } else {
        Err(Kind::Busy.into())
    }
}
