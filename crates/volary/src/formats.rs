//! The formats of a registry.

use crate::kinds::{default_kind, is_alias, list, own_name, unknown};
use crate::names::{check_name, taken};
use volary_core::{Abilities, Format, Result};

/// Formats, in the order in which they are probed.
#[derive(Clone)]
pub(crate) struct Formats(Vec<&'static dyn Format>);

/// The built-in formats. Each recognises its volumes by a magic number; those in [`GUESSING`] go by
/// plausible values.
const BUILT_IN: &[&dyn Format] = &[
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

/// Formats that recognise their volumes by plausible values instead of a magic number. They are
/// probed last.
const GUESSING: &[&str] = &["v7"];

impl Default for Formats {
    fn default() -> Self {
        Self(BUILT_IN.to_vec())
    }
}

impl Formats {
    pub(crate) fn all(&self) -> &[&'static dyn Format] {
        &self.0
    }

    /// # Errors
    /// As [`Registry::add_format`](crate::Registry::add_format).
    pub(crate) fn add(&mut self, format: &'static dyn Format) -> Result<()> {
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
            let mut own = self.0.iter();
            let is_taken = own.any(|f| f.name() == new || f.kinds().contains(&new));
            if is_taken || is_alias(new) {
                return Err(taken("the format", new));
            }
        }
        let guesses = |f: &&dyn Format| GUESSING.contains(&f.name());
        let at = self.0.iter().position(guesses);
        self.0.insert(at.unwrap_or(self.0.len()), format);
        Ok(())
    }
}

impl Formats {
    /// # Errors
    /// As [`Registry::format_of`](crate::Registry::format_of).
    pub(crate) fn of(&self, kind: &str) -> Result<&'static dyn Format> {
        let own = own_name(kind);
        let is_it = |f: &&&'static dyn Format| f.kinds().contains(&own.as_str()) || f.name() == own;
        let format = self.0.iter().find(is_it);
        format.copied().ok_or_else(|| unknown(kind, &self.opened()))
    }

    /// # Errors
    /// As [`Registry::kind_of`](crate::Registry::kind_of).
    pub(crate) fn kind_of(
        &self,
        name: &str,
        size: u64,
    ) -> Result<(&'static dyn Format, &'static str)> {
        let own = own_name(name);
        let own = match own.as_str() {
            "fat" => default_kind(size),
            "ffs" => "ffs2",
            own => own,
        };
        let of = |f: &&'static dyn Format| {
            let kind = f.kinds().iter().find(|kind| **kind == own);
            let first = f.kinds().first().filter(|_| f.name() == own);
            Some((*f, *kind.or(first)?))
        };
        let makes = |f: &&&dyn Format| f.abilities().has(Abilities::MAKE);
        let made = || list(self.0.iter().filter(makes));
        let found = self.0.iter().find_map(of);
        found.ok_or_else(|| unknown(name, &made()))
    }

    /// Returns the kinds that can be opened, for people.
    pub(crate) fn opened(&self) -> String {
        list(self.0.iter())
    }
}
