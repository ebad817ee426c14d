//! Tests of the tests: each planted mistake is caught, and the same script
//! without it stands.

use super::cuts::volume;
use super::script::{Op, Script, script};
use super::subject::Volume;
use crate::mistakes::Mistake;
use crate::space::delta::Delta;
use std::collections::HashSet;
use std::sync::Arc;
use volary_sim::rng::Rng;
use volary_sim::{
    Bounds, Choice, Cow, Depth, Disk, Explorer, Fate, Recovered, Subject, Traced, crash_points,
};

/// Scripts that are tried for each mistake and each way to commit.
const SCRIPTS: u64 = 6;

/// What is done before, and what is looked at.
pub(super) struct Trial {
    pub(super) lap: Script,
    pub(super) script: Script,
}

/// Files that are changed in turn, so that each page was logged last about a
/// whole round of the log ago.
const TURNS: u8 = 34;

fn in_turn(turns: u8, ops: impl Fn(u8) -> Op) -> Trial {
    let files = || (5..5 + turns).chain(5..5 + turns);
    let mut lap = vec![Op::Mkdir(0), Op::Mkdir(1)];
    lap.extend(files().take(turns.into()).map(|n| Op::Put(n, 100)));
    lap.extend(files().take(turns.into()).map(|n| Op::Append(n, 700)));
    Trial {
        lap: Script(lap),
        script: Script(files().take(20).map(ops).collect()),
    }
}

fn at_random(seed: u64) -> Trial {
    Trial {
        lap: script(55, 40, true),
        script: script(seed, 14, true),
    }
}

/// Returns what is tried, the likeliest first.
fn trials(mistake: Mistake) -> Vec<Trial> {
    let alone = |script| Trial {
        lap: Script(Vec::new()),
        script,
    };
    let linked = vec![Op::Put(0, 100), Op::Link(0, 1), Op::Unlink(0), Op::Sync];
    let mut all = match mistake {
        Mistake::MapWithoutParts => vec![alone(pieces())],
        Mistake::HeadLosesLink => vec![alone(Script(linked))],
        Mistake::FreeRestAtCut => vec![alone(cut_and_grown())],
        Mistake::UntoldStaysAway => vec![more_than_is_told()],
        Mistake::ChainGoesWithName => vec![in_many_pieces()],
        Mistake::MapCopiesAtOnce => {
            let big = (0..60).map(|n| Op::Put(n % 4, 12_000));
            vec![alone(Script(big.collect()))]
        }
        Mistake::LeaderGoesAtDelete => [31, 28, 25, 22]
            .map(|turns| in_turn(turns, Op::Unlink))
            .into(),
        _ => vec![
            in_turn(TURNS, |n| Op::Append(n, 700)),
            in_turn(TURNS, Op::Unlink),
        ],
    };
    all.extend((1000..1000 + SCRIPTS).map(at_random));
    all
}

/// Returns the few choices at each crash point that are enough: of a few sectors each; else
/// nothing, all, some of what came first, all but one, a few at random.
pub(super) fn few(count: usize, rng: &mut Rng) -> Vec<Choice> {
    let fates = |kept: &mut dyn FnMut(usize) -> bool| {
        let fate = |i| if kept(i) { Fate::Kept } else { Fate::Lost };
        Choice((0..count).map(fate).collect())
    };
    if count <= 4 {
        return (0..1 << count)
            .map(|set| fates(&mut |i| set >> i & 1 == 1))
            .collect();
    }
    let mut all = vec![fates(&mut |_| false), fates(&mut |_| true)];
    for _ in 0..2 {
        let at = rng.index(count.max(1));
        all.push(fates(&mut |i| i < at));
        all.push(fates(&mut |i| i != at));
        all.push(fates(&mut |_| rng.one_in(2)));
    }
    all
}

