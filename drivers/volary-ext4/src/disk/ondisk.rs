//! Structures exactly as they are stored, with the field names of the specification
//! (Linux, Documentation/filesystems/ext4; the pages are named beside each structure).

use zerocopy::byteorder::{BE, LE, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

type L16 = U16<LE>;
type L32 = U32<LE>;
type L64 = U64<LE>;
type B16 = U16<BE>;
type B32 = U32<BE>;
type B64 = U64<BE>;

/// Where the superblock begins, in bytes.
pub(crate) const SUPERBLOCK: u64 = 1024;
pub(crate) const SUPERBLOCK_LEN: usize = 1024;
pub(crate) const MAGIC: u16 = 0xef53;

/// Compatible features (super.rst).
pub(crate) mod compat {
    pub(crate) const HAS_JOURNAL: u32 = 0x4;
    pub(crate) const SPARSE_SUPER2: u32 = 0x200;
}

/// Features that a reader must know.
pub(crate) mod incompat {
    pub(crate) const FILETYPE: u32 = 0x2;
    /// The journal has to be replayed.
    pub(crate) const RECOVER: u32 = 0x4;
    pub(crate) const JOURNAL_DEV: u32 = 0x8;
    pub(crate) const META_BG: u32 = 0x10;
    pub(crate) const EXTENTS: u32 = 0x40;
    pub(crate) const BITS64: u32 = 0x80;
    pub(crate) const MMP: u32 = 0x100;
    pub(crate) const FLEX_BG: u32 = 0x200;
    pub(crate) const EA_INODE: u32 = 0x400;
    pub(crate) const CSUM_SEED: u32 = 0x2000;
    pub(crate) const LARGEDIR: u32 = 0x4000;
    pub(crate) const INLINE_DATA: u32 = 0x8000;
    pub(crate) const ENCRYPT: u32 = 0x1_0000;
    pub(crate) const CASEFOLD: u32 = 0x2_0000;
    /// What this driver reads.
    pub(crate) const KNOWN: u32 = FILETYPE
        | RECOVER
        | META_BG
        | EXTENTS
        | BITS64
        | MMP
        | FLEX_BG
        | EA_INODE
        | CSUM_SEED
        | LARGEDIR
        | INLINE_DATA
        | ENCRYPT
        | CASEFOLD;
}

/// Features that a writer must know.
pub(crate) mod ro_compat {
    pub(crate) const SPARSE_SUPER: u32 = 0x1;
    pub(crate) const HUGE_FILE: u32 = 0x8;
    pub(crate) const GDT_CSUM: u32 = 0x10;
    pub(crate) const BIGALLOC: u32 = 0x200;
    pub(crate) const METADATA_CSUM: u32 = 0x400;
}

/// The superblock (super.rst).
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct SuperBlock {
    pub(crate) s_inodes_count: L32,
    pub(crate) s_blocks_count_lo: L32,
    pub(crate) s_r_blocks_count_lo: L32,
    pub(crate) s_free_blocks_count_lo: L32,
    pub(crate) s_free_inodes_count: L32,
    pub(crate) s_first_data_block: L32,
    pub(crate) s_log_block_size: L32,
    pub(crate) s_log_cluster_size: L32,
    pub(crate) s_blocks_per_group: L32,
    pub(crate) s_clusters_per_group: L32,
    pub(crate) s_inodes_per_group: L32,
    pub(crate) s_mtime: L32,
    pub(crate) s_wtime: L32,
    pub(crate) s_mnt_count: L16,
    pub(crate) s_max_mnt_count: L16,
    pub(crate) s_magic: L16,
    pub(crate) s_state: L16,
    pub(crate) s_errors: L16,
    pub(crate) s_minor_rev_level: L16,
    pub(crate) s_lastcheck: L32,
    pub(crate) s_checkinterval: L32,
    pub(crate) s_creator_os: L32,
    pub(crate) s_rev_level: L32,
    pub(crate) s_def_resuid: L16,
    pub(crate) s_def_resgid: L16,
    pub(crate) s_first_ino: L32,
    pub(crate) s_inode_size: L16,
    pub(crate) s_block_group_nr: L16,
    pub(crate) s_feature_compat: L32,
    pub(crate) s_feature_incompat: L32,
    pub(crate) s_feature_ro_compat: L32,
    pub(crate) s_uuid: [u8; 16],
    pub(crate) s_volume_name: [u8; 16],
    pub(crate) s_last_mounted: [u8; 64],
    s_algorithm_usage_bitmap: L32,
    s_prealloc_blocks: u8,
    s_prealloc_dir_blocks: u8,
    pub(crate) s_reserved_gdt_blocks: L16,
    pub(crate) s_journal_uuid: [u8; 16],
    pub(crate) s_journal_inum: L32,
    pub(crate) s_journal_dev: L32,
    pub(crate) s_last_orphan: L32,
    pub(crate) s_hash_seed: [L32; 4],
    pub(crate) s_def_hash_version: u8,
    s_jnl_backup_type: u8,
    pub(crate) s_desc_size: L16,
    s_default_mount_opts: L32,
    pub(crate) s_first_meta_bg: L32,
    pub(crate) s_mkfs_time: L32,
    s_jnl_blocks: [L32; 17],
    pub(crate) s_blocks_count_hi: L32,
    pub(crate) s_r_blocks_count_hi: L32,
    pub(crate) s_free_blocks_count_hi: L32,
    s_min_extra_isize: L16,
    s_want_extra_isize: L16,
    pub(crate) s_flags: L32,
    s_raid_stride: L16,
    s_mmp_interval: L16,
    pub(crate) s_mmp_block: L64,
    s_raid_stripe_width: L32,
    pub(crate) s_log_groups_per_flex: u8,
    pub(crate) s_checksum_type: u8,
    s_reserved_pad: L16,
    pub(crate) s_kbytes_written: L64,
    s_snapshot: [L32; 5],
    pub(crate) s_error_count: L32,
    s_errors_told: [u8; 104],
    s_mount_opts: [u8; 64],
    pub(crate) s_usr_quota_inum: L32,
    pub(crate) s_grp_quota_inum: L32,
    pub(crate) s_overhead_blocks: L32,
    pub(crate) s_backup_bgs: [L32; 2],
    s_encrypt_algos: [u8; 4],
    s_encrypt_pw_salt: [u8; 16],
    s_lpf_ino: L32,
    pub(crate) s_prj_quota_inum: L32,
    pub(crate) s_checksum_seed: L32,
    s_times_hi: [u8; 8],
    pub(crate) s_encoding: L16,
    s_encoding_flags: L16,
    pub(crate) s_orphan_file_inum: L32,
    s_reserved: [L32; 94],
    pub(crate) s_checksum: L32,
}

/// States of a volume (super.rst).
pub(crate) mod state {
    pub(crate) const CLEAN: u16 = 1;
    pub(crate) const ERRORS: u16 = 2;
}

/// A group descriptor (group_descr.rst). Those of 32 bytes end after `bg_checksum`.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct GroupDesc {
    pub(crate) bg_block_bitmap_lo: L32,
    pub(crate) bg_inode_bitmap_lo: L32,
    pub(crate) bg_inode_table_lo: L32,
    pub(crate) bg_free_blocks_count_lo: L16,
    pub(crate) bg_free_inodes_count_lo: L16,
    pub(crate) bg_used_dirs_count_lo: L16,
    pub(crate) bg_flags: L16,
    bg_exclude_bitmap_lo: L32,
    pub(crate) bg_block_bitmap_csum_lo: L16,
    pub(crate) bg_inode_bitmap_csum_lo: L16,
    pub(crate) bg_itable_unused_lo: L16,
    pub(crate) bg_checksum: L16,
    pub(crate) bg_block_bitmap_hi: L32,
    pub(crate) bg_inode_bitmap_hi: L32,
    pub(crate) bg_inode_table_hi: L32,
    pub(crate) bg_free_blocks_count_hi: L16,
    pub(crate) bg_free_inodes_count_hi: L16,
    pub(crate) bg_used_dirs_count_hi: L16,
    pub(crate) bg_itable_unused_hi: L16,
    bg_exclude_bitmap_hi: L32,
    pub(crate) bg_block_bitmap_csum_hi: L16,
    pub(crate) bg_inode_bitmap_csum_hi: L16,
    bg_reserved: L32,
}

