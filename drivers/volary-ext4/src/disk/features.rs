//! Names of features and flags, as e2fsprogs has them.

const COMPAT: &[(u32, &str)] = &[
    (0x1, "dir_prealloc"),
    (0x2, "imagic_inodes"),
    (0x4, "has_journal"),
    (0x8, "ext_attr"),
    (0x10, "resize_inode"),
    (0x20, "dir_index"),
    (0x40, "lazy_bg"),
    (0x200, "sparse_super2"),
    (0x400, "fast_commit"),
    (0x800, "stable_inodes"),
    (0x1000, "orphan_file"),
];
const INCOMPAT: &[(u32, &str)] = &[
    (0x1, "compression"),
    (0x2, "filetype"),
    (0x4, "needs_recovery"),
    (0x8, "journal_dev"),
    (0x10, "meta_bg"),
    (0x40, "extent"),
    (0x80, "64bit"),
    (0x100, "mmp"),
    (0x200, "flex_bg"),
    (0x400, "ea_inode"),
    (0x1000, "dirdata"),
    (0x2000, "metadata_csum_seed"),
    (0x4000, "large_dir"),
    (0x8000, "inline_data"),
    (0x1_0000, "encrypt"),
    (0x2_0000, "casefold"),
];
const RO_COMPAT: &[(u32, &str)] = &[
    (0x1, "sparse_super"),
    (0x2, "large_file"),
    (0x8, "huge_file"),
    (0x10, "uninit_bg"),
    (0x20, "dir_nlink"),
    (0x40, "extra_isize"),
    (0x100, "quota"),
    (0x200, "bigalloc"),
    (0x400, "metadata_csum"),
    (0x800, "replica"),
    (0x1000, "read-only"),
    (0x2000, "project"),
    (0x4000, "shared_blocks"),
    (0x8000, "verity"),
    (0x1_0000, "orphan_present"),
];
const INODE: &[(u32, &str)] = &[
    (0x1, "secrm"),
    (0x2, "undelete"),
    (0x4, "compressed"),
    (0x8, "sync"),
    (0x10, "immutable"),
    (0x20, "append"),
    (0x40, "nodump"),
    (0x80, "noatime"),
    (0x800, "encrypted"),
    (0x1000, "indexed"),
    (0x4000, "journal_data"),
    (0x8000, "notail"),
    (0x1_0000, "dirsync"),
    (0x2_0000, "topdir"),
    (0x4_0000, "huge_file"),
    (0x8_0000, "extents"),
    (0x10_0000, "verity"),
    (0x20_0000, "ea_inode"),
    (0x200_0000, "dax"),
    (0x1000_0000, "inline_data"),
    (0x2000_0000, "projinherit"),
    (0x4000_0000, "casefold"),
];

fn names(table: &[(u32, &str)], flags: u32) -> String {
    let bits = (0..32)
        .map(|bit| 1u32 << bit)
        .filter(|bit| flags & bit != 0);
    let name = |bit: u32| {
        let known = table.iter().find(|known| known.0 == bit);
        known.map_or_else(|| format!("{bit:#x}"), |known| known.1.to_owned())
    };
    bits.map(name).collect::<Vec<_>>().join(" ")
}

pub(crate) fn compat(flags: u32) -> String {
    names(COMPAT, flags)
}

pub(crate) fn incompat(flags: u32) -> String {
    names(INCOMPAT, flags)
}

pub(crate) fn ro_compat(flags: u32) -> String {
    names(RO_COMPAT, flags)
}

pub(crate) fn inode(flags: u32) -> String {
    names(INODE, flags)
}
