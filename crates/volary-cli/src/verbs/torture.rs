//! `volary torture`: what power cuts leave of the drivers' volumes.

use crate::exit::{Done, Exit, Fail};
use crate::out;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use volary::torture::{
    self, Bounds, Cut, Depth, Explorer, Killed, Kills, Ops, Plan, Served, Tally, Volume, Way,
};

/// Cuts the power of simulated volumes, and says whether they keep their promises.
///
/// A script of operations runs on a small volume in memory. Then everything
/// that a power cut may leave of it is recovered and looked at, within bounds.
/// A state in which a promise is not kept is printed with the command that
/// looks at it again.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary torture run fat12 --random 2 --steps 12
  volary torture run fat16 --pairs --part 7/500
  volary torture run cedar --triples --part 1/500
  volary torture kill cedar --rounds 20
  volary torture kill fat32 --rounds 20 --mounted
  volary torture kill ffs2 --rounds 5 --served nfs
  volary torture replay fat12 'create /x; sync' --cut 3:-")]
pub(crate) struct Torture {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Runs scripts and looks at what power cuts leave of them
    #[command(after_help = "\
Examples:
  volary torture run fat12 --random 2 --steps 12
  volary torture run fat16 --pairs --part 7/500")]
    Run {
        #[arg(help = volumes_help())]
        volume: String,
        /// All pairs of operations, with and without a sync after each
        #[arg(long, group = "short")]
        pairs: bool,
        /// All sequences of three operations, with a sync at the end
        #[arg(long, group = "short")]
        triples: bool,
        /// Only each M-th pair, or sequence of three, from the N-th on
        #[arg(long, value_name = "N/M", requires = "short")]
        part: Option<String>,
        /// So many random scripts
        #[arg(long, value_name = "COUNT", default_value_t = 0)]
        random: u64,
        /// Operations in each
        #[arg(long, value_name = "COUNT", default_value_t = 60)]
        steps: usize,
        /// The first random script
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        seed: u64,
        /// Cuts recovery too, in one of 16 states, so many times within itself
        #[arg(long, value_name = "DEPTH", default_value_t = 0)]
        nested: usize,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Looks at one state again
    ///
    /// A run that finds a promise broken prints the command that does this.
    #[command(after_help = "\
Example:
  volary torture replay fat12 'create /x; sync' --cut 3:-")]
    Replay {
        /// The volume, as for run
        volume: String,
        /// The operations, with ; between them
        script: String,
        /// Where the power fails, and which of the sectors on their way are written
        #[arg(long, value_name = "EVENT:CHOICE")]
        cut: String,
        /// The same, of the recovery
        #[arg(long, value_name = "EVENT:CHOICE")]
        then: Vec<String>,
    },
    /// Kills a process that works on a volume, recovers that, and holds it to
    /// what the process had said; again and again
    ///
    /// The process has a device that loses what was not flushed when it is killed.
    #[command(after_help = "\
Examples:
  volary torture kill cedar --rounds 20
  volary torture kill ffs2 --rounds 5 --served nfs")]
    Kill {
        /// The volume, as for run
        volume: String,
        /// How often
        #[arg(long, value_name = "COUNT", default_value_t = 10)]
        rounds: u64,
        #[command(flatten)]
        work: Work,
        #[command(flatten)]
        by: By,
        /// Where the volume's image is made: in memory, if it can be
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// The process that is killed
    #[command(hide = true)]
    Load {
        /// The volume
        volume: String,
        /// Its image
        image: PathBuf,
        /// Serves the volume there, and does nothing to it
        #[arg(long, value_name = "DIR")]
        mount: Option<PathBuf>,
        #[command(flatten)]
        work: Work,
    },
}

/// The volumes there are, and what their names say.
fn volumes_help() -> String {
    let names: Vec<&str> = torture::VOLUMES.iter().map(|v| v.name).collect();
    format!(
        "The volume: {}. With -keeping, on a device that says that it keeps what it was given; \
         with -garbage, on a disk that leaves garbage; with -each, each change is committed",
        names.join(", ")
    )
}

/// How the process has the volume.
#[derive(clap::Args, Debug)]
struct By {
    /// The process serves the volume on a directory, and the operations are done there
    #[arg(long)]
    mounted: bool,
    /// The process is volary serve, and the operations are done by a client of it:
    /// what was acknowledged a commit time ago is there as well
    #[arg(long, value_name = "PROTOCOL", conflicts_with = "mounted")]
    served: Option<Protocol>,
    /// How long after the last change an image that is served has to hold it: the
    /// commit time, which is half a second, and a margin
    #[arg(long, value_name = "SECONDS", default_value_t = 3, requires = "served")]
    patience: u16,
}

impl By {
    fn served(&self) -> Option<Served> {
        let by = match self.served? {
            Protocol::Nfs => torture::Protocol::Nfs,
            Protocol::Smb => torture::Protocol::Smb,
        };
        let patience = Duration::from_secs(self.patience.into());
        Some(Served { by, patience })
    }
}

/// What a client of a served volume speaks.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Protocol {
    Nfs,
    Smb,
}

/// What is done to a volume whose process is killed.
#[derive(clap::Args, Debug)]
struct Work {
    /// Operations in each round
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    steps: usize,
    /// The first round's random script
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
}

#[derive(Serialize)]
struct KilledJson<'a> {
    volume: &'a str,
    kills: u64,
    acknowledged: u64,
    synced: u64,
}

