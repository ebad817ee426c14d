//! Shorthands for programs that add nothing to the built-in registry.

use crate::{Found, Identity, Opened, Registry, Source};
use std::sync::{Arc, OnceLock};
use volary_core::{Attach, BlockDevice, Format, Options, Result, Time};

/// Returns the registry of everything that was built in.
pub(crate) fn built_in() -> &'static Arc<Registry> {
    static BUILT_IN: OnceLock<Arc<Registry>> = OnceLock::new();
    BUILT_IN.get_or_init(Arc::default)
}

/// Returns the formats that were built in.
pub fn formats() -> &'static [&'static dyn Format] {
    built_in().formats()
}

/// Calls [`Registry::format_of`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn format_of(kind: &str) -> Result<&'static dyn Format> {
    built_in().format_of(kind)
}

/// Calls [`Registry::kind_of`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn kind_of(name: &str, size: u64) -> Result<(&'static dyn Format, &'static str)> {
    built_in().kind_of(name, size)
}

/// Calls [`Registry::identify`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn identify(dev: &dyn BlockDevice) -> Result<Identity> {
    built_in().identify(dev)
}

/// Calls [`Registry::find`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn find(device: Arc<dyn BlockDevice>, options: &Options) -> Result<Found> {
    built_in().find(device, options)
}

/// Calls [`Registry::attach`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn attach(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Opened> {
    built_in().attach(dev, how)
}

/// Calls [`Registry::open_volume`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn open_volume(source: &Source, how: &Attach, now: Time) -> Result<Opened> {
    built_in().open_volume(source, how, now)
}

/// Calls [`Registry::open_on`] on the built-in registry.
///
/// # Errors
/// As there.
pub fn open_on(dev: Arc<dyn BlockDevice>, how: &Attach, now: Time) -> Result<Opened> {
    built_in().open_on(dev, how, now)
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;

    #[test]
    fn what_others_call_kinds_is_known_in_any_case() {
        for (name, format, kind) in [
            ("vfat", "fat", "fat16"),
            ("MSDOS", "fat", "fat16"),
            ("fat", "fat", "fat16"),
            ("FAT32", "fat", "fat32"),
            ("ufs", "ffs", "ffs2"),
            ("ffs", "ffs", "ffs2"),
            ("UFS1", "ffs", "ffs1"),
            ("cedar", "cedar", "cedar"),
            ("V7", "v7", "v7"),
            ("s5", "v7", "sysv"),
        ] {
            let (found, made) = kind_of(name, 64 << 20).unwrap();
            assert_eq!((found.name(), made), (format, kind), "{name}");
            assert_eq!(format_of(name).unwrap().name(), format, "{name}");
        }
        assert_eq!(format_of("iso").unwrap().name(), "iso9660");
    }

    #[test]
    fn only_what_can_be_made_is_offered_to_be_made() {
        let told = kind_of("hfs", 1 << 20).err().unwrap().to_string();
        let (_, offered) = told.split_once("there are: ").unwrap();
        assert_eq!(offered, "fat12, fat16, fat32, cedar, ffs1, ffs2, v7, sysv");
        let told = format_of("hfs").err().unwrap().to_string();
        assert!(told.contains("iso9660"), "{told}");
    }
}