/// Looks at a few states of each crash point of a script.
///
/// # Errors
/// What is wrong with the first that is.
fn try_script(volume: &Volume, disk: &Disk, script: &Script) -> Result<(), String> {
    let traced = Arc::new(Traced::new(disk.clone()));
    let history = volume.play(script, &traced)?;
    let mut rng = Rng::new(7);
    let mut seen = HashSet::new();
    let all = crash_points(&traced.take(), false);
    // What came before the script is not judged.
    for point in all.iter().filter(|f| f.moment.began > 0) {
        for choice in few(point.in_flight.len(), &mut rng) {
            let disk = point.disk_after(&choice);
            if seen.insert((disk.hash(), point.moment)) {
                let cow = Arc::new(Cow::new(disk));
                let mended = volume.recover(cow.clone())?;
                let found = volume.look(cow)?;
                let found = Recovered::new(mended, found);
                volume.judge(&found, &history, point.moment)?;
            }
        }
    }
    Ok(())
}

/// What recovery does wrong is seen when it is cut.
fn try_recovery(volume: &Volume) -> Result<(), String> {
    let bounds = Bounds {
        eager: 4,
        random: 2,
        garbage: false,
        seed: 3,
    };
    let depth = Depth {
        bounds,
        nested: 1,
        nested_bounds: bounds,
        nested_each: 1,
        lies: false,
    };
    let mut explorer = Explorer::new(volume, depth)?;
    let explored = explorer.explore(&script(1000, 16, true));
    explored.map_err(|failure| failure.what)
}

/// Files that grow in turns are in many pieces.
fn pieces() -> Script {
    let mut ops = Vec::new();
    for _ in 0..6 {
        ops.extend([Op::Append(0, 600), Op::Append(1, 600)]);
    }
    let mut all = vec![Op::Put(0, 100), Op::Put(1, 100)];
    all.append(&mut ops);
    all.push(Op::Sync);
    Script(all)
}

/// A file in more pieces than a record can tell of: all room is taken, then every
/// other one of many small files goes, and one takes their place.
fn more_than_is_told() -> Trial {
    let script = vec![Op::Put(0, 60_000), Op::Sync, Op::Put(1, 100), Op::Sync];
    Trial {
        lap: riddle(),
        script: Script(script),
    }
}

/// Takes all room, and gives it back in holes of two pages.
fn riddle() -> Script {
    let small = || 5..5 + 2 * Delta::most(512) as u8 + 10;
    let mut lap = vec![Op::Mkdir(0), Op::Mkdir(1)];
    lap.extend(small().map(|n| Op::Put(n, 100)));
    for (first, len) in [(200, 60_000), (210, 6000), (220, 1500), (230, 100)] {
        lap.extend((first..first + 10).map(|n| Op::Put(n, len)));
    }
    lap.extend(small().step_by(2).map(Op::Unlink));
    Script(lap)
}

/// A volume with the shortest log that [`riddle`] fills.
pub(super) fn riddled(volume: &mut Volume) {
    volume.make = "page=512,name-table=128k,log=186k";
    volume.size = 944 << 10;
}

/// Returns a file in more pieces than parts that one record has could tell of, which is cut,
/// grows, becomes an older version, and goes.
pub(super) fn in_many_pieces() -> Trial {
    let script = vec![
        Op::Put(0, 60_000),
        Op::Sync,
        Op::Cut(0, 1999),
        Op::Append(0, 50_000),
        Op::Keep(0, 2),
        Op::Rewrite(0, 3000),
        Op::Sync,
        Op::Append(0, 5000),
        Op::Rename(0, 1),
        Op::Unlink(1),
        Op::Sync,
    ];
    Trial {
        lap: riddle(),
        script: Script(script),
    }
}

/// A file is cut, and grows again before that is durable.
fn cut_and_grown() -> Script {
    let cut = vec![Op::Cut(0, 900), Op::Append(0, 300), Op::Sync];
    Script([vec![Op::Put(0, 1500), Op::Sync], cut].concat())
}

