//! The check of a volume (`fsck`).
//!
//! A check goes in rounds. Each walks all directories and chains and changes
//! nothing (`walk`), then tells of what it found and mends it in memory
//! (`details`, `cross`, `lost`), chains before directories, and these before
//! names. A round that finds nothing more to mend is the last one. Only then
//! is anything written that the volume can be read by, in an order in which
//! each state that a power cut can leave is one that another check mends to
//! the same end (`Check::write`):
//!
//! 1. the mark of a volume that was not cleanly left; copies of clusters, into
//!    free ones;
//! 2. the FAT: clusters newly taken;
//! 3. directories: entries moved to a new place;
//! 4. the FAT: chains cut or led elsewhere;
//! 5. directories: all else;
//! 6. the FAT: clusters freed;
//! 7. the other copies of the FAT, FSInfo, the boot sector's copy;
//! 8. the mark taken away.
//!
//! Each step is durable before the next begins. Before the first, while the mark says
//! that the copies of the FAT are of one time, the first FAT gets what another is right
//! about (`reconcile`). Which boot sector is gone by is decided by how much sense the
//! volume makes with each (`choose`); the first one wins unless the other makes more.
//!
//! What mends is a few parts, each of which has those below it:
//!
//! ```text
//! Details              problems, one at a time
//! ├─ Chains, Crosses   chains that lead nowhere, and that meet
//! ├─ AfterEnd          what stands after the end of a directory
//! └─ Entries           puts entries into directories, and gives them other names
//! LostChains           chains that no path leads to; has Entries
//! UnixExtension        the table of owners, and the paper's layout
//! Tables, BootSector   the FATs as a whole, FSInfo; the boot sector, its copy and its marks
//! └─ Mender            the volume, what the walk saw, and whom findings are told
//! ```

mod after;
mod bits;
mod boot;
mod chain;
mod choose;
mod cross;
mod details;
mod disk;
mod entry;
mod fat;
mod findings;
mod insert;
mod lost;
mod mend;
mod owners;
mod reconcile;
mod tables;
mod taken;
mod twins;
mod volume;
mod walk;

use crate::names::style::{Names, Style};
use boot::BootSector;
use choose::Choice;
use cross::Crosses;
use details::Details;
use disk::{Disk, Rank};
use fat::{Class, Fat};
use findings::Reporter;
use lost::LostChains;
use mend::Mender;
use owners::UnixExtension;
use std::sync::Arc;
use tables::Tables;
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Fact, Finding, OptionSpec, Options,
    Progress, Result,
};
use volume::Volume;
use walk::{Phase, Walk};

/// Options of a check.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "lost",
        value: "save|free",
        help: "What becomes of chains that no path leads to: saved in lost+found, or freed. \
               Default: saved; with -p freed.",
    },
    OptionSpec {
        name: "unix",
        value: "on|reset|dosfs|dosfs-reset",
        help: "reset: take the UNIX extension away from every entry. dosfs: the volume has the \
               extension in the DosFs paper's layout; dosfs-reset: take that away, and make \
               names DOS's. Default: whichever layout the root directory has.",
    },
    OptionSpec {
        name: "codepage",
        value: "NUMBER",
        help: "The code page of short names. Default: 437.",
    },
    crate::options::BOOT,
];

/// Most rounds. Damage that needs more than a few is made by hand; what is left
/// then is for the next check.
const ROUNDS_MAX: u32 = 200;

/// What becomes of the extension, and of lost chains.
#[derive(Clone, Copy, Debug)]
struct Plan {
    paper: bool,
    reset: bool,
    save: bool,
}

impl Plan {
    fn new(how: &Check, found: impl FnOnce() -> Result<bool>) -> Result<Self> {
        how.options.check_known(OPTIONS)?;
        let modes = [
            ("on", (false, false)),
            ("off", (false, false)),
            ("reset", (false, true)),
            ("dosfs", (true, false)),
            ("dosfs-reset", (true, true)),
        ];
        let (paper, reset) = match how.options.choice("unix", &modes)? {
            Some(mode) => mode,
            None => (found()?, false),
        };
        let lost = [("save", true), ("free", false)];
        let save = how.options.choice("lost", &lost)?;
        Ok(Self {
            paper,
            reset,
            save: save.unwrap_or(how.mode != CheckMode::Preen),
        })
    }

