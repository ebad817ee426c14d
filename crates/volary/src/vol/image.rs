//! Images for new volumes, and options of new volumes.

use std::ffi::OsStr;
use std::path::Path;
use volary_block::FileDevice;
use volary_core::{Error, Kind, Options, Result};

/// The file format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// The bytes as they are. Parts that were never written take no space if the host supports
    /// holes.
    Raw,
    /// QEMU's format for images that grow.
    Qcow2,
}

/// File extensions of formats that volary cannot make.
const FOREIGN: [&str; 7] = ["qcow", "qed", "vdi", "vhd", "vhdx", "vmdk", "dmg"];

impl ImageFormat {
    /// Returns the format that people expect of a file with this name.
    ///
    /// # Errors
    /// `Unsupported` for a format that volary cannot make.
    pub fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().map(OsStr::to_ascii_lowercase);
        match ending.as_ref().and_then(|ending| ending.to_str()) {
            Some("qcow2") => Ok(Self::Qcow2),
            Some(ending) if FOREIGN.contains(&ending) => {
                let words = format!("volary makes no {ending} images");
                Err(Error::note(Kind::Unsupported, words))
            }
            _ => Ok(Self::Raw),
        }
    }

    /// Makes an image of `size` zero bytes. `path` must not exist, or be empty.
    ///
    /// # Errors
    /// As [`FileDevice::create`]; `Unsupported` without the feature `qcow2`.
    pub fn make(self, path: &Path, size: u64) -> Result<()> {
        match self {
            Self::Raw => FileDevice::create(path, size).map(drop),
            #[cfg(feature = "qcow2")]
            Self::Qcow2 => volary_block::Qcow2::create(path, size),
            #[cfg(not(feature = "qcow2"))]
            Self::Qcow2 => Err(Error::note(
                Kind::Unsupported,
                "a qcow2 image needs volary's feature qcow2, which this program was built without",
            )),
        }
    }
}

/// Options of a new volume.
#[derive(Clone, Debug, Default)]
pub(super) struct Making {
    pub(super) label: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) options: Options,
    pub(super) format: Option<ImageFormat>,
    pub(super) overwrites: bool,
}
