//! Sources of a bulk read.

use std::fmt;
use std::sync::Arc;
use volary_core::BlockDevice;
use volary_session::Session;

/// Places in a volume, and the volume's device.
#[derive(Clone)]
pub struct Source {
    pub(crate) session: Session,
    pub(crate) places: Vec<Vec<u8>>,
    pub(crate) device: Option<Arc<dyn BlockDevice>>,
    pub(crate) is_live: bool,
}

impl Source {
    /// Returns a source for the whole volume, read through the session. Nobody may change the
    /// volume during the run, unless the source is [live](Self::live).
    pub fn new(session: Session) -> Self {
        Self {
            session,
            places: vec![b"/".to_vec()],
            device: None,
            is_live: false,
        }
    }

    /// Limits the source to these places: paths from the root, of files or directories. A symlink
    /// is not followed. A place within another place is delivered twice.
    #[must_use]
    pub fn places(mut self, places: Vec<Vec<u8>>) -> Self {
        self.places = places;
        self
    }

    /// Sets the device to which [`Place::Device`](volary_core::Place) of the volume's extents
    /// refers. The run reads it beside the driver, which must have written everything. Reads bypass
    /// the host's page cache if it holds little of the device.
    #[must_use]
    pub fn on(mut self, device: Arc<dyn BlockDevice>) -> Self {
        self.device = Some(device.past_cache().unwrap_or(device));
        self
    }

    /// Returns the session that the source is read through.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Declares that others may change the volume during the run.
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
