//! Phase 5: compares the maps and sums of cylinder groups with the results of phases 1 to 4.

use super::findings::{Findings, finding, wrong_hash};
use super::head::is_alike;
use super::inodes::Inodes;
use super::plan::{Plan, Writer};
use super::rebuild;
use crate::attached::head::Head;
use crate::disk::hash::is_superblock_right;
use crate::disk::ondisk::Stored;
use crate::disk::superblock::Found;
use crate::disk::volume::Volume;
use crate::groups::cg::Group;
use crate::inodes::blocks::Reader;
use volary_core::{FileKind, Finding, Kind, Result, Severity};

/// Checks all groups.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let volume = reader.volume;
    let mut total = [0; 4];
    let mut all_known = !inodes.is_partial;
    for number in 0..volume.ncg {
        findings.progress("maps", number, volume.ncg)?;
        let group = match Group::read(&reader, number) {
            Ok(group) => group,
            Err(e) if e == Kind::Io => return Err(e),
            // Phase 1 has reported it.
            Err(_) => {
                all_known = false;
                continue;
            }
        };
        if !volume.hashes.is_group_right(volume.order, &group.bytes) {
            let what = format!("cylinder group {number}");
            plan.maps |= wrong_hash(findings, group.at, &what);
        }
        replica(reader, number, findings, plan)?;
        fragments(reader, inodes, number, &group, findings, plan);
        let counted = sums(reader, inodes, number, &group);
        check_sums(reader, number, &group, counted, findings, plan)?;
        tables(volume, inodes, number, group, findings, plan);
        for (sum, n) in total.iter_mut().zip(counted) {
            *sum += n;
        }
    }
    if all_known && total != volume.total {
        let message = format!(
            "the superblock counts {} directories, {} blocks, {} inodes and {} fragments free; there are {}, {}, {}, {}",
            volume.total[0],
            volume.total[1],
            volume.total[2],
            volume.total[3],
            total[0],
            total[1],
            total[2],
            total[3],
        );
        plan.maps |= findings.tell(&Finding {
            code: "totals",
            ..finding(Severity::Crash, volume.found.at, message)
        });
    }
    Ok(())
}

/// Compares the fixed fields of the group's replica of the superblock with the superblock.
fn replica(
    reader: Reader<'_>,
    number: u64,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let volume = reader.volume;
    let at = volume.replica_at(number);
    let found = Found::read(&**reader.cache.device(), at)?;
    let found = found.filter(|found| is_alike(found, &volume.found));
    if found
        .as_ref()
        .is_some_and(|found| !is_superblock_right(found))
    {
        let what = format!("group {number}'s replica of the superblock");
        if wrong_hash(findings, at, &what) {
            plan.replicas.insert(number);
        }
    }
    if found.is_none() {
        let message =
            format!("group {number}'s replica of the superblock is none, or another volume's");
        let wanted = findings.tell(&Finding {
            code: "replica",
            ..finding(Severity::Damage, at, message)
        });
        if wanted {
            plan.replicas.insert(number);
        }
    }
    Ok(())
}

/// Compares the map of free fragments with what is taken.
fn fragments(
    reader: Reader<'_>,
    inodes: &Inodes,
    number: u64,
    group: &Group,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) {
    let base = reader.volume.base(number);
    let (mut taken, mut lost) = (0_u64, 0_u64);
    for i in 0..group.fragments {
        match (inodes.is_taken(base + i), group.is_free(i)) {
            (true, true) => taken += 1,
            (false, false) => lost += 1,
            _ => {}
        }
    }
    if taken > 0 {
        let message = format!("group {number}: {taken} fragments are free in the map, and taken");
        plan.maps |= findings.tell(&Finding {
            code: "free-map",
            ..finding(Severity::Crash, group.at, message)
        });
    }
    if lost > 0 && !inodes.is_partial {
        let message =
            format!("group {number}: {lost} fragments are taken in the map, and nobody's");
        plan.maps |= findings.tell(&Finding {
            code: "lost-blocks",
            ..finding(Severity::Crash, group.at, message)
        });
    }
}

