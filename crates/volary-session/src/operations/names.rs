//! Operations on names: look up, make, link.

use crate::operations::acls::Inherited;
use crate::rules;
use crate::session::Session;
use crate::shared::events::News;
use crate::shared::how::OpenHow;
use crate::shared::leases::{Impact, LeaseKey};
use crate::shared::uses::By;
use volary_core::{
    Access, Attr, Caps, Create, Ctx, Entry, FileKind, Kind, Mode, Name, NodeId, OpenId, Result,
    SetAttr,
};

impl Session {
    /// Returns the node that `name` leads to in `dir`; `.` is the directory itself and `..` its
    /// parent. A symlink is not followed. Needs search (execute) access on the directory.
    ///
    /// # Errors
    /// `NotDir`, `Access`, `NotFound`, `Invalid`, `NameTooLong`.
    pub fn lookup(&self, dir: NodeId, name: &[u8]) -> Result<Entry> {
        let cx = self.ctx();
        if self.trust && name != b"." && name != b".." {
            let name = self.name(name, Kind::Invalid)?;
            return self.fs().lookup(&cx, dir, name);
        }
        let attr = self.searchable(&cx, dir)?;
        self.lookup_in(&cx, &attr, name)
    }

    /// Looks `name` up in a directory whose attributes, `dir`, the caller has just read. They
    /// decide the right to search.
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn lookup_seen(&self, dir: &Attr, name: &[u8]) -> Result<Entry> {
        let cx = self.ctx();
        if dir.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        self.need(&cx, dir, Access::EXEC)?;
        self.lookup_in(&cx, dir, name)
    }

    /// Looks `name` up in a directory that was found searchable.
    pub(crate) fn lookup_in(&self, cx: &Ctx<'_>, dir: &Attr, name: &[u8]) -> Result<Entry> {
        match name {
            b"." => Ok(Entry {
                node: dir.node,
                attr: *dir,
            }),
            b".." => self.fs().parent(cx, dir.node),
            _ => {
                let name = self.name(name, Kind::Invalid)?;
                self.fs().lookup(cx, dir.node, name)
            }
        }
    }

    /// Opens the file `name` in `dir` as `open` says, and makes it if it does not exist, in one
    /// step. With [`Create::Truncate`], an existing file is emptied, which needs a mode that
    /// writes. A new file gets the attributes in `set`; its owner and group are the caller's unless
    /// `set` or the directory (set-gid) says otherwise. The new file may be written even if its
    /// mode forbids that. A symlink is not followed.
    ///
    /// Making a file needs write and search access on the directory. Opening an existing one needs
    /// search access there and, on the file, the access that the mode says.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search; `Exists` with [`Create::New`]; `Access`; `NotPermitted` for
    /// an owner or group that the caller cannot give; `IsDir`; `SymlinkLoop` for a symlink.
    /// `Invalid` for other kinds of node, for a name that the volume cannot keep, and for
    /// truncation without writing. `DeletePending`, `Sharing` (also for a new file, if another
    /// caller opened it at once).
    pub fn create(
        &self,
        dir: NodeId,
        name: &[u8],
        how: Create,
        open: impl Into<OpenHow>,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let open = OpenHow {
            truncate: how == Create::Truncate,
            ..open.into()
        };
        if open.truncate && open.mode == Mode::Read {
            return Err(Kind::Invalid.into());
        }
        let cx = self.ctx();
        let name = self.name(name, Kind::IsDir)?;
        let parent = self.searchable(&cx, dir)?;
        // The entry can appear and vanish between the two ways to open it.
        for _ in 0..RACES_MAX {
            match self.make_file(&cx, &parent, name, &open, set) {
                Err(e) if e == Kind::Exists && how != Create::New => {}
                made => return made,
            }
            match self.open_existing(&cx, dir, name, &open) {
                Err(e) if e == Kind::NotFound => {}
                opened => return opened,
            }
        }
        Err(Kind::Busy.into())
    }