/// Length of a descriptor without 64bit.
pub(crate) const DESC_LEN_32: usize = 32;
/// Where `bg_checksum` stands in a descriptor.
pub(crate) const DESC_CHECKSUM: usize = 0x1e;

/// Flags of a group (group_descr.rst).
pub(crate) mod group {
    pub(crate) const INODE_UNINIT: u16 = 1;
    pub(crate) const BLOCK_UNINIT: u16 = 2;
}

/// The first 128 bytes of an inode (inodes.rst).
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct InodeHead {
    pub(crate) i_mode: L16,
    pub(crate) i_uid: L16,
    pub(crate) i_size_lo: L32,
    pub(crate) i_atime: L32,
    pub(crate) i_ctime: L32,
    pub(crate) i_mtime: L32,
    pub(crate) i_dtime: L32,
    pub(crate) i_gid: L16,
    pub(crate) i_links_count: L16,
    pub(crate) i_blocks_lo: L32,
    pub(crate) i_flags: L32,
    pub(crate) l_i_version: L32,
    pub(crate) i_block: [u8; I_BLOCK_LEN],
    pub(crate) i_generation: L32,
    pub(crate) i_file_acl_lo: L32,
    pub(crate) i_size_high: L32,
    i_obso_faddr: L32,
    pub(crate) l_i_blocks_high: L16,
    pub(crate) l_i_file_acl_high: L16,
    pub(crate) l_i_uid_high: L16,
    pub(crate) l_i_gid_high: L16,
    pub(crate) l_i_checksum_lo: L16,
    l_i_reserved: L16,
}

