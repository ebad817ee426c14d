//! Cedar: fuse2fs, and ext4 that the host mounts from a loop device, with files
//! that are synced as programs do; e2fsck, which replays a journal.

use super::finding::{Finding, Row};
use super::folder::{self, Folder};
use super::synced::{create_by_hundred, create_each, delete, list, read, stat};
use super::task::{Options, Run, Task};
use crate::measure::{here, program};
use crate::needs;
use crate::served::clients::Phases;
use crate::served::mounts::Looped;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is timed, in this order, of files in the directory that it names; how many
/// times as fast as fuse2fs, and as the host's own ext4, volary should be. What
/// only reads the host answers without asking anybody; that has no aim.
const PHASES: [(&str, &str, Act, [f64; 2]); 6] = [
    (
        "create 1000, fsync by 100",
        "hundred",
        create_by_hundred,
        [1.5, 1.0],
    ),
    ("create 1000, fsync each", "each", create_each, [1.5, 1.0]),
    ("list 1000", "hundred", list, [1.0, 0.0]),
    ("stat 1000", "hundred", stat, [1.0, 0.0]),
    ("read 1000", "hundred", read, [1.0, 0.0]),
    ("delete 1000, fsync by 100", "hundred", delete, [1.5, 1.0]),
];
/// Of these, those before the volume is unmounted and mounted again, so that
/// nothing is remembered.
const BEFORE: usize = 2;
const REPLAY: &str = "replay the log";
const RECOVER: &str = "fsck -p after a crash";

type Act = fn(&Path) -> Result<()>;

/// Runs the comparison; `told` hears of each task as soon as it is done.
///
/// # Errors
/// If a program fails.
pub fn run(options: &Options, told: &mut dyn FnMut(&Finding)) -> Result<Vec<Finding>> {
    let place = Place {
        folder: Folder::empty(options)?,
    };
    let (mut rivals, mut all) = (Vec::new(), Vec::new());
    for side in [Side::Fuse2fs, Side::Loop] {
        match side.lacks() {
            None => rivals.push(side),
            Some(why) => all.push(Finding::missing(side.name(), why)),
        }
    }
    if PHASES.iter().any(|(name, ..)| options.wants(name)) {
        all.extend(place.phases(options, &rivals)?);
    }
    all.iter().for_each(&mut *told);
    if !rivals.contains(&Side::Loop) {
        return Ok(all);
    }
    if [REPLAY, RECOVER].iter().any(|name| options.wants(name)) {
        for side in [Side::Volary, Side::Loop] {
            place.crash(side)?;
        }
        all.extend(folder::run(place.recoveries(), options, told)?);
    }
    Ok(all)
}

/// Who mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// volary, a Cedar volume.
    Volary,
    /// fuse2fs, ext4.
    Fuse2fs,
    /// The host, ext4.
    Loop,
}

impl Side {
    /// Returns what this rival needs and is not here, in words.
    fn lacks(self) -> Option<String> {
        let programs: &[&str] = match self {
            Self::Volary => &[],
            Self::Fuse2fs => &["mke2fs", "fuse2fs", "fusermount3"],
            Self::Loop => &["mke2fs", "e2fsck"],
        };
        let lacking = programs
            .iter()
            .find_map(|name| needs::program(&Command::new(name)).err());
        if let Some(lacking) = lacking {
            return Some(lacking.to_string());
        }
        let is_root = rustix::process::geteuid().is_root();
        let words = "mounting it, also to crash it for e2fsck, needs root";
        (self == Self::Loop && !is_root).then(|| words.to_owned())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Volary => "volary",
            Self::Fuse2fs => "fuse2fs",
            Self::Loop => "ext4 on loop",
        }
    }
}

struct Place {
    folder: Folder,
}

impl Place {
    /// Returns a new, empty image.
    fn fresh(&self, side: Side) -> Result<PathBuf> {
        let image = self.folder.path("fresh.img");
        match side {
            Side::Volary => self.folder.mkfs(&["-t", "cedar"], &image).map(drop)?,
            Side::Fuse2fs | Side::Loop => self.folder.mke2fs(&image, None)?,
        }
        Ok(image)
    }