#[derive(Serialize)]
struct TallyJson<'a> {
    volume: &'a str,
    scripts: u64,
    states: u64,
    recoveries: u64,
    nested: u64,
}

impl Torture {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        match &self.what {
            What::Run {
                volume,
                pairs,
                triples,
                part,
                random,
                steps,
                seed,
                nested,
                json,
            } => {
                let volume = find(volume)?;
                let part = part.as_deref().map_or(Ok((0, 1)), parse_part)?;
                let plan = Plan {
                    pairs: pairs.then_some(part),
                    triples: triples.then_some(part),
                    random: *random,
                    steps: *steps,
                    seed: *seed,
                    depth: depth(*nested),
                };
                if !pairs && !triples && *random == 0 {
                    let what = "nothing to run: --pairs, --triples, or --random COUNT";
                    return Err(Fail::usage(what));
                }
                let tally = torture::run(volume, &plan, |_| ());
                let tally = tally.map_err(|what| Fail::new(Exit::Failed, what))?;
                tell(volume, &tally, *json)
            }
            What::Replay {
                volume,
                script,
                cut,
                then,
            } => replay(find(volume)?, script, std::iter::once(cut).chain(then)),
            What::Kill {
                volume,
                rounds,
                work,
                by,
                dir,
                json,
            } => {
                let killed = kill(find(volume)?, *rounds, work, by, dir.as_deref())?;
                tell_killed(volume, &killed, *json)
            }
            What::Load {
                volume,
                image,
                mount,
                work,
            } => load(find(volume)?, image, mount.as_deref(), work),
        }
    }
}

fn replay<'a>(volume: &Volume, script: &str, cuts: impl Iterator<Item = &'a String>) -> Done<Exit> {
    let script: Ops = script.parse().map_err(Fail::usage)?;
    let cuts = cuts.map(|c| parse_cut(c)).collect::<Done<Vec<Cut>>>()?;
    let failed = |what: String| Fail::new(Exit::Failed, what);
    let mut explorer = Explorer::new(volume, depth(0).on(volume)).map_err(failed)?;
    let replayed = explorer.replay(&script, &cuts);
    replayed.map_err(|failure| failed(failure.what))?;
    out::Raw.write_all(b"the promises are kept\n")?;
    Ok(Exit::Done)
}

fn load(volume: &Volume, image: &Path, mount: Option<&Path>, work: &Work) -> Done<Exit> {
    // Whoever reads it no longer has no use for the rest.
    let mut say = |line: &str| {
        let _ = out::Raw.write_all(format!("{line}\n").as_bytes());
    };
    let done = torture::load(volume, image, mount, work.steps, work.seed, &mut say);
    done.map_err(|what| Fail::new(Exit::Failed, what))?;
    Ok(Exit::Done)
}