/// What follows it, as far as `i_extra_isize` says.
#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct InodeExtra {
    pub(crate) i_extra_isize: L16,
    pub(crate) i_checksum_hi: L16,
    pub(crate) i_ctime_extra: L32,
    pub(crate) i_mtime_extra: L32,
    pub(crate) i_atime_extra: L32,
    pub(crate) i_crtime: L32,
    pub(crate) i_crtime_extra: L32,
    pub(crate) i_version_hi: L32,
    pub(crate) i_projid: L32,
}

/// Bytes of `i_block`: pointers, the root of an extent tree, a short target, or data.
pub(crate) const I_BLOCK_LEN: usize = 60;
pub(crate) const INODE_HEAD: usize = 128;
pub(crate) const INODE_EXTRA: usize = 32;
/// Where `i_block` and `i_generation` stand in an inode.
pub(crate) const I_BLOCK: usize = 0x28;
pub(crate) const I_GENERATION: usize = 0x64;
/// Where the two halves of the checksum stand.
pub(crate) const I_CHECKSUM_LO: usize = 0x7c;
pub(crate) const I_CHECKSUM_HI: usize = 0x82;

/// Flags of an inode (inodes.rst).
pub(crate) mod iflag {
    pub(crate) const ENCRYPT: u32 = 0x800;
    pub(crate) const INDEX: u32 = 0x1000;
    /// `i_blocks` counts blocks, not sectors.
    pub(crate) const HUGE_FILE: u32 = 0x4_0000;
    pub(crate) const EXTENTS: u32 = 0x8_0000;
    /// The inode holds the value of an extended attribute.
    pub(crate) const EA_INODE: u32 = 0x20_0000;
    pub(crate) const INLINE_DATA: u32 = 0x1000_0000;
}

/// Special inodes (special_inodes.rst).
pub(crate) const ROOT_INO: u32 = 2;

/// The head of a node of an extent tree (ifork.rst).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ExtentHeader {
    pub(crate) eh_magic: L16,
    pub(crate) eh_entries: L16,
    pub(crate) eh_max: L16,
    pub(crate) eh_depth: L16,
    eh_generation: L32,
}

/// An entry of a node that is no leaf.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ExtentIdx {
    pub(crate) ei_block: L32,
    pub(crate) ei_leaf_lo: L32,
    pub(crate) ei_leaf_hi: L16,
    ei_unused: L16,
}

