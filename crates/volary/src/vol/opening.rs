//! Opening volumes by their options.

use super::error::{VolError, VolResult};
use super::handle::Vol;
use super::held::Held;
use super::options::VolOptions;
use crate::{Opened, Source};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Error, Fs, Kind, Replica, Result, escape};
use volary_session::Commit;

impl VolOptions {
    /// Opens a volume for reading; see [`Vol::open`].
    ///
    /// # Errors
    /// As there; `Invalid` for options.
    pub fn open(&self, source: impl AsRef<OsStr>) -> VolResult<Vol> {
        self.open_source(&self.parsed(source.as_ref())?, true)
    }

    /// Opens a volume for changes; see [`Vol::edit`].
    ///
    /// # Errors
    /// As there; `Invalid` for options.
    pub fn edit(&self, source: impl AsRef<OsStr>) -> VolResult<Vol> {
        self.open_source(&self.parsed(source.as_ref())?, false)
    }

    /// Opens the volume of a [`Source`].
    ///
    /// # Errors
    /// As [`Vol::open`] and [`Vol::edit`].
    pub fn open_source(&self, source: &Source, read_only: bool) -> VolResult<Vol> {
        let open = |how: &Attach| self.registry.open_volume(source, how, (self.clock)());
        self.opened(source, read_only, open)
    }

    /// Opens the volume on a device that the program provides. Errors call it `name`.
    ///
    /// # Errors
    /// As [`Vol::open`] and [`Vol::edit`].
    pub fn open_device(
        &self,
        name: &str,
        device: Arc<dyn BlockDevice>,
        read_only: bool,
    ) -> VolResult<Vol> {
        let source = Source::Image {
            path: name.into(),
            partition: None,
        };
        self.opened(&source, read_only, |how| {
            self.registry.open_on(device, how, (self.clock)())
        })
    }

    /// Opens a file system that the program provides by `attach`. Errors call it `name`.
    ///
    /// # Errors
    /// Those of `attach`, and of layers.
    pub fn open_fs(
        &self,
        name: &str,
        read_only: bool,
        attach: impl FnOnce(&Attach) -> Result<Fs>,
    ) -> VolResult<Vol> {
        let source = Source::Image {
            path: name.into(),
            partition: None,
        };
        self.opened(&source, read_only, |how| Ok(attach(how)?.into()))
    }

    /// Parses a source.
    pub(super) fn parsed(&self, source: &OsStr) -> VolResult<Source> {
        let parsed = self.registry.source(source.as_bytes());
        parsed.map_err(|e| VolError::new("open", escape(source.as_bytes()), e))
    }

    fn opened(
        &self,
        source: &Source,
        read_only: bool,
        open: impl FnOnce(&Attach) -> Result<Opened>,
    ) -> VolResult<Vol> {
        let held = || {
            let how = self.attach(read_only)?;
            let mut options = self.clone();
            if let Some(time) = how.options.seconds("commit")? {
                options.commit = Commit::Within(time);
            }
            options.finish(source, read_only, open(&how)?)
        };
        let held = held().map_err(|e| VolError::new("open", source, e))?;
        Ok(held.into())
    }

    /// Puts the layers over an opened volume. Detaches it if it cannot be used.
    fn finish(self, source: &Source, read_only: bool, opened: Opened) -> Result<Held> {
        let Opened {
            fs,
            replica,
            device,
        } = opened;
        let device = device.filter(|_| self.layers().is_empty());
        let bare = Held::new(source.clone(), fs, device, self);
        if let Some(replica) = replica.filter(|_| !read_only) {
            return Err(by_replica(&replica));
        }
        bare.under_all()
    }
}

/// Returns the error for changing a volume that is read by a replica.
fn by_replica(replica: &Replica) -> Error {
    let Replica { what, home, at, .. } = replica;
    let words = format!(
        "the {what} at byte {home} makes no sense; nothing is changed before a check writes it anew from its \
         replica at byte {at}"
    );
    Error::note(Kind::Corrupt, words)
}
