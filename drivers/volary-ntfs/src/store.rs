//! An opened volume and its parts.

use crate::attributes::attr::{Attributes, Owner};
use crate::attributes::secure::Secure;
use crate::attributes::xattr::Xattrs;
use crate::directory::dir::{Directory, Entry};
use crate::directory::upcase::{Collation, Upcase};
use crate::disk::clusters::Clusters;
use crate::disk::volume::Volume;
use crate::files::node::Node;
use crate::files::opening;
use crate::mft::records::Mft;
use std::sync::Arc;
use volary_core::{BlockDevice, Result};

/// An opened volume.
pub(crate) struct Store {
    mft: Mft,
    collation: Collation,
    secure: Secure,
}

impl Store {
    /// Opens the volume on a device by its boot sector.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn open(dev: Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Result<Self> {
        Ok(Self {
            mft: opening::open(Clusters::new(dev, volume, memory))?,
            collation: Collation::default(),
            secure: Secure::default(),
        })
    }

    pub(crate) fn mft(&self) -> &Mft {
        &self.mft
    }

    /// Returns the checked boot sector.
    pub(crate) fn volume(&self) -> &Volume {
        self.mft.volume()
    }

    /// Returns the volume's table of upper case.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn upcase(&self) -> Result<&Upcase> {
        self.collation.upcase(&self.mft)
    }

    /// Returns the entry with a name in a directory. A name that differs only in case also matches.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn find(&self, dir: &Directory, name: &[u8]) -> Result<Option<Entry>> {
        dir.find(&self.mft, &self.collation, name)
    }

    pub(crate) fn secure(&self) -> &Secure {
        &self.secure
    }

    /// Returns the reader of nodes' attributes. `owner` is used for nodes for which the volume
    /// names no owner.
    pub(crate) fn attributes<'a>(&'a self, owner: &'a Owner) -> Attributes<'a> {
        Attributes::new(&self.mft, &self.secure, owner)
    }

    /// Returns the reader of a node's extended attributes.
    pub(crate) fn xattrs<'a>(&'a self, node: &'a Node) -> Xattrs<'a> {
        Xattrs::new(&self.mft, &self.secure, node)
    }
}
