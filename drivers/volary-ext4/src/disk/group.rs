//! Groups, as their descriptors have them.

use crate::disk::ondisk::{GroupDesc, incompat};
use crate::disk::volume::Volume;

/// A group, as its descriptor has it.
#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) block_bitmap: u64,
    pub(crate) inode_bitmap: u64,
    pub(crate) inode_table: u64,
    pub(crate) free_clusters: u64,
    pub(crate) free_inodes: u64,
    pub(crate) dirs: u64,
    /// Inodes at the end of the table that were never used.
    pub(crate) unused: u32,
    pub(crate) flags: u16,
    pub(crate) block_bitmap_csum: u32,
    pub(crate) inode_bitmap_csum: u32,
    /// Where the descriptor stands, in bytes.
    pub(crate) at: u64,
}

impl Group {
    /// Returns the group that a descriptor at `at` describes.
    pub(crate) fn of(raw: &GroupDesc, at: u64) -> Self {
        let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let two = |low: u16, high: u16| u32::from(high) << 16 | u32::from(low);
        Self {
            block_bitmap: wide(raw.bg_block_bitmap_lo.get(), raw.bg_block_bitmap_hi.get()),
            inode_bitmap: wide(raw.bg_inode_bitmap_lo.get(), raw.bg_inode_bitmap_hi.get()),
            inode_table: wide(raw.bg_inode_table_lo.get(), raw.bg_inode_table_hi.get()),
            free_clusters: two(
                raw.bg_free_blocks_count_lo.get(),
                raw.bg_free_blocks_count_hi.get(),
            )
            .into(),
            free_inodes: two(
                raw.bg_free_inodes_count_lo.get(),
                raw.bg_free_inodes_count_hi.get(),
            )
            .into(),
            dirs: two(
                raw.bg_used_dirs_count_lo.get(),
                raw.bg_used_dirs_count_hi.get(),
            )
            .into(),
            unused: two(raw.bg_itable_unused_lo.get(), raw.bg_itable_unused_hi.get()),
            flags: raw.bg_flags.get(),
            block_bitmap_csum: two(
                raw.bg_block_bitmap_csum_lo.get(),
                raw.bg_block_bitmap_csum_hi.get(),
            ),
            inode_bitmap_csum: two(
                raw.bg_inode_bitmap_csum_lo.get(),
                raw.bg_inode_bitmap_csum_hi.get(),
            ),
            at,
        }
    }

    pub(crate) fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Returns the blocks of a group that the volume itself has, as runs.
    pub(crate) fn system_of(volume: &Volume, number: u32, group: Option<&Self>) -> Vec<(u64, u64)> {
        let start = volume.group_start(number);
        let per = volume.descs_per_block();
        let blocks = u64::from(volume.groups).div_ceil(per);
        let meta = match volume.has_incompat(incompat::META_BG) {
            true => u64::from(volume.raw.s_first_meta_bg.get()).min(blocks),
            false => blocks,
        };
        let reserved = u64::from(volume.raw.s_reserved_gdt_blocks.get());
        let mut all = Vec::new();
        let has_super = volume.has_super(number);
        if has_super {
            let first = match number {
                // With blocks of 1 KiB and clusters, the superblock is not in the first block.
                0 => volume.super_block().max(start),
                _ => start,
            };
            let more = if meta > 0 || blocks == meta {
                meta + reserved
            } else {
                0
            };
            all.push((first, 1 + more));
        }
        let place = u64::from(number) % per;
        let is_of_meta = u64::from(number) / per >= meta;
        let last = (per - 1).min(u64::from(volume.groups - 1) - (u64::from(number) - place));
        if is_of_meta && (place < 2 || place == per - 1 || place == last && last < 2) {
            let own = match place {
                0 => volume.desc_block(number),
                _ => start + u64::from(has_super),
            };
            all.push((own, 1));
        }
        if let Some(group) = group {
            let table = u64::from(volume.inodes_per_group) * volume.inode_size as u64;
            all.push((group.block_bitmap, 1));
            all.push((group.inode_bitmap, 1));
            all.push((group.inode_table, table.div_ceil(volume.block)));
        }
        if number == 0 && volume.has_incompat(incompat::MMP) {
            all.push((volume.raw.s_mmp_block.get(), 1));
        }
        all
    }
}