/// An entry of a leaf.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct ExtentLeaf {
    pub(crate) ee_block: L32,
    pub(crate) ee_len: L16,
    pub(crate) ee_start_hi: L16,
    pub(crate) ee_start_lo: L32,
}

pub(crate) const EXTENT_MAGIC: u16 = 0xf30a;
/// Longest extent; a length past it is that of one without data.
pub(crate) const EXTENT_LEN_MAX: u16 = 32768;
pub(crate) const EXTENT_ENTRY: usize = 12;
/// Deepest tree: five levels reach every block.
pub(crate) const EXTENT_DEPTH_MAX: u16 = 5;

/// The fixed part of a directory entry (directory.rst).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct DirEntry2 {
    pub(crate) inode: L32,
    pub(crate) rec_len: L16,
    pub(crate) name_len: u8,
    pub(crate) file_type: u8,
}

pub(crate) const DIR_ENTRY: usize = 8;
/// Length of the entry at the end of a block that holds its checksum, and its type.
pub(crate) const DIR_TAIL: usize = 12;
pub(crate) const DIR_TAIL_TYPE: u8 = 0xde;

/// `struct ext4_xattr_header`: it begins a block of extended attributes (attributes.rst).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct XattrHeader {
    pub(crate) h_magic: L32,
    pub(crate) h_refcount: L32,
    pub(crate) h_blocks: L32,
    pub(crate) h_hash: L32,
    pub(crate) h_checksum: L32,
    h_reserved: [L32; 3],
}

/// `struct ext4_xattr_entry`, whose name follows it.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct XattrEntry {
    pub(crate) e_name_len: u8,
    pub(crate) e_name_index: u8,
    pub(crate) e_value_offs: L16,
    pub(crate) e_value_inum: L32,
    pub(crate) e_value_size: L32,
    pub(crate) e_hash: L32,
}

pub(crate) const XATTR_MAGIC: u32 = 0xea02_0000;
pub(crate) const XATTR_HEADER: usize = 32;
pub(crate) const XATTR_ENTRY: usize = 16;

/// The head of every block of a journal (journal.rst).
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct JournalHeader {
    pub(crate) h_magic: B32,
    pub(crate) h_blocktype: B32,
    pub(crate) h_sequence: B32,
}

pub(crate) const JOURNAL_MAGIC: u32 = 0xc03b_3998;
pub(crate) const JOURNAL_HEADER: usize = 12;

/// Types of a journal's blocks.
pub(crate) mod jblock {
    pub(crate) const DESCRIPTOR: u32 = 1;
    pub(crate) const COMMIT: u32 = 2;
    pub(crate) const SUPER_V1: u32 = 3;
    pub(crate) const SUPER_V2: u32 = 4;
    pub(crate) const REVOKE: u32 = 5;
}

/// A journal's superblock.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct JournalSuper {
    pub(crate) header: JournalHeader,
    pub(crate) s_blocksize: B32,
    pub(crate) s_maxlen: B32,
    pub(crate) s_first: B32,
    pub(crate) s_sequence: B32,
    pub(crate) s_start: B32,
    pub(crate) s_errno: B32,
    pub(crate) s_feature_compat: B32,
    pub(crate) s_feature_incompat: B32,
    pub(crate) s_feature_ro_compat: B32,
    pub(crate) s_uuid: [u8; 16],
    pub(crate) s_nr_users: B32,
    s_dynsuper: B32,
    s_max_transaction: B32,
    s_max_trans_data: B32,
    pub(crate) s_checksum_type: u8,
    s_padding2: [u8; 3],
    pub(crate) s_num_fc_blks: B32,
    s_head: B32,
    s_padding: [B32; 40],
    pub(crate) s_checksum: B32,
    s_users: [u8; 768],
}

pub(crate) const JOURNAL_SUPER: usize = 1024;
pub(crate) const JOURNAL_SUPER_CHECKSUM: usize = 0xfc;

