//! Bitmaps and counts of groups, against what was seen in use.

use super::inodes::Seen;
use crate::disk::csum;
use crate::disk::group::Group;
use crate::disk::ondisk::{DESC_LEN_32, group};
use crate::scan::bit;
use crate::store::Store;
use volary_core::{Finding, Result, Severity};
use volary_ondisk::reporter::{Reporter, damage, ends, met};

/// Looks at every group's bitmaps.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(crate) fn check(store: &Store, seen: &Seen, findings: &mut Reporter<'_>) -> Result<()> {
    let mut maps = Maps {
        store,
        seen,
        findings,
    };
    let (mut clusters, mut inodes, mut is_whole) = (0u64, 0u64, true);
    for number in 0..store.volume().groups {
        let (done, all) = (number.into(), store.volume().groups.into());
        maps.findings.progress("bitmaps", done, all)?;
        if store.volume().group_start(number) >= store.volume().there() {
            is_whole = false;
            break;
        }
        // A damaged descriptor was told already.
        let Ok(group) = store.groups().own_group(number) else {
            is_whole = false;
            continue;
        };
        clusters += group.free_clusters;
        inodes += group.free_inodes;
        maps.blocks(number, &group)?;
        maps.inodes(number, &group)?;
    }
    if is_whole {
        maps.superblock(clusters, inodes);
    }
    Ok(())
}

struct Maps<'a, 'f> {
    store: &'a Store,
    seen: &'a Seen,
    findings: &'a mut Reporter<'f>,
}

impl Maps<'_, '_> {
    fn read(&mut self, what: &'static str, group: &Group, block: u64) -> Result<Option<Vec<u8>>> {
        match self.store.blocks().block(what, group.at, block) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if ends(&e) => Err(e),
            // It was told with the group.
            Err(_) => Ok(None),
        }
    }

    fn sum(&mut self, what: &'static str, group: &Group, bytes: &[u8], stored: u32) {
        if !self.store.volume().verifies() {
            return;
        }
        let sum = csum::crc32c(self.store.volume().seed, bytes);
        let is_short = self.store.volume().desc_size <= DESC_LEN_32;
        let sum = if is_short { sum & 0xffff } else { sum };
        if let Err(e) = self.store.blocks().verify(what, group.at, stored, sum) {
            self.findings.tell(&Finding {
                code: "bitmap-sum",
                ..met(&e)
            });
        }
    }

    fn blocks(&mut self, number: u32, group: &Group) -> Result<()> {
        let volume = self.store.volume();
        if group.has(group::BLOCK_UNINIT) {
            return Ok(());
        }
        let Some(bytes) = self.read("bg_block_bitmap", group, group.block_bitmap)? else {
            return Ok(());
        };
        let per = volume.blocks_per_group / volume.cluster;
        let used = usize::try_from(per / 8).unwrap_or(usize::MAX);
        let bits = bytes.get(..used).unwrap_or(&bytes);
        self.sum("bg_block_bitmap_csum", group, bits, group.block_bitmap_csum);
        let first = volume.cluster_of(volume.group_start(number));
        let count = volume.group_len(number).div_ceil(volume.cluster);
        let (mut lost, mut missing, mut free) = (0u64, 0u64, 0u64);
        for index in 0..count {
            match (bit(&bytes, index), self.seen.clusters.has(first + index)) {
                (true, false) => lost += 1,
                (false, true) => missing += 1,
                _ => {}
            }
            free += u64::from(!bit(&bytes, index));
        }
        let at = group.block_bitmap * volume.block;
        if missing > 0 {
            let words = format!("group {number} has {missing} clusters in use as free");
            self.findings.tell(&Finding {
                code: "block-bitmap",
                ..damage(at, words)
            });
        }
        // What could not be looked at may be whose they are.
        if lost > 0 && !self.seen.is_partial {
            let words = format!("group {number} has {lost} clusters as in use that are nobody's");
            self.findings.tell(&Finding {
                code: "block-bitmap",
                ..damage(at, words)
            });
        }
        self.count(number, group, "free clusters", free, group.free_clusters);
        Ok(())
    }

    fn count(&mut self, number: u32, group: &Group, what: &str, found: u64, said: u64) {
        if found != said {
            let words = format!("group {number} has {found} {what}, says {said}");
            self.findings.tell(&Finding {
                code: "free-count",
                ..damage(group.at, words)
            });
        }
    }

    fn inodes(&mut self, number: u32, group: &Group) -> Result<()> {
        let volume = self.store.volume();
        if group.has(group::INODE_UNINIT) {
            return Ok(());
        }
        let Some(bytes) = self.read("bg_inode_bitmap", group, group.inode_bitmap)? else {
            return Ok(());
        };
        let per = volume.inodes_per_group;
        let used = usize::try_from(per.div_ceil(8)).unwrap_or(usize::MAX);
        let bits = bytes.get(..used).unwrap_or(&bytes);
        self.sum("bg_inode_bitmap_csum", group, bits, group.inode_bitmap_csum);
        let (mut free, mut wrong, mut dirs) = (0u64, 0u64, 0u64);
        for index in 0..per {
            let ino = number * per + index + 1;
            let is_set = bit(&bytes, index.into());
            free += u64::from(!is_set);
            let node = self.seen.nodes.get(&ino);
            dirs += u64::from(node.is_some_and(|node| node.is_dir));
            let is_reserved = ino < volume.first_ino;
            wrong += u64::from(!is_reserved && is_set != node.is_some());
        }
        if wrong > 0 && !self.seen.is_partial {
            let at = group.inode_bitmap * volume.block;
            let words = format!("group {number} has {wrong} inodes marked otherwise than they are");
            self.findings.tell(&Finding {
                code: "inode-bitmap",
                ..damage(at, words)
            });
        }
        self.count(number, group, "free inodes", free, group.free_inodes);
        if !self.seen.is_partial {
            self.count(number, group, "directories", dirs, group.dirs);
        }
        Ok(())
    }

    /// The superblock's counts are brought up to date when the volume is left, and not before.
    fn superblock(&mut self, clusters: u64, inodes: u64) {
        let volume = self.store.volume();
        let raw = &volume.raw;
        let high = u64::from(raw.s_free_blocks_count_hi.get()) << 32;
        let blocks = high | u64::from(raw.s_free_blocks_count_lo.get());
        let said = (blocks, u64::from(raw.s_free_inodes_count.get()));
        let found = (clusters.saturating_mul(volume.cluster), inodes);
        if said != found {
            let words = format!(
                "{} blocks and {} inodes are free, the superblock says {} and {}",
                found.0, found.1, said.0, said.1
            );
            self.findings.tell(&Finding {
                code: "free-count",
                severity: Severity::Note,
                ..damage(1024 + 0xc, words)
            });
        }
    }
}
