//! Devices that fail: each request of a script in turn, once and for ever; and room
//! that is short by each page in turn. `VOLARY_TORTURE` says how many scripts.

use crate::plans::count;
use std::sync::Arc;
use volary::block::{Faulty, How, MemDevice, On, When};
use volary::torture::{Ops, Recovery, Volume, scripts, volume};
use volary::{BlockDevice, Kind};
use volary_sim::{Moment, Recovered, Subject, Traced};

/// Bytes of a file of a script, at most.
const SIZE_MAX: u64 = 3000;

pub(crate) fn script(volume: &Volume, seed: u64, steps: usize) -> Ops {
    let script = scripts::random(seed, steps, &volume.preset_tree().unwrap(), SIZE_MAX);
    script.with_names(volume.names)
}

/// Runs a script with requests failing, and holds what is left of the volume to
/// what it may rely on; false if there was no such request.
fn run_one(
    volume: &Volume,
    base: &[u8],
    script: &Ops,
    on: On,
    when: When,
    how: How,
) -> Result<bool, String> {
    let mem: Arc<dyn BlockDevice> = Arc::new(MemDevice::from_vec(base.to_vec()));
    let dev = Arc::new(Faulty::new(mem.clone()));
    dev.fail(on, when, how);
    let endured = volume.endure(script, dev.clone())?;
    let (When::Nth(k) | When::From(k)) = when;
    let reached = dev.seen(on) > k;
    // What cannot be read in either copy is damage.
    let unread = if on == On::Read {
        Kind::Corrupt
    } else {
        Kind::Io
    };
    let known = [
        unread,
        Kind::Io,
        Kind::NoSpace,
        Kind::ReadOnly,
        Kind::NotFound,
        Kind::Stale,
    ];
    if let Some(e) = endured.errors.iter().find(|e| !known.contains(e)) {
        return Err(format!("an operation answers {e:?}"));
    }
    if on != On::Read && reached && endured.errors.is_empty() {
        return Err("nobody was told".into());
    }
    let mended = volume.recover(mem.clone())?;
    let found = volume.look(mem)?;
    let steps = endured.history.after.len();
    let at = Moment {
        began: steps,
        ended: steps,
    };
    volume.judge(&Recovered::new(mended, found), &endured.history, at)?;
    Ok(reached)
}

/// Every request of a kind; the number of runs.
fn run_all(volume: &Volume, base: &[u8], seed: u64, steps: usize) -> u64 {
    let script = script(volume, seed, steps);
    let mut runs = 0;
    for (on, how) in [
        (On::Write, How::Io),
        (On::Write, How::Full),
        (On::Write, How::Torn(1)),
        (On::Flush, How::Io),
        (On::Read, How::Io),
    ] {
        for once in [true, false] {
            for k in 0.. {
                let when = if once { When::Nth(k) } else { When::From(k) };
                let name = volume.name;
                match run_one(volume, base, &script, on, when, how) {
                    Ok(true) => runs += 1,
                    Ok(false) => break,
                    Err(what) => {
                        panic!("{name}, script {seed}: '{script}', {on:?} {when:?} {how:?}: {what}")
                    }
                }
            }
        }
    }
    runs
}

/// Returns a volume that holds the preset: as it was left, and, where attaching is recovery,
/// with a log to be replayed.
fn bases(volume: &Volume) -> Vec<Vec<u8>> {
    let left = volume.make().unwrap();
    let mut all = vec![left.to_vec()];
    if volume.recovery == Recovery::Attach {
        let nothing: Ops = "create /passing; sync; unlink /passing; sync"
            .parse()
            .unwrap();
        let dev = Arc::new(Traced::new(left));
        volume.play(&nothing, &dev).unwrap();
        all.push(dev.disk().to_vec());
    }
    all
}

fn every_request_fails(name: &str, scripts: u64) {
    let volume = volume(name).unwrap();
    let mut runs = 0;
    for base in bases(volume) {
        for seed in 0..count(scripts) {
            runs += run_all(volume, &base, seed, 25);
        }
    }
    println!("{name}: {runs} runs");
    assert!(runs > 20);
}

#[test]
fn every_request_of_cedar_may_fail() {
    every_request_fails("cedar", 3);
    every_request_fails("cedar-each", 2);
}

#[test]
fn every_request_of_fat_may_fail() {
    every_request_fails("fat12", 2);
    every_request_fails("fat32", 1);
}

#[test]
fn every_request_of_ffs_may_fail() {
    every_request_fails("ffs1", 1);
    every_request_fails("ffs2", 1);
}

#[test]
fn every_request_of_v7_may_fail() {
    every_request_fails("v7", 1);
    every_request_fails("sysv", 1);
}
