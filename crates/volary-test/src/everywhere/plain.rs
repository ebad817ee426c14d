//! A volume to be tested in all ways, as it is made.

use crate::{Fresh, Manifest, Suite};
use std::sync::Arc;

/// Makes a volume for one case.
pub(super) type Make = Arc<dyn Fn() -> Fresh + Send + Sync>;

/// The names of cases, and the reason why they are left out.
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
pub(super) type LeftOut = (&'static [&'static str], &'static str);

/// A volume to be tested, and its manifest if it is only read.
pub(super) struct Plain {
    pub(super) name: String,
    pub(super) make: Make,
    pub(super) manifest: Option<Manifest>,
}

impl Plain {
    /// Returns the suite for the volumes of `make`, which shows this volume in the way named `way`.
    pub(super) fn suite(&self, way: &str, make: Make) -> Suite {
        let name = format!("{} {way}", self.name);
        match &self.manifest {
            None => Suite::new(name, move || make()),
            Some(manifest) => Suite::reading(name, move || make(), manifest),
        }
    }
}

/// Wraps a file system in a session volume, for a server.
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
pub(super) fn volume(fs: volary_core::Fs) -> Arc<volary_session::Volume> {
    volary_session::Volume::new(fs, volary_session::VolumeOptions::new("test", clock))
}

#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
#[expect(clippy::disallowed_methods, reason = "servers run by the host's clock")]
pub(super) fn clock() -> volary_core::Time {
    std::time::SystemTime::now().into()
}

/// Cases that fail, because clients do not pass each change on to a read-only volume.
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
pub(super) const LOOKS_FIRST: LeftOut = (
    &["a_read_only_volume_refuses_every_change"],
    "clients look for what they are to remove or rename, and find nothing",
);
