//! The open table: which driver's open, of which node, for what.
//!
//! Sharded, so that callers on different opens do not wait for each other; a
//! look-up is one uncontended read lock and an index.

use parking_lot::RwLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use volary_core::{Kind, Mode, NodeId, OpenId, Result};

const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;

/// One open, as the session knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// The file system's open.
    pub(crate) below: OpenId,
    pub(crate) node: NodeId,
    pub(crate) mode: Mode,
    /// Writes go to the end, whatever offset they name.
    pub(crate) append: bool,
    /// The volume's `set_id_epoch` at which the node was last known to have
    /// neither set-uid nor set-gid; 0 for never.
    pub(crate) plain_at: u64,
}

impl Opened {
    pub(crate) fn reads(&self) -> bool {
        self.mode != Mode::Write
    }
    pub(crate) fn writes(&self) -> bool {
        self.mode != Mode::Read
    }
}

/// Ids are `generation << 32 | index << SHARD_BITS | shard`; the generation
/// grows each time a place is used again, so that an old id finds nothing.
#[derive(Default)]
pub(crate) struct OpenTable {
    shards: [RwLock<Shard>; SHARDS],
    next_shard: AtomicUsize,
    len: AtomicUsize,
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
    /// How many opens there are.
    pub(crate) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Enters an open.
    ///
    /// # Errors
    /// `Busy` past 2^28 opens a shard.
    pub(crate) fn insert(&self, open: Opened) -> Result<OpenId> {
        let number = self.next_shard.fetch_add(1, Ordering::Relaxed) % SHARDS;
        let mut shard = self.shards[number].write();
        let index = match shard.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(shard.places.len()).unwrap_or(u32::MAX);
                if index >= 1 << (u32::BITS - SHARD_BITS) {
                    return Err(Kind::Busy.into());
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
        let low = u64::from(index) << SHARD_BITS | number as u64;
        Ok(OpenId(u64::from(place.generation) << 32 | low))
    }

    /// The open.
    ///
    /// # Errors
    /// `Stale` if it is gone, or never was.
    pub(crate) fn get(&self, id: OpenId) -> Result<Opened> {
        let (number, index, generation) = split(id);
        let shard = self.shards[number].read();
        match shard.places.get(index) {
            Some(place) if place.generation == generation => place.open,
            _ => None,
        }
        .ok_or_else(|| Kind::Stale.into())
    }

    /// Notes that the node had neither set-uid nor set-gid at `epoch`.
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

    /// Takes an open out.
    ///
    /// # Errors
    /// `Stale` if it is gone, or never was.
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

    /// Takes all opens out.
    pub(crate) fn take_all(&self) -> Vec<Opened> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let Shard { places, free } = &mut *shard.write();
            for (index, place) in (0..).zip(places) {
                if let Some(open) = place.take() {
                    all.push(open);
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

fn split(id: OpenId) -> (usize, usize, u32) {
    let low = id.0 as u32;
    let shard = low as usize % SHARDS;
    let index = (low >> SHARD_BITS) as usize;
    (shard, index, (id.0 >> 32) as u32)
}
