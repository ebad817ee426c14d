//! Phase 5: the free list, the list of free inodes, totals.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::plan::Plan;
use crate::change::alloc::{Map, each_free};
use crate::disk::blocks::Reader;
use crate::disk::ondisk::{ROOT_INO, SUPER_AT};
use volary_core::{Error, Finding, Kind, Result, Severity};

/// Compares the lists with what inodes have.
///
/// # Errors
/// `Io`.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &Inodes,
    findings: &mut Findings<'_>,
    plan: &mut Plan,
) -> Result<()> {
    let volume = reader.volume;
    let data = volume.data();
    let free = data.filter(|&block| !inodes.owned.has(block)).count() as u64;
    let mut tell = |code, message| {
        plan.lists |= findings.tell(&Finding {
            code,
            ..finding(Severity::Crash, SUPER_AT, message)
        });
    };
    if let Some(message) = wrong_list(&reader, inodes, free)? {
        tell("free-list", message);
    }
    let is_free = |ino: &u32| *ino > ROOT_INO && !inodes.all.contains_key(ino);
    let listed = volume.inode_list();
    let wrong = listed
        .iter()
        .map(|&ino| u32::from(ino))
        .find(|ino| !is_free(ino));
    // The Seventh Edition leaves zeros where it has found no more.
    if let Some(ino) = wrong.filter(|&ino| ino != 0) {
        let message = format!("the list of free inodes has {ino}, which is in use");
        tell("inode-list", message);
    }
    let (said_free, said_inodes) = volume.totals();
    let said = (u64::from(said_free), u32::from(said_inodes));
    let counted = (free, inodes.free());
    if said != counted {
        let message = format!(
            "{} blocks and {} inodes are free, and the superblock says {} and {}",
            counted.0, counted.1, said.0, said.1
        );
        tell("totals", message);
    }
    Ok(())
}

/// Returns what is wrong with the free list, if anything is.
fn wrong_list(reader: &Reader<'_>, inodes: &Inodes, free: u64) -> Result<Option<String>> {
    let mut seen = Map::new(reader.volume.blocks);
    let mut count = 0;
    let listed = each_free(reader, &mut |block| {
        let wrong = |what: &str| {
            let found = format!("block {block}, {what}");
            Error::corrupt("free list", SUPER_AT, found, "blocks that are free")
        };
        if inodes.owned.has(block.into()) {
            return Err(wrong("which is in use"));
        }
        if !seen.set(block.into(), true) {
            return Err(wrong("twice"));
        }
        count += 1;
        Ok(())
    });
    match listed {
        Err(e) if e == Kind::Corrupt => Ok(Some(e.to_string())),
        Err(e) => Err(e),
        Ok(()) if count == free => Ok(None),
        Ok(()) => Ok(Some(format!(
            "the free list has {count} blocks of {free} that are free"
        ))),
    }
}
