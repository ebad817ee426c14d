//! The kinds of volume, by their names and other systems' names for them.

use volary_core::{Error, Format, Kind};

/// Returns the default kind for a FAT volume of `size` bytes: the one that other systems choose for
/// disks of that size.
pub fn default_kind(size: u64) -> &'static str {
    const MIB: u64 = 1 << 20;
    match size {
        0..=0x3f_ffff => "fat12",
        n if n < 512 * MIB => "fat16",
        _ => "fat32",
    }
}

/// Other systems' names of kinds and formats, with the name used here.
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

/// Returns the name used here for a user's name of a kind.
pub(crate) fn own_name(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    alias.map_or(name, |(_, own)| (*own).to_owned())
}

/// Returns whether `name` is another system's name for a kind or format.
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

/// Returns the kinds of some formats, for people.
pub(crate) fn list<'a>(formats: impl Iterator<Item = &'a &'static dyn Format>) -> String {
    let kinds: Vec<&str> = formats.flat_map(|f| f.kinds()).copied().collect();
    kinds.join(", ")
}