    fn make_file(
        &self,
        cx: &Ctx<'_>,
        dir: &Attr,
        name: Name<'_>,
        how: &OpenHow,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let (set, inherited) = self.for_new(cx, dir, name, FileKind::File, set)?;
        let make = || self.fs().create(cx, dir.node, name, Create::New, &set);
        let (mut entry, below) = self.put(dir, make)?;
        self.bestow(cx, dir.node, name, &mut entry, inherited)
            .inspect_err(|_| {
                let _ = self.fs().close(cx, below);
            })?;
        self.tell_made_by(how.parent_key.or(self.parent_key), dir.node, name, &entry);
        let at = Some((dir.node, name.as_bytes()));
        let mark = self.enter_use(cx, &entry.attr, at, how).inspect_err(|_| {
            let _ = self.fs().close(cx, below);
        })?;
        let open = self.enter_open(cx, self.opened_as(&entry.attr, below, mark, how))?;
        Ok((entry, open))
    }

    fn open_existing(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: &OpenHow,
    ) -> Result<(Entry, OpenId)> {
        let mut entry = self.fs().lookup(cx, dir, name)?;
        if entry.attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let at = Some((dir, name.as_bytes()));
        let open = self.open_found(cx, &entry.attr, at, how)?;
        if how.truncate {
            entry.attr = self.fs().getattr(cx, entry.node)?;
        }
        Ok((entry, open))
    }

    /// Makes a directory. Needs write and search access on `dir`.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search, `Exists`, `Access`, `NotPermitted`,
    /// `TooManyLinks`, `Invalid` for a name that the volume cannot keep.
    pub fn mkdir(&self, dir: NodeId, name: &[u8], set: &SetAttr) -> Result<Entry> {
        let cx = self.ctx();
        let name = self.name(name, Kind::Exists)?;
        let parent = self.searchable(&cx, dir)?;
        let (set, inherited) = self.for_new(&cx, &parent, name, FileKind::Dir, set)?;
        let mut entry = self.put(&parent, || self.fs().mkdir(&cx, dir, name, &set))?;
        self.bestow(&cx, dir, name, &mut entry, inherited)?;
        self.tell_made(dir, name, &entry);
        Ok(entry)
    }

    /// Makes a node of any kind but directory and symlink. Only devices use `rdev`, and only root
    /// makes devices. Needs write and search access on `dir`.
    ///
    /// # Errors
    /// As [`mkdir`](Self::mkdir); before those, `Invalid` for another kind and
    /// `NotPermitted` for a device; `Unsupported` without [`Caps::DEVICES`].
    pub fn mknod(
        &self,
        dir: NodeId,
        name: &[u8],
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        match kind {
            FileKind::File => {
                let (entry, open) = self.create(dir, name, Create::New, Mode::Write, set)?;
                self.close(open)?;
                return Ok(entry);
            }
            FileKind::Dir | FileKind::Symlink => return Err(Kind::Invalid.into()),
            FileKind::CharDevice | FileKind::BlockDevice => {
                if self.checks_rights() && !self.cred.is_root() {
                    return Err(Kind::NotPermitted.into());
                }
            }
            FileKind::Fifo | FileKind::Socket => {}
        }
        let cx = self.ctx();
        let name = self.name(name, Kind::Exists)?;
        let parent = self.searchable(&cx, dir)?;
        let (set, inherited) = self.for_new(&cx, &parent, name, kind, set)?;
        let mut entry = self.put(&parent, || {
            self.fs().mknod(&cx, dir, name, kind, rdev, &set)
        })?;
        self.bestow(&cx, dir, name, &mut entry, inherited)?;
        self.tell_made(dir, name, &entry);
        Ok(entry)
    }

    /// Makes a symlink to `target`, which need not exist. Needs write and search access on `dir`.
    ///
    /// # Errors
    /// `NotFound` for an empty target, `NameTooLong` for one past
    /// [`PATH_MAX`](crate::PATH_MAX), `Invalid` for one with NUL; then as
    /// [`mkdir`](Self::mkdir); `Unsupported` without [`Caps::SYMLINKS`].
    pub fn symlink(&self, dir: NodeId, name: &[u8], target: &[u8], set: &SetAttr) -> Result<Entry> {
        crate::operations::walk::check_path(target)?;
        let cx = self.ctx();
        let name = self.name(name, Kind::Exists)?;
        let parent = self.searchable(&cx, dir)?;
        let (set, _) = self.for_new(&cx, &parent, name, FileKind::Symlink, set)?;
        let entry = self.put(&parent, || self.fs().symlink(&cx, dir, name, target, &set))?;
        self.tell_made(dir, name, &entry);
        Ok(entry)
    }

