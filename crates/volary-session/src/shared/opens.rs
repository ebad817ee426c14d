//! The open table: the node, mode and driver's open of each open.
//!
//! It is sharded, so that callers on different opens do not wait for each other. A look-up is one
//! uncontended read lock and an index.

use crate::shared::sharing::Rights;
use crate::shared::uses::Mark;
use parking_lot::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use volary_core::{Kind, Mode, NodeId, OpenId, Result};

const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;

/// One open, as the session knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// The driver's open; meaningless if `holds` is `Nothing`.
    pub(crate) below: OpenId,
    pub(crate) node: NodeId,
    pub(crate) mode: Mode,
    /// Writes go to the end, at any given offset.
    pub(crate) append: bool,
    /// The volume's `set_id_epoch` at which the node was last known to have no privileges (set-uid,
    /// set-gid, capabilities); 0 for never.
    pub(crate) plain_at: u64,
    /// Identifies its share mode, place and lease among the uses of the node.
    pub(crate) mark: Mark,
    pub(crate) holds: Holds,
}

/// What an open holds in the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// The data, with the access that the mode says.
    Data,
    /// The node, but none of its data.
    Node,
    /// Nothing: the driver could not open the node.
    Nothing,
}

impl Opened {
    pub(crate) fn reads(&self) -> bool {
        self.mode != Mode::Write && self.holds == Holds::Data
    }
    pub(crate) fn writes(&self) -> bool {
        self.mode != Mode::Read && self.holds == Holds::Data
    }

    /// Returns the driver's open, for access to data.
    ///
    /// # Errors
    /// `Access` for a bare open.
    pub(crate) fn data(&self) -> Result<OpenId> {
        match self.holds {
            Holds::Data => Ok(self.below),
            _ => Err(Kind::Access.into()),
        }
    }

    /// Returns the rights that a counted (plain) open wants.
    pub(crate) fn wants(&self) -> Rights {
        match self.holds {
            Holds::Data => self.mode.into(),
            Holds::Node | Holds::Nothing => Rights::NONE,
        }
    }

    /// Returns the driver's open, if there is one.
    pub(crate) fn any(&self) -> Option<OpenId> {
        (self.holds != Holds::Nothing).then_some(self.below)
    }
}

/// Ids are `generation << 32 | index << SHARD_BITS | shard`. The generation grows each time a place
/// is reused, so that an old id finds nothing.
pub(crate) struct OpenTable {
    shards: [RwLock<Shard>; SHARDS],
    next_shard: AtomicUsize,
    len: AtomicUsize,
    limit: usize,
}

#[derive(Default)]
struct Shard {
    places: Vec<Place>,
    free: Vec<u32>,
}

struct Place {
    generation: u32,
    open: Option<Opened>,
}

impl OpenTable {
    /// Returns a table for `limit` opens; threads that open at the same time may exceed it a
    /// little.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            shards: Default::default(),
            next_shard: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            limit: limit.min(SHARDS << (u32::BITS - SHARD_BITS - 1)),
        }
    }

    /// Returns how many opens there are.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Adds an open.
    ///
    /// # Errors
    /// `TooManyOpen`.
    pub(crate) fn insert(&self, open: Opened) -> Result<OpenId> {
        if self.len() >= self.limit {
            return Err(Kind::TooManyOpen.into());
        }
        let number = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut shard = self.shards[number].write();
        let index = match shard.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(shard.places.len()).unwrap_or(u32::MAX);
                if index >= 1 << (u32::BITS - SHARD_BITS) {
                    return Err(Kind::TooManyOpen.into());
                }
                shard.places.push(Place {
                    generation: 1,
                    open: None,
                });
                index
            }
        };
        let place = &mut shard.places[index as usize];
        place.open = Some(open);
        self.len.fetch_add(1, Ordering::Relaxed);
        Ok(id(place.generation, index, number))
    }

    /// Returns the open.
    ///
    /// # Errors
    /// `Stale` if it is closed, or never was.
    pub(crate) fn get(&self, id: OpenId) -> Result<Opened> {
        let (number, index, generation) = split(id);
        let shard = self.shards[number].read();
        match shard.places.get(index) {
            Some(place) if place.generation == generation => place.open,
            _ => None,
        }
        .ok_or_else(|| Kind::Stale.into())
    }

    /// Notes that the node had no privileges at `epoch`.
    pub(crate) fn note_plain(&self, id: OpenId, epoch: u64) {
        let (number, index, generation) = split(id);
        let mut shard = self.shards[number].write();
        if let Some(place) = shard.places.get_mut(index)
            && place.generation == generation
            && let Some(open) = &mut place.open
        {
            open.plain_at = epoch;
        }
    }

    /// Removes an open.
    ///
    /// # Errors
    /// `Stale` if it is closed, or never was.
    pub(crate) fn remove(&self, id: OpenId) -> Result<Opened> {
        let (number, index, generation) = split(id);
        let mut shard = self.shards[number].write();
        let open = match shard.places.get_mut(index) {
            Some(place) if place.generation == generation => place.take(),
            _ => None,
        };
        let open = open.ok_or(Kind::Stale)?;
        if let Ok(index) = u32::try_from(index) {
            shard.free.push(index);
        }
        self.len.fetch_sub(1, Ordering::Relaxed);
        Ok(open)
    }

    /// Removes all opens.
    pub(crate) fn take_all(&self) -> Vec<(OpenId, Opened)> {
        let mut all = Vec::new();
        for (number, shard) in self.shards.iter().enumerate() {
            let Shard { places, free } = &mut *shard.write();
            for (index, place) in (0..).zip(places) {
                let id = id(place.generation, index, number);
                if let Some(open) = place.take() {
                    all.push((id, open));
                    free.push(index);
                }
            }
        }
        self.len.fetch_sub(all.len(), Ordering::Relaxed);
        all
    }
}

impl Place {
    fn take(&mut self) -> Option<Opened> {
        let open = self.open.take()?;
        self.generation = self.generation.wrapping_add(1).max(1);
        Some(open)
    }
}

fn id(generation: u32, index: u32, shard: usize) -> OpenId {
    let low = u64::from(index) << SHARD_BITS | shard as u64;
    OpenId(u64::from(generation) << 32 | low)
}

fn split(id: OpenId) -> (usize, usize, u32) {
    let low = id.0 as u32;
    let shard = low as usize % SHARDS;
    let index = (low >> SHARD_BITS) as usize;
    (shard, index, (id.0 >> 32) as u32)
}
