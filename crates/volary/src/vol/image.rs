//! Images of new volumes, and what these are to be.

use std::ffi::OsStr;
use std::path::Path;
use volary_block::FileDevice;
use volary_core::{Error, Kind, Options, Result};

/// What a file keeps the bytes of an image in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// The bytes as they are; what was never written takes no room where the host can leave holes.
    Raw,
    /// QEMU's format of images that grow.
    Qcow2,
}

/// Ends of names that people expect another format of.
const FOREIGN: [&str; 7] = ["qcow", "qed", "vdi", "vhd", "vhdx", "vmdk", "dmg"];

impl ImageFormat {
    /// Returns what people expect of a file of this name.
    ///
    /// # Errors
    /// `Unsupported` for a format that is not made.
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

    /// Makes an image of `size` bytes, all zeros, where there is no file or an empty one.
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

/// What a new volume is to be.
#[derive(Clone, Debug, Default)]
pub(super) struct Making {
    pub(super) label: Option<String>,
    pub(super) seed: Option<u64>,
    pub(super) options: Options,
    pub(super) format: Option<ImageFormat>,
    pub(super) overwrites: bool,
}
