//! The volumes that `volary torture` knows, one a row.

mod kills;
mod moment;
mod mounted;
mod served;

pub use kills::{Killed, Kills, Way, kills, load};
pub use served::{Protocol, Served};

use std::ops::Range;
use volary_cedar::CEDAR;
use volary_cedar::Layout;
use volary_core::BlockDevice;
use volary_fat::FAT;
use volary_ffs::FFS;
use volary_sim::SECTOR;
pub use volary_sim::{
    Bounds, Choice, Cut, Depth, Explorer, Failure, Op, Ops, Progress, Promise, Recovery, Tally,
    Volume, scripts,
};
use volary_v7::V7;

/// The most bytes of a file in a random script: some clusters.
pub const SIZE_MAX: u64 = 8192;

/// A FAT volume with clusters of a sector; other rows are based on it.
const FAT_ROW: Volume = Volume {
    name: "fat12",
    format: &FAT,
    kind: "fat12",
    size: 100 << 10,
    make: "cluster=512,root-entries=64",
    attach: "",
    own: &[],
    preset: scripts::PRESET,
    names: 255,
    turns: 0,
    recovery: Recovery::Preen,
    promise: Promise::Synced,
    dirty: Some("dirty"),
    synchronous: false,
    keeping: false,
    garbage: false,
    between: None,
    aside: None,
};

/// A Cedar volume with pages of a sector, and the shortest possible log. Changes are gathered until
/// a sync.
const CEDAR_ROW: Volume = Volume {
    name: "cedar",
    format: &CEDAR,
    kind: "cedar",
    size: 400 << 10,
    make: "page=512,name-table=24k,log=186k",
    recovery: Recovery::Attach,
    promise: Promise::Prefix,
    dirty: None,
    aside: Some(cedar_log),
    ..FAT_ROW
};

/// Returns the log of a Cedar volume. Recovery leaves old records in it, with a new epoch. Later
/// recoveries and checks read them, but find that none counts.
fn cedar_log(dev: &dyn BlockDevice) -> volary_core::Result<Range<u64>> {
    let layout = Layout::read(dev)?;
    let sector = |page| layout.offset(page) / SECTOR as u64;
    Ok(sector(layout.log)..sector(layout.log + layout.log_len()))
}

/// A UFS1 volume with blocks of 4096 bytes, in small groups.
const FFS_ROW: Volume = Volume {
    name: "ffs1",
    format: &FFS,
    kind: "ffs1",
    size: 400 << 10,
    make: "block=4096,fragment=512,density=4096",
    ..FAT_ROW
};

/// A volume of the Seventh Edition.
const V7_ROW: Volume = Volume {
    name: "v7",
    format: &V7,
    kind: "v7",
    size: 200 << 10,
    make: "inodes=128",
    names: 14,
    ..FAT_ROW
};

/// All volumes, with their names for the command line.
pub const VOLUMES: &[Volume] = &[
    FAT_ROW,
    Volume {
        name: "fat12-keeping",
        keeping: true,
        ..FAT_ROW
    },
    Volume {
        name: "fat16",
        kind: "fat16",
        size: 2200 << 10,
        ..FAT_ROW
    },
    Volume {
        name: "fat32",
        kind: "fat32",
        size: 300 << 10,
        make: "cluster=512,small",
        ..FAT_ROW
    },
    Volume {
        name: "fat32-keeping",
        kind: "fat32",
        size: 300 << 10,
        make: "cluster=512,small",
        keeping: true,
        ..FAT_ROW
    },
    FFS_ROW,
    Volume {
        name: "ffs1-old",
        make: "old,order=big,block=4096,fragment=1024,density=4096",
        ..FFS_ROW
    },
    Volume {
        name: "ffs2",
        kind: "ffs2",
        size: 600 << 10,
        make: "block=4096,fragment=512,density=2048",
        ..FFS_ROW
    },
    Volume {
        name: "ffs1-sync",
        attach: "sync",
        synchronous: true,
        ..FFS_ROW
    },
    Volume {
        name: "ffs2-quota",
        kind: "ffs2",
        size: 600 << 10,
        make: "quota,block=4096,fragment=512,density=2048",
        own: &["/quota.user", "/quota.group"],
        ..FFS_ROW
    },
    Volume {
        name: "ffs1-old-quota",
        make: "quota,old,order=big,block=4096,fragment=1024,density=4096",
        own: &["/quotas", "/quota.group"],
        ..FFS_ROW
    },
    Volume {
        name: "ffs2-hashes",
        kind: "ffs2",
        size: 600 << 10,
        make: "hashes,block=4096,fragment=512,density=2048",
        ..FFS_ROW
    },
    Volume {
        name: "ffs1-clusters",
        make: "block=4096,fragment=512,density=4096,maxcontig=3",
        turns: 4096,
        ..FFS_ROW
    },
    Volume {
        name: "ffs2-clusters",
        kind: "ffs2",
        size: 600 << 10,
        make: "block=4096,fragment=512,density=2048,order=big",
        turns: 4096,
        ..FFS_ROW
    },
    V7_ROW,
    Volume {
        name: "sysv",
        kind: "sysv",
        make: "inodes=128,order=big",
        ..V7_ROW
    },
    Volume {
        name: "v7-sync",
        attach: "sync",
        synchronous: true,
        ..V7_ROW
    },
    CEDAR_ROW,
    Volume {
        name: "cedar-each",
        attach: "commit=0",
        ..CEDAR_ROW
    },
    Volume {
        name: "cedar-garbage",
        garbage: true,
        ..CEDAR_ROW
    },
];

