//! The fresh volume for a case.

use std::any::Any;
use std::sync::Arc;
use volary_core::{BlockDevice, Fs};

/// A volume that was made for one case, with functions to attach it again and to check it.
pub struct Fresh {
    /// The volume.
    pub fs: Fs,
    /// Attaches the volume again.
    pub reattach: Option<Attacher>,
    /// Attaches the volume again for reading.
    pub read_only: Option<Attacher>,
    /// Checks the volume after the last detach.
    pub check: Option<Checker>,
    /// The device of the volume.
    pub device: Option<Arc<dyn BlockDevice>>,
    /// Values that are kept alive as long as the volume.
    pub keep: Vec<Kept>,
}

/// A value that is only kept alive.
pub type Kept = Box<dyn Any + Send + Sync>;

/// Checks a detached volume. The error is a description of what is wrong.
pub type Checker = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Attaches the volume again.
pub type Attacher = Box<dyn Fn() -> Fs + Send + Sync>;

impl Fresh {
    /// Wraps a volume. It must be empty if it is for [`Suite::new`](super::Suite::new).
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

    /// Sets how the volume is attached again after it was detached.
    #[must_use]
    pub fn reattach(mut self, attach: impl Fn() -> Fs + Send + Sync + 'static) -> Self {
        self.reattach = Some(Box::new(attach));
        self
    }

    /// Sets how the volume is attached again so that it refuses changes.
    #[must_use]
    pub fn read_only(mut self, attach: impl Fn() -> Fs + Send + Sync + 'static) -> Self {
        self.read_only = Some(Box::new(attach));
        self
    }

    /// Sets a check for after the last detach, e.g. that another program finds no faults in the
    /// image.
    #[must_use]
    pub fn checked_by(
        mut self,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Box::new(check));
        self
    }

    /// Sets the device of the volume, for volumes that report where the bytes of files are.
    #[must_use]
    pub fn on(mut self, device: Arc<dyn BlockDevice>) -> Self {
        self.device = Some(device);
        self
    }

    /// Keeps a value alive as long as the volume, e.g. a temporary directory or a mount.
    #[must_use]
    pub fn keeping(mut self, thing: impl Any + Send + Sync) -> Self {
        self.keep.push(Box::new(thing));
        self
    }

    /// Puts a layer over the volume, also when it is attached again.
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
