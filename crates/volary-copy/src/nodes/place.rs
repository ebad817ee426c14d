//! Places in volumes: [`VolumePlace`] for callers; [`At`] for messages and for walking.

use crate::nodes::ids::{HostId, Ids};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use volary_core::{BlockDevice, escape};
use volary_session::Session;

/// A path in a volume, with the volume's name for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) volume: Arc<str>,
    /// The path from the root; begins with `/`.
    pub(crate) path: Vec<u8>,
}

impl At {
    /// Returns another path on the volume.
    pub(crate) fn with_path(&self, path: Vec<u8>) -> Self {
        Self {
            volume: Arc::clone(&self.volume),
            path,
        }
    }

    /// Returns the place named `name` in this one.
    pub(crate) fn join(&self, name: &[u8]) -> Self {
        self.with_path(join(&self.path, name))
    }

    /// Goes to the place named `name` in this one. Returns the length of the path before;
    /// truncating the path to it goes back.
    pub(crate) fn enter(&mut self, name: &[u8]) -> usize {
        let before = self.path.len();
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        before
    }

    /// Returns the last part of the path; empty for the root.
    pub(crate) fn name(&self) -> &[u8] {
        let mut parts = self.path.split(|&b| b == b'/');
        parts.rfind(|p| !p.is_empty()).unwrap_or_default()
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.volume, escape(&self.path))
    }
}

/// Returns `dir/name`.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = dir.to_vec();
    if path.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// A place in a volume.
#[derive(Clone)]
pub struct VolumePlace {
    /// The session that copies.
    pub session: Session,
    /// The path, from the root.
    pub path: Vec<u8>,
    /// The volume's device, for reading, if the host may copy long stretches of files from it.
    pub device: Option<Arc<dyn BlockDevice>>,
    /// Device and inode of the volume's image, if there is one. It is neither copied nor
    /// overwritten.
    pub image: Option<HostId>,
    /// The directory of the host that the volume is, if it is one: its nodes are the host's.
    pub host_dir: Option<PathBuf>,
}

impl VolumePlace {
    pub(crate) fn at(&self) -> At {
        At {
            volume: self.session.volume().name().into(),
            path: self.path.clone(),
        }
    }

    /// Returns the ids of the volume's nodes.
    pub(crate) fn ids(&self) -> Ids {
        Ids::new(&self.session, self.host_dir.as_deref())
    }

    pub(crate) fn is_on(&self, session: &Session) -> bool {
        Arc::ptr_eq(self.session.volume(), session.volume())
    }
}

impl fmt::Debug for VolumePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VolumePlace")
            .field(&self.at().to_string())
            .finish()
    }
}
