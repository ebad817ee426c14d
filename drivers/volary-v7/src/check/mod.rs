//! Checks a volume in fsck's five phases (McKusick and Kowalski, "Fsck - The UNIX File System
//! Check Program", 1986, which tells of the Seventh Edition's before), going by the inodes alone, and mends it.
//!
//! Mending goes by rounds: what a round finds of addresses is mended first, then names and counts, then
//! the lists are made anew, then what has no name gets one; another round looks whether all is well.
//! Preening mends nothing where it finds more than a power cut leaves.

mod findings;
mod inodes;
mod links;
mod lists;
mod lost;
mod names;
mod plan;
mod writer;

use crate::attached::commit::mark;
use crate::attached::operations::{LOOK_MEMORY, cache};
use crate::disk::blocks::Reader;
use crate::disk::inode::kept;
use crate::disk::ondisk::{Order, ROOT_INO, SUPER_AT};
use crate::disk::volume::Volume;
use crate::options;
use findings::{Findings, finding};
use inodes::Inodes;
use plan::Plan;
use std::sync::Arc;
use volary_block::Cache;
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Fact, FileKind, Finding, Progress, Result,
    Severity,
};
use writer::Writer;

/// Rounds after which what is still wrong is left.
const ROUNDS: u32 = 20;

/// Goes through everything, tells what contradicts itself, and mends it as far as `how` allows.
///
/// # Errors
/// `Corrupt` if there is no superblock to go by; `Interrupted`; `Io`.
pub(crate) fn check(
    dev: Arc<dyn BlockDevice>,
    how: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let order = options::order(&how.options)?;
    let volume = Volume::new(&*dev, order)?;
    let mut findings = Findings::new(how, !volume.is_clean(), report, progress);
    let mut run = Run {
        cache: cache(dev.clone(), LOOK_MEMORY),
        dev,
        how,
        order,
        volume,
        written: 0,
    };
    let (mut plan, mut inodes) = run.look(&mut findings)?;
    let (found, mut left) = (findings.all.found, findings.all.found);
    if findings.all.mends() && !findings.all.stops() {
        for _ in 0..ROUNDS {
            if findings.all.accepted == 0 {
                break;
            }
            run.mend(&plan, &mut inodes)?;
            // What was refused would be asked again; without that, the rest follows.
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
            if left == u64::from(!run.volume.is_clean()) {
                run.set_clean()?;
                left = 0;
                break;
            }
        }
    }
    Ok(CheckReport {
        found,
        mended: found.saturating_sub(left),
        written: run.written,
        facts: run.facts(&inodes),
    })
}

struct Run<'a> {
    dev: Arc<dyn BlockDevice>,
    how: &'a Check,
    order: Option<Order>,
    cache: Cache,
    volume: Volume,
    written: u64,
}

impl Run<'_> {
    fn facts(&self, inodes: &Inodes) -> Vec<Fact> {
        let data = self.volume.data();
        let free = data.filter(|&block| !inodes.owned.has(block)).count() as u64;
        vec![
            Fact::number("files", inodes.files(), ""),
            Fact::number("directories", inodes.dirs(), ""),
            Fact::number("free", free * self.volume.bsize, "bytes"),
        ]
    }

    fn reader(&self) -> Reader<'_> {
        Reader {
            cache: &self.cache,
            volume: &self.volume,
        }
    }

    /// One round: what is wrong, and what is to be mended of it.
    fn look(&self, findings: &mut Findings<'_>) -> Result<(Plan, Inodes)> {
        let (reader, mut plan) = (self.reader(), Plan::default());
        if !self.volume.is_clean() {
            let message = "the volume was not cleanly left";
            findings.tell(&Finding {
                code: "dirty",
                ..finding(Severity::Crash, SUPER_AT, message)
            });
        }
        let mut inodes = Inodes::read(reader, findings, &mut plan)?;
        self.root(&inodes, findings, &mut plan);
        names::check(reader, &mut inodes, findings, &mut plan)?;
        links::check(reader, &inodes, findings, &mut plan);
        lists::check(reader, &inodes, findings, &mut plan)?;
        Ok((plan, inodes))
    }

    /// The root must be a directory.
    fn root(&self, inodes: &Inodes, findings: &mut Findings<'_>, plan: &mut Plan) {
        let seen = inodes.all.get(&ROOT_INO);
        if seen.is_some_and(|seen| seen.kind == FileKind::Dir) {
            return;
        }
        let is_mended = findings.tell(&Finding {
            code: "root",
            ..finding(
                Severity::Damage,
                self.volume.inode_at(ROOT_INO),
                "the root is no directory",
            )
        });
        if is_mended {
            let fix = plan.inode(ROOT_INO);
            fix.mode = Some(0o040_755);
            // What it led to is nobody's then.
            fix.addresses = (0..crate::disk::ondisk::ADDRESSES)
                .map(|slot| (slot, plan::Put::Hole))
                .collect();
            fix.size = Some(0);
            fix.links = Some(2);
            fix.dots = Some(ROOT_INO);
            plan.pointers = true;
        }
    }

    /// Mends the first of what a round found: addresses with all that is of inodes and names; the lists;
    /// what has no name.
    fn mend(&mut self, plan: &Plan, inodes: &mut Inodes) -> Result<()> {
        let mut head = self.volume.head.clone();
        let mut writer = Writer::new(Reader {
            cache: &self.cache,
            volume: &self.volume,
        });
        // Were this to be cut off, what it leaves must be checked again.
        if self.volume.is_clean() {
            mark(&self.volume, &mut head, false, kept(self.how.now));
            writer.put(SUPER_AT, &head)?;
            writer.settle()?;
        }
        if plan.has_structures() {
            writer.structures(plan, inodes)?;
        } else if plan.lists {
            writer.lists(inodes, &mut head)?;
            writer.settle()?;
            writer.put(SUPER_AT, &head)?;
        } else if !plan.lost.is_empty() {
            writer.settle()?;
            writer.written += lost::mend(&self.dev, self.order, &plan.lost, self.how.now)?;
            self.cache.drop_range(0, self.cache.size());
        }
        writer.settle()?;
        self.written += writer.written;
        self.read_head()
    }

    /// Reads the superblock again.
    fn read_head(&mut self) -> Result<()> {
        self.cache.read(SUPER_AT, &mut self.volume.head)
    }

    /// Nothing else is wrong.
    fn set_clean(&mut self) -> Result<()> {
        if self.volume.is_clean() {
            return Ok(());
        }
        let mut head = self.volume.head.clone();
        mark(&self.volume, &mut head, true, kept(self.how.now));
        let mut writer = Writer::new(self.reader());
        writer.put(SUPER_AT, &head)?;
        writer.settle()?;
        self.written += writer.written;
        self.read_head()
    }
}
