//! The journal, replayed in memory: which blocks have their newest contents there, and what fast commits
//! changed after that. May use all rooms above.

mod changes;
pub(crate) mod fast;
pub(crate) mod log;
pub(crate) mod superblock;

use crate::disk::blocks::Blocks;
use crate::disk::volume::Volume;
use crate::inodes::groups::Groups;
use crate::store::Store;
use changes::Changes;
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
    let blocks = Blocks::overlaid(dev.clone(), replayed, is_verified, memory)?;
    let groups = Groups::new(blocks);
    let fast = Changes::replay(&groups, &fast);
    Ok(Store::new(groups, fast))
}