    /// Gives `node` one more name. Needs write and search access on `dir`. A caller who does not
    /// own `node` may link only a regular file without set-uid and set-gid bits that they can read
    /// and write, as with Linux's `fs.protected_hardlinks`. Otherwise they could keep a file that
    /// its owner removes.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search, `Exists`, `NotPermitted` for a directory and for another's
    /// node, `Access`, `TooManyLinks`; `Unsupported` without [`Caps::HARD_LINKS`].
    pub fn link(&self, node: NodeId, dir: NodeId, name: &[u8]) -> Result<Entry> {
        let cx = self.ctx();
        let name = self.name(name, Kind::Exists)?;
        let parent = self.searchable(&cx, dir)?;
        let attr = self.fs().getattr(&cx, node)?;
        let forbidden = attr.kind == FileKind::Dir || !self.may_link(&cx, &attr)?;
        self.check_make(&cx, &parent, name, forbidden)?;
        self.contend(node, By::Key(None), Impact::NAME)?;
        let entry = self.put(&parent, || self.fs().link(&cx, node, dir, name))?;
        self.tell_made(dir, name, &entry);
        self.tell(|| News::Attr(node));
        Ok(entry)
    }

    /// Returns whether the caller may give the node another name, apart from the rights on the
    /// directory.
    fn may_link(&self, cx: &Ctx<'_>, attr: &Attr) -> Result<bool> {
        if !self.checks_rights() || rules::owns(attr, &self.cred) {
            return Ok(true);
        }
        let plain = attr.kind == FileKind::File && rules::without_set_id(attr.mode).is_none();
        Ok(plain && self.may(cx, attr, Access::READ)? && self.may(cx, attr, Access::WRITE)?)
    }

    /// Adds an entry to the directory. If that is sticky, waits while others check and remove an
    /// entry of a sticky directory.
    ///
    /// # Errors
    /// `DeletePending` if the directory is to be removed with its last open.
    fn put<T>(&self, dir: &Attr, make: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.volume.uses.is_deleting(dir.node, None) {
            return Err(Kind::DeletePending.into());
        }
        let sticky = !self.volume.trust && dir.mode & rules::STICKY != 0;
        let _put = sticky.then(|| self.volume.sticky.read());
        make()
    }

    /// Checks that the caller may make the entry `name`. Returns the attributes that it is made
    /// with, and what it inherits afterwards.
    ///
    /// # Errors
    /// As [`check_make`](Self::check_make).
    fn for_new(
        &self,
        cx: &Ctx<'_>,
        dir: &Attr,
        name: Name<'_>,
        kind: FileKind,
        set: &SetAttr,
    ) -> Result<(SetAttr, Option<Inherited>)> {
        let forbidden = self.checks_rights() && !rules::may_own(dir, &self.cred, set);
        self.check_make(cx, dir, name, forbidden)?;
        let mut set = if self.volume.caps.has(Caps::MODES) {
            rules::for_new(dir, &self.cred, kind, set)
        } else {
            *set
        };
        let inherited = self.inherit(cx, dir, kind, &mut set)?;
        Ok((set, inherited))
    }

    /// Checks that the caller may make the entry `name`.
    ///
    /// # Errors
    /// If the caller may not: `Exists` if the name is taken, else `ReadOnly`, `NotPermitted` if
    /// `forbidden`, `Access`.
    fn check_make(&self, cx: &Ctx<'_>, dir: &Attr, name: Name<'_>, forbidden: bool) -> Result<()> {
        let refused = if let Err(e) = self.check_writable() {
            e
        } else if forbidden {
            Kind::NotPermitted.into()
        } else if self.may(cx, dir, Access::WRITE)? {
            return Ok(());
        } else {
            Kind::Access.into()
        };
        match self.fs().lookup(cx, dir.node, name) {
            Ok(_) => Err(Kind::Exists.into()),
            Err(e) if e == Kind::NotFound => Err(refused),
            Err(e) => Err(e),
        }
    }

    fn tell_made(&self, dir: NodeId, name: Name<'_>, entry: &Entry) {
        self.tell_made_by(self.parent_key, dir, name, entry);
    }

    fn tell_made_by(&self, key: Option<LeaseKey>, dir: NodeId, name: Name<'_>, entry: &Entry) {
        self.volume.entries_changed(dir, key);
        self.tell(|| News::Made {
            dir,
            name: name.as_bytes().into(),
            node: entry.node,
        });
    }
}

/// How often an operation tries again if others change the entry meanwhile.
pub(crate) const RACES_MAX: u32 = 16;