    /// Mounts an image, does something with the mount, unmounts.
    fn mounted(
        &self,
        side: Side,
        image: &Path,
        act: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        match side {
            Side::Volary => self.folder.mounted(self.folder.volary_mount(image), act)?,
            Side::Fuse2fs => self.folder.mounted(self.folder.fuse2fs_mount(image), act)?,
            Side::Loop => {
                let dir = self.folder.path("mnt");
                let mounted = Looped::start(image, &dir).context("a loop device")?;
                act(&dir)?;
                return mounted.stop();
            }
        };
        Ok(())
    }

    /// Runs all phases once on a new volume.
    fn once(&self, side: Side) -> Result<Vec<(String, f64)>> {
        let image = self.fresh(side)?;
        let mut costs = Vec::new();
        for (part, is_new) in [(&PHASES[..BEFORE], true), (&PHASES[BEFORE..], false)] {
            self.mounted(side, &image, |mount| {
                for (name, dir, act, _) in part {
                    let dir = mount.join(dir);
                    if is_new {
                        fs::create_dir(&dir)?;
                    }
                    let cost = here(|| act(&dir)).with_context(|| (*name).to_owned())?;
                    costs.push(((*name).to_owned(), cost.seconds));
                }
                Ok(())
            })
            .context(side.name())?;
        }
        Ok(costs)
    }

    /// Runs the phases on all sides in turn, once to warm up and then to count.
    fn phases(&self, options: &Options, rivals: &[Side]) -> Result<Vec<Finding>> {
        let mut all: Vec<(Side, Phases)> = [Side::Volary]
            .iter()
            .chain(rivals)
            .map(|side| (*side, Phases::default()))
            .collect();
        for round in 0..=options.rounds.max(1) {
            for (side, phases) in &mut all {
                let costs = self.once(*side)?;
                if round > 0 {
                    phases.add(costs);
                }
            }
        }
        let (_, ours) = all.remove(0);
        let mut rows = Vec::new();
        for (side, theirs) in &all {
            let nth = usize::from(*side == Side::Loop);
            for (task, _, _, aims) in PHASES.iter().filter(|(name, ..)| options.wants(name)) {
                let (ours, theirs) = (ours.of(task)?, theirs.of(task)?);
                rows.push(Finding::Row(Row {
                    task: (*task).into(),
                    rival: side.name().into(),
                    ours,
                    theirs,
                    ratio: theirs.median / ours.median,
                    aim: aims.get(nth).copied().unwrap_or_default(),
                    memory_aim: None,
                }));
            }
        }
        Ok(rows)
    }

    /// Returns the image of a volume that was cut off at work.
    fn crashed(&self, side: Side) -> PathBuf {
        self.folder.path(&format!("{side:?}.crashed"))
    }

    /// Works on a new volume until its log is full, and keeps what is on the
    /// device while it is still mounted.
    fn crash(&self, side: Side) -> Result<()> {
        let image = self.fresh(side)?;
        self.mounted(side, &image, |mount| {
            let dir = mount.join("each");
            fs::create_dir(&dir)?;
            create_each(&dir)?;
            self.folder.copy_image(&image, &self.crashed(side))
        })
    }

    fn recoveries(&self) -> Vec<Task<'_>> {
        let ours = |args: &'static [&str], place: &'static str| -> Run<'_> {
            self.recovered(Side::Volary, move |image| {
                let mut c = Command::new(&self.folder.volary);
                c.args(args).arg(format!("{}{place}", image.display()));
                c
            })
        };
        let theirs = |args: &'static [&str]| -> Run<'_> {
            self.recovered(Side::Loop, move |image| {
                let mut c = Command::new("e2fsck");
                c.args(args).arg(image);
                c
            })
        };
        let journal = theirs(&["-p", "-E", "journal_only"]);
        // It is attached for a change: then the log is replayed.
        let attach = ours(&["mkdir"], ":/new");
        vec![
            Task::new(REPLAY, "e2fsck", 1.0, attach, journal),
            Task::new(
                RECOVER,
                "e2fsck",
                1.0,
                ours(&["fsck", "-p"], ""),
                theirs(&["-p"]),
            ),
        ]
    }

    /// Runs a program on a new copy of what was crashed; the program counts.
    fn recovered<'a>(&'a self, side: Side, command: impl Fn(&Path) -> Command + 'a) -> Run<'a> {
        let image = self.folder.path("recovered.img");
        Box::new(move || {
            self.folder.copy_image(&self.crashed(side), &image)?;
            // 1: mended, which a crash asks for.
            program(&mut command(&image), &[0, 1])
        })
    }
}
