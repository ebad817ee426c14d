//! [`VolOptions`]: how a volume is opened.

use super::Vol;
use super::clock;
use super::error::{VolError, VolResult};
use super::held::Held;
use super::make::Making;
use crate::{Opened, Source, TYPE_OPTION};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Error, Fs, Kind, Options, Replica, Result, Time, escape};
use volary_session::Commit;

/// How to open a volume, or make one: each method changes one thing, and one of [`open`](Self::open),
/// [`edit`](Self::edit), [`make`](Self::make) and [`check`](Self::check) comes last.
///
/// ```no_run
/// use volary::Vol;
///
/// # fn main() -> volary::VolResult<()> {
/// let vol = Vol::options().layer("casefold").memory(16 << 20).open("disk.img")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct VolOptions {
    kind: Option<String>,
    memory: u64,
    options: Options,
    layers: Vec<String>,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) umask: u32,
    pub(super) clock: fn() -> Time,
    pub(super) commit: Commit,
    #[cfg(feature = "layers")]
    outside: super::outside::Outsides,
    pub(super) making: Making,
}

impl Default for VolOptions {
    fn default() -> Self {
        Self {
            kind: None,
            memory: Attach::MEMORY,
            options: Options::new(),
            layers: Vec::new(),
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            umask: umask(),
            clock: clock::system,
            commit: Commit::AsVolume,
            #[cfg(feature = "layers")]
            outside: super::outside::Outsides::default(),
            making: Making::default(),
        }
    }
}

/// The mask where the host does not tell this process's.
const UMASK: u32 = 0o022;

/// Returns this process's mask. To ask the kernel by `umask(2)` is to change it, for all threads.
fn umask() -> u32 {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    mask.unwrap_or(UMASK)
}

/// What can be said.
impl VolOptions {
    /// Takes the volume as one of this kind or format (`fat32`, `ffs`), where it is not to be recognised.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Bounds the memory for caches, in bytes: 64 MiB unless it is said.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Adds options of the format, as `-o` of the command has them: `names=lower,uid=5`.
    #[must_use]
    pub fn options(mut self, options: &str) -> Self {
        self.options.add(options);
        self
    }

    /// Puts a layer over the volume, `NAME` or `NAME=ARGUMENT`; the first is the lowest.
    #[must_use]
    pub fn layer(mut self, spec: impl Into<String>) -> Self {
        self.layers.push(spec.into());
        self
    }

    /// Gives layers what they need of the world outside, in place of this host's files, clock and randomness: where
    /// `trace` writes, and passphrases that are in no file.
    #[cfg(feature = "layers")]
    #[must_use]
    pub fn outside(mut self, outside: Arc<dyn volary_layers::Outside>) -> Self {
        self.outside = outside.into();
        self
    }

    /// Makes this user and group the owners of what has no owner, and of new files: those of this process unless it is said.
    #[must_use]
    pub fn owner(mut self, uid: u32, gid: u32) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Takes these permission bits from new files and directories: those of this process unless it is said.
    #[must_use]
    pub fn umask(mut self, umask: u32) -> Self {
        self.umask = umask & 0o777;
        self
    }

    /// Tells the time of each change, in place of the system's clock. With [`Commit::WhenAsked`] and a seed, the same calls
    /// make the same bytes.
    #[must_use]
    pub fn clock(mut self, clock: fn() -> Time) -> Self {
        self.clock = clock;
        self
    }

    /// Says when changes become durable that nobody has asked to be: by themselves within seconds, unless it is said.
    #[must_use]
    pub fn commit(mut self, commit: Commit) -> Self {
        self.commit = commit;
        self
    }
}

/// What is done then.
impl VolOptions {
    /// Opens a volume for reading; see [`Vol::open`].
    ///
    /// # Errors
    /// As there; `Invalid` for options.
    pub fn open(&self, source: impl AsRef<OsStr>) -> VolResult<Vol> {
        self.open_source(&parsed(source.as_ref())?, true)
    }

    /// Opens a volume to change it; see [`Vol::edit`].
    ///
    /// # Errors
    /// As there; `Invalid` for options.
    pub fn edit(&self, source: impl AsRef<OsStr>) -> VolResult<Vol> {
        self.open_source(&parsed(source.as_ref())?, false)
    }

    /// Opens what holds a volume, as [`Source`] has it.
    ///
    /// # Errors
    /// As [`Vol::open`] and [`Vol::edit`].
    pub fn open_source(&self, source: &Source, read_only: bool) -> VolResult<Vol> {
        let open = |how: &Attach| crate::open_volume(source, how, (self.clock)());
        self.opened(source, read_only, open)
    }

    /// Opens the volume on a device of the program's own, called `name` in errors.
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
            crate::open_on(device, how, (self.clock)())
        })
    }

    /// Opens a file system of the program's own, which `attach` gives, called `name` in errors.
    ///
    /// # Errors
    /// Of `attach`; of layers.
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

    /// Returns the options as drivers have them.
    ///
    /// # Errors
    /// `Invalid` for an unknown kind.
    pub(super) fn attach(&self, read_only: bool) -> Result<Attach> {
        let mut options = self.options.clone();
        if let Some(kind) = &self.kind {
            crate::format_of(kind)?;
            options.set(TYPE_OPTION, kind.as_str());
        }
        Ok(Attach {
            read_only,
            memory: self.memory,
            uid: self.uid,
            gid: self.gid,
            umask: self.umask,
            options,
        })
    }

    /// Puts the layers over what was opened. What cannot be used is detached.
    fn finish(self, source: &Source, read_only: bool, opened: Opened) -> Result<Held> {
        let Opened {
            fs,
            replica,
            device,
        } = opened;
        let device = device.filter(|_| self.layers.is_empty());
        let bare = Held::new(source.clone(), fs, device, self);
        if let Some(replica) = replica.filter(|_| !read_only) {
            return Err(by_replica(&replica));
        }
        bare.under_all()
    }

    /// Puts the layer that `spec` names over `fs`.
    ///
    /// # Errors
    /// As [`Vol::layer`].
    #[cfg(feature = "layers")]
    pub(super) fn under(&self, fs: Fs, spec: &str) -> Result<Fs> {
        let stacked = volary_layers::layer_by_name(fs, spec, &self.outside.0)?;
        Ok(stacked.fs)
    }

    pub(super) fn layers(&self) -> &[String] {
        &self.layers
    }
}

/// Returns what is named so.
pub(super) fn parsed(source: &OsStr) -> VolResult<Source> {
    let parsed = Source::parse(source.as_bytes());
    parsed.map_err(|e| VolError::new("open", escape(source.as_bytes()), e))
}

/// Returns why a volume that is read by a replica takes no changes.
fn by_replica(replica: &Replica) -> Error {
    let Replica { what, home, at, .. } = replica;
    let words = format!(
        "the {what} at byte {home} makes no sense; nothing is changed before a check writes it anew from its \
         replica at byte {at}"
    );
    Error::note(Kind::Corrupt, words)
}
