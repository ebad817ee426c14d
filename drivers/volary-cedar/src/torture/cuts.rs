//! No state that a cut may leave loses what was promised.
//! `VOLARY_TORTURE` says how many scripts of each kind.

use super::script::{Script, script, with_versions};
use super::subject::Volume;
use volary_sim::{Bounds, Depth, Explorer, Tally};

/// As a volume of releases before, whose map is not logged.
pub(super) const SAVED: &str = "page=512,name-table=48k,log=186k,map=saved";

/// Pages of a sector, the shortest log that there can be.
pub(super) fn volume(attach: &'static str) -> Volume {
    Volume {
        make: "page=512,name-table=48k,log=186k",
        size: 700 << 10,
        attach,
        mistake: None,
        warm: script(77, 30, true),
        lap: Script(Vec::new()),
    }
}

/// Returns how far to go in CI.
pub(super) fn depth(garbage: bool) -> Depth {
    let bounds = Bounds {
        eager: 6,
        random: 6,
        garbage,
        seed: 1,
    };
    Depth {
        bounds,
        nested: 1,
        nested_bounds: Bounds {
            eager: 3,
            random: 2,
            ..bounds
        },
        nested_each: 150,
        lies: false,
    }
}

fn scripts(default: u64) -> u64 {
    let asked = std::env::var("VOLARY_TORTURE").ok();
    asked.and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn torture(volume: &Volume, depth: Depth, scripts: impl Iterator<Item = Script>) -> Tally {
    let mut explorer = Explorer::new(volume, depth).unwrap();
    for script in scripts {
        explorer
            .explore(&script)
            .unwrap_or_else(|failure| panic!("{failure}"));
    }
    println!("{}", explorer.tally());
    explorer.tally()
}

#[test]
fn a_commit_with_each_change_stands_every_cut() {
    let volume = volume("commit=0");
    let scripts = (0..scripts(2)).map(|seed| script(seed, 12, true));
    let tally = torture(&volume, depth(false), scripts);
    assert!(tally.states > 1000 && tally.nested > 0, "{tally}");
}

#[test]
fn gathered_changes_stand_every_cut() {
    let volume = volume("");
    let scripts = (100..100 + scripts(6)).map(|seed| script(seed, 30, true));
    let tally = torture(&volume, depth(false), scripts);
    assert!(tally.states > 300, "{tally}");
}

#[test]
fn a_map_that_is_not_logged_stands_every_cut() {
    for (attach, len) in [("commit=0", 10), ("", 30)] {
        let volume = Volume {
            make: SAVED,
            ..volume(attach)
        };
        let scripts = (700..700 + scripts(2)).map(|seed| script(seed, len, true));
        let tally = torture(&volume, depth(false), scripts);
        assert!(tally.states > 100, "{tally}");
    }
}

/// A page of the map is for 3776 pages: here there are two, and big files are in
/// the second.
#[test]
fn a_map_of_more_than_one_page_stands_every_cut() {
    for (attach, len) in [("commit=0", 10), ("", 30)] {
        let volume = Volume {
            size: 2 << 20,
            ..volume(attach)
        };
        let scripts = (800..800 + scripts(2)).map(|seed| script(seed, len, true));
        let tally = torture(&volume, depth(false), scripts);
        assert!(tally.states > 100, "{tally}");
    }
}

#[test]
fn sectors_that_were_written_badly_are_told() {
    let volume = volume("commit=0");
    let scripts = (200..200 + scripts(1)).map(|seed| script(seed, 10, false));
    let tally = torture(&volume, depth(true), scripts);
    assert!(tally.states > 1000, "{tally}");
}

#[test]
fn files_with_checksums_stand_every_cut() {
    let volume = |attach| super::sums::with_sums(volume(attach));
    let each = (400..400 + scripts(1)).map(|seed| script(seed, 10, true));
    let tally = torture(&volume("commit=0"), depth(false), each);
    assert!(tally.states > 300, "{tally}");
    let gathered = (500..500 + scripts(2)).map(|seed| script(seed, 30, true));
    torture(&volume(""), depth(false), gathered);
    let versions = (600..600 + scripts(1)).map(|seed| with_versions(seed, 30));
    torture(&volume(""), depth(false), versions);
}

/// Runs that go on under the leader's page, in more parts than one record could have. Each
/// state takes long: unless scripts are asked for, the few that `caught` looks at are all.
#[test]
fn a_file_in_many_pieces_stands_every_cut() {
    let trial = super::caught::in_many_pieces();
    for (attach, _) in ["commit=0", ""].into_iter().zip(0..scripts(0)) {
        let mut volume = volume(attach);
        super::caught::riddled(&mut volume);
        volume.warm = trial.lap.clone();
        let tally = torture(&volume, depth(false), std::iter::once(trial.script.clone()));
        assert!(tally.states > 100, "{tally}");
    }
}

#[test]
fn versions_stand_every_cut() {
    for (attach, len) in [("commit=0", 10), ("", 30)] {
        let scripts = (300..300 + scripts(2)).map(|seed| with_versions(seed, len));
        let tally = torture(&volume(attach), depth(false), scripts);
        assert!(tally.states > 100, "{tally}");
    }
}
