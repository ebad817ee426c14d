//! Operations on names: remove, rename.

use crate::operations::names::RACES_MAX;
use crate::rules;
use crate::session::Session;
use crate::shared::events::News;
use crate::shared::leases::{Impact, LeaseKey};
use crate::shared::sharing::Rights;
use crate::shared::uses::{By, Mark, Place};
use volary_core::{Access, Attr, Ctx, FileKind, Kind, Name, NodeId, OpenId, RenameFlags, Result};

/// The access on a directory that changing its entries needs.
const CHANGE: Access = Access::WRITE.and(Access::EXEC);

/// A rename: from where to where, and how.
#[derive(Clone, Copy)]
struct Move<'a> {
    from: NodeId,
    name: Name<'a>,
    to: NodeId,
    new_name: Name<'a>,
    flags: RenameFlags,
    /// The open that is renamed, with its node; `None` for a rename by name.
    open: Option<(NodeId, Mark)>,
}

/// The nodes that a move found.
struct Found {
    moved: NodeId,
    at_target: Option<NodeId>,
}

/// The outcome of one attempt to change an entry.
enum Tried<T> {
    Done(T),
    /// A lease on this node must be given up first.
    Leased(NodeId),
}

impl Move<'_> {
    fn by(&self) -> By {
        self.open.map_or(By::Key(None), |(_, mark)| By::Open(mark))
    }
}

impl Session {
    /// Removes a name of a node that is not a directory. The node is freed with its last name and
    /// last open. Needs write and search access on `dir`; in a sticky directory the caller must own
    /// it or the node.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search, `NotFound`, `Access`, `NotPermitted` in a sticky directory,
    /// `Sharing` if an open's share mode does not allow deletion, `IsDir`.
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

    /// Moves an entry, and replaces an existing target unless `flags` says otherwise. Needs write
    /// and search access on both directories. In sticky ones, the caller needs the rights of
    /// [`unlink`](Self::unlink) on the moved and the replaced node. Moving a directory into another
    /// one also needs write access on the moved one.
    ///
    /// # Errors
    /// `NotDir`, `Access` for search, `NotFound`, `Access`, `NotPermitted` in a sticky directory.
    /// `Sharing` if a share mode of the moved or replaced node does not allow deletion. Then as
    /// [`FileSystem::rename`](volary_core::FileSystem::rename).
    pub fn rename(
        &self,
        from: NodeId,
        name: &[u8],
        to: NodeId,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        self.move_entry(&Move {
            from,
            name: self.name(name, Kind::Invalid)?,
            to,
            new_name: self.name(new_name, Kind::Invalid)?,
            flags,
            open: None,
        })
    }

    /// Renames an open node, by the entry that the open came through.
    ///
    /// # Errors
    /// `Access` if the open's share mode does not want [`Rights::DELETE`]; `NotFound` if it has no
    /// place; then as [`rename`](Self::rename).
    pub fn rename_open(
        &self,
        open: OpenId,
        to: NodeId,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        self.check_deletes(&opened)?;
        let new_name = self.name(new_name, Kind::Invalid)?;
        // Another caller may move the entry before it is looked up.
        for _ in 0..RACES_MAX {
            let (from, name) = self.place(open).ok_or(Kind::NotFound)?;
            let moved = self.move_entry(&Move {
                from,
                name: self.name(&name, Kind::Invalid)?,
                to,
                new_name,
                flags,
                open: Some((opened.node, opened.mark)),
            });
            match moved {
                Err(e) if e == Kind::NotFound && self.place(open) != Some((from, name)) => {}
                moved => return moved,
            }
        }
        Err(Kind::Busy.into())
    }

    fn move_entry(&self, way: &Move<'_>) -> Result<()> {
        let cx = self.ctx();
        self.check_writable()?;
        let by = way.by();
        let found = self.contending(by, |patient| {
            self.while_tracked(|tracked| {
                if !tracked
                    && !self.volume.checks_rights()
                    && !self.volume.hub.is_heard(self.client)
                {
                    return self.do_move(&cx, way).map(|()| Tried::Done(None));
                }
                let tried = self.checked_move(&cx, way, patient)?;
                Ok(match tried {
                    Tried::Leased(node) => Tried::Leased(node),
                    Tried::Done(found) => {
                        if tracked {
                            self.note_move(way, &found);
                        }
                        Tried::Done(Some(found))
                    }
                })
            })
        })?;
        let key = self.parent_key_of(way);
        self.volume.entries_changed(way.from, key);
        self.volume.entries_changed(way.to, key);
        self.tell(|| News::Renamed {
            from: way.from,
            name: way.name.as_bytes().into(),
            to: way.to,
            new_name: way.new_name.as_bytes().into(),
            node: found.as_ref().map(|found| found.moved),
            replaced: found.and_then(|found| found.at_target),
            swapped: way.flags == RenameFlags::SWAP,
        });
        Ok(())
    }