    fn names(self, options: &Options) -> Result<Names> {
        let page = crate::options::codepage(options)?;
        Names::new(Style::Long, page, self.paper)
    }
}

/// Checks a volume; see [`Format::check`](volary_core::Format::check). With
/// [`CheckMode::Preen`], nothing is written if there is damage.
///
/// # Errors
/// `Invalid` for an option; `Corrupt` if no boot sector can be gone by; `Io`;
/// `Interrupted`, and nothing is changed then.
pub(crate) fn run(
    dev: Arc<dyn BlockDevice>,
    how: &Check,
    report: &mut dyn FnMut(&Finding) -> Answer,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let mut reporter = Reporter::new(how, report);
    let boots = match how.options.number(crate::options::BOOT.name)? {
        Some(sector) => vec![boot::at_sector(&*dev, sector)?],
        None => boot::candidates(&*dev)?,
    };
    let first = boots.first().map(|boot| &boot.layout);
    let plan = Plan::new(how, || match first {
        Some(layout) if !layout.is_fat32() => crate::unix::paper::is_used(&*dev, layout),
        _ => Ok(false),
    })?;
    let names = || plan.names(&how.options);
    let (choice, first) = choose::choose(&dev, boots, names, how.now, progress)?;
    let disk = Disk::new(dev.clone());
    let fat = Fat::new(dev, &choice.boot.layout, choice.copy);
    let mut vol = Volume::new(choice.boot.layout.clone(), disk, fat, names()?, how.now);
    vol.disk.hold = how.mode == CheckMode::Preen;
    let as_walked = choice.tell(&mut vol, &mut reporter)?;
    let mut check = Run {
        vol,
        choice,
        plan,
        reporter,
        alike: false,
    };
    let walk = check.rounds(first.filter(|_| as_walked), progress)?;
    check.finish(walk)
}

/// A check under way.
struct Run<'a> {
    vol: Volume,
    choice: Choice,
    plan: Plan,
    reporter: Reporter<'a>,
    /// The copies of the FAT are to be made alike.
    alike: bool,
}

