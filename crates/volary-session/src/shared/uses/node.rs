//! The uses of one node.

use super::mark::Mark;
use super::place::{Naming, Place};
use crate::shared::events::ClientId;
use crate::shared::how::Beside;
use crate::shared::leases::{Held, LeaseKey};
use crate::shared::sharing::{Rights, Share};
use volary_core::{Cred, Kind, NodeId, OpenId, Result};

/// All uses of one node.
#[derive(Default)]
pub(crate) struct NodeUse {
    pub(super) plain: Plain,
    pub(super) marked: Vec<Marked>,
    pub(super) deleting: Vec<Deleting>,
    pub(super) leases: Vec<Held>,
}

/// Opens that allow all, counted by the rights they want.
#[derive(Default)]
pub(super) struct Plain {
    opens: u32,
    reading: u32,
    writing: u32,
}

/// An open with a share mode, and maybe a place.
#[derive(Debug)]
pub(crate) struct Marked {
    pub(crate) mark: Mark,
    /// Its id, once it has one.
    pub(crate) open: Option<OpenId>,
    pub(crate) share: Share,
    /// The entry that it came through; `None` once that is removed.
    pub(crate) place: Option<Place>,
    /// Its client's key: what it does spares leases under the key.
    pub(crate) key: Option<LeaseKey>,
    /// The key that is spared among leases on the directory that it came through.
    pub(crate) parent_key: Option<LeaseKey>,
    /// The caller on whose behalf the entry is removed when this open ends.
    pub(crate) deletes: Option<Deleter>,
    /// The client that it belongs to.
    pub(crate) client: Option<ClientId>,
    pub(crate) beside: Beside,
}

impl Marked {
    pub(super) fn is_of(&self, client: Option<ClientId>) -> bool {
        client.is_some() && self.client == client
    }

    /// Returns whether this open's share mode never conflicts with `new`.
    pub(super) fn is_spared_by(&self, new: &Self) -> bool {
        match new.beside {
            Beside::All => true,
            Beside::Open(open) if self.open == Some(open) => true,
            Beside::Client => self.is_of(new.client),
            _ => matches!(self.beside, Beside::Client | Beside::All) && self.is_of(new.client),
        }
    }
}

/// The caller on whose behalf an entry is removed.
#[derive(Clone, Debug)]
pub(crate) struct Deleter {
    pub(crate) cred: Cred,
    pub(crate) client: Option<ClientId>,
    pub(crate) parent_key: Option<LeaseKey>,
}

/// An entry that is to be removed with the last open through it.
#[derive(Debug)]
pub(crate) struct Deleting {
    /// The open that marked it.
    mark: Mark,
    place: Place,
    by: Deleter,
    /// Whether it is being removed.
    going: bool,
}

/// An entry that is to be removed now, and on whose behalf.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) node: NodeId,
    pub(crate) by: Deleter,
    mark: Mark,
}

/// What changes when an open ends.
pub(super) struct Left {
    /// Whether its entry is marked for removal from now on.
    pub(super) begun: bool,
    /// The lease of its key, if that ends too.
    pub(super) lease: Option<Held>,
}

impl Plain {
    pub(super) fn add(&mut self, wants: Rights) {
        self.opens += 1;
        self.reading += u32::from(wants.has(Rights::READ));
        self.writing += u32::from(wants.has(Rights::WRITE));
    }

    pub(super) fn sub(&mut self, wants: Rights) {
        self.opens = self.opens.saturating_sub(1);
        let less = |count: &mut u32, by: bool| *count = count.saturating_sub(by.into());
        less(&mut self.reading, wants.has(Rights::READ));
        less(&mut self.writing, wants.has(Rights::WRITE));
    }

    pub(super) fn has_data(&self) -> bool {
        self.reading > 0 || self.writing > 0
    }

    fn share(&self) -> Share {
        let reads = if self.reading > 0 {
            Rights::READ
        } else {
            Rights::NONE
        };
        let writes = if self.writing > 0 {
            Rights::WRITE
        } else {
            Rights::NONE
        };
        Share {
            wants: reads | writes,
            allows: Rights::ALL,
        }
    }
}

