//! [`Registry`]: the formats, schemes and layers that a program has.

use crate::formats::Formats;
#[cfg(feature = "layers")]
use crate::layer::{LayerKind, Layers};
#[cfg(feature = "layers")]
use crate::layers::{Outside, Stacked};
#[cfg(feature = "layers")]
use crate::scheme::Needs;
use crate::scheme::{Scheme, Schemes};
use crate::{Found, Identity, Opened, Place, Source};
use std::path::PathBuf;
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Format, Options, Result, Time};
#[cfg(feature = "layers")]
use volary_core::{Fs, OptionSpec};

/// The things that a program can open: formats of images, schemes such as `kv:config`, layers. A
/// program takes [`Registry::default`], which has everything that was built in, and adds its own.
///
/// ```
/// use volary::mem::{Mem, MemOptions};
/// use volary::{Attach, Registry, Time};
///
/// let registry = Registry::default().with_scheme("scratch", |_, _, now| Mem::attach(MemOptions::sized(1 << 20), now));
/// let source = registry.source(b"scratch:anything")?;
/// let opened = registry.open_volume(&source, &Attach::default(), Time::EPOCH)?;
/// assert!(opened.fs.caps().has(volary::Caps::WRITE));
/// # Ok::<(), volary::Error>(())
/// ```
///
/// Each addition needs a unique name: see [`add_format`](Self::add_format),
/// [`add_scheme`](Self::add_scheme) and `add_layer` for what they refuse. The methods that begin
/// with `with` are for names that are fixed in the program. They panic where those return an error.
#[derive(Clone, Default)]
pub struct Registry {
    formats: Formats,
    schemes: Schemes,
    #[cfg(feature = "layers")]
    layers: Layers,
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let formats: Vec<_> = self.formats().iter().map(|f| f.name()).collect();
        let schemes: Vec<_> = self.schemes().map(Scheme::name).collect();
        let mut out = f.debug_struct("Registry");
        let out = out.field("formats", &formats).field("schemes", &schemes);
        out.finish_non_exhaustive()
    }
}

impl Registry {
    /// Adds a format. It is probed after the formats with a magic number, and before those that
    /// guess.
    ///
    /// # Errors
    /// `Invalid` if the format's or a kind's name is malformed, or already names a format or kind,
    /// also as an alias. A name has lower-case letters, digits, `-`, `+`, `_` and `.`.
    pub fn add_format(&mut self, format: &'static dyn Format) -> Result<()> {
        self.formats.add(format)
    }

    /// Adds a format, as [`add_format`](Self::add_format) does.
    ///
    /// # Panics
    /// If that returns an error.
    #[must_use]
    pub fn with_format(mut self, format: &'static dyn Format) -> Self {
        accepted(self.add_format(format));
        self
    }

    /// Adds a scheme: from then on, `NAME:REST` is a volume wherever one is expected. A file of
    /// such a name must be written with a backslash, `NAME\:REST`, or with a directory,
    /// `./NAME:REST`.
    ///
    /// # Errors
    /// `Invalid` for a malformed name (allowed are two or more lower-case letters, digits, `-` and
    /// `+`), for `mem`, `host` and `nfs`, and for an existing scheme.
    pub fn add_scheme(&mut self, scheme: Scheme) -> Result<()> {
        self.schemes.add(scheme)
    }

    /// Adds a scheme that `open` opens. `open` gets the text after the colon, how to attach, and
    /// the time. A scheme with needs or options of its own is added by [`with`](Self::with).
    ///
    /// # Panics
    /// If [`add_scheme`](Self::add_scheme) returns an error.
    #[must_use]
    pub fn with_scheme<O: Into<Opened>>(
        self,
        name: &'static str,
        open: impl Fn(&[u8], &Attach, Time) -> Result<O> + Send + Sync + 'static,
    ) -> Self {
        self.with(Scheme::new(name, open))
    }

    /// Adds a [`Scheme`], a [`LayerKind`], or a format.
    ///
    /// # Panics
    /// If `add_scheme`, `add_layer` or `add_format` returns an error.
    #[must_use]
    pub fn with(mut self, what: impl Into<Registered>) -> Self {
        accepted(match what.into() {
            Registered::Format(format) => self.add_format(format),
            Registered::Scheme(scheme) => self.add_scheme(scheme),
            #[cfg(feature = "layers")]
            Registered::Layer(layer) => self.add_layer(layer),
        });
        self
    }

    /// Returns the formats, in the order in which they are probed.
    pub fn formats(&self) -> &[&'static dyn Format] {
        self.formats.all()
    }

