//! Kills the process of a volume, again and again, and checks the volume each time.

use super::moment::Moment;
use super::served::Served;
use super::{SIZE_MAX, mounted, scripts, served};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use volary_block::{FileDevice, OpenOptions};
use volary_core::BlockDevice;
use volary_sim::{Losing, Ops, Progress, Subject, Volume};

type Words<T> = Result<T, String>;

/// The extent of a run.
#[derive(Clone, Debug)]
pub struct Kills {
    /// The `volary` program, which is run and killed.
    pub program: PathBuf,
    /// The path for the volume's image, which is made anew.
    pub image: PathBuf,
    /// How the process accesses the volume.
    pub way: Way,
    /// The number of rounds.
    pub rounds: u64,
    /// Operations in a round's script. The process is killed during one of them.
    pub steps: usize,
    /// The first round's seed.
    pub seed: u64,
}

/// How the killed process accesses its volume, and who does the operations.
#[derive(Clone, Debug)]
pub enum Way {
    /// It does the operations itself, on a device that loses unflushed writes.
    Alone,
    /// It mounts the volume on this directory, where another process does the operations.
    Mounted(PathBuf),
    /// It serves the volume, and a client does the operations.
    Served(Served),
}

impl Way {
    /// Returns the options with which the command repeats a round this way.
    fn words(&self) -> String {
        match self {
            Self::Alone => String::new(),
            Self::Mounted(_) => " --mounted".into(),
            Self::Served(served) => format!(" --served {}", served.by.name()),
        }
    }

    fn mount(&self) -> Option<&Path> {
        match self {
            Self::Mounted(dir) => Some(dir),
            Self::Alone | Self::Served(_) => None,
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Killed {
    /// Processes that were killed.
    pub kills: u64,
    /// Operations that had been acknowledged.
    pub acknowledged: u64,
    /// Syncs among these.
    pub synced: u64,
}

/// Returns the script of the round with this seed, for a volume that holds the preset.
fn script(volume: &Volume, steps: usize, seed: u64) -> Words<Ops> {
    let script = scripts::random(seed, steps, &volume.preset_tree()?, SIZE_MAX);
    Ok(script.with_names(volume.names))
}

fn open(image: &Path) -> Words<Arc<dyn BlockDevice>> {
    let dev = FileDevice::open(image, OpenOptions::default());
    dev.map(|dev| Arc::new(dev) as _).map_err(|e| e.to_string())
}

/// Does what the killed process has to do: runs a script, on a device that loses unflushed writes.
/// If `mount` is given, mounts and serves the volume there instead. Calls `say` with a line at each
/// step.
///
/// # Errors
/// In words.
pub fn load(
    volume: &Volume,
    image: &Path,
    mount: Option<&Path>,
    steps: usize,
    seed: u64,
    say: &mut dyn FnMut(&str),
) -> Words<()> {
    let dev = Arc::new(Losing::new(open(image)?, seed));
    match mount {
        Some(dir) => mounted::serve(volume, dev, dir, say),
        None => volume.load(&script(volume, steps, seed)?, seed, dev, say),
    }
}

/// Makes a volume. In each round, runs a process on it, kills the process, recovers the volume, and
/// checks that it holds what was acknowledged. Then resets it to the preset. Calls `tell` with the
/// progress.
///
/// # Errors
/// The first promise that was not kept, with the command that repeats its round.
pub fn kills(volume: &Volume, plan: &Kills, mut tell: impl FnMut(&Killed)) -> Words<Killed> {
    let disk = Subject::make(volume)?;
    std::fs::write(&plan.image, disk.to_vec()).map_err(|e| e.to_string())?;
    let mut all = Killed::default();
    // A process may end before it is killed. Such a round is not counted.
    for seed in (plan.seed..).take(usize::try_from(plan.rounds * 2).unwrap_or(usize::MAX)) {
        if all.kills == plan.rounds {
            break;
        }
        round(volume, plan, seed, &mut all).map_err(|what| {
            let (name, steps) = (volume.name, plan.steps);
            let way = plan.way.words();
            let again = format!("--rounds 1 --steps {steps} --seed {seed}{way}");
            format!("{what}\nvolary torture kill {name} {again}")
        })?;
        tell(&all);
    }
    Ok(all)
}

fn round(volume: &Volume, plan: &Kills, seed: u64, all: &mut Killed) -> Words<()> {
    let mut script = script(volume, plan.steps, seed)?;
    let host = |e: std::io::Error| e.to_string();
    let mut process = match &plan.way {
        Way::Alone | Way::Mounted(_) => loading(volume, plan, seed),
        Way::Served(by) => served::command(volume, &plan.program, &plan.image, by.by),
    };
    let mut process = process.spawn().map_err(host)?;
    let progress = match &plan.way {
        Way::Alone => followed(&mut process, plan.steps, seed),
        Way::Mounted(dir) => mounted::driven(volume, &mut process, dir, &mut script, seed),
        Way::Served(by) => served::driven(volume, &mut process, &plan.image, *by, &script, seed),
    };
    if progress.is_err() {
        // The process may have ended already.
        let _ = process.kill();
    }
    let ended = process.wait().map_err(host)?;
    let freed = plan.way.mount().map(volary_fuse::free).transpose();
    let progress = progress?;
    freed.map_err(|e| e.to_string())?;
    if ended.success() {
        // The process was not killed.
    } else if std::os::unix::process::ExitStatusExt::signal(&ended).is_some() {
        all.kills += 1;
    } else {
        return Err(format!("the process ended with {ended}"));
    }
    all.acknowledged += progress.done.len() as u64;
    all.synced += progress.synced(&script) as u64;
    let dev = open(&plan.image)?;
    let pages = plan.way.mount().map(|_| mounted::PAGE);
    let held = volume.held_to(&script, seed, &progress, pages, &dev);
    held.map_err(|what| {
        let last = progress.began.checked_sub(1);
        let last = last.and_then(|last| script.0.get(last));
        let last = last.map(|op| format!("; the last to begin was '{op}'"));
        what + &last.unwrap_or_default()
    })?;
    volume.renew(dev)
}

/// Returns the command of the process to kill: `volary torture load`.
fn loading(volume: &Volume, plan: &Kills, seed: u64) -> Command {
    let mount = plan.way.mount().into_iter();
    let mut command = Command::new(&plan.program);
    command
        .args(["torture", "load", volume.name])
        .arg(&plan.image)
        .args(["--steps", &plan.steps.to_string()])
        .args(["--seed", &seed.to_string()])
        .args(mount.flat_map(|dir| [OsStr::new("--mount"), dir.as_os_str()]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    command
}

/// Reads the output of a process, and kills it somewhere in its script.
fn followed(process: &mut Child, steps: usize, seed: u64) -> Words<Progress> {
    let at = Moment::of(steps, seed);
    let mut progress = Progress::default();
    let said = process.stdout.take().ok_or("it says nothing")?;
    for line in BufReader::new(said).lines() {
        // The last line may be incomplete.
        if !line.is_ok_and(|line| progress.hear(&line)) {
            break;
        }
        if progress.began == at.op + 1 {
            at.pass();
            process.kill().map_err(|e| e.to_string())?;
        }
    }
    Ok(progress)
}
