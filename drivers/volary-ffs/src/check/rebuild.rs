//! Rebuilds cylinder groups from what inodes use. Counts without the allocator, as an independent
//! check.

use super::inodes::Inodes;
use crate::disk::ondisk::{CG_MAGIC, CG_MAGIC_AT, Stored, ocg};
use crate::disk::volume::{Variant, Volume};
use crate::groups::cg::Group;
use crate::inodes::blocks::Reader;
use volary_core::{FileKind, Result};

/// A group as it should be, and its sums.
pub(super) struct Made {
    pub(super) group: Group,
    pub(super) sums: [u64; 4],
}

/// Rebuilds a group's maps and counts, except for [`positions`]. Valid rotors are kept.
pub(super) fn made(volume: &Volume, inodes: &Inodes, number: u64, mut group: Group) -> Made {
    let base = volume.base(number);
    let first = u32::try_from(number * volume.ipg).unwrap_or(u32::MAX);
    let range = first..first.saturating_add(u32::try_from(volume.ipg).unwrap_or(0));
    for index in 0..volume.ipg {
        group.set_used(index, u64::from(first) + index < 2);
    }
    for &ino in inodes.all.range(range.clone()).map(|(ino, _)| ino) {
        group.set_used((ino - first).into(), true);
    }
    for index in 0..group.fragments {
        group.set_free(index, !inodes.is_taken(base + index));
    }
    rotors(volume, &mut group);
    let (blocks, fragments, runs) = group.count_free(volume);
    let dirs = inodes.all.range(range);
    let dirs = dirs.filter(|(_, seen)| seen.kind == FileKind::Dir).count() as u64;
    let free = (0..volume.ipg).filter(|&i| !group.is_used(i)).count() as u64;
    let sums = [dirs, blocks, free, fragments];
    clusters(volume, &mut group);
    let small = |n: u64| u32::try_from(n).unwrap_or(0);
    let order = volume.order;
    sums.map(|n| i32::try_from(n).unwrap_or(0))
        .put(order, &mut group.bytes, 24);
    runs.map(small).put(order, &mut group.bytes, 52);
    Made { group, sums }
}

/// Resets rotors that point outside of the group to its start.
fn rotors(volume: &Volume, group: &mut Group) {
    let raw = &group.raw;
    let most = [group.fragments, group.fragments, volume.ipg];
    let rotors = [raw.cg_rotor, raw.cg_frotor, raw.cg_irotor].into_iter();
    for (i, (rotor, most)) in rotors.zip(most).enumerate() {
        if u64::from(rotor) >= most {
            0_u32.put(volume.order, &mut group.bytes, 40 + 4 * i);
        }
    }
}

/// Returns the blocks that are wholly free.
fn free_blocks(volume: &Volume, group: &Group) -> Vec<bool> {
    let frag = volume.frag;
    let blocks = group.fragments / frag;
    let is_free = |block: u64| u64::from(group.free_of(block, frag).count_ones()) == frag;
    (0..blocks).map(is_free).collect()
}

/// Rebuilds the map of free blocks, and the number of free runs of each length.
fn clusters(volume: &Volume, group: &mut Group) {
    let most = volume.contigsumsize() as usize;
    let (map, sums) = (
        group.raw.cg_clusteroff as usize,
        group.raw.cg_clustersumoff as usize,
    );
    if most == 0 || map == 0 {
        return;
    }
    let count = group.raw.cg_nclusterblks as usize;
    let free = free_blocks(volume, group);
    let mut rows = vec![0_i32; most + 1];
    for (block, is_free) in free.iter().enumerate().take(count) {
        group.set_bit(map, block as u64, *is_free);
    }
    for row in free
        .get(..count.min(free.len()))
        .unwrap_or(&free)
        .split(|is_free| !is_free)
    {
        if let Some(sum) = rows
            .get_mut(row.len().min(most))
            .filter(|_| !row.is_empty())
        {
            *sum += 1;
        }
    }
    for (len, sum) in rows.iter().enumerate().skip(1) {
        sum.put(volume.order, &mut group.bytes, sums + 4 * len);
    }
}

