//! The kinds of volume by their names, and by what else they are called.

use volary_core::{Error, Format, Kind};

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
pub(crate) fn own_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, own)| (*own).to_owned())
}

/// Returns whether others call a kind or a format so.
pub(crate) fn is_alias(name: &str) -> bool {
    ALIASES.iter().any(|(alias, _)| *alias == name)
}

pub(crate) fn unknown(kind: &str, kinds: &str) -> Error {
    let kind = volary_core::escape(kind.as_bytes());
    Error::note(
        Kind::Invalid,
        format!("unknown kind '{kind}'; there are: {kinds}"),
    )
}

/// Returns the kinds of formats, for people.
pub(crate) fn list<'a>(formats: impl Iterator<Item = &'a &'static dyn Format>) -> String {
    let kinds: Vec<&str> = formats.flat_map(|f| f.kinds()).copied().collect();
    kinds.join(", ")
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use crate::{format_of, kind_of};

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
