//! Share modes, places and deletions: how opens are registered among the uses of their node, and
//! entries that are removed with their last open.

use crate::operations::names::RACES_MAX;
use crate::session::Session;
use crate::shared::events::{Event, News};
use crate::shared::how::OpenHow;
use crate::shared::leases::Impact;
use crate::shared::opens::Opened;
use crate::shared::sharing::Rights;
use crate::shared::uses::{By, Deleter, MOMENTARY, Mark, Marked, PLAIN, Place, Removal};
use crate::volume::Volume;
use std::collections::HashMap;
use volary_core::{
    Access, Attr, Cookie, Ctx, DirBuf, FileKind, Kind, Name, NodeId, OpenId, Result,
};

impl Session {
    /// Returns the entry that the open came through: a directory and the name in it, as they are
    /// now, even if another caller renamed it since. `None` once the entry is removed, and for an
    /// open without share mode or entry.
    pub fn place(&self, open: OpenId) -> Option<(NodeId, Vec<u8>)> {
        let opened = self.volume.opens.get(open).ok()?;
        let uses = &self.volume.uses;
        let place = uses.of_open(opened.node, opened.mark, |open| open.place.clone());
        place
            .flatten()
            .map(|place| (place.dir, place.name.into_vec()))
    }

    /// Marks the open's entry for removal with the last open through it (`on`), or takes that back:
    /// the delete disposition. From then on nobody can open the entry (`DeletePending`), and
    /// nothing is made in it if it is a directory. When the last open that remembers the entry
    /// ends, it is removed with this caller's rights. Taking the mark back never fails.
    ///
    /// # Errors
    /// `Access` if the open's share mode does not want [`Rights::DELETE`];
    /// `ReadOnly`; `NotFound` if it has no place; then as
    /// [`unlink`](Self::unlink) and [`rmdir`](Self::rmdir): `NotDir`, `Access`,
    /// `NotPermitted`, `NotEmpty`.
    pub fn set_delete(&self, open: OpenId, on: bool) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        let by = if on {
            let by = self.deleter(&opened)?;
            self.contend(opened.node, By::Open(opened.mark), Impact::NAME)?;
            Some(by)
        } else {
            None
        };
        self.volume.uses.set_deleting(opened.node, opened.mark, by);
        Ok(())
    }

    /// Marks the entry for removal as by [`set_delete`](Self::set_delete), but only when this open
    /// ends: delete-on-close. Others may open it meanwhile.
    ///
    /// # Errors
    /// As [`set_delete`](Self::set_delete), but not `NotEmpty`.
    pub fn delete_on_close(&self, open: OpenId) -> Result<()> {
        let opened = self.volume.opens.get(open)?;
        let by = match self.deleter(&opened) {
            Err(e) if e == Kind::NotEmpty => self.as_deleter(&opened),
            by => by?,
        };
        self.contend(opened.node, By::Open(opened.mark), Impact::NAME)?;
        self.volume.uses.delete_with(opened.node, opened.mark, by);
        Ok(())
    }

    /// Returns whether the open's entry is removed with its last open. If the open remembers no
    /// entry, whether any entry of the node is.
    pub fn delete_pending(&self, open: OpenId) -> bool {
        let Ok(opened) = self.volume.opens.get(open) else {
            return false;
        };
        let mark = (opened.mark != PLAIN).then_some(opened.mark);
        self.volume.uses.is_deleting(opened.node, mark)
    }

    /// Returns how many opens the node has, of all callers.
    pub fn open_count_of(&self, node: NodeId) -> usize {
        self.volume.uses.table.count(node)
    }

    /// Returns whether any node below the directory is open by an open that remembers its entry.
    ///
    /// # Errors
    /// `Corrupt` if a chain of parents never reaches the root.
    pub fn is_open_below(&self, dir: NodeId) -> Result<bool> {
        let places = self.volume.uses.table.places();
        let mut dirs: Vec<NodeId> = places.iter().map(|(_, place)| place.dir).collect();
        dirs.sort_unstable();
        dirs.dedup();
        let mut known = HashMap::new();
        for at in dirs {
            if self.is_within(at, dir, &mut known)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// # Errors
    /// `Access` if the open's share mode does not want the right to delete.
    pub(crate) fn check_deletes(&self, opened: &Opened) -> Result<()> {
        let uses = &self.volume.uses;
        match uses.of_open(opened.node, opened.mark, |open| open.share.wants) {
            Some(wants) if wants.has(Rights::DELETE) => Ok(()),
            _ => Err(Kind::Access.into()),
        }
    }

    /// Registers an open among the uses of its node, once others have given up the leases that
    /// forbid it.
    ///
    /// # Errors
    /// `NotFound` if the entry leads to another node; `Invalid` if the key has a lease on another
    /// node; `DeletePending`; `Sharing`; while it waits, `Busy`, `Interrupted`.
    pub(crate) fn enter_use(
        &self,
        cx: &Ctx<'_>,
        attr: &Attr,
        at: Option<(NodeId, &[u8])>,
        how: &OpenHow,
    ) -> Result<Mark> {
        let (node, by) = (attr.node, By::Key(how.lease_key));
        let uses = &self.volume.uses;
        let mut rounds = 0;
        let mark = loop {
            match self.enter_once(cx, attr, at, how) {
                // The holder of a handle lease (H) may keep the node open only for its next use.
                Err(e) if e == Kind::Sharing && uses.is_hit(node, by, Impact::NAME) => {
                    rounds += 1;
                    if rounds > RACES_MAX {
                        return Err(e);
                    }
                    self.contend(node, by, Impact::NAME)?;
                }
                entered => break entered?,
            }
        };
        let impact = match how.truncate {
            true => Impact::WRITE,
            false => Impact::READ,
        };
        if how.truncate || how.shares().wants != Rights::NONE {
            self.contend(node, by, impact).inspect_err(|_| {
                self.leave_use(node, mark, how.mode.into());
            })?;
        }
        Ok(mark)
    }

    fn enter_once(
        &self,
        cx: &Ctx<'_>,
        attr: &Attr,
        at: Option<(NodeId, &[u8])>,
        how: &OpenHow,
    ) -> Result<Mark> {
        let uses = &self.volume.uses;
        if how.is_plain() && how.momentary {
            uses.check_names(attr.node, attr.nlink)?;
            uses.check_moment(attr.node, how.mode.into(), self.client)?;
            return Ok(MOMENTARY);
        }
        if how.is_plain() {
            uses.enter_plain(attr.node, how.mode.into(), attr.nlink)?;
            return Ok(PLAIN);
        }
        let at = at.filter(|_| how.share.is_some());
        let place = at.map(|(dir, name)| Place::new(dir, name));
        // While the open is given a place, nobody may move the entry.
        let _alone = self.volume.moving.write();
        if let Some(place) = &place {
            let name = self.name(&place.name, Kind::Invalid)?;
            if self.fs().lookup(cx, place.dir, name)?.node != attr.node {
                return Err(Kind::NotFound.into());
            }
        }
        let marked = Marked {
            mark: PLAIN,
            open: None,
            share: how.shares(),
            place,
            key: how.lease_key,
            parent_key: how.parent_key,
            deletes: None,
            client: self.client,
            beside: how.beside,
        };
        uses.enter(attr.node, attr.nlink, marked)
    }

    /// Removes the use that [`enter_use`](Self::enter_use) registered.
    pub(crate) fn leave_use(&self, node: NodeId, mark: Mark, wants: Rights) -> Option<Removal> {
        self.volume.uses.leave(node, mark, wants)
    }

    fn as_deleter(&self, opened: &Opened) -> Deleter {
        let uses = &self.volume.uses;
        let parent_key = uses.of_open(opened.node, opened.mark, |open| open.parent_key);
        Deleter {
            cred: self.cred.clone(),
            client: self.client,
            parent_key: parent_key.flatten(),
        }
    }

    /// Returns this caller as the deleter, if they may remove the open's entry.
    fn deleter(&self, opened: &Opened) -> Result<Deleter> {
        self.check_deletes(opened)?;
        self.check_writable()?;
        let uses = &self.volume.uses;
        let place = uses.of_open(opened.node, opened.mark, |open| open.place.clone());
        let place = place.flatten().ok_or(Kind::NotFound)?;
        let cx = self.ctx();
        let dir = self.searchable(&cx, place.dir)?;
        self.need(&cx, &dir, Access::WRITE)?;
        let attr = self.fs().getattr(&cx, opened.node)?;
        self.check_sticky(&dir, &attr)?;
        if let (FileKind::Dir, Some(below)) = (attr.kind, opened.any()) {
            let mut first = DirBuf::new(1, NAME_ROOM, false);
            self.fs().readdir(&cx, below, Cookie::START, &mut first)?;
            if first.iter().next().is_some() {
                return Err(Kind::NotEmpty.into());
            }
        }
        Ok(self.as_deleter(opened))
    }
}

/// Buffer space for the names of a directory that is tested for entries.
const NAME_ROOM: usize = 4096;

impl Volume {
    /// Removes an entry after its last open has ended.
    ///
    /// # Errors
    /// Those of the removal; but no error if the entry is gone, or is a directory with entries
    /// again.
    pub(crate) fn remove_at_last(&self, removal: &Removal) -> Result<()> {
        let removed = {
            let _alone = self.moving.write();
            let removed = match self.uses.place_of(removal) {
                Some(place) => self.remove_place(removal, &place).map(|()| Some(place)),
                None => Ok(None),
            };
            self.uses.removed(removal);
            removed
        };
        if let Ok(Some(place)) = &removed {
            self.entries_changed(place.dir, removal.by.parent_key);
        }
        match removed {
            Ok(Some(place)) if self.hub.is_heard(removal.by.client) => {
                self.hub.tell(&Event {
                    origin: removal.by.client,
                    news: News::Removed {
                        dir: place.dir,
                        name: place.name,
                        node: Some(removal.node),
                    },
                });
                Ok(())
            }
            Err(e) if !matches!(e.kind(), Kind::NotFound | Kind::NotEmpty) => Err(e),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// `NotFound` if the entry leads to another node.
    fn remove_place(&self, removal: &Removal, place: &Place) -> Result<()> {
        let name = Name::new(&place.name).map_err(|_| Kind::NotFound)?;
        self.on_behalf_of(&removal.by.cred, |cx| {
            let entry = self.fs.lookup(cx, place.dir, name)?;
            if entry.node != removal.node {
                return Err(Kind::NotFound.into());
            }
            match entry.attr.kind {
                FileKind::Dir => self.fs.rmdir(cx, place.dir, name)?,
                _ => self.fs.unlink(cx, place.dir, name)?,
            }
            self.uses.entry_gone(removal.node, place);
            Ok(())
        })
    }
}
