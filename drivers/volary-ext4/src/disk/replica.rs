//! Finds the volume by a replica of the superblock, where the first one makes no sense (blockgroup.rst, super.rst).

use crate::disk::csum;
use crate::disk::group::Group;
use crate::disk::ondisk::{
    GroupDesc, INODE_HEAD, InodeHead, MAGIC, ROOT_INO, SUPERBLOCK, SUPERBLOCK_LEN, SuperBlock,
    incompat, ro_compat,
};
use crate::disk::volume::{Volume, is_likely, kind_of};
use volary_core::{BlockDevice, FileKind, Replica, Result};
use zerocopy::{FromBytes, IntoBytes};

/// Groups with replicas that are looked at: all up to 125, as most volumes have them.
const GROUPS: [u64; 11] = [1, 3, 5, 7, 9, 25, 27, 49, 81, 2, 125];
/// Binary logarithms of the sizes of blocks, and of blocks in a cluster.
const BLOCKS: std::ops::RangeInclusive<u32> = 10..=16;
const CLUSTERS: std::ops::RangeInclusive<u32> = 0..=6;

/// Returns a replica to go by: `None` where the first superblock makes sense, or nothing else does. A group is as long
/// as its bitmap has bits, as it is unless somebody wants it otherwise.
///
/// # Errors
/// None today: what cannot be read counts as damaged.
pub(crate) fn find(dev: &dyn BlockDevice) -> Result<Option<Replica>> {
    if Volume::read(dev, true).is_ok() {
        return Ok(None);
    }
    let places = CLUSTERS.flat_map(|cluster| BLOCKS.map(move |block| (block, cluster)));
    for (block, cluster) in places {
        for group in GROUPS {
            let size = 1u64 << block;
            let per = (8 * size) << cluster;
            // With blocks of 1 KiB the boot block is in no group.
            let first = u64::from(block == 10 && cluster == 0);
            let at = (group * per + first) * size;
            if let Some(replica) = believable(dev, at) {
                return Ok(Some(replica));
            }
        }
    }
    Ok(None)
}

/// Returns the replica at byte `at`, if there is one.
fn believable(dev: &dyn BlockDevice, at: u64) -> Option<Replica> {
    let device = dev.geometry().size;
    if at.saturating_add(SUPERBLOCK_LEN as u64) > device {
        return None;
    }
    let mut bytes = [0; SUPERBLOCK_LEN];
    dev.read_at(at, &mut bytes).ok()?;
    let raw = SuperBlock::read_from_bytes(&bytes).ok()?;
    if raw.s_magic.get() != MAGIC || !is_likely(&raw) {
        return None;
    }
    let volume = Volume::of(raw.clone(), device, true).ok()?;
    if !stands_at(&volume, at) {
        return None;
    }
    let is_confirmed = has_root(dev, &volume);
    let raw = as_first(raw);
    Some(Replica {
        kind: kind_of(&raw),
        what: "superblock",
        at,
        home: SUPERBLOCK,
        bytes: raw.as_bytes().to_vec(),
        is_confirmed,
    })
}

/// Returns whether one of the volume's groups begins at byte `at`, and has a replica there.
fn stands_at(volume: &Volume, at: u64) -> bool {
    let block = at / volume.block;
    let group = block.saturating_sub(volume.first_data_block) / volume.blocks_per_group;
    let group = u32::try_from(group).unwrap_or(u32::MAX);
    let is_there = group > 0 && group < volume.groups && volume.has_super(group);
    is_there && volume.group_start(group).saturating_mul(volume.block) == at
}

/// Returns the first superblock, as this replica has it. It does not say whether the journal has to be replayed: the
/// journal does.
fn as_first(mut raw: SuperBlock) -> SuperBlock {
    raw.s_block_group_nr.set(0);
    if raw.s_journal_inum.get() != 0 {
        let flags = raw.s_feature_incompat.get() | incompat::RECOVER;
        raw.s_feature_incompat.set(flags);
    }
    if raw.s_feature_ro_compat.get() & ro_compat::METADATA_CSUM != 0 {
        let end = SUPERBLOCK_LEN - 4;
        let sum = csum::crc32c(!0, raw.as_bytes().get(..end).unwrap_or_default());
        raw.s_checksum.set(sum);
    }
    raw
}

/// Returns whether the root directory is where a descriptor of the first group says.
fn has_root(dev: &dyn BlockDevice, volume: &Volume) -> bool {
    let own = volume.desc_block(0);
    let mut descriptors = std::iter::once(own).chain(volume.desc_replicas(0));
    descriptors.any(|block| {
        let root = || {
            let mut desc = [0; size_of::<GroupDesc>()];
            let len = desc.len().min(volume.desc_size);
            let at = block.checked_mul(volume.block)?;
            dev.read_at(at, desc.get_mut(..len)?).ok()?;
            let desc = GroupDesc::read_from_bytes(&desc).ok()?;
            let table = Group::of(&desc, at).inode_table.checked_mul(volume.block)?;
            let mut inode = [0; INODE_HEAD];
            let at = table.checked_add(u64::from(ROOT_INO - 1) * volume.inode_size as u64)?;
            dev.read_at(at, &mut inode).ok()?;
            InodeHead::read_from_bytes(&inode).ok()
        };
        let kind = root().and_then(|inode| FileKind::from_mode(inode.i_mode.get().into()));
        kind == Some(FileKind::Dir)
    })
}
