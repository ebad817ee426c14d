//! [`VolOptions`]: how a volume is opened.

use super::clock;
use super::image::Making;
use crate::built_in::built_in;
use crate::{Registry, TYPE_OPTION};
use std::sync::Arc;
#[cfg(feature = "layers")]
use volary_core::Fs;
use volary_core::{Attach, Options, Result, Time};
use volary_session::Commit;

/// How to open a volume, or make one. Each method sets one option; a call of [`open`](Self::open),
/// [`edit`](Self::edit), [`make`](Self::make) or [`check`](Self::check) comes last.
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
    pub(super) options: Options,
    layers: Vec<String>,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) umask: u32,
    pub(super) registry: Arc<Registry>,
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
            registry: Arc::clone(built_in()),
            clock: clock::system,
            commit: Commit::AsVolume,
            #[cfg(feature = "layers")]
            outside: super::outside::Outsides::default(),
            making: Making::default(),
        }
    }
}

/// The umask if the host does not tell this process's.
const UMASK: u32 = 0o022;

/// Returns this process's umask. It is read from `/proc`, as `umask(2)` would change it for all
/// threads.
fn umask() -> u32 {
    let told = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = line.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
    mask.unwrap_or(UMASK)
}

/// Options for opening.
impl VolOptions {
    /// Sets the kind or format of the volume (`fat32`, `ffs`), instead of recognising it.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Sets the bound on the memory for caches, in bytes. The default is 64 MiB.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Adds options of the format, in the form of the command's `-o`: `names=lower,uid=5`.
    #[must_use]
    pub fn options(mut self, options: &str) -> Self {
        self.options.add(options);
        self
    }

    /// Adds a layer over the volume, `NAME` or `NAME=ARGUMENT`; the first one is the lowest.
    #[must_use]
    pub fn layer(mut self, spec: impl Into<String>) -> Self {
        self.layers.push(spec.into());
        self
    }

    /// Sets what layers use of the outside world, instead of this host's files, clock and
    /// randomness. Examples are where `trace` writes, and passphrases that are in no file.
    #[cfg(feature = "layers")]
    #[must_use]
    pub fn outside(mut self, outside: Arc<dyn volary_layers::Outside>) -> Self {
        self.outside = outside.into();
        self
    }

    /// Sets the registry by which volumes and layers are opened. The default is the built-in one.
    #[must_use]
    pub fn registry(mut self, registry: impl Into<Arc<Registry>>) -> Self {
        self.registry = registry.into();
        self
    }

    /// Sets the user and group that own new files, and nodes without an owner. The default is this
    /// process's.
    #[must_use]
    pub fn owner(mut self, uid: u32, gid: u32) -> Self {
        (self.uid, self.gid) = (uid, gid);
        self
    }

    /// Sets the permission bits to clear in new files and directories. The default is this
    /// process's umask.
    #[must_use]
    pub fn umask(mut self, umask: u32) -> Self {
        self.umask = umask & 0o777;
        self
    }

    /// Sets the clock for time stamps, instead of the system's. With [`Commit::WhenAsked`] and a
    /// seed, the same calls make the same bytes.
    #[must_use]
    pub fn clock(mut self, clock: fn() -> Time) -> Self {
        self.clock = clock;
        self
    }

    /// Sets when changes become durable without a sync. By default that happens within seconds.
    #[must_use]
    pub fn commit(mut self, commit: Commit) -> Self {
        self.commit = commit;
        self
    }
}

/// Uses of the options.
impl VolOptions {
    /// Returns the options in the form for drivers.
    ///
    /// # Errors
    /// `Invalid` for an unknown kind.
    pub(super) fn attach(&self, read_only: bool) -> Result<Attach> {
        let mut options = self.options.clone();
        if let Some(kind) = &self.kind {
            self.registry.format_of(kind)?;
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

    /// Puts the layer that `spec` names over a file system.
    ///
    /// # Errors
    /// As [`Vol::layer`](crate::Vol::layer).
    #[cfg(feature = "layers")]
    pub(super) fn under(&self, fs: Fs, spec: &str) -> Result<Fs> {
        let stacked = self.registry.layer(fs, spec, &self.outside.0)?;
        Ok(stacked.fs)
    }

    pub(super) fn layers(&self) -> &[String] {
        &self.layers
    }
}
