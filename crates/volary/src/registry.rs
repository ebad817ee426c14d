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

/// What a program opens, and how people call it: formats of images, schemes such as `kv:config`, layers. A value: a
/// program makes its own of [`Registry::default`], which has everything that was built in, and adds to it.
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
/// What is added must have a name of its own: see [`add_format`](Self::add_format), [`add_scheme`](Self::add_scheme) and
/// `add_layer` for what is refused. The methods that begin with `with` are for names that the program itself has in it,
/// and panic where those refuse.
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
    /// Adds a format. It is asked for its volumes after those that have a sign, and before those that guess.
    ///
    /// # Errors
    /// `Invalid` for a format or a kind whose name is no name (lower-case letters, digits, `-`, `+`, `_` and `.`), or is
    /// that of a format, of a kind, or of what others call one.
    pub fn add_format(&mut self, format: &'static dyn Format) -> Result<()> {
        self.formats.add(format)
    }

    /// Adds a format, as [`add_format`](Self::add_format) does.
    ///
    /// # Panics
    /// Where that refuses.
    #[must_use]
    pub fn with_format(mut self, format: &'static dyn Format) -> Self {
        accepted(self.add_format(format));
        self
    }

    /// Adds a scheme: from then on `NAME:REST` is a volume wherever one is asked for. A file of such a name is written
    /// with a backslash, `NAME\:REST`, or with a directory, `./NAME:REST`.
    ///
    /// # Errors
    /// `Invalid` for what is no name of two letters or more (lower-case letters, digits, `-` and `+`), for `mem`, `host` and
    /// `nfs`, and for a scheme that is there.
    pub fn add_scheme(&mut self, scheme: Scheme) -> Result<()> {
        self.schemes.add(scheme)
    }

    /// Adds a scheme that `open` opens, which is given what stands behind the colon, how to attach, and the time. For one
    /// that also says what it needs, or has options: [`with`](Self::with).
    ///
    /// # Panics
    /// Where [`add_scheme`](Self::add_scheme) refuses.
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
    /// Where `add_scheme`, `add_layer` or `add_format` refuses.
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

    /// Returns the formats, in the order in which they are asked.
    pub fn formats(&self) -> &[&'static dyn Format] {
        self.formats.all()
    }

    /// Returns the format of this name, of a kind of this name, or that others call so: `ffs`, `FAT32`, `vfat`.
    ///
    /// # Errors
    /// `Invalid`, naming the kinds that there are.
    pub fn format_of(&self, kind: &str) -> Result<&'static dyn Format> {
        self.formats.of(kind)
    }

    /// Returns the format that makes volumes of a kind, and the kind. A format's name stands for one of its
    /// kinds: of FAT the one for `size` bytes, of FFS `ffs2`, of others the first.
    ///
    /// # Errors
    /// `Invalid`, naming the kinds that are made. A format that makes none says so itself.
    pub fn kind_of(&self, name: &str, size: u64) -> Result<(&'static dyn Format, &'static str)> {
        self.formats.kind_of(name, size)
    }

    /// Looks what the device holds: the [formats](Self::formats) first, then foreign
    /// ones, then partition tables. Reads at most the first [`LOOK`](crate::LOOK) bytes.
    ///
    /// # Errors
    /// `Io` where nothing is known of what can be read, and something cannot.
    pub fn identify(&self, dev: &dyn BlockDevice) -> Result<Identity> {
        self.formats.identify(dev)
    }

    /// Finds the volume on a device. Its format is the one that the option `type` says; else the
    /// one that is recognised; else the one whose replica an option names; else the one of which a
    /// confirmed replica is found. What holds something else that has a name, or a partition table, is not
    /// searched for replicas: it may have been made over an old volume. Sectors that cannot be
    /// read count as damaged.
    ///
    /// # Errors
    /// `Invalid` for a type that is none; `Unsupported`, naming what is there instead and what to
    /// do; `Io` where nothing is found and the device could not be read.
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

    /// Returns the source that a user wrote: as [`Source::parse`], or `NAME:REST` of a [`Scheme`].
    ///
    /// # Errors
    /// As [`Source::parse`].
    pub fn source(&self, text: &[u8]) -> Result<Source> {
        self.schemes.source(text)
    }

    /// Returns the place that a user wrote: as [`Place::parse`], or one in a volume of a [`Scheme`].
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn place(&self, text: &[u8]) -> Result<Place> {
        self.schemes.place(text)
    }

    /// Returns a place of a volume. A name without a path is a volume's root: for commands that
    /// have nothing to do with places of the host.
    ///
    /// # Errors
    /// As [`source`](Self::source).
    pub fn place_in_volume(&self, text: &[u8]) -> Result<(Source, Vec<u8>)> {
        self.schemes.place_in_volume(text)
    }

    /// Returns, of a path of the host that is written `IMAGE:path`, the image and how the
    /// place in it is written. `None` for anything else.
    pub fn without_slash(&self, text: &[u8]) -> Option<(PathBuf, Vec<u8>)> {
        self.schemes.without_slash(text)
    }
}

#[cfg(feature = "layers")]
impl Registry {
    /// Adds a layer.
    ///
    /// # Errors
    /// `Invalid` for what is no name, and for the name of a layer that is there.
    pub fn add_layer(&mut self, layer: LayerKind) -> Result<()> {
        self.layers.add(layer)
    }

    /// Adds a layer, with an argument that may be left out; for one that says more of itself: [`with`](Self::with).
    ///
    /// # Panics
    /// Where [`add_layer`](Self::add_layer) refuses.
    #[must_use]
    pub fn with_layer(
        self,
        name: &'static str,
        make: impl Fn(Fs, &str, &Arc<dyn Outside>) -> Result<Fs> + Send + Sync + 'static,
    ) -> Self {
        self.with(LayerKind::new(name, make).help("[ARGUMENT]", ""))
    }

    /// Returns the layers: those that were built in, and those that were added.
    pub fn layers(&self) -> impl Iterator<Item = &OptionSpec> {
        self.layers.all()
    }

    /// Puts the layer that `spec` names, as `NAME` or `NAME=ARG`, over `below`.
    ///
    /// # Errors
    /// As [`layer_by_name`](crate::layers::layer_by_name); of the layer's own making.
    pub fn layer(&self, below: Fs, spec: &str, outside: &Arc<dyn Outside>) -> Result<Stacked> {
        self.layers.put(below, spec, outside)
    }

    /// Returns what a layer that was added needs of this host; nothing of those that were built in.
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
/// For a name that a program has wrong in itself: it would be so in each of its runs.
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
