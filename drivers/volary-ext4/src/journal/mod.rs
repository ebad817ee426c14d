//! The journal, replayed in memory: which blocks have their newest contents there.

pub(crate) mod fast;
pub(crate) mod log;
pub(crate) mod replayed;
pub(crate) mod superblock;

pub(crate) use replayed::{Overlaid, Replayed};

use crate::store::Store;
use crate::volume::Volume;
use log::Log;
use std::sync::Arc;
use superblock::Journal;
use volary_core::{BlockDevice, Result};

/// Opens a volume with what its journal holds. A volume that was left cleanly has nothing there.
///
/// # Errors
/// `Corrupt` for a journal that contradicts itself, as what it would bring is not known then;
/// `Unsupported` for one on another device, or with unknown features; `Io`.
pub(crate) fn replay(dev: &Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Result<Store> {
    let is_verified = volume.is_verified;
    let store = Store::plain(dev.clone(), volume, memory);
    let Some(journal) = Journal::of(&store)?.filter(|journal| !journal.is_empty()) else {
        return Ok(store);
    };
    let log = Log::read(&store, &journal)?;
    let fast = fast::read(&store, &journal, log.next)?;
    let replayed = Arc::new(log.replay(&store, &journal)?);
    let over: Arc<dyn BlockDevice> = Arc::new(Overlaid::new(dev.clone(), replayed.clone()));
    // The superblock goes through the journal as well.
    let volume = Volume::read(&*over, is_verified)?;
    let mut store = Store::plain(over, volume, memory);
    store.replayed = Some(replayed);
    store.replay_fast(&fast);
    Ok(store)
}
