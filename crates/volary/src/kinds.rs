//! The kinds of volume by their names, and by what else they are called.

use volary_core::{Abilities, Error, Format, Kind, Result};

/// Returns the kind that a volume of `size` bytes is made as unless the user says
/// otherwise: what other systems take for disks of that size.
pub fn default_kind(size: u64) -> &'static str {
    const MIB: u64 = 1 << 20;
    match size {
        0..=0x3f_ffff => "fat12",
        n if n < 512 * MIB => "fat16",
        _ => "fat32",
    }
}

/// What other systems call kinds and formats, and what that is here.
const ALIASES: &[(&str, &str)] = &[
    ("vfat", "fat"),
    ("msdos", "fat"),
    ("dos", "fat"),
    ("ufs", "ffs"),
    ("ufs1", "ffs1"),
    ("ufs2", "ffs2"),
    ("iso", "iso9660"),
    ("cd9660", "iso9660"),
    ("s5", "sysv"),
    ("s5fs", "sysv"),
];

/// Returns the name here of what the user calls so.
fn own_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, own)| (*own).to_owned())
}

/// Returns the format of this name, of a kind of this name, or that others call so: `ffs`, `FAT32`, `vfat`.
///
/// # Errors
/// `Invalid`, naming the kinds that there are.
pub fn format_of(kind: &str) -> Result<&'static dyn Format> {
    let own = own_name(kind);
    let is_it = |f: &&&'static dyn Format| f.kinds().contains(&own.as_str()) || f.name() == own;
    let format = crate::formats().iter().find(is_it);
    format.copied().ok_or_else(|| unknown(kind, &opened()))
}

/// Returns the format that makes volumes of a kind, and the kind. A format's name stands for one of its
/// kinds: of FAT the one for `size` bytes, of FFS `ffs2`.
///
/// # Errors
/// `Invalid`, naming the kinds that are made. A format that is for reading says so itself.
pub fn kind_of(name: &str, size: u64) -> Result<(&'static dyn Format, &'static str)> {
    let own = own_name(name);
    let own = match own.as_str() {
        "fat" => default_kind(size),
        "ffs" => "ffs2",
        own => own,
    };
    let of = |f: &&'static dyn Format| {
        let kind = f.kinds().iter().find(|kind| **kind == own)?;
        Some((*f, *kind))
    };
    let made = || {
        list(
            crate::formats()
                .iter()
                .filter(|f| f.abilities().has(Abilities::MAKE)),
        )
    };
    let found = crate::formats().iter().find_map(of);
    found.ok_or_else(|| unknown(name, &made()))
}

fn unknown(kind: &str, kinds: &str) -> Error {
    let kind = volary_core::escape(kind.as_bytes());
    Error::note(
        Kind::Invalid,
        format!("unknown kind '{kind}'; there are: {kinds}"),
    )
}

/// Returns the kinds that are opened, for people.
pub(crate) fn opened() -> String {
    list(crate::formats().iter())
}

fn list<'a>(formats: impl Iterator<Item = &'a &'static dyn Format>) -> String {
    let kinds: Vec<&str> = formats.flat_map(|f| f.kinds()).copied().collect();
    kinds.join(", ")
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
