//! Checks a volume in fsck's five phases (McKusick and Kowalski, "Fsck - The UNIX File System Check
//! Program", 1986), judging by the structures alone, and repairs it.
//!
//! Repairs go in rounds. A round repairs what it found in inodes and directories, and rebuilds maps
//! and sums. Then another round checks whether all is well. Preening repairs nothing if it finds
//! more than a power cut leaves.
//!
//! May use all rooms but `look` and `make`.

mod blocks_and_sizes;
mod chunk;
mod ends;
mod findings;
mod head;
mod inodes;
mod likely;
mod links;
mod lost;
mod maps;
mod names;
mod paths;
mod plan;
mod pointers;
mod quotas;
mod rebuild;
mod room;
mod root;

use crate::attached::head::Head;
use crate::disk::cache::{LOOK_MEMORY, cache};
use crate::disk::volume::Volume;
use crate::inodes::blocks::Reader;
use findings::{Findings, finding};
use head::Chosen;
use inodes::Inodes;
use plan::{Plan, Writer};
use std::sync::Arc;
use volary_block::Cache;
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Fact, Finding, Progress, Quiet, Result,
    Severity,
};

/// Most rounds of repairs. Errors that remain after them are left.
const ROUNDS: u32 = 8;

/// Checks the whole volume, reports contradictions, and repairs as far as `how` allows.
///
/// # Errors
/// `Corrupt` if there is no superblock or root to start from; `Interrupted`; `Io`.
pub(crate) fn check(
    dev: Arc<dyn BlockDevice>,
    how: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let chosen = Chosen::new(&*dev, how.options.number("superblock")?, progress)?;
    let volume = chosen.volume.clone();
    let cache = cache(dev.clone(), LOOK_MEMORY);
    let mut findings = Findings::new(how, report, progress);
    let mut run = Run {
        dev,
        how,
        cache,
        head: Head::new(&volume),
        volume,
        chosen,
        written: 0,
    };
    let (mut plan, mut inodes) = run.look(&mut findings)?;
    let (found, mut left) = (findings.all.found, findings.all.found);
    let stops = findings.all.stops();
    if findings.all.mends() && !stops {
        for _ in 0..ROUNDS {
            if findings.all.accepted == 0 {
                break;
            }
            run.mend(&plan, &inodes)?;
            // Another round would ask again about each finding that was refused.
            if how.mode == CheckMode::Ask && findings.all.accepted < findings.all.found {
                left -= findings.all.accepted;
                break;
            }
            findings.all.again();
            (plan, inodes) = run.look(&mut findings)?;
            left = findings.all.found;
            if findings.all.stops() {
                break;
            }
            if left == u64::from(!run.is_clean()) {
                run.set_clean()?;
                left = 0;
                break;
            }
        }
    }
    let facts = vec![
        Fact::number("files", inodes.files(), ""),
        Fact::number("directories", inodes.dirs(), ""),
        Fact::number("free", inodes.free_fragments() * run.volume.fsize, "bytes"),
    ];
    Ok(CheckReport {
        found,
        mended: found.saturating_sub(left),
        written: run.written,
        facts,
    })
}

struct Run<'a> {
    dev: Arc<dyn BlockDevice>,
    how: &'a Check,
    cache: Cache,
    volume: Volume,
    head: Head,
    chosen: Chosen,
    written: u64,
}

impl Run<'_> {
    fn reader(&self) -> Reader<'_> {
        Reader {
            cache: &self.cache,
            volume: &self.volume,
        }
    }

    fn is_clean(&self) -> bool {
        self.head.is_clean()
    }

    /// Checks the volume once. Returns what is to be repaired.
    fn look(&self, findings: &mut Findings<'_>) -> Result<(Plan, Inodes)> {
        let reader = self.reader();
        let mut plan = Plan::default();
        if !self.is_clean() || self.chosen.is_torn() {
            let message = "the volume was not cleanly left";
            findings.tell(&Finding {
                code: "dirty",
                ..finding(Severity::Crash, self.volume.found.at, message)
            });
        }
        plan.head = self.chosen.tell(findings);
        // Phase 1: blocks and sizes.
        let mut inodes = blocks_and_sizes::check(reader, findings, &mut plan)?;
        root::check(&inodes, findings, &mut plan);
        // Phases 2 and 3: path names and connectivity.
        names::check(reader, &mut inodes, findings, &mut plan)?;
        // Phase 4: reference counts.
        links::check(reader, &inodes, findings, &mut plan);
        // Phase 5: cylinder groups.
        maps::check(reader, &inodes, findings, &mut plan)?;
        quotas::check(reader, &inodes, findings, &mut plan)?;
        Ok((plan, inodes))
    }

    /// Repairs what a round found: first entries and inodes, then maps if nothing else is wrong.
    /// Inodes without a name and quotas come last.
    fn mend(&mut self, plan: &Plan, inodes: &Inodes) -> Result<()> {
        let reader = Reader {
            cache: &self.cache,
            volume: &self.volume,
        };
        let mut writer = Writer { reader, written: 0 };
        // If the repair is interrupted, the volume must be checked again.
        if self.head.is_clean() {
            self.head.set_clean(&self.volume, false);
            if plan.head || !self.chosen.is_instead() {
                writer.put_superblock(self.head.at, self.head.sealed(&self.volume))?;
                writer.settle()?;
            }
        }
        for &number in &plan.replicas {
            let at = self.volume.replica_at(number);
            let mut bytes = self.volume.found.bytes.clone();
            self.volume
                .hashes
                .seal_superblock(self.volume.order, at, &mut bytes);
            writer.put_superblock(at, &bytes)?;
        }
        if plan.head {
            writer.put_superblock(self.head.at, self.head.sealed(&self.volume))?;
        }
        if plan.has_structures() {
            plan.mend(&mut writer)?;
            if plan.root {
                root::make(&mut writer, inodes, self.how.now)?;
            }
        } else if plan.maps {
            maps::mend(&mut writer, inodes, &mut self.head)?;
        } else if !plan.lost.is_empty() || !plan.holes.is_empty() {
            writer.written += lost::mend(&self.dev, plan, self.how.now)?;
            self.cache.drop_range(0, self.cache.size());
        } else if plan.quotas {
            writer.written += quotas::mend(&self.dev, self.how.now)?;
            self.cache.drop_range(0, self.cache.size());
        }
        writer.settle()?;
        self.written += writer.written;
        // The superblock's sums have changed.
        let sector = self.how.options.number("superblock")?;
        self.chosen = Chosen::new(&*self.dev, sector.filter(|_| !plan.head), &Quiet)?;
        self.volume = self.chosen.volume.clone();
        self.head = Head::new(&self.volume);
        Ok(())
    }

    /// Marks the volume as cleanly left, as nothing else is wrong.
    fn set_clean(&mut self) -> Result<()> {
        if self.is_clean() {
            return Ok(());
        }
        self.head.set_clean(&self.volume, true);
        let reader = Reader {
            cache: &self.cache,
            volume: &self.volume,
        };
        let mut writer = Writer { reader, written: 0 };
        writer.put_superblock(self.head.at, self.head.sealed(&self.volume))?;
        writer.settle()?;
        self.written += writer.written;
        Ok(())
    }
}
