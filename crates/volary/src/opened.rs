//! Opened volumes, and the options that their drivers get.

use crate::TYPE_OPTION;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Fs, OptionSpec, Replica, Result};

/// An opened volume.
pub struct Opened {
    /// The file system.
    pub fs: Fs,
    /// The replica in use, if the primary superblock or boot sector makes no sense. The volume then
    /// takes no changes.
    pub replica: Option<Replica>,
    /// The device to which its extents refer. `None` for a volume without a device, and for one
    /// that caches another volume.
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

/// Returns the options for a driver that has the options `own`. Removes `type`, which was for
/// [`find`]. Removes `commit`, and `sync` without a value, unless the driver has them: the sharing
/// layer handles these.
///
/// # Errors
/// `Invalid` for a malformed commit time.
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
