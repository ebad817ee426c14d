//! Structures exactly as they are stored, with the field names of `fs.h`, `dinode.h` and
//! `dir.h` of 4.4BSD, FreeBSD and NetBSD. Numbers are in the byte order of the machine that
//! made the volume.

/// The order of bytes in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// Returns the order in words, for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Little => "little-endian",
            Self::Big => "big-endian",
        }
    }
}

/// A number, or an array of them, as it is stored.
pub(crate) trait Stored: Sized {
    /// Returns the number at `at`. Past the end, which callers have excluded, it is 0.
    fn get(order: Order, bytes: &[u8], at: usize) -> Self;
    /// Stores the number at `at`. Past the end, which callers have excluded, nothing is stored.
    fn put(&self, order: Order, bytes: &mut [u8], at: usize);
    /// Returns the number in decimal.
    fn show(&self) -> String;
}

macro_rules! stored {
    ($($int:ident)*) => {$(
        impl Stored for $int {
            fn get(order: Order, bytes: &[u8], at: usize) -> Self {
                let rest = bytes.get(at..).and_then(|rest| rest.first_chunk());
                let raw = rest.copied().unwrap_or_default();
                match order {
                    Order::Little => Self::from_le_bytes(raw),
                    Order::Big => Self::from_be_bytes(raw),
                }
            }
            fn put(&self, order: Order, bytes: &mut [u8], at: usize) {
                let raw = match order {
                    Order::Little => self.to_le_bytes(),
                    Order::Big => self.to_be_bytes(),
                };
                if let Some(room) = bytes.get_mut(at..at + raw.len()) {
                    room.copy_from_slice(&raw);
                }
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
stored!(u8 i8 u16 i16 u32 i32 u64 i64);

impl<T: Stored, const N: usize> Stored for [T; N] {
    fn get(order: Order, bytes: &[u8], at: usize) -> Self {
        std::array::from_fn(|i| T::get(order, bytes, at + i * size_of::<T>()))
    }
    fn put(&self, order: Order, bytes: &mut [u8], at: usize) {
        for (i, one) in self.iter().enumerate() {
            one.put(order, bytes, at + i * size_of::<T>());
        }
    }
    fn show(&self) -> String {
        let all: Vec<String> = self.iter().map(T::show).collect();
        all.join(" ")
    }
}

/// A field of a structure: name, byte offset, value.
pub(crate) type Field = (&'static str, usize, String);

/// Defines a structure whose fields stand at given byte offsets, in order.
macro_rules! layout {
    ($(#[$meta:meta])* $name:ident, $size:literal: $($field:ident: $ty:ty = $at:literal,)*) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $ty,)*
        }
        impl $name {
            /// The structure's length in bytes.
            pub(crate) const SIZE: usize = $size;
            /// Reads the structure from at least `SIZE` bytes.
            pub(crate) fn read(order: Order, bytes: &[u8]) -> Self {
                Self { $($field: Stored::get(order, bytes, $at),)* }
            }
            /// Returns the structure with every field 0.
            pub(crate) fn zeroed() -> Self {
                Self::read(Order::Little, &[])
            }
            /// Stores the structure in at least `SIZE` bytes.
            pub(crate) fn write(&self, order: Order, bytes: &mut [u8]) {
                $(self.$field.put(order, bytes, $at);)*
            }
            /// Returns the fields, in order.
            pub(crate) fn fields(&self) -> Vec<Field> {
                vec![$((stringify!($field), $at, self.$field.show()),)*]
            }
        }
        const _: () = {
            let mut end = 0;
            $(
                assert!(end <= $at, "fields overlap");
                end = $at + size_of::<$ty>();
            )*
            assert!(end <= $size, "a field is past the end");
        };
    };
}

layout! {
    /// `struct fs`, the superblock, without the names of its mount point and of the volume.
    Superblock, 1376:
    fs_firstfield: i32 = 0,
    fs_unused_1: i32 = 4,
    fs_sblkno: i32 = 8,
    fs_cblkno: i32 = 12,
    fs_iblkno: i32 = 16,
    fs_dblkno: i32 = 20,
    fs_old_cgoffset: i32 = 24,
    fs_old_cgmask: i32 = 28,
    fs_old_time: i32 = 32,
    fs_old_size: i32 = 36,
    fs_old_dsize: i32 = 40,
    fs_ncg: u32 = 44,
    fs_bsize: i32 = 48,
    fs_fsize: i32 = 52,
    fs_frag: i32 = 56,
    fs_minfree: i32 = 60,
    fs_old_rotdelay: i32 = 64,
    fs_old_rps: i32 = 68,
    fs_bmask: i32 = 72,
    fs_fmask: i32 = 76,
    fs_bshift: i32 = 80,
    fs_fshift: i32 = 84,
    fs_maxcontig: i32 = 88,
    fs_maxbpg: i32 = 92,
    fs_fragshift: i32 = 96,
    fs_fsbtodb: i32 = 100,
    fs_sbsize: i32 = 104,
    fs_spare1: [i32; 2] = 108,
    fs_nindir: i32 = 116,
    fs_inopb: u32 = 120,
    fs_old_nspf: i32 = 124,
    fs_optim: i32 = 128,
    fs_old_npsect: i32 = 132,
    fs_old_interleave: i32 = 136,
    fs_old_trackskew: i32 = 140,
    fs_id: [u32; 2] = 144,
    fs_old_csaddr: i32 = 152,
    fs_cssize: i32 = 156,
    fs_cgsize: i32 = 160,
    fs_old_ntrak: i32 = 164,
    fs_old_nsect: i32 = 168,
    fs_old_spc: i32 = 172,
    fs_old_ncyl: i32 = 176,
    fs_old_cpg: i32 = 180,
    fs_ipg: u32 = 184,
    fs_fpg: i32 = 188,
    fs_old_cstotal: [i32; 4] = 192,
    fs_fmod: i8 = 208,
    fs_clean: i8 = 209,
    fs_ronly: i8 = 210,
    fs_old_flags: u8 = 211,
    fs_swuid: u64 = 712,
    fs_cgrotor: i32 = 724,
    fs_old_cpc: i32 = 856,
    fs_maxbsize: i32 = 860,
    fs_unrefs: i64 = 864,
    fs_providersize: i64 = 872,
    fs_metaspace: i64 = 880,
    fs_sblockactualloc: i64 = 992,
    fs_sblockloc: i64 = 1000,
    fs_cstotal: [i64; 5] = 1008,
    fs_time: i64 = 1072,
    fs_size: i64 = 1080,
    fs_dsize: i64 = 1088,
    fs_csaddr: i64 = 1096,
    fs_pendingblocks: i64 = 1104,
    fs_pendinginodes: u32 = 1112,
    fs_snapinum: [u32; 20] = 1116,
    fs_avgfilesize: u32 = 1196,
    fs_avgfpdir: u32 = 1200,
    fs_save_cgsize: i32 = 1204,
    fs_mtime: i64 = 1208,
    fs_sujfree: i32 = 1216,
    fs_ckhash: u32 = 1304,
    fs_metackhash: u32 = 1308,
    fs_flags: u32 = 1312,
    fs_contigsumsize: i32 = 1316,
    fs_maxsymlinklen: i32 = 1320,
    fs_old_inodefmt: i32 = 1324,
    fs_maxfilesize: u64 = 1328,
    fs_qbmask: i64 = 1336,
    fs_qfmask: i64 = 1344,
    fs_state: i32 = 1352,
    fs_old_postblformat: i32 = 1356,
    fs_old_nrpos: i32 = 1360,
    fs_old_postbloff: i32 = 1364,
    fs_old_rotbloff: i32 = 1368,
    fs_magic: u32 = 1372,
}

/// Where `fs_fsmnt` stands: the last mount point.
pub(crate) const FSMNT: std::ops::Range<usize> = 212..680;
/// Where `fs_volname` stands.
pub(crate) const VOLNAME: std::ops::Range<usize> = 680..712;

pub(crate) const FS_UFS1_MAGIC: u32 = 0x0001_1954;
pub(crate) const FS_UFS2_MAGIC: u32 = 0x1954_0119;
/// Bytes reserved for a superblock.
pub(crate) const SBLOCKSIZE: usize = 8192;
/// Where the first superblock is searched for: UFS2's place, UFS1's, that of floppies, and the
/// place behind a large boot program.
pub(crate) const SBLOCKSEARCH: [u64; 4] = [65_536, 8192, 0, 262_144];
/// `fs_old_flags`: the fields past byte 860 are valid.
pub(crate) const FS_FLAGS_UPDATED: u8 = 0x80;
/// `fs_old_inodefmt` of 4.4BSD. Other values mean 4.2BSD or 4.3BSD.
pub(crate) const FS_44INODEFMT: i32 = 2;
/// The values of `fs_old_inodefmt` for 4.2BSD and 4.3BSD, if the fields past byte 860 are valid.
pub(crate) const FS_42INODEFMTS: [i32; 2] = [-1, 0];
/// `fs_old_postblformat` of 4.2BSD: its cylinder groups do not store the offsets of their maps.
pub(crate) const FS_42POSTBLFMT: i32 = -1;

/// Byte offsets in the superblock of fields that change while a volume is attached.
pub(crate) mod sb {
    pub(crate) const OLD_TIME: usize = 32;
    pub(crate) const OLD_CSTOTAL: usize = 192;
    pub(crate) const FMOD: usize = 208;
    pub(crate) const CLEAN: usize = 209;
    pub(crate) const SBLOCKACTUALLOC: usize = 992;
    pub(crate) const CSTOTAL: usize = 1008;
    pub(crate) const TIME: usize = 1072;
    pub(crate) const CKHASH: usize = 1304;
    pub(crate) const METACKHASH: usize = 1308;
    pub(crate) const FLAGS: usize = 1312;
}

/// `fs_flags`: check hashes, on FreeBSD.
pub(crate) const FS_METACKHASH: u32 = 0x200;

/// `fs_metackhash`: which structures have hashes.
pub(crate) const CK_SUPERBLOCK: u32 = 1;
pub(crate) const CK_CYLGRP: u32 = 2;
pub(crate) const CK_INODE: u32 = 4;
/// All hashes that FreeBSD knows.
pub(crate) const CK_SUPPORTED: u32 = CK_SUPERBLOCK | CK_CYLGRP | CK_INODE;

/// `fs_flags`: each bit and its name, with the system that uses it.
pub(crate) const FS_FLAGS: &[(u32, &str)] = &[
    (0x01, "unclean"),
    (0x02, "soft updates"),
    (0x04, "needs fsck"),
    (0x08, "soft updates journal (FreeBSD) or Apple's format"),
    (0x10, "ACLs"),
    (0x20, "multilabel"),
    (0x40, "GEOM journal"),
    (0x100, "NFSv4 ACLs"),
    (0x200, "check hashes (FreeBSD) or quotas (NetBSD)"),
    (0x400, "TRIM"),
];

layout! {
    /// `struct cg`, the head of a cylinder group.
    CgHeader, 168:
    cg_firstfield: i32 = 0,
    cg_magic: u32 = 4,
    cg_old_time: i32 = 8,
    cg_cgx: u32 = 12,
    cg_old_ncyl: i16 = 16,
    cg_old_niblk: i16 = 18,
    cg_ndblk: u32 = 20,
    cg_cs: [i32; 4] = 24,
    cg_rotor: u32 = 40,
    cg_frotor: u32 = 44,
    cg_irotor: u32 = 48,
    cg_frsum: [u32; 8] = 52,
    cg_old_btotoff: i32 = 84,
    cg_old_boff: i32 = 88,
    cg_iusedoff: u32 = 92,
    cg_freeoff: u32 = 96,
    cg_nextfreeoff: u32 = 100,
    cg_clustersumoff: u32 = 104,
    cg_clusteroff: u32 = 108,
    cg_nclusterblks: u32 = 112,
    cg_niblk: u32 = 116,
    cg_initediblk: u32 = 120,
    cg_unrefs: u32 = 124,
    cg_ckhash: u32 = 132,
    cg_time: i64 = 136,
}

pub(crate) const CG_MAGIC: u32 = 0x0009_0255;
/// Byte offset of `cg_magic`.
pub(crate) const CG_MAGIC_AT: usize = 4;
/// Byte offsets of `cg_cgx`, the group's number, and of `cg_ndblk`, its fragments.
pub(crate) const CG_CGX_AT: usize = 12;
pub(crate) const CG_NDBLK_AT: usize = 20;
/// Byte offset of `cg_initediblk`, of UFS2.
pub(crate) const CG_INITEDIBLK_AT: usize = 120;

/// `struct ocg` of 4.2BSD, whose maps stand at fixed places.
pub(crate) mod ocg {
    /// Counts of free blocks by cylinder, and by rotational position, of which there are eight.
    pub(crate) const BTOT: usize = 84;
    pub(crate) const B: usize = 212;
    pub(crate) const POSITIONS: usize = 8;
    pub(crate) const IUSED: u32 = 724;
    pub(crate) const MAGIC: usize = 980;
    pub(crate) const FREE: u32 = 984;
}

layout! {
    /// `struct ufs1_dinode`.
    Ufs1Dinode, 128:
    di_mode: u16 = 0,
    di_nlink: i16 = 2,
    di_oldids: [u16; 2] = 4,
    di_size: u64 = 8,
    di_atime: i32 = 16,
    di_atimensec: i32 = 20,
    di_mtime: i32 = 24,
    di_mtimensec: i32 = 28,
    di_ctime: i32 = 32,
    di_ctimensec: i32 = 36,
    di_db: [u32; 12] = 40,
    di_ib: [u32; 3] = 88,
    di_flags: u32 = 100,
    di_blocks: u32 = 104,
    di_gen: u32 = 108,
    di_uid: u32 = 112,
    di_gid: u32 = 116,
    di_modrev: u64 = 120,
}

layout! {
    /// `struct ufs2_dinode`.
    Ufs2Dinode, 256:
    di_mode: u16 = 0,
    di_nlink: i16 = 2,
    di_uid: u32 = 4,
    di_gid: u32 = 8,
    di_blksize: u32 = 12,
    di_size: u64 = 16,
    di_blocks: u64 = 24,
    di_atime: i64 = 32,
    di_mtime: i64 = 40,
    di_ctime: i64 = 48,
    di_birthtime: i64 = 56,
    di_mtimensec: i32 = 64,
    di_atimensec: i32 = 68,
    di_ctimensec: i32 = 72,
    di_birthnsec: i32 = 76,
    di_gen: u32 = 80,
    di_kernflags: u32 = 84,
    di_flags: u32 = 88,
    di_extsize: u32 = 92,
    di_extb: [u64; 2] = 96,
    di_db: [u64; 12] = 112,
    di_ib: [u64; 3] = 208,
    di_modrev: u64 = 232,
    di_freelink: u32 = 240,
    di_ckhash: u32 = 244,
}

/// Byte offset of the block pointers, direct and indirect, which hold a short symlink's
/// target or a device's number instead.
pub(crate) const UFS1_DB: usize = 40;
pub(crate) const UFS2_DB: usize = 112;
/// Direct blocks of an inode.
pub(crate) const UFS_NDADDR: u64 = 12;
/// The root directory's inode.
pub(crate) const UFS_ROOTINO: u32 = 2;
/// `di_flags`: the file is a snapshot of the volume.
pub(crate) const SF_SNAPSHOT: u32 = 0x0020_0000;

/// Bytes of a chunk of a directory. No entry crosses the end of one.
pub(crate) const DIRBLKSIZ: usize = 512;
/// Bytes of an entry before its name: inode, length, type, and length of the name. On 4.3BSD, the
/// type is the high byte of the name's length.
pub(crate) const DIRECT_HEAD: usize = 8;
/// Longest name.
pub(crate) const UFS_MAXNAMLEN: u16 = 255;
/// An entry with this inode is a hole in a union mount.
pub(crate) const UFS_WINO: u32 = 1;

/// Bytes of `struct extattr` before the name.
pub(crate) const EXTATTR_HEAD: usize = 7;
/// `ea_namespace`, and the prefix of names in it.
pub(crate) const EXTATTR_NAMESPACES: [(u8, &[u8]); 2] = [(1, b"user."), (2, b"system.")];
