//! Finds a volume by a replica of the superblock, if the first superblock is invalid.
//!
//! Two places are searched, so that the time is bounded whatever the size of the device. The first
//! is the beginning of the device, where group 0 has its replica. The heads of groups found there
//! tell how long a group is, and so where the next groups have their replicas.

use crate::disk::hash::check_superblock;
use crate::disk::ondisk::{CG_CGX_AT, CG_MAGIC, CG_MAGIC_AT, CG_NDBLK_AT, Order, Stored, ocg};
use crate::disk::superblock::{Found, windows};
use crate::disk::volume::Volume;
use volary_core::{BlockDevice, Kind, Replica, Result};

/// Bytes of the device's beginning that are searched.
const LOOK: u64 = 16 << 20;
/// How many heads of groups are used to find other groups.
const HEADS_MAX: usize = 8;
/// How many groups are sampled. Most of their heads must exist for a replica to be accepted.
const SAMPLES: u64 = 8;

/// Returns a usable replica. Returns `None` if the first superblock is valid, or nothing else is.
///
/// # Errors
/// `Io`.
pub(crate) fn find(dev: &dyn BlockDevice) -> Result<Option<Replica>> {
    match first(dev) {
        Ok(()) => return Ok(None),
        Err(e) if e == Kind::Io => return Err(e),
        Err(_) => {}
    }
    let volume = match at_beginning(dev)? {
        Some(volume) => Some(volume),
        None => by_heads(dev)?,
    };
    Ok(volume.map(|volume| {
        let found = volume.found;
        Replica {
            kind: if found.is_ufs2 { "ffs2" } else { "ffs1" },
            what: "superblock",
            at: found.at,
            home: found.home(),
            bytes: found.bytes,
            is_confirmed: true,
        }
    }))
}

/// Checks that the first superblock is valid.
fn first(dev: &dyn BlockDevice) -> Result<()> {
    let found = Found::choose(dev, None)?;
    check_superblock(&Volume::new(found, dev.geometry().size)?.found)
}

fn at_beginning(dev: &dyn BlockDevice) -> Result<Option<Volume>> {
    let mut believed = None;
    Found::search(dev, 0..LOOK, &mut |found| {
        believed = believable(dev, found.at)?;
        Ok(believed.is_none())
    })?;
    Ok(believed)
}

/// Returns the superblock at `at`, if it is a replica of a volume that still exists.
fn believable(dev: &dyn BlockDevice, at: u64) -> Result<Option<Volume>> {
    let Some(found) = Found::read(dev, at)? else {
        return Ok(None);
    };
    let Ok(volume) = Volume::new(found, dev.geometry().size) else {
        return Ok(None);
    };
    let is_right = is_replica(&volume, at) && check_superblock(&volume.found).is_ok();
    Ok(match is_right && is_there(dev, &volume)? {
        true => Some(volume),
        false => None,
    })
}

/// Returns whether a superblock stands where one of its groups has its replica.
pub(crate) fn is_replica(volume: &Volume, at: u64) -> bool {
    let group = volume.group_of(at / volume.fsize);
    volume.replica_at(group) == at
}

/// Returns whether most of the sampled groups have heads. A volume that was overwritten leaves
/// replicas behind, but few heads.
fn is_there(dev: &dyn BlockDevice, volume: &Volume) -> Result<bool> {
    let count = volume.ncg.min(SAMPLES);
    let mut heads = 0;
    for sample in 0..count {
        // The samples include the first and the last group.
        let group = sample * (volume.ncg - 1) / count.saturating_sub(1).max(1);
        heads += u64::from(has_head(dev, volume, group)?);
    }
    Ok(heads * 2 > count)
}

fn has_head(dev: &dyn BlockDevice, volume: &Volume, group: u64) -> Result<bool> {
    let mut head = [0; 1024];
    let at = volume.head_at(group);
    if at.saturating_add(head.len() as u64) > dev.geometry().size {
        return Ok(false);
    }
    match dev.read_at(at, &mut head) {
        Err(e) if e == Kind::Io => return Ok(false),
        read => read?,
    }
    let has = |at| u32::get(volume.order, &head, at) == CG_MAGIC;
    let has_magic = has(CG_MAGIC_AT) || volume.is_42_groups() && has(ocg::MAGIC);
    Ok(has_magic && u64::from(u32::get(volume.order, &head, CG_CGX_AT)) == group)
}

/// What the head of a group tells about where other groups are.
struct Head {
    at: u64,
    number: u64,
    /// Fragments of the group.
    fragments: u64,
}

/// Searches for the replicas of the groups after those whose heads are at the beginning.
fn by_heads(dev: &dyn BlockDevice) -> Result<Option<Volume>> {
    for head in heads(dev)? {
        for at in after(&head) {
            if let Some(volume) = believable(dev, at)? {
                return Ok(Some(volume));
            }
        }
    }
    Ok(None)
}

fn heads(dev: &dyn BlockDevice) -> Result<Vec<Head>> {
    let mut all = Vec::new();
    windows(dev, 0..LOOK, &mut |start, bytes| {
        for (index, sector) in bytes.chunks_exact(512).enumerate() {
            let orders = [Order::Little, Order::Big];
            let Some(order) = orders
                .into_iter()
                .find(|&order| u32::get(order, sector, CG_MAGIC_AT) == CG_MAGIC)
            else {
                continue;
            };
            all.push(Head {
                at: start + index as u64 * 512,
                number: u32::get(order, sector, CG_CGX_AT).into(),
                fragments: u32::get(order, sector, CG_NDBLK_AT).into(),
            });
            if all.len() == HEADS_MAX {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    Ok(all)
}

/// Returns where the two groups after one may have their replicas, for each size of fragments. A
/// head is equally far into each group, and the replica one block, or 8 KiB, before it.
fn after(head: &Head) -> impl Iterator<Item = u64> {
    let sizes = (9..=16).map(|shift| 1_u64 << shift);
    sizes.flat_map(move |fsize| {
        let len = head.fragments.saturating_mul(fsize);
        let within = head.at.checked_sub(len.saturating_mul(head.number));
        let within = within.filter(|&within| within < len);
        let groups = within.into_iter().flat_map(move |_| [1, 2]);
        groups.flat_map(move |ahead| {
            let there = head.at.saturating_add(len.saturating_mul(ahead));
            let before = (13..=16).map(|shift| 1_u64 << shift);
            before.filter_map(move |before| there.checked_sub(before))
        })
    })
}
