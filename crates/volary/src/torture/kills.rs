//! Volumes whose process is killed, again and again.

use super::{SIZE_MAX, scripts};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use volary_block::{FileDevice, OpenOptions};
use volary_core::BlockDevice;
use volary_sim::rng::Rng;
use volary_sim::{Losing, Ops, Progress, Subject, Volume};

type Words<T> = Result<T, String>;

/// How often, and how.
#[derive(Clone, Debug)]
pub struct Kills {
    /// The `volary` program, that is run and killed.
    pub program: PathBuf,
    /// The volume's image; it is made anew.
    pub image: PathBuf,
    /// So often.
    pub rounds: u64,
    /// Operations of a round's script; it is killed somewhere in it.
    pub steps: usize,
    /// The first round's seed.
    pub seed: u64,
}

/// What was killed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Killed {
    /// Processes.
    pub kills: u64,
    /// Operations that they had acknowledged.
    pub acknowledged: u64,
    /// Of these, syncs.
    pub synced: u64,
}

/// What is run in round `seed`, on a volume that holds the preset.
fn script(volume: &Volume, steps: usize, seed: u64) -> Words<Ops> {
    Ok(scripts::random(
        seed,
        steps,
        &volume.preset_tree()?,
        SIZE_MAX,
    ))
}

fn open(image: &Path) -> Words<Arc<dyn BlockDevice>> {
    let dev = FileDevice::open(image, OpenOptions::default());
    dev.map(|dev| Arc::new(dev) as _).map_err(|e| e.to_string())
}

/// What the process does that is killed: a script, on a device that loses what is
/// not flushed. `say` is given a line at each step.
///
/// # Errors
/// In words.
pub fn load(
    volume: &Volume,
    image: &Path,
    steps: usize,
    seed: u64,
    say: &mut dyn FnMut(&str),
) -> Words<()> {
    let dev = Arc::new(Losing::new(open(image)?, seed));
    volume.load(&script(volume, steps, seed)?, seed, dev, say)
}

/// Makes a volume, and so often runs a process on it, kills that, recovers the
/// volume, holds it to what was acknowledged, and has it hold the preset again.
/// `tell` hears how far it is.
///
/// # Errors
/// The first promise that was not kept, with the command that tries its round again.
pub fn kills(volume: &Volume, plan: &Kills, mut tell: impl FnMut(&Killed)) -> Words<Killed> {
    let disk = Subject::make(volume)?;
    std::fs::write(&plan.image, disk.to_vec()).map_err(|e| e.to_string())?;
    let mut all = Killed::default();
    // A process may be at its end before it is killed: then that is not counted.
    for seed in (plan.seed..).take(usize::try_from(plan.rounds * 2).unwrap_or(usize::MAX)) {
        if all.kills == plan.rounds {
            break;
        }
        round(volume, plan, seed, &mut all).map_err(|what| {
            let (name, steps) = (volume.name, plan.steps);
            format!("{what}\nvolary torture kill {name} --rounds 1 --steps {steps} --seed {seed}")
        })?;
        tell(&all);
    }
    Ok(all)
}

fn round(volume: &Volume, plan: &Kills, seed: u64, all: &mut Killed) -> Words<()> {
    let script = script(volume, plan.steps, seed)?;
    let host = |e: std::io::Error| e.to_string();
    let mut process = Command::new(&plan.program)
        .args(["torture", "load", volume.name])
        .arg(&plan.image)
        .args(["--steps", &plan.steps.to_string()])
        .args(["--seed", &seed.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(host)?;
    let progress = followed(&mut process, plan.steps, seed);
    let ended = process.wait().map_err(host)?;
    let progress = progress?;
    if ended.success() {
        // Nothing was killed.
    } else if std::os::unix::process::ExitStatusExt::signal(&ended).is_some() {
        all.kills += 1;
    } else {
        return Err(format!("the process ended with {ended}"));
    }
    all.acknowledged += progress.done.len() as u64;
    all.synced += progress.synced(&script) as u64;
    let dev = open(&plan.image)?;
    volume.held_to(&script, seed, &progress, &dev)?;
    volume.renew(dev)
}

/// Hears what a process says, and kills it somewhere in its script.
fn followed(process: &mut Child, steps: usize, seed: u64) -> Words<Progress> {
    let mut rng = Rng::new(seed ^ 0x6b69_6c6c);
    let at = rng.index(steps.max(1));
    let spins = rng.below(50_000);
    let mut progress = Progress::default();
    let said = process.stdout.take().ok_or("it says nothing")?;
    for line in BufReader::new(said).lines() {
        // The last line may be cut.
        if !line.is_ok_and(|line| progress.hear(&line)) {
            break;
        }
        if progress.began == at + 1 {
            (0..spins).for_each(|_| std::hint::spin_loop());
            process.kill().map_err(|e| e.to_string())?;
        }
    }
    Ok(progress)
}
