//! [`Registry`]: the formats, schemes and layers that a program has.

mod layer;
mod scheme;

#[cfg(feature = "layers")]
pub use layer::LayerKind;
pub use scheme::{Needs, Scheme};

use crate::Opened;
use std::sync::{Arc, OnceLock};
use volary_core::{Attach, Error, Format, Kind, Result, Time};

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
#[derive(Clone)]
pub struct Registry {
    formats: Vec<&'static dyn Format>,
    schemes: Vec<Arc<Scheme>>,
    #[cfg(feature = "layers")]
    layers: Vec<Arc<LayerKind>>,
}

/// The formats that were built in. Each recognises its volumes by a sign; those of [`GUESSING`] by what is plausible.
const FORMATS: &[&dyn Format] = &[
    #[cfg(feature = "fat")]
    &volary_fat::FAT,
    #[cfg(feature = "iso9660")]
    &volary_iso9660::ISO9660,
    #[cfg(feature = "cedar")]
    &volary_cedar::CEDAR,
    #[cfg(feature = "ffs")]
    &volary_ffs::FFS,
    #[cfg(feature = "ext4")]
    &volary_ext4::EXT4,
    #[cfg(feature = "ntfs")]
    &volary_ntfs::NTFS,
    #[cfg(feature = "v7")]
    &volary_v7::V7,
];

/// Formats whose volumes are told by what is plausible, not by a sign: they are asked last.
const GUESSING: &[&str] = &["v7"];

impl Default for Registry {
    /// Returns what was built in.
    fn default() -> Self {
        Self {
            formats: FORMATS.to_vec(),
            schemes: Vec::new(),
            #[cfg(feature = "layers")]
            layers: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let formats: Vec<_> = self.formats.iter().map(|f| f.name()).collect();
        let schemes: Vec<_> = self.schemes.iter().map(|s| s.name()).collect();
        let mut out = f.debug_struct("Registry");
        let out = out.field("formats", &formats).field("schemes", &schemes);
        out.finish_non_exhaustive()
    }
}

/// Returns the registry of what was built in.
pub(crate) fn built_in() -> &'static Registry {
    static BUILT_IN: OnceLock<Registry> = OnceLock::new();
    BUILT_IN.get_or_init(Registry::default)
}

impl Registry {
    /// Adds a format. It is asked for its volumes after those that have a sign, and before those that guess.
    ///
    /// # Errors
    /// `Invalid` for a format or a kind whose name is no name (lower-case letters, digits, `-`, `+`, `_` and `.`), or is
    /// that of a format, of a kind, or of what others call one.
    pub fn add_format(&mut self, format: &'static dyn Format) -> Result<()> {
        let name = format.name();
        check_name("the format", name)?;
        for (at, kind) in format.kinds().iter().enumerate() {
            check_name("the kind", kind)?;
            if format.kinds().iter().take(at).any(|other| other == kind) {
                return Err(taken("the kind", kind));
            }
        }
        let kinds = format.kinds().iter().copied();
        for new in [name].into_iter().chain(kinds) {
            let mut own = self.formats.iter();
            let is_taken = own.any(|f| f.name() == new || f.kinds().contains(&new));
            if is_taken || crate::kinds::is_alias(new) {
                return Err(taken("the format", new));
            }
        }
        let guesses = |f: &&dyn Format| GUESSING.contains(&f.name());
        let at = self.formats.iter().position(guesses);
        self.formats
            .insert(at.unwrap_or(self.formats.len()), format);
        Ok(())
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
        let name = scheme.name();
        check_name("the scheme", name)?;
        if name.len() < 2 || name.contains(['.', '_']) {
            return Err(bad_name("the scheme", name));
        }
        let is_taken = self.schemes.iter().any(|other| other.name() == name);
        if is_taken || scheme::BUILT_IN.contains(&name) {
            return Err(taken("the scheme", name));
        }
        self.schemes.push(Arc::new(scheme));
        Ok(())
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
        &self.formats
    }

    /// Returns the schemes that were added.
    pub fn schemes(&self) -> impl Iterator<Item = &Scheme> {
        self.schemes.iter().map(|scheme| &**scheme)
    }

    /// Returns the scheme of this name.
    pub fn scheme(&self, name: &str) -> Option<&Scheme> {
        self.schemes().find(|scheme| scheme.name() == name)
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

/// # Errors
/// `Invalid`.
fn check_name(what: &str, name: &str) -> Result<()> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_part = |b: u8| is_plain(b) || b"-+_.".contains(&b);
    match name.as_bytes() {
        [first, rest @ ..] if is_plain(*first) && rest.iter().all(|b| is_part(*b)) => Ok(()),
        _ => Err(bad_name(what, name)),
    }
}

fn bad_name(what: &str, name: &str) -> Error {
    let name = volary_core::escape_short(name.as_bytes());
    Error::note(
        Kind::Invalid,
        format!(
            "{what} '{name}' cannot be added: that is no name; take lower-case letters and digits"
        ),
    )
}

fn taken(what: &str, name: &str) -> Error {
    let words = format!("{what} '{name}' cannot be added: that name is taken");
    Error::note(Kind::Invalid, words)
}

#[cfg(test)]
mod tests;
