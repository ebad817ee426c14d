//! Checks a volume in fsck's five phases (McKusick and Kowalski, "Fsck - The UNIX File System
//! Check Program", 1986), going by the structures alone. Nothing is mended.

mod findings;
mod inodes;
mod maps;
mod names;

use crate::attached::{self, LOOK_MEMORY, cache};
use crate::blocks::Reader;
use crate::superblock::Found;
use crate::volume::Volume;
use findings::Findings;
use inodes::Inodes;
use std::sync::Arc;
use volary_core::{Answer, BlockDevice, CheckReport, Fact, Finding, Progress, Result};

/// Goes through everything, and tells what contradicts itself.
///
/// # Errors
/// `Corrupt` if there is no superblock or root to go by; `Interrupted`; `Io`.
pub(crate) fn check(
    dev: Arc<dyn BlockDevice>,
    sector: Option<u64>,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let volume = Volume::new(Found::choose(&*dev, sector)?, dev.geometry().size)?;
    let cache = cache(dev, LOOK_MEMORY);
    let reader = Reader {
        cache: &cache,
        volume: &volume,
    };
    let mut findings = Findings::new(report, progress);
    attached::root(&reader)?;
    // Phase 1: blocks and sizes.
    let mut inodes = Inodes::read(reader, &mut findings)?;
    // Phases 2 and 3: path names and connectivity.
    names::check(reader, &mut inodes, &mut findings)?;
    // Phase 4: reference counts.
    names::check_links(reader, &inodes, &mut findings);
    // Phase 5: cylinder groups.
    maps::check(reader, &inodes, &mut findings)?;
    let facts = vec![
        Fact::number("files", inodes.files(), ""),
        Fact::number("directories", inodes.dirs(), ""),
        Fact::number("free", inodes.free_fragments() * volume.fsize, "bytes"),
    ];
    Ok(CheckReport {
        found: findings.found,
        mended: 0,
        written: 0,
        facts,
    })
}
