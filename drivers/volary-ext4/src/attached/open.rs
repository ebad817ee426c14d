//! How a volume is opened, and its options.

use crate::disk::volume::Volume;
use crate::journal;
use crate::store::Store;
use std::sync::Arc;
use volary_core::{BlockDevice, OptionSpec, Options, Result};

/// Options of an attachment.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "noload",
        value: "",
        help: "leave what is in the journal out: the volume as it stands on the device",
    },
    OptionSpec {
        name: "nochecksums",
        value: "",
        help: "do not look at checksums of metadata: for what can be read of a damaged volume",
    },
];

/// How a volume is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) replays: bool,
    pub(crate) is_verified: bool,
}

impl How {
    /// # Errors
    /// `Invalid`.
    pub(crate) fn of(options: &Options) -> Result<Self> {
        options.check_known(OPTIONS)?;
        Ok(Self {
            replays: !options.flag("noload", false)?,
            is_verified: !options.flag("nochecksums", false)?,
        })
    }
}

/// Opens a volume.
///
/// # Errors
/// As [`Volume::read`] and [`journal::replay`].
pub(crate) fn open(dev: &Arc<dyn BlockDevice>, how: How, memory: u64) -> Result<Store> {
    let volume = Volume::read(&**dev, how.is_verified)?;
    match how.replays {
        true => journal::replay(dev, volume, memory),
        false => Ok(Store::plain(dev.clone(), volume, memory)),
    }
}