    /// Moves the entry if the caller may and no open forbids it.
    fn checked_move(&self, cx: &Ctx<'_>, way: &Move<'_>, patient: bool) -> Result<Tried<Found>> {
        let from = self.searchable(cx, way.from)?;
        let to = self.searchable(cx, way.to)?;
        self.while_still(&[&from, &to], || {
            let moved = self.fs().lookup(cx, way.from, way.name)?;
            if way.open.is_some_and(|(node, _)| node != moved.node) {
                return Err(Kind::NotFound.into());
            }
            let found = match self.fs().lookup(cx, way.to, way.new_name) {
                Err(e) if e == Kind::NotFound => None,
                found => Some(found?),
            };
            self.check_moved(cx, &from, &moved.attr, &to)?;
            let replaced = found.filter(|_| way.flags != RenameFlags::KEEP);
            if let Some(found) = &replaced {
                self.check_replaced(cx, &to, &found.attr, &from, way.flags)?;
            }
            let uses = &self.volume.uses;
            let nodes = [Some(moved.node), replaced.map(|entry| entry.node)];
            let mut leased = nodes.into_iter().flatten();
            if let Some(node) = leased.find(|node| uses.is_hit(*node, way.by(), Impact::NAME))
                && patient
            {
                return Ok(Tried::Leased(node));
            }
            uses.check(moved.node, Rights::DELETE, way.open.map(|(_, mark)| mark))?;
            if let Some(found) = replaced.filter(|found| found.node != moved.node) {
                uses.check(found.node, Rights::DELETE, None)?;
            }
            self.do_move(cx, way)?;
            Ok(Tried::Done(Found {
                moved: moved.node,
                at_target: found.map(|entry| entry.node),
            }))
        })
    }

    fn parent_key_of(&self, way: &Move<'_>) -> Option<LeaseKey> {
        let of_open = way.open.and_then(|(node, mark)| {
            let uses = &self.volume.uses;
            uses.of_open(node, mark, |open| open.parent_key).flatten()
        });
        of_open.or(self.parent_key)
    }

    /// Repeats the attempt until no lease forbids it. After many rounds with new leases, `attempt`
    /// gets false: it then ignores leases.
    fn contending<T>(
        &self,
        by: By,
        mut attempt: impl FnMut(bool) -> Result<Tried<T>>,
    ) -> Result<T> {
        let mut rounds = 0;
        loop {
            match attempt(rounds < RACES_MAX)? {
                Tried::Done(done) => return Ok(done),
                Tried::Leased(node) => self.contend(node, by, Impact::NAME)?,
            }
            rounds += 1;
        }
    }

    /// Updates the places of opens after a move.
    fn note_move(&self, way: &Move<'_>, found: &Found) {
        let uses = &self.volume.uses;
        let from = Place::new(way.from, way.name.as_bytes());
        let to = Place::new(way.to, way.new_name.as_bytes());
        match found.at_target {
            // A rename between two names of one node leaves both.
            Some(same) if same == found.moved && !uses.renames_itself(&from, &to) => return,
            Some(other) if other != found.moved && way.flags == RenameFlags::SWAP => {
                uses.entry_moved(other, &to, &from);
            }
            Some(other) if other != found.moved => uses.entry_gone(other, &to),
            _ => {}
        }
        uses.entry_moved(found.moved, &from, &to);
    }

    fn do_move(&self, cx: &Ctx<'_>, way: &Move<'_>) -> Result<()> {
        let Move {
            from,
            name,
            to,
            new_name,
            flags,
            ..
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
        self.check_sticky(to, found)?;
        let moves = flags == RenameFlags::SWAP && found.kind == FileKind::Dir;
        if moves && from.node != to.node {
            self.need(cx, found, Access::WRITE)?;
        }
        Ok(())
    }

    pub(crate) fn check_sticky(&self, dir: &Attr, entry: &Attr) -> Result<()> {
        if self.checks_rights() && rules::sticks(dir, entry, &self.cred) {
            return Err(Kind::NotPermitted.into());
        }
        Ok(())
    }

    /// Removes an entry by `remove` if the caller may. Returns its node, if it had to be looked up.
    fn take(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        remove: impl Fn() -> Result<()>,
    ) -> Result<Option<NodeId>> {
        self.check_writable()?;
        let taken = self.contending(By::Key(None), |patient| {
            self.try_to_take(cx, dir, name, &remove, patient)
        })?;
        self.volume.entries_changed(dir, self.parent_key);
        Ok(taken)
    }

    fn try_to_take(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        remove: &impl Fn() -> Result<()>,
        patient: bool,
    ) -> Result<Tried<Option<NodeId>>> {
        self.while_tracked(|tracked| {
            let looks = tracked || self.volume.hub.is_heard(self.client);
            if self.volume.trust && !looks {
                return remove().map(|()| Tried::Done(None));
            }
            let attr = self.searchable(cx, dir)?;
            let may = self.may(cx, &attr, Access::WRITE)?;
            if may && !looks && (attr.mode & rules::STICKY == 0 || self.cred.is_root()) {
                return remove().map(|()| Tried::Done(None));
            }
            self.while_still(&[&attr], || {
                let entry = self.fs().lookup(cx, dir, name)?;
                if !may {
                    return Err(Kind::Access.into());
                }
                self.check_sticky(&attr, &entry.attr)?;
                let uses = &self.volume.uses;
                if patient && uses.is_hit(entry.node, By::Key(None), Impact::NAME) {
                    return Ok(Tried::Leased(entry.node));
                }
                uses.check(entry.node, Rights::DELETE, None)?;
                remove()?;
                if tracked {
                    uses.entry_gone(entry.node, &Place::new(dir, name.as_bytes()));
                }
                Ok(Tried::Done(Some(entry.node)))
            })
        })
    }

    /// Calls `call`, and tells it whether any open has a share mode or a place. If so, no other
    /// call moves an entry meanwhile.
    fn while_tracked<T>(&self, call: impl FnOnce(bool) -> Result<T>) -> Result<T> {
        let moving = self.volume.moving.read();
        if !self.volume.uses.has_marked() {
            return call(false);
        }
        drop(moving);
        let _alone = self.volume.moving.write();
        call(true)
    }

    /// Calls `call` with sticky directories locked. If the caller may remove only their own entries
    /// from one, others add none meanwhile: the entry that is checked is the one that is removed.
    fn while_still<T>(&self, dirs: &[&Attr], call: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut sticky = dirs.iter().filter(|dir| dir.mode & rules::STICKY != 0);
        if !self.volume.checks_rights() || sticky.clone().next().is_none() {
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