impl Deleting {
    pub(super) fn is_at(&self, place: &Place, naming: &Naming) -> bool {
        naming.is_same(&self.place, place)
    }

    pub(super) fn is_going(&self, removal: &Removal) -> bool {
        self.going && self.mark == removal.mark
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }
}

impl NodeUse {
    pub(super) fn is_idle(&self) -> bool {
        self.plain.opens == 0 && self.marked.is_empty() && self.deleting.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.plain.opens as usize + self.marked.len()
    }

    /// # Errors
    /// `Sharing` if an open that is not spared is incompatible with this share mode.
    pub(super) fn check_share(&self, share: Share, spared: impl Fn(&Marked) -> bool) -> Result<()> {
        let mut others = self.marked.iter().filter(|open| !spared(open));
        let all =
            self.plain.share().goes_with(share) && others.all(|open| open.share.goes_with(share));
        if all {
            Ok(())
        } else {
            Err(Kind::Sharing.into())
        }
    }

    /// # Errors
    /// `DeletePending` if the entry is to be removed with its last open.
    pub(super) fn check_entry(&self, naming: &Naming, place: &Place) -> Result<()> {
        if self.deleting.iter().any(|entry| entry.is_at(place, naming)) {
            return Err(Kind::DeletePending.into());
        }
        Ok(())
    }

    /// # Errors
    /// `DeletePending` if all names of the node are to be removed.
    pub(super) fn check_names(&self, names: u32) -> Result<()> {
        if !self.deleting.is_empty() && self.deleting.len() >= names as usize {
            return Err(Kind::DeletePending.into());
        }
        Ok(())
    }

    /// Marks an entry for removal. Returns false if it was marked already.
    pub(super) fn begin_deleting(
        &mut self,
        mark: Mark,
        place: Place,
        by: Deleter,
        naming: &Naming,
    ) -> bool {
        let new = self.check_entry(naming, &place).is_ok();
        if new {
            self.deleting.push(Deleting {
                mark,
                place,
                by,
                going: false,
            });
        }
        new
    }

    pub(super) fn move_deleting(&mut self, from: &Place, to: &Place, naming: &Naming) {
        for entry in &mut self.deleting {
            if entry.is_at(from, naming) {
                entry.place = to.clone();
            }
        }
    }

    /// Removes the open, and the lease if that ends with it. `None` if the open is not registered.
    pub(super) fn leave(&mut self, mark: Mark, naming: &Naming) -> Option<Left> {
        let index = self.marked.iter().position(|open| open.mark == mark)?;
        let open = self.marked.swap_remove(index);
        let lease = open.key.and_then(|key| self.end_lease(key, open.open));
        let begun = match (open.deletes, open.place) {
            (Some(by), Some(place)) => self.begin_deleting(mark, place, by, naming),
            _ => false,
        };
        Some(Left { begun, lease })
    }

    /// Notes that an open of the key has ended. Returns the lease if it was the last open.
    fn end_lease(&mut self, key: LeaseKey, open: Option<OpenId>) -> Option<Held> {
        let index = self.leases.iter().position(|held| held.key == key)?;
        let mut same = self.marked.iter().filter(|open| open.key == Some(key));
        match (same.clone().next(), open) {
            (None, _) => Some(self.leases.swap_remove(index)),
            (Some(_), Some(open)) => {
                let other = same.find_map(|open| open.open);
                self.leases[index].ends_with(open, other);
                None
            }
            (Some(_), None) => None,
        }
    }

    /// Returns an entry that is marked for removal and has no open left, if there is one. Notes
    /// that, so that it is returned only once.
    pub(super) fn due(&mut self, node: NodeId, naming: &Naming) -> Option<Removal> {
        let Self {
            marked, deleting, ..
        } = self;
        let is_open = |entry: &Deleting| {
            let mut places = marked.iter().filter_map(|open| open.place.as_ref());
            places.any(|place| entry.is_at(place, naming))
        };
        let entry = deleting
            .iter_mut()
            .find(|entry| !entry.going && !is_open(entry))?;
        entry.going = true;
        Some(Removal {
            node,
            by: entry.by.clone(),
            mark: entry.mark,
        })
    }
}