fn kill(volume: &Volume, rounds: u64, work: &Work, by: &By, dir: Option<&Path>) -> Done<Killed> {
    let dir = volary_bench::measure::Scratch::Memory.make(dir);
    let dir = dir.map_err(|e| Fail::new(Exit::Failed, format!("torture: {e:#}")))?;
    let way = match (by.served(), by.mounted) {
        (Some(served), _) => Way::Served(served),
        (None, false) => Way::Alone,
        (None, true) => {
            let mount = dir.path().join("mounted");
            std::fs::create_dir(&mount).map_err(|e| Fail::host("torture", e))?;
            Way::Mounted(mount)
        }
    };
    let plan = Kills {
        program: std::env::current_exe().map_err(|e| Fail::host("torture", e))?,
        image: dir.path().join("volume.img"),
        way,
        rounds,
        steps: work.steps,
        seed: work.seed,
    };
    let killed = torture::kills(volume, &plan, |_| ());
    killed.map_err(|what| Fail::new(Exit::Failed, what))
}

fn tell_killed(volume: &str, killed: &Killed, json: bool) -> Done<Exit> {
    let Killed {
        kills,
        acknowledged,
        synced,
    } = *killed;
    if json {
        let mut out = out::out();
        let row = KilledJson {
            volume,
            kills,
            acknowledged,
            synced,
        };
        out::json(&mut out, &row)?;
        out::end(out)?;
    } else {
        let line = format!(
            "{volume}: {kills} kills, {acknowledged} operations acknowledged, {synced} of them \
             syncs; all promises kept\n"
        );
        out::Raw.write_all(line.as_bytes())?;
    }
    Ok(Exit::Done)
}

fn depth(nested: usize) -> Depth {
    let few = Bounds {
        eager: 4,
        random: 8,
        garbage: false,
        seed: 0,
    };
    Depth {
        nested,
        nested_bounds: few,
        nested_each: 16,
        ..Depth::default()
    }
}

fn find(name: &str) -> Done<&'static Volume> {
    torture::volume(name).ok_or_else(|| {
        let known: Vec<&str> = torture::VOLUMES.iter().map(|v| v.name).collect();
        let name = volary::escape(name.as_bytes());
        let known = known.join(", ");
        Fail::usage(format!("'{name}' is no volume to torture: {known}"))
    })
}

fn parse_part(text: &str) -> Done<(usize, usize)> {
    let parts = text.split_once('/');
    let parts = parts.and_then(|(n, m)| Some((n.parse().ok()?, m.parse().ok()?)));
    parts.filter(|(n, m)| n < m).ok_or_else(|| {
        let text = volary::escape(text.as_bytes());
        Fail::usage(format!("--part: '{text}' is not N/M, N from 0 to below M"))
    })
}

fn parse_cut(text: &str) -> Done<Cut> {
    let wrong = || {
        let text = volary::escape(text.as_bytes());
        Fail::usage(format!("'{text}' is not EVENT:CHOICE, as in 17:0110"))
    };
    let (event, choice) = text.split_once(':').ok_or_else(wrong)?;
    Ok(Cut {
        event: event.parse().map_err(|_| wrong())?,
        choice: choice.parse().map_err(|_| wrong())?,
    })
}

fn tell(volume: &Volume, tally: &Tally, json: bool) -> Done<Exit> {
    if json {
        let mut out = out::out();
        let row = TallyJson {
            volume: volume.name,
            scripts: tally.scripts,
            states: tally.states,
            recoveries: tally.recoveries,
            nested: tally.nested,
        };
        out::json(&mut out, &row)?;
        out::end(out)?;
    } else {
        let line = format!("{}: {tally}; all promises kept\n", volume.name);
        out::Raw.write_all(line.as_bytes())?;
    }
    Ok(Exit::Done)
}
