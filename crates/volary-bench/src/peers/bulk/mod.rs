//! Bulk reads: `volary bulk` of images and of directories, cold, beside archivers, searchers,
//! other readers of images, and as many bytes read in sequence.
//!
//! | module | what |
//! |---|---|
//! | `sets` | the trees and images that are read |
//! | `aged` | how a volume comes to be nearly full and fragmented |
//! | `rivals` | who reads them |
//! | `cold` | empties the host's caches |

mod aged;
mod cold;
mod rivals;
mod sets;

pub use sets::Scale;

use super::finding::{Finding, PerFile, Row};
use super::task::Options;
use crate::measure::{Cost, Summary};
use crate::needs;
use anyhow::Result;
use cold::Cold;
use rivals::Rival;
use sets::{Set, Volume};

/// Most processor time that a file of an image takes, in microseconds.
const MICROS_MAX: f64 = 1.5;

/// Runs the comparison; `told` hears of each row as soon as it is there.
///
/// # Errors
/// If a program fails.
pub fn run(
    options: &Options,
    scale: &Scale,
    told: &mut dyn FnMut(&Finding),
) -> Result<Vec<Finding>> {
    let mut all = Vec::new();
    for set in sets::SETS.iter().filter(|set| options.wants(set.name)) {
        let found = match Volume::make(set, options, scale) {
            Ok(volume) => compare(set, &volume, options)?,
            Err(e) => {
                let (rival, why) = (set.name, needs::lacking(e)?);
                vec![Finding::missing(rival, why)]
            }
        };
        found.iter().for_each(&mut *told);
        all.extend(found);
    }
    Ok(all)
}

/// One who reads the set, and what that has cost.
struct Contender<'a> {
    rival: Rival<'a>,
    costs: Vec<Cost>,
    lacks: Option<String>,
}

/// Reads a set in rounds: all contenders after each other, each with cold caches.
fn compare(set: &'static Set, volume: &Volume, options: &Options) -> Result<Vec<Finding>> {
    let cold = Cold::new(volume.files_to_forget(), volume.files);
    let rivals = rivals::all(set, volume, &options.volary);
    let mut contenders: Vec<Contender<'_>> = rivals
        .into_iter()
        .map(|rival| Contender {
            rival,
            costs: Vec::new(),
            lacks: None,
        })
        .collect();
    for _ in 0..options.rounds.max(1) {
        for one in &mut contenders {
            if one.lacks.is_some() {
                continue;
            }
            cold.empty()?;
            match (one.rival.read)() {
                Ok(cost) => one.costs.push(cost),
                Err(e) => one.lacks = Some(needs::lacking(e)?),
            }
        }
    }
    Ok(findings(set, volume, contenders))
}

fn findings(set: &'static Set, volume: &Volume, contenders: Vec<Contender<'_>>) -> Vec<Finding> {
    let mut contenders = contenders.into_iter();
    let Some(first) = contenders.next() else {
        return Vec::new();
    };
    let ours = Summary::of(&first.costs);
    let mut all: Vec<Finding> = contenders
        .map(|one| match one.lacks {
            Some(why) => Finding::missing(one.rival.name, why),
            None => {
                let theirs = Summary::of(&one.costs);
                Finding::Row(Row {
                    task: set.name.into(),
                    rival: one.rival.name.into(),
                    ours,
                    theirs,
                    ratio: theirs.median / ours.median,
                    aim: one.rival.aim,
                    memory_aim: None,
                })
            }
        })
        .collect();
    let micros = ours.cpu * 1e6 / volume.files.max(1) as f64;
    let is_small = set.is_of_small_files() && set.is_image();
    all.push(Finding::PerFile(PerFile {
        task: set.name.into(),
        files: volume.files,
        micros,
        micros_max: is_small.then_some(MICROS_MAX),
    }));
    all
}
