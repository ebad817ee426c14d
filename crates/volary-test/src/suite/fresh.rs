//! A fresh volume for a case.

use std::any::Any;
use std::sync::Arc;
use volary_core::{BlockDevice, Fs};

/// A volume made for one case, and what can be done with it from outside.
pub struct Fresh {
    /// The volume.
    pub fs: Fs,
    /// Attaches it again.
    pub reattach: Option<Attacher>,
    /// Attaches it again for reading.
    pub read_only: Option<Attacher>,
    /// Looks at it once it is detached.
    pub check: Option<Checker>,
    /// The device that it lies on.
    pub device: Option<Arc<dyn BlockDevice>>,
    /// What is to live as long as it.
    pub keep: Vec<Kept>,
}

/// Something that is only kept alive.
pub type Kept = Box<dyn Any + Send + Sync>;

/// Looks at the volume once it is detached; words for what is wrong.
pub type Checker = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Attaches the volume once more.
pub type Attacher = Box<dyn Fn() -> Fs + Send + Sync>;

impl Fresh {
    /// Returns a volume that takes changes, unless it says otherwise, and is empty.
    pub fn new(fs: Fs) -> Self {
        Self {
            fs,
            reattach: None,
            read_only: None,
            check: None,
            device: None,
            keep: Vec::new(),
        }
    }

    /// With a way to attach the volume again after it was detached.
    #[must_use]
    pub fn reattach(mut self, attach: impl Fn() -> Fs + Send + Sync + 'static) -> Self {
        self.reattach = Some(Box::new(attach));
        self
    }

    /// With a way to attach it again so that it refuses changes.
    #[must_use]
    pub fn read_only(mut self, attach: impl Fn() -> Fs + Send + Sync + 'static) -> Self {
        self.read_only = Some(Box::new(attach));
        self
    }

    /// With something to check after the last detach: that another program
    /// finds nothing wrong with the image, say.
    #[must_use]
    pub fn checked_by(
        mut self,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// With the device that it lies on, for volumes that say where the bytes of files are.
    #[must_use]
    pub fn on(mut self, device: Arc<dyn BlockDevice>) -> Self {
        self.device = Some(device);
        self
    }

    /// Keeps something alive for as long as the volume: a temporary directory,
    /// a mount.
    #[must_use]
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.keep.push(Box::new(thing));
        self
    }

    /// Returns the volume under a layer.
    #[must_use]
    pub fn under(mut self, layer: fn(Fs) -> Fs) -> Self {
        self.fs = layer(self.fs);
        self.reattach = self.reattach.map(|f| wrap(f, layer));
        self.read_only = self.read_only.map(|f| wrap(f, layer));
        self
    }
}

fn wrap(attach: Attacher, layer: fn(Fs) -> Fs) -> Attacher {
    Box::new(move || layer(attach()))
}

impl From<Fs> for Fresh {
    fn from(fs: Fs) -> Self {
        Self::new(fs)
    }
}
