//! Operations on names: remove, rename.

use crate::events::News;
use crate::rules;
use crate::session::Session;
use volary_core::{Access, Attr, Ctx, FileKind, Kind, Name, NodeId, RenameFlags, Result};

/// What it takes to change entries.
const CHANGE: Access = Access::WRITE.and(Access::EXEC);

/// From where to where an entry is to move, and how.
#[derive(Clone, Copy)]
struct Move<'a> {
    from: NodeId,
    name: Name<'a>,
    to: NodeId,
    new_name: Name<'a>,
    flags: RenameFlags,
}

impl Session {
    /// Takes away a name of what is not a directory. The node goes with its
    /// last name and last open. Needs write and search access on `dir`; in a
    /// sticky directory the caller must own it or the node.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search, `NotFound`, `Access`, `NotPermitted` in
    /// a sticky directory, `IsDir`.
    pub fn unlink(&self, dir: NodeId, name: &[u8]) -> Result<()> {
        let cx = self.ctx();
        let name = self.name(name, Kind::IsDir)?;
        let node = self.take(&cx, dir, name, || self.fs().unlink(&cx, dir, name))?;
        self.tell_removed(dir, name, node);
        Ok(())
    }

    /// Removes an empty directory. Needs the same access as
    /// [`unlink`](Self::unlink).
    ///
    /// # Errors
    /// `Invalid` for `.`, `NotEmpty` for `..`; then as
    /// [`unlink`](Self::unlink), but `NotDir` and `NotEmpty` in place of `IsDir`.
    pub fn rmdir(&self, dir: NodeId, name: &[u8]) -> Result<()> {
        let cx = self.ctx();
        let dots = if name == b".." {
            Kind::NotEmpty
        } else {
            Kind::Invalid
        };
        let name = self.name(name, dots)?;
        let node = self.take(&cx, dir, name, || self.fs().rmdir(&cx, dir, name))?;
        self.tell_removed(dir, name, node);
        Ok(())
    }

    /// Moves a name, replacing what the new name led to unless `flags` says
    /// otherwise. Needs write and search access on both directories; in sticky
    /// ones, as [`unlink`](Self::unlink) for what is moved and what is
    /// replaced; to move a directory into another one, write access on it.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search, `NotFound`, `Access`, `NotPermitted` in
    /// a sticky directory; then as
    /// [`FileSystem::rename`](volary_core::FileSystem::rename).
    pub fn rename(
        &self,
        from: NodeId,
        name: &[u8],
        to: NodeId,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        let cx = self.ctx();
        let way = Move {
            from,
            name: self.name(name, Kind::Invalid)?,
            to,
            new_name: self.name(new_name, Kind::Invalid)?,
            flags,
        };
        self.check_writable()?;
        let replaced = if self.checks_rights() || self.volume.hub.is_heard() {
            self.checked_move(&cx, &way)?
        } else {
            self.do_move(&cx, &way).map(|()| None)?
        };
        self.tell(|| News::Renamed {
            from,
            name: name.into(),
            to,
            new_name: new_name.into(),
            replaced,
            swapped: flags == RenameFlags::SWAP,
        });
        Ok(())
    }

    /// Moves the entry if the caller may; gives what was replaced.
    fn checked_move(&self, cx: &Ctx<'_>, way: &Move<'_>) -> Result<Option<NodeId>> {
        let from = self.searchable(cx, way.from)?;
        let to = self.searchable(cx, way.to)?;
        self.while_still(&[&from, &to], || {
            let moved = self.fs().lookup(cx, way.from, way.name)?;
            let found = match self.fs().lookup(cx, way.to, way.new_name) {
                Err(e) if e == Kind::NotFound => None,
                found => Some(found?),
            };
            self.check_moved(cx, &from, &moved.attr, &to)?;
            if let Some(found) = &found {
                self.check_replaced(cx, &to, &found.attr, &from, way.flags)?;
            }
            self.do_move(cx, way)?;
            Ok(found.map(|entry| entry.node))
        })
    }

    fn do_move(&self, cx: &Ctx<'_>, way: &Move<'_>) -> Result<()> {
        let Move {
            from,
            name,
            to,
            new_name,
            flags,
        } = *way;
        self.fs().rename(cx, from, name, to, new_name, flags)
    }

    fn check_moved(&self, cx: &Ctx<'_>, from: &Attr, moved: &Attr, to: &Attr) -> Result<()> {
        self.need(cx, from, CHANGE)?;
        self.need(cx, to, CHANGE)?;
        self.check_sticky(from, moved)?;
        if moved.kind == FileKind::Dir && from.node != to.node {
            self.need(cx, moved, Access::WRITE)?;
        }
        Ok(())
    }

    fn check_replaced(
        &self,
        cx: &Ctx<'_>,
        to: &Attr,
        found: &Attr,
        from: &Attr,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags == RenameFlags::KEEP {
            return Ok(());
        }
        self.check_sticky(to, found)?;
        let moves = flags == RenameFlags::SWAP && found.kind == FileKind::Dir;
        if moves && from.node != to.node {
            self.need(cx, found, Access::WRITE)?;
        }
        Ok(())
    }

    fn check_sticky(&self, dir: &Attr, entry: &Attr) -> Result<()> {
        if self.checks_rights() && rules::sticks(dir, entry, &self.cred) {
            return Err(Kind::NotPermitted.into());
        }
        Ok(())
    }

    /// Takes an entry away by `remove` if the caller may; gives the node where it
    /// had to be looked up.
    fn take(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        remove: impl FnOnce() -> Result<()>,
    ) -> Result<Option<NodeId>> {
        self.check_writable()?;
        let heard = self.volume.hub.is_heard();
        if self.volume.trust && !heard {
            return remove().map(|()| None);
        }
        let attr = self.searchable(cx, dir)?;
        let may = self.may(cx, &attr, Access::WRITE)?;
        if may && !heard && (attr.mode & rules::STICKY == 0 || self.cred.is_root()) {
            return remove().map(|()| None);
        }
        self.while_still(&[&attr], || {
            let entry = self.fs().lookup(cx, dir, name)?;
            if !may {
                return Err(Kind::Access.into());
            }
            self.check_sticky(&attr, &entry.attr)?;
            remove().map(|()| Some(entry.node))
        })
    }

    /// Calls while sticky directories are held still: if the caller may take
    /// only their own entries from one of these, others put none there
    /// meanwhile, so that the entry that is looked at is the one that goes.
    fn while_still<T>(&self, dirs: &[&Attr], call: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut sticky = dirs.iter().filter(|dir| dir.mode & rules::STICKY != 0);
        if !self.checks_rights() || sticky.clone().next().is_none() {
            return call();
        }
        if sticky.any(|dir| !rules::owns(dir, &self.cred)) {
            let _taking = self.volume.sticky.write();
            call()
        } else {
            let _putting = self.volume.sticky.read();
            call()
        }
    }

    fn tell_removed(&self, dir: NodeId, name: Name<'_>, node: Option<NodeId>) {
        self.tell(|| News::Removed {
            dir,
            name: name.as_bytes().into(),
            node,
        });
    }
}
