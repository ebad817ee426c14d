//! What was opened, and what a driver is told that opens it.

use crate::TYPE_OPTION;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Fs, OptionSpec, Replica, Result};

/// A volume that was opened.
pub struct Opened {
    /// The file system.
    pub fs: Fs,
    /// The replica that it is read by, since its first superblock or boot sector makes no sense:
    /// it takes no changes.
    pub replica: Option<Replica>,
    /// The device that it is on, which its extents name places of. None of a volume without, and of
    /// one that keeps files of another.
    pub device: Option<Arc<dyn BlockDevice>>,
}

impl From<Fs> for Opened {
    fn from(fs: Fs) -> Self {
        Self {
            fs,
            replica: None,
            device: None,
        }
    }
}

/// Returns what a driver is told that has these options of its own. `type` was for [`find`]. `sync` without a value is a commit
/// time of 0 where a driver has none of its own: a matter of who shares the volume.
///
/// # Errors
/// `Invalid` for a commit time that is none.
pub(crate) fn told(how: &Attach, own: &[OptionSpec]) -> Result<Attach> {
    let mut how = how.clone();
    how.options.take(TYPE_OPTION);
    how.options.seconds("commit")?;
    if !own.iter().any(|spec| spec.name == "commit") {
        how.options.take("commit");
    }
    if how.options.get("sync") == Some("") && !own.iter().any(|spec| spec.name == "sync") {
        how.options.take("sync");
    }
    Ok(how)
}