/// Prepares a volume on which the mistake shows.
fn shape(volume: &mut Volume, mistake: Mistake) {
    match mistake {
        Mistake::OldMap | Mistake::MapOfNextCommit | Mistake::MapWithoutParts => {
            volume.make = super::cuts::SAVED;
        }
        Mistake::UntoldStaysAway => {
            volume.make = "page=512,name-table=128k,log=642k";
            volume.size = 1400 << 10;
        }
        Mistake::ChainGoesWithName => riddled(volume),
        // Big files are in the second sector of a page of the map.
        Mistake::MapCopiesAtOnce => {
            volume.make = "page=1024,name-table=96k,log=372k";
            volume.size = 6 << 20;
        }
        _ => {}
    }
}

/// Returns what tells of a mistake, if anything does.
fn catch(mistake: Mistake, attach: &'static str) -> Option<String> {
    let mut volume = Volume {
        mistake: Some(mistake),
        ..volume(attach)
    };
    shape(&mut volume, mistake);
    match mistake {
        Mistake::LogEmptiedFirst => return try_recovery(&volume).err(),
        Mistake::UnsealedTooLate => return super::sums::patch(volume).err(),
        Mistake::CopyWholeTooSoon => return super::remote::copy(volume).err(),
        _ => {}
    }
    let disk = volume.make().unwrap();
    trials(mistake).into_iter().find_map(|trial| {
        volume.lap = trial.lap;
        try_script(&volume, &disk, &trial.script).err()
    })
}

fn all_are_caught(mistakes: &[Mistake]) {
    let mut missed = Vec::new();
    let only = std::env::var("VOLARY_MISTAKE").ok();
    let wanted = |m: &&Mistake| only.as_ref().is_none_or(|o| *o == format!("{m:?}"));
    for mistake in mistakes.iter().filter(wanted) {
        let found = ["commit=0", ""]
            .into_iter()
            .find_map(|attach| catch(*mistake, attach));
        match found {
            Some(what) => {
                let short: String = what.chars().take(100).collect();
                println!("{mistake:?}: {short}");
            }
            None => missed.push(*mistake),
        }
    }
    assert!(
        missed.is_empty(),
        "not caught: {missed:?}; VOLARY_MISTAKE= names one to try alone"
    );
}

#[test]
fn what_catches_mistakes_finds_none_where_none_is() {
    for attach in ["commit=0", ""] {
        let mut volume = volume(attach);
        let disk = volume.make().unwrap();
        for trial in trials(Mistake::TagByEnd).into_iter().take(4) {
            volume.lap = trial.lap;
            try_script(&volume, &disk, &trial.script).unwrap();
        }
        volume.lap = Script(Vec::new());
        for script in [pieces(), cut_and_grown()] {
            try_script(&volume, &disk, &script).unwrap();
        }
    }
}

#[test]
fn what_catches_mistakes_with_the_logged_map_finds_none_where_none_is() {
    for mistake in [Mistake::UntoldStaysAway, Mistake::MapCopiesAtOnce] {
        let mut volume = volume("");
        shape(&mut volume, mistake);
        let disk = volume.make().unwrap();
        let trial = trials(mistake).swap_remove(0);
        volume.lap = trial.lap;
        try_script(&volume, &disk, &trial.script).unwrap();
    }
}

#[test]
fn a_file_in_many_pieces_stands_cuts() {
    for attach in ["commit=0", ""] {
        let mut volume = volume(attach);
        riddled(&mut volume);
        let disk = volume.make().unwrap();
        let trial = in_many_pieces();
        volume.lap = trial.lap;
        try_script(&volume, &disk, &trial.script).unwrap();
    }
}

#[test]
fn the_first_mistakes_are_caught() {
    all_are_caught(&Mistake::ALL[..9]);
}

#[test]
fn the_next_mistakes_are_caught() {
    all_are_caught(&Mistake::ALL[9..18]);
}

#[test]
fn the_last_mistakes_are_caught() {
    all_are_caught(&Mistake::ALL[18..30]);
}

#[test]
fn mistakes_with_the_logged_map_are_caught() {
    all_are_caught(&Mistake::ALL[30..]);
}