impl Run<'_> {
    /// Walks and mends until there is nothing more to mend.
    fn rounds(&mut self, first: Option<Walk>, progress: &dyn Progress) -> Result<Walk> {
        let mut next = first.filter(|_| !self.plan.reset);
        for round in 1.. {
            let mut walk = match next.take() {
                Some(walk) => walk,
                None => Walk::run(&mut self.vol, self.plan.reset, progress)?,
            };
            let before = self.reporter.all.accepted;
            self.vol.fat.refuel();
            let kept = self.round(&mut walk)?;
            if self.preen_stops() {
                return Ok(walk);
            }
            if self.reporter.all.accepted == before {
                if !self.plan.paper || !self.plan.reset || kept || !self.reporter.all.mends() {
                    return Ok(walk);
                }
                // What is left must be as any other volume is.
                self.plan.paper = false;
                self.vol.forget_paper();
            }
            if round == ROUNDS_MAX {
                // Something is left, but what is not known.
                self.reporter.all.found += 1;
                break;
            }
        }
        Walk::run(&mut self.vol, self.plan.reset, progress)
    }

    fn preen_stops(&self) -> bool {
        self.reporter.all.stops()
    }

    /// One look and what is mended by it; whether entries keep an extension that was
    /// to be reset.
    fn round(&mut self, walk: &mut Walk) -> Result<bool> {
        let problems = std::mem::take(&mut walk.problems);
        let kept = problems.iter().any(|p| p.what == walk::What::UnixData);
        let complete = walk.complete;
        let mut mender = Mender::new(&mut self.vol, walk, &mut self.reporter);
        let before = mender.reporter.all.accepted;
        BootSector::new(&mut mender).media()?;
        Tables::new(&mut mender).head(self.choice.copy)?;
        for phase in [Phase::Chains, Phase::Crosses, Phase::Details] {
            let of = |p: &&walk::Problem| p.what.phase() == phase;
            if phase == Phase::Crosses {
                let crosses: Vec<_> = problems.iter().filter(of).copied().collect();
                if !crosses.is_empty() {
                    Crosses::new(&mut mender, &crosses)?.mend(&crosses)?;
                }
            } else {
                let mut details = Details::new(&mut mender);
                for problem in problems.iter().filter(of) {
                    details.mend(problem)?;
                }
            }
            // What is lost is known only when nothing else is to be mended.
            if mender.reporter.all.accepted != before {
                return Ok(kept);
            }
        }
        UnixExtension::new(&mut mender).owner_table(self.plan.reset)?;
        if complete {
            LostChains::new(&mut mender, self.plan.save).mend()?;
        }
        Ok(kept)
    }

    /// Looks at what sums up the rest, and writes.
    fn finish(mut self, mut walk: Walk) -> Result<CheckReport> {
        let mut mender = Mender::new(&mut self.vol, &mut walk, &mut self.reporter);
        BootSector::new(&mut mender).mend()?;
        Tables::new(&mut mender).fsinfo()?;
        self.alike = Tables::new(&mut mender).copies(self.choice.copy)?;
        BootSector::new(&mut mender).marks()?;
        let mut report = CheckReport {
            found: self.reporter.all.found,
            mended: self.reporter.all.accepted,
            written: 0,
            facts: facts(&self.vol, &walk),
        };
        if self.preen_stops() {
            report.mended = 0;
        } else if self.reporter.all.accepted > 0 {
            self.write()?;
            report.written = self.vol.disk.written / u64::from(self.vol.layout.sector_len);
        }
        Ok(report)
    }

    /// Writes all that was mended, in the order that the module says.
    fn write(&mut self) -> Result<()> {
        let only_marks = !self.vol.fat.is_changed() && !self.vol.disk.is_edited();
        self.vol.fat.restore(&mut self.vol.disk)?;
        if !only_marks {
            self.mark_dirty()?;
        }
        let Volume { disk, fat, .. } = &mut self.vol;
        fat.write(Class::Take, disk)?;
        disk.flush()?;
        disk.write_edits(Rank::Early)?;
        disk.flush()?;
        fat.write(Class::Turn, disk)?;
        disk.flush()?;
        disk.write_edits(Rank::Late)?;
        disk.flush()?;
        fat.write(Class::Free, disk)?;
        disk.flush()?;
        self.write_copies()?;
        self.vol.fat.write(Class::Marks, &mut self.vol.disk)?;
        self.write_copies()?;
        self.vol.disk.flush()?;
        self.vol.disk.write_edits(Rank::Last)?;
        self.vol.disk.flush()
    }

    fn write_copies(&mut self) -> Result<()> {
        let from = self.choice.copy;
        if self.alike {
            for to in (0..self.vol.layout.fat_count).filter(|&to| to != from) {
                tables::compare(&mut self.vol, from, to, true)?;
            }
        }
        self.vol.disk.flush()
    }

    /// Says on the disk that the volume is being changed, where it can be said
    /// and is not said already, and that it is not any more with the last edit.
    fn mark_dirty(&mut self) -> Result<()> {
        if self.vol.layout.serial.is_none() {
            return Ok(());
        }
        let at = boot::state_offset(self.vol.layout.is_fat32());
        let mut sector = [0; disk::UNIT];
        if self.vol.disk.read_raw(0, &mut sector).is_err() {
            // It is restored: that is what can be read of it.
            self.vol.disk.read(0, &mut sector)?;
        }
        let Some(state) = sector.get_mut(at) else {
            return Ok(());
        };
        let dirty = *state | crate::volume::ondisk::STATE_DIRTY;
        let mut last = [0];
        self.vol.disk.read(at as u64, &mut last)?;
        if *state != dirty {
            *state = dirty;
            self.vol.disk.write(0, &sector)?;
            self.vol.disk.flush()?;
        }
        self.vol.disk.edit(at as u64, &[dirty], Rank::Early)?;
        self.vol.disk.edit(at as u64, &last, Rank::Last)
    }
}

/// Returns what a walk saw, in figures.
fn facts(vol: &Volume, walk: &Walk) -> Vec<Fact> {
    let clusters = u64::from(vol.layout.cluster_count);
    let free = u64::from(walk.counts.free);
    let bad = u64::from(walk.counts.bad);
    vec![
        Fact::number("files", walk.files, ""),
        Fact::number("directories", walk.dirs.len() as u64, ""),
        Fact::number("clusters", clusters, ""),
        Fact::number("clusters in use", walk.used.count(), ""),
        Fact::number("clusters free", free, ""),
        Fact::number("clusters bad", bad, ""),
    ]
}