/// Returns the directories, free blocks, free inodes and free fragments of a group, counted in its
/// maps.
fn sums(reader: Reader<'_>, inodes: &Inodes, number: u64, group: &Group) -> [u64; 4] {
    let volume = reader.volume;
    let first = number * volume.ipg;
    let range = u32::try_from(first).unwrap_or(u32::MAX)
        ..u32::try_from(first + volume.ipg).unwrap_or(u32::MAX);
    let dirs = inodes
        .all
        .range(range)
        .filter(|(_, seen)| seen.kind == FileKind::Dir);
    let free_inodes = (0..volume.ipg).filter(|&i| !group.is_used(i));
    let (blocks, fragments, _) = group.count_free(volume);
    [
        dirs.count() as u64,
        blocks,
        free_inodes.count() as u64,
        fragments,
    ]
}

/// Compares the group's sums and those in the summary area with the counted ones.
fn check_sums(
    reader: Reader<'_>,
    number: u64,
    group: &Group,
    counted: [u64; 4],
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let volume = reader.volume;
    let as_counted = counted.map(|n| i32::try_from(n).unwrap_or(i32::MAX));
    let mut bytes = [0; 16];
    let at = volume.csaddr * volume.fsize + number * 16;
    reader.cache.read(at, &mut bytes)?;
    let summary: [i32; 4] = Stored::get(volume.order, &bytes, 0);
    for (place, there) in [(group.at + 24, group.raw.cg_cs), (at, summary)] {
        if there != as_counted {
            let message = format!(
                "group {number} counts {there:?} directories, blocks, inodes and fragments free; there are {as_counted:?}"
            );
            plan.maps |= findings.tell(&Finding {
                code: "summary",
                ..finding(Severity::Crash, place, message)
            });
        }
    }
    let (_, _, runs) = group.count_free(volume);
    let said = group.raw.cg_frsum.map(u64::from);
    if said != runs {
        let message =
            format!("group {number} counts {said:?} free runs of fragments; there are {runs:?}");
        plan.maps |= findings.tell(&Finding {
            code: "summary",
            ..finding(Severity::Crash, group.at + 52, message)
        });
    }
    Ok(())
}

/// Checks the cluster summary of a group whose maps are right.
fn tables(
    volume: &Volume,
    inodes: &Inodes,
    number: u64,
    group: Group,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) {
    let (at, before) = (group.at, group.bytes.clone());
    if plan.maps || inodes.is_partial {
        return;
    }
    let made = rebuild::made(volume, inodes, number, group);
    if made.group.bytes != before {
        let message =
            format!("group {number}'s summary of clusters, or where it searches, is wrong");
        plan.maps |= findings.tell(&Finding {
            code: "summary",
            ..finding(Severity::Crash, at, message)
        });
    }
}

/// Makes all maps and sums anew.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(super) fn mend(writer: &mut Writer<'_>, inodes: &Inodes, head: &mut Head) -> Result<()> {
    let reader = writer.reader;
    let volume = reader.volume;
    let mut total = [0_u64; 4];
    for number in 0..volume.ncg {
        let group = match Group::read(&reader, number) {
            Err(e) if e == Kind::Corrupt => rebuild::from_another(&reader, number)?,
            group => group?,
        };
        let at = group.at;
        let mut made = rebuild::made(volume, inodes, number, group);
        rebuild::positions(volume, &mut made.group);
        volume
            .hashes
            .seal_group(volume.order, &mut made.group.bytes);
        writer.put(at, &made.group.bytes)?;
        let mut bytes = [0; 16];
        made.sums
            .map(|n| i32::try_from(n).unwrap_or(0))
            .put(volume.order, &mut bytes, 0);
        writer.put(volume.csaddr * volume.fsize + number * 16, &bytes)?;
        for (total, sum) in total.iter_mut().zip(made.sums) {
            *total += sum;
        }
    }
    head.set_total(volume, total.map(|n| i64::try_from(n).unwrap_or(0)));
    writer.put(volume.found.at, head.sealed(volume))?;
    writer.settle()
}