    /// Returns the format with this name, kind or alias: `ffs`, `FAT32`, `vfat`.
    ///
    /// # Errors
    /// `Invalid`, naming the known kinds.
    pub fn format_of(&self, kind: &str) -> Result<&'static dyn Format> {
        self.formats.of(kind)
    }

    /// Returns the format that makes volumes of a kind, and the kind. A format's name stands for
    /// its default kind: for FAT the one for `size` bytes, for FFS `ffs2`, for others the first.
    ///
    /// # Errors
    /// `Invalid`, naming the kinds that can be made. A format that makes none returns its error
    /// later.
    pub fn kind_of(&self, name: &str, size: u64) -> Result<(&'static dyn Format, &'static str)> {
        self.formats.kind_of(name, size)
    }

    /// Identifies what the device holds: tries the [formats](Self::formats) first, then foreign
    /// ones, then partition tables. Reads the first [`LOOK`](crate::LOOK) bytes itself, and if these
    /// are zeros, looks for anything else in bounded time; the formats' probes may read more.
    ///
    /// # Errors
    /// `Io` if the readable part holds nothing known, and another part cannot be read.
    pub fn identify(&self, dev: &dyn BlockDevice) -> Result<Identity> {
        self.formats.identify(dev)
    }

    /// Finds the volume on a device. The option `type` names its format. Without it, the format is
    /// recognised; or an option names its replica; or a confirmed replica is found. A device with
    /// foreign content or a partition table is not searched for replicas, as that may have been
    /// made over an old volume. Sectors that cannot be read count as damaged.
    ///
    /// # Errors
    /// `Invalid` for an unknown type; `Unsupported`, naming what the device holds instead and what
    /// to do; `Io` if nothing is found and the device could not be read.
    pub fn find(&self, device: Arc<dyn BlockDevice>, options: &Options) -> Result<Found> {
        self.formats.find(device, options)
    }

    /// Returns the schemes that were added.
    pub fn schemes(&self) -> impl Iterator<Item = &Scheme> {
        self.schemes.all()
    }

    /// Returns the scheme of this name.
    pub fn scheme(&self, name: &str) -> Option<&Scheme> {
        self.schemes().find(|scheme| scheme.name() == name)
    }

    /// Parses a source as the user wrote it: as [`Source::parse`], or `NAME:REST` of a [`Scheme`].
    ///
    /// # Errors
    /// As [`Source::parse`].
    pub fn source(&self, text: &[u8]) -> Result<Source> {
        self.schemes.source(text)
    }

    /// Parses a place as the user wrote it: as [`Place::parse`], or one in a volume of a
    /// [`Scheme`].
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn place(&self, text: &[u8]) -> Result<Place> {
        self.schemes.place(text)
    }

    /// Parses a place in a volume. A name without a path means the volume's root. For commands that
    /// do not take places of the host.
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn place_in_volume(&self, text: &[u8]) -> Result<(Source, Vec<u8>)> {
        self.schemes.place_in_volume(text)
    }

    /// If a path of the host looks like `IMAGE:path`, returns the image and the correct form of the
    /// place in it. `None` for anything else.
    pub fn without_slash(&self, text: &[u8]) -> Option<(PathBuf, Vec<u8>)> {
        self.schemes.without_slash(text)
    }
}

#[cfg(feature = "layers")]
impl Registry {
    /// Adds a layer.
    ///
    /// # Errors
    /// `Invalid` for a malformed name, and for the name of an existing layer.
    pub fn add_layer(&mut self, layer: LayerKind) -> Result<()> {
        self.layers.add(layer)
    }

    /// Adds a layer with an optional argument. A layer with a help text or needs is added by
    /// [`with`](Self::with).
    ///
    /// # Panics
    /// If [`add_layer`](Self::add_layer) returns an error.
    #[must_use]
    pub fn with_layer(
        self,
        name: &'static str,
        make: impl Fn(Fs, &str, &Arc<dyn Outside>) -> Result<Fs> + Send + Sync + 'static,
    ) -> Self {
        self.with(LayerKind::new(name, make).help("[ARGUMENT]", ""))
    }

    /// Returns the built-in layers and the added ones.
    pub fn layers(&self) -> impl Iterator<Item = &OptionSpec> {
        self.layers.all()
    }

    /// Puts the layer that `spec` names, as `NAME` or `NAME=ARG`, over `below`.
    ///
    /// # Errors
    /// As [`layer_by_name`](crate::layers::layer_by_name), or as the function that makes an added
    /// layer.
    pub fn layer(&self, below: Fs, spec: &str, outside: &Arc<dyn Outside>) -> Result<Stacked> {
        self.layers.put(below, spec, outside)
    }

    /// Returns what an added layer needs of this host; nothing for a built-in one.
    pub fn layer_needs(&self, spec: &str) -> Needs {
        self.layers.needs(spec)
    }
}

/// What [`Registry::with`] takes.
#[non_exhaustive]
pub enum Registered {
    /// A format.
    Format(&'static dyn Format),
    /// A scheme.
    Scheme(Scheme),
    /// A layer.
    #[cfg(feature = "layers")]
    Layer(LayerKind),
}

impl<F: Format> From<&'static F> for Registered {
    fn from(format: &'static F) -> Self {
        Self::Format(format)
    }
}

impl From<Scheme> for Registered {
    fn from(scheme: Scheme) -> Self {
        Self::Scheme(scheme)
    }
}

#[cfg(feature = "layers")]
impl From<LayerKind> for Registered {
    fn from(layer: LayerKind) -> Self {
        Self::Layer(layer)
    }
}

/// # Panics
/// For an invalid name, which is fixed in the program: every run would fail in the same way.
#[expect(
    clippy::panic,
    reason = "a mistake in the program, found by its first run"
)]
fn accepted(added: Result<()>) {
    if let Err(e) = added {
        panic!("{e}");
    }
}

#[cfg(test)]
mod tests;