/// Returns the volume of this name.
pub fn volume(name: &str) -> Option<&'static Volume> {
    VOLUMES.iter().find(|v| v.name == name)
}

/// The extent of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// `(part, of)` runs every `of`-th pair of operations, from number `part` on: (0, 1) is all of
    /// them.
    pub pairs: Option<(usize, usize)>,
    /// The same for sequences of three operations that end with a sync.
    pub triples: Option<(usize, usize)>,
    /// The number of random scripts.
    pub random: u64,
    /// The number of operations in each.
    pub steps: usize,
    /// The first seed.
    pub seed: u64,
    /// Which crash states to explore.
    pub depth: Depth,
}

/// Shrinks a failing script: leaves out each operation without which there still is a failure.
/// Returns the last failure.
///
/// # Errors
/// In words, if a disk cannot be made.
fn shrunk(
    volume: &Volume,
    depth: Depth,
    script: Ops,
    failure: Box<Failure>,
) -> Result<Box<Failure>, String> {
    let (mut script, mut failure) = (script, failure);
    let mut at = script.0.len();
    while at > 0 {
        at -= 1;
        let mut less = script.clone();
        less.0.remove(at);
        if let Err(found) = Explorer::new(volume, depth)?.explore(&less) {
            (script, failure) = (less, found);
        }
    }
    Ok(failure)
}

/// Runs a plan on a volume; calls `tell` with the progress.
///
/// # Errors
/// The first state in which a promise was not kept, or why the run could not be done.
pub fn run(volume: &Volume, plan: &Plan, mut tell: impl FnMut(&Tally)) -> Result<Tally, String> {
    let mut total = Tally::default();
    let tree = volume.preset_tree()?;
    let depth = plan.depth.on(volume);
    let fitting = |script| match volume.garbage {
        true => scripts::without_overwriting(script, &tree),
        false => script,
    };
    let short = [
        (plan.pairs, scripts::pairs()?),
        (plan.triples, scripts::triples()?),
    ];
    for (part, all) in short {
        let Some((part, of)) = part else { continue };
        let mut explorer = Explorer::new(volume, depth)?;
        for script in all.iter().skip(part).step_by(of.max(1)) {
            explorer
                .explore(&fitting(script.clone()))
                .map_err(|f| f.to_string())?;
            tell(&explorer.tally());
        }
        total.add(&explorer.tally());
    }
    for seed in (plan.seed..).take(usize::try_from(plan.random).unwrap_or(usize::MAX)) {
        let script = match volume.turns {
            0 => scripts::random(seed, plan.steps, &tree, SIZE_MAX),
            step => scripts::in_turns(seed, plan.steps, &tree, step),
        };
        let script = fitting(script);
        // Knowledge of one script's disk states does not help the next script.
        let mut explorer = Explorer::new(volume, depth)?;
        if let Err(failure) = explorer.explore(&script) {
            return Err(shrunk(volume, depth, script, failure)?.to_string());
        }
        total.add(&explorer.tally());
        tell(&total);
    }
    Ok(total)
}