/// Rebuilds the counts of free blocks by cylinder and rotational position. NetBSD and makefs do not
/// maintain them, so a difference is no finding.
pub(super) fn positions(volume: &Volume, group: &mut Group) {
    let raw = &volume.found.raw;
    let field = |n: i32| usize::try_from(n).unwrap_or(0);
    let is_42 = group.iusedoff == ocg::IUSED as usize;
    let (totals, counts, each, cylinders) = match is_42 {
        true => (ocg::BTOT, ocg::B, ocg::POSITIONS, 32),
        false => (
            field(group.raw.cg_old_btotoff),
            field(group.raw.cg_old_boff),
            field(raw.fs_old_nrpos),
            field(raw.fs_old_cpg),
        ),
    };
    let fits = totals >= ocg::BTOT
        && totals.saturating_add(cylinders.saturating_mul(4)) <= counts
        && counts.saturating_add(cylinders.saturating_mul(each).saturating_mul(2))
            <= group.iusedoff;
    if volume.variant == Variant::Ufs2 || !fits {
        return;
    }
    let free = free_blocks(volume, group);
    if let Some(bytes) = group.bytes.get_mut(totals..totals + cylinders * 4) {
        bytes.fill(0);
    }
    if let Some(bytes) = group.bytes.get_mut(counts..counts + cylinders * each * 2) {
        bytes.fill(0);
    }
    let places = free.iter().zip(0..).filter(|(is_free, _)| **is_free);
    for (cylinder, position) in places.filter_map(|(_, b)| volume.position(b * volume.frag)) {
        let total = totals + 4 * cylinder;
        let sum = i32::get(volume.order, &group.bytes, total) + 1;
        sum.put(volume.order, &mut group.bytes, total);
        let count = counts + 2 * (cylinder * each + position);
        let sum = i16::get(volume.order, &group.bytes, count).saturating_add(1);
        sum.put(volume.order, &mut group.bytes, count);
    }
}

/// Rebuilds a group's invalid head from that of another group. The maps are at the same places in
/// all groups.
///
/// # Errors
/// `Corrupt` if no group has a valid head; `Io`.
pub(super) fn from_another(reader: &Reader<'_>, number: u64) -> Result<Group> {
    let volume = reader.volume;
    let other = (0..volume.ncg).filter(|&n| n != number);
    let other = other.filter_map(|n| Group::read(reader, n).ok()).next();
    let mut group =
        other.ok_or_else(|| super::plan::too_damaged("a volume without a cylinder group"))?;
    let fragments = volume.end(number) - volume.base(number);
    let small = |n: u64| u32::try_from(n).unwrap_or(0);
    let (order, bytes) = (volume.order, &mut group.bytes);
    if group.iusedoff != ocg::IUSED as usize {
        CG_MAGIC.put(order, bytes, CG_MAGIC_AT);
    }
    small(number).put(order, bytes, 12);
    small(fragments).put(order, bytes, 20);
    [0_u32; 3].put(order, bytes, 40);
    if volume.contigsumsize() > 0 {
        small(fragments / volume.frag).put(order, bytes, 112);
    }
    if volume.variant == Variant::Ufs2 {
        // How many inodes were ever initialised can no longer be told, so all are looked at.
        small(volume.ipg).put(order, bytes, 120);
    }
    let len = usize::try_from(volume.cgsize).unwrap_or(0);
    group.bytes.resize(len, 0);
    let at = volume.head_at(number);
    for map in [(group.iusedoff, volume.ipg), (group.freeoff, volume.fpg)] {
        let end = map.0 + usize::try_from(map.1.div_ceil(8)).unwrap_or(0);
        if let Some(bytes) = group.bytes.get_mut(map.0..end) {
            bytes.fill(0);
        }
    }
    Group::parse(volume, number, at, group.bytes)
}
