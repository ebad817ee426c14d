//! New nodes: creates them, sets their owner and mode, and opens files.

use crate::held::attachment::Attachment;
use crate::held::ids::Ids;
use crate::kernel::error::from_errno;
use crate::kernel::stat::look;
use crate::operations::attrs::Attrs;
use crate::operations::files::Files;
use crate::reach::resolve::SAFE;
use crate::reach::tree::Tree;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode as HostMode, OFlags};
use rustix::io::Errno;
use std::sync::Arc;
use volary_core::{
    Attr, Caps, Create, Ctx, Entry, FileKind, Kind, Mode, Name, NodeId, OpenId, Result, SetAttr,
};

/// How often an entry may appear and vanish while it is being opened.
const RACES_MAX: u32 = 16;

/// The properties of a new node.
#[derive(Clone, Copy)]
struct Making<'a> {
    cx: &'a Ctx<'a>,
    dir: NodeId,
    name: Name<'a>,
    kind: FileKind,
    set: SetAttr,
}

impl Making<'_> {
    /// Returns the permission bits for the call that creates the node. The host's umask may clear
    /// some.
    fn mode(&self) -> HostMode {
        let usual = match self.kind {
            FileKind::Dir => 0o755,
            _ => 0o644,
        };
        HostMode::from_raw_mode(self.set.mode.unwrap_or(usual) & 0o7777)
    }
}

/// Makes nodes.
pub(crate) struct Maker {
    attachment: Arc<Attachment>,
    ids: Arc<Ids>,
    tree: Arc<Tree>,
    attrs: Arc<Attrs>,
    files: Arc<Files>,
    /// Whether new nodes are given to the caller.
    gives_away: bool,
}

impl Maker {
    pub(crate) fn new(
        attachment: Arc<Attachment>,
        ids: Arc<Ids>,
        tree: Arc<Tree>,
        attrs: Arc<Attrs>,
        files: Arc<Files>,
        gives_away: bool,
    ) -> Self {
        Self {
            attachment,
            ids,
            tree,
            attrs,
            files,
            gives_away,
        }
    }

    /// See [`create`](volary_core::FileSystem::create).
    pub(crate) fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.attachment.check_writable()?;
        self.files.check_room()?;
        let fd = self.tree.dir(dir)?;
        let making = Making {
            cx,
            dir,
            name,
            kind: FileKind::File,
            set: self.attrs.allowed(FileKind::File, set),
        };
        for _ in 0..RACES_MAX {
            match self.create_new(&fd, &making) {
                Err(e) if e == Kind::Exists && how != Create::New => {}
                Err(e) => return Err(self.tree.in_dir(dir, &fd, e)),
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
        let file = self
            .tree
            .open_in(dir, name, flags, making.mode())
            .map_err(from_errno)?;
        let made = self.ids.of(&file)?;
        let attr = self.dressed(dir, &file, &made, making)?;
        self.entered(attr, dir, making.dir, name, file)
    }

    /// Opens an existing file.
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
        let file = self
            .tree
            .open_in(fd, name, flags, HostMode::empty())
            .map_err(|e| match e {
                Errno::LOOP | Errno::NXIO => Kind::Invalid.into(),
                e => from_errno(e),
            })?;
        let attr = self.ids.of(&file)?;
        check_file(Some(attr.kind))?;
        self.entered(attr, fd, dir, name, file)
    }

    /// Notes an opened file as known, and adds its open.
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
            // On an error, the open ends before the node is forgotten.
            let held = self.tree.open_path(dir_fd, name).ok();
            held.filter(|held| {
                self.ids
                    .node_at(held, b"")
                    .is_ok_and(|node| node == attr.node)
            })
        };
        let entry = self.tree.given(attr, Some((dir, name)), held)?;
        let open = self
            .files
            .enter(entry.node, FileKind::File, Mode::ReadWrite, file);
        Ok((entry, open))
    }

    /// See [`mkdir`](volary_core::FileSystem::mkdir).
    pub(crate) fn mkdir(
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
            set: self.attrs.allowed(FileKind::Dir, set),
        };
        self.make(&making, |fd| {
            rustix::fs::mkdirat(fd, name.as_bytes(), making.mode())
        })
    }

    /// See [`mknod`](volary_core::FileSystem::mknod).
    pub(crate) fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.attachment.check_can(Caps::DEVICES)?;
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
            set: self.attrs.allowed(kind, set),
        };
        let file_type = FileType::from_raw_mode(kind.mode_bits());
        self.make(&making, |fd| {
            rustix::fs::mknodat(fd, name.as_bytes(), file_type, making.mode(), device)
        })
    }

    /// See [`symlink`](volary_core::FileSystem::symlink).
    pub(crate) fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.attachment.check_can(Caps::SYMLINKS)?;
        let making = Making {
            cx,
            dir,
            name,
            kind: FileKind::Symlink,
            set: self.attrs.allowed(FileKind::Symlink, set),
        };
        self.make(&making, |fd| {
            rustix::fs::symlinkat(target, fd, name.as_bytes())
        })
    }

    /// Creates an entry by `make`, and sets its attributes.
    fn make(
        &self,
        making: &Making<'_>,
        make: impl FnOnce(&OwnedFd) -> rustix::io::Result<()>,
    ) -> Result<Entry> {
        self.attachment.check_writable()?;
        let fd = self.tree.dir(making.dir)?;
        make(&fd).map_err(|e| self.tree.in_dir(making.dir, &fd, from_errno(e)))?;
        let name = making.name.as_bytes();
        let way = Some((making.dir, name));
        if self.ids.open_by_handle() {
            let attr = self.ids.at(&fd, name)?;
            if self.lacks(&attr, making) == SetAttr::default() {
                return self.tree.given(attr, way, None);
            }
        }
        let made = self.tree.open_path(&fd, name)?;
        let attr = self.ids.of(&made)?;
        check_fresh(&attr, making.kind)?;
        let attr = self.dressed(&fd, &made, &attr, making)?;
        self.tree.given(attr, way, Some(made))
    }

    /// Returns the attributes that still have to be set on a new node.
    fn lacks(&self, made: &Attr, making: &Making<'_>) -> SetAttr {
        let (set, cred) = (making.set, making.cx.cred);
        let mut lacking = SetAttr { size: None, ..set };
        lacking.uid = Some(set.uid.unwrap_or(cred.uid));
        // If the new node's group is not this process's, it comes from the directory and is kept.
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

    /// Sets the attributes of a new node, and removes the node if that fails.
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
            .attrs
            .set_others(fd, made, &lacking)
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
                // An error here would hide the first one.
                let _ = rustix::fs::unlinkat(dir, name, flags);
            }
        }
        dressed
    }
}

/// Checks that a node is a file.
///
/// # Errors
/// `IsDir`; `Invalid` for a node that is neither a file nor a directory.
fn check_file(kind: Option<FileKind>) -> Result<()> {
    match kind {
        Some(FileKind::File) => Ok(()),
        Some(FileKind::Dir) => Err(Kind::IsDir.into()),
        _ => Err(Kind::Invalid.into()),
    }
}

/// Checks that the name leads to the node just created, before it is given to the caller: it has
/// the right kind and owner, and no other names.
///
/// # Errors
/// `Busy` if another process put something else there.
fn check_fresh(attr: &Attr, kind: FileKind) -> Result<()> {
    let ours = attr.uid == rustix::process::geteuid().as_raw();
    let alone = attr.nlink == 1 || kind == FileKind::Dir && attr.nlink == 2;
    if attr.kind == kind && ours && alone {
        Ok(())
    } else {
        Err(Kind::Busy.into())
    }
}
