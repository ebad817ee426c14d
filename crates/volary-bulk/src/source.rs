//! What to read.

use std::fmt;
use std::sync::Arc;
use volary_core::BlockDevice;
use volary_session::Session;

/// Places in a volume, and the device that it is on.
#[derive(Clone)]
pub struct Source {
    pub(crate) session: Session,
    pub(crate) places: Vec<Vec<u8>>,
    pub(crate) device: Option<Arc<dyn BlockDevice>>,
    pub(crate) is_live: bool,
}

impl Source {
    /// Returns all of the volume, read through the session. Nobody changes it during the run, or it is
    /// [live](Self::live).
    pub fn new(session: Session) -> Self {
        Self {
            session,
            places: vec![b"/".to_vec()],
            device: None,
            is_live: false,
        }
    }

    /// These places alone: paths from the root, of files or directories. A symlink is told of as
    /// one. A place that is in another one is told of twice.
    #[must_use]
    pub fn places(mut self, places: Vec<Vec<u8>>) -> Self {
        self.places = places;
        self
    }

    /// Returns the device on which [`Place::Device`](volary_core::Place) of the volume's extents are. It is
    /// read beside the driver, which must be done with writing; past the host's page cache where that has little of it.
    #[must_use]
    pub fn on(mut self, device: Arc<dyn BlockDevice>) -> Self {
        self.device = Some(device.past_cache().unwrap_or(device));
        self
    }

    /// Returns the session that it is read through.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Others may change it during the run.
    #[must_use]
    pub fn live(mut self) -> Self {
        self.is_live = true;
        self
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("session", &self.session)
            .field("places", &self.places.len())
            .field("has_device", &self.device.is_some())
            .field("is_live", &self.is_live)
            .finish()
    }
}