/// Features of a journal.
pub(crate) mod jfeature {
    pub(crate) const COMPAT_CHECKSUM: u32 = 1;
    pub(crate) const REVOKE: u32 = 0x1;
    pub(crate) const BITS64: u32 = 0x2;
    pub(crate) const ASYNC_COMMIT: u32 = 0x4;
    pub(crate) const CSUM_V2: u32 = 0x8;
    pub(crate) const CSUM_V3: u32 = 0x10;
    pub(crate) const FAST_COMMIT: u32 = 0x20;
    pub(crate) const KNOWN: u32 = REVOKE | BITS64 | ASYNC_COMMIT | CSUM_V2 | CSUM_V3 | FAST_COMMIT;
}

/// A tag of a descriptor block with checksums of version 3.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BlockTag3 {
    pub(crate) t_blocknr: B32,
    pub(crate) t_flags: B32,
    pub(crate) t_blocknr_high: B32,
    pub(crate) t_checksum: B32,
}

/// The fixed part of other tags; the high half of the number follows with 64bit.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct BlockTag {
    pub(crate) t_blocknr: B32,
    pub(crate) t_checksum: B16,
    pub(crate) t_flags: B16,
}

/// Flags of a tag.
pub(crate) mod tflag {
    pub(crate) const ESCAPE: u32 = 1;
    pub(crate) const SAME_UUID: u32 = 2;
    pub(crate) const LAST: u32 = 8;
}

/// The head of a commit block.
#[derive(Clone, Copy, FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct CommitHeader {
    pub(crate) header: JournalHeader,
    pub(crate) h_chksum_type: u8,
    pub(crate) h_chksum_size: u8,
    h_padding: [u8; 2],
    pub(crate) h_chksum: [B32; 8],
    pub(crate) h_commit_sec: B64,
    h_commit_nsec: B32,
}

/// Where the checksum stands in a commit block.
pub(crate) const COMMIT_CHECKSUM: usize = 16;

/// Tags of fast commits, in the little byte order (fast_commit.h).
pub(crate) mod fctag {
    pub(crate) const ADD_RANGE: u16 = 1;
    pub(crate) const DEL_RANGE: u16 = 2;
    pub(crate) const CREAT: u16 = 3;
    pub(crate) const LINK: u16 = 4;
    pub(crate) const UNLINK: u16 = 5;
    pub(crate) const INODE: u16 = 6;
    pub(crate) const PAD: u16 = 7;
    pub(crate) const TAIL: u16 = 8;
    pub(crate) const HEAD: u16 = 9;
}

/// Blocks for fast commits where the journal does not say how many.
pub(crate) const FC_BLOCKS: u32 = 256;

const _: () = assert!(size_of::<SuperBlock>() == SUPERBLOCK_LEN);
const _: () = assert!(size_of::<GroupDesc>() == 64);
const _: () = assert!(size_of::<InodeHead>() == INODE_HEAD);
const _: () = assert!(size_of::<InodeExtra>() == INODE_EXTRA);
const _: () = assert!(size_of::<ExtentHeader>() == EXTENT_ENTRY);
const _: () = assert!(size_of::<ExtentIdx>() == EXTENT_ENTRY);
const _: () = assert!(size_of::<ExtentLeaf>() == EXTENT_ENTRY);
const _: () = assert!(size_of::<DirEntry2>() == DIR_ENTRY);
const _: () = assert!(size_of::<XattrHeader>() == XATTR_HEADER);
const _: () = assert!(size_of::<XattrEntry>() == XATTR_ENTRY);
const _: () = assert!(size_of::<JournalSuper>() == JOURNAL_SUPER);
const _: () = assert!(size_of::<BlockTag3>() == 16);
const _: () = assert!(size_of::<BlockTag>() == 8);
const _: () = assert!(size_of::<CommitHeader>() == 60);
const _: () = assert!(core::mem::offset_of!(SuperBlock, s_checksum) == SUPERBLOCK_LEN - 4);
const _: () = assert!(core::mem::offset_of!(SuperBlock, s_error_count) == 0x194);
const _: () = assert!(core::mem::offset_of!(SuperBlock, s_usr_quota_inum) == 0x240);
const _: () = assert!(core::mem::offset_of!(SuperBlock, s_checksum_seed) == 0x270);
const _: () = assert!(core::mem::offset_of!(JournalSuper, s_checksum) == JOURNAL_SUPER_CHECKSUM);
