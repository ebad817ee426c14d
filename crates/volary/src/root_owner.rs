//! The owner of the root directory of a new volume.

use std::sync::Arc;
use volary_core::{
    Attach, BlockDevice, Cred, Error, Format, Fs, Kind, Options, Result, SetAttr, Time,
};
use volary_session::{Commit, Follow, Volume, VolumeOptions};

/// An owner for the root of a new volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootOwner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// The user asked for this owner, and must be told if the volume cannot keep it.
    pub is_asked: bool,
}

impl RootOwner {
    /// Adds the owner to the options of a format that has such options (`owner`, `group`). For
    /// other formats, returns the owner, to be [set](Self::give) once the volume is made. `None` if
    /// nothing is left to do, or if the volume keeps no owners.
    ///
    /// # Errors
    /// `Unsupported` if the user asked for an owner and the volume keeps none; `Invalid` for
    /// options.
    pub fn tell(
        self,
        format: &dyn Format,
        kind: &str,
        options: &mut Options,
    ) -> Result<Option<Self>> {
        let has = |name: &str| format.make_options().iter().any(|spec| spec.name == name);
        let keeps = !has("unix") || options.flag("unix", false)?;
        if !keeps {
            let words = format!("a volume of {kind} keeps owners with the option unix only");
            return match self.is_asked {
                true => Err(Error::note(Kind::Unsupported, words)),
                false => Ok(None),
            };
        }
        if has("owner") {
            for (name, id) in [("owner", self.uid), ("group", self.gid)] {
                if self.is_asked || options.get(name).is_none() {
                    options.set(name, id.to_string());
                }
            }
            return Ok(None);
        }
        // By default, the owner is root, or whoever mounts the volume.
        let is_needed = self.is_asked || self.uid != 0 || self.gid != 0;
        Ok(is_needed.then_some(self))
    }

    /// Sets the owner of a new volume's root directory.
    ///
    /// # Errors
    /// As attaching the volume and changing its root's owner: `Unsupported` or `Invalid` for an
    /// owner that it cannot keep.
    pub fn give(
        self,
        device: Arc<dyn BlockDevice>,
        format: &dyn Format,
        clock: fn() -> Time,
    ) -> Result<()> {
        // Attaches as nobody. Otherwise this owner might count as the default one, and not be
        // stored.
        let how = Attach {
            uid: u32::MAX,
            gid: u32::MAX,
            ..Attach::default()
        };
        self.chown(format.attach(device, &how)?, clock)
    }

    fn chown(self, fs: Fs, clock: fn() -> Time) -> Result<()> {
        let options = VolumeOptions {
            trust: true,
            commit: Commit::WhenAsked,
            ..VolumeOptions::new("new", clock)
        };
        let volume = Volume::new(fs, options);
        let session = volume.session(Cred::root());
        let root = session.walk(b"/", Follow::No);
        let set = SetAttr {
            uid: Some(self.uid),
            gid: Some(self.gid),
            ..SetAttr::default()
        };
        let done = root.and_then(|root| session.setattr(root.node, &set));
        done.map(drop).and(volume.detach())
    }
}
