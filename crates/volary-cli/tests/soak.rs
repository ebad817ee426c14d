//! The soak: 16 clients of NFS, SMB and a mount use one volume, while the servers are
//! killed and started again. No byte that was flushed and acknowledged is lost; then,
//! with the servers left alone, neither their memory nor their descriptors grow.
//!
//! Runs with `VOLARY_SOAK` set to minutes for each volume (`cargo xtask soak servers`).

#[path = "soak/attack.rs"]
mod attack;
#[path = "soak/client.rs"]
mod client;
#[path = "soak/server.rs"]
mod server;

use client::{Client, Kind};
use server::{Server, Use};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long the servers run before they are killed.
const RUN: Duration = Duration::from_secs(12);
/// Between two looks at what the servers use.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Steps until tables that are bounded are full: the FAT driver remembers the last 8,192
/// entries that were made, NFS's server the answers to 2,048 calls.
const WARM: u64 = 10_000;
/// How much more memory, in KiB, may be in use by chance: by more calls at once, and what
/// the allocator keeps of that. A leak of 100 bytes in each step shows in 30,000 steps.
const SLACK: u64 = 1024;

/// Minutes for each volume, if the soak is to run.
fn minutes() -> Option<f64> {
    std::env::var("VOLARY_SOAK").ok()?.parse().ok()
}

#[test]
fn servers_of_a_fat_volume_lose_and_keep_nothing() {
    soak("disk.img");
}

#[test]
fn servers_of_a_directory_of_the_host_lose_and_keep_nothing() {
    soak("host:dir");
}

#[expect(clippy::disallowed_methods, reason = "the soak goes by the clock")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the soak goes by the clock")]
fn rest(time: Duration) {
    thread::sleep(time);
}

/// What all clients go by.
#[derive(Default)]
struct Signals {
    /// Nobody begins anything.
    pause: AtomicBool,
    end: AtomicBool,
    /// Clients that stand still.
    still: AtomicU64,
    done: AtomicU64,
}

fn soak(volume: &str) {
    let Some(minutes) = minutes() else {
        println!("skipped: VOLARY_SOAK is not set");
        return;
    };
    client::be_quiet();
    let time = Duration::from_secs_f64(minutes * 60.0);
    let server = Arc::new(Server::new(volume));
    let signals = Arc::new(Signals::default());
    let kinds = [Kind::Nfs, Kind::Smb, Kind::Fuse, Kind::Nfs, Kind::Smb];
    let threads: Vec<_> = (0..16)
        .map(|number| {
            let (server, signals) = (Arc::clone(&server), Arc::clone(&signals));
            let kind = kinds[number % kinds.len()];
            let name = format!("client {number} ({kind:?})");
            let client = move || Client::new(number, kind, server).run(&signals);
            thread::Builder::new().name(name).spawn(client).unwrap()
        })
        .collect();
    let count = threads.len() as u64;
    let begun = now();
    while begun.elapsed() < time.mul_f64(0.5) && !threads.iter().any(|t| t.is_finished()) {
        rest(RUN);
        server.restart();
    }
    let died = || threads.iter().any(|t| t.is_finished());
    let uses = looks(&server, &signals, (begun, time), (count, &died));
    signals.end.store(true, Ordering::SeqCst);
    for client in threads {
        let name = client.thread().name().unwrap_or_default().to_owned();
        let outcome = client.join();
        assert!(outcome.is_ok(), "{name} has lost something, or was refused");
    }
    println!(
        "{volume}: {} steps, {} restarts; memory and descriptors: {uses:?}",
        signals.done.load(Ordering::SeqCst),
        server.restarts(),
    );
    server.stop();
    assert_eq!(growth(&uses), None);
}

/// Returns what the servers use when all clients stand still, again and again.
fn looks(
    server: &Server,
    signals: &Signals,
    (begun, time): (Instant, Duration),
    (count, died): (u64, &dyn Fn() -> bool),
) -> Vec<Use> {
    let mut uses = Vec::new();
    let before = signals.done.load(Ordering::SeqCst);
    while begun.elapsed() < time && !died() {
        rest(LOOK_EVERY);
        signals.pause.store(true, Ordering::SeqCst);
        let paused = now();
        while signals.still.load(Ordering::SeqCst) < count && !died() {
            assert!(paused.elapsed() < 2 * client::PATIENCE, "a client hangs");
            rest(Duration::from_millis(20));
        }
        // NFS's server keeps opens for some seconds, and the kernel what it closes.
        rest(Duration::from_secs(5));
        uses.push(server.used(signals.done.load(Ordering::SeqCst) - before));
        signals.pause.store(false, Ordering::SeqCst);
    }
    uses
}

/// After a third for warming up, and [`WARM`] steps, at most one part in a hundred more
/// memory, and [`SLACK`], and no more descriptors. What grows, if anything does.
fn growth(uses: &[Use]) -> Option<String> {
    let cold = uses.iter().take_while(|u| u.steps < WARM).count();
    let warm = &uses[cold.max(uses.len() / 3)..];
    if warm.len() < 4 {
        println!("too short to tell whether anything grows");
        return None;
    }
    let (early, late) = warm.split_at(warm.len() / 2);
    // The least of each half: calls that are under way at a look add to it, nothing
    // takes from it.
    let least = |of: fn(&Use) -> u64, part: &[Use]| part.iter().map(of).min().unwrap_or(0);
    let (was, is) = (least(|u| u.memory, early), least(|u| u.memory, late));
    if is > was + was / 100 + SLACK {
        return Some(format!("memory grew from {was} to {is} KiB"));
    }
    let (was, is) = (
        least(|u| u.descriptors, early),
        least(|u| u.descriptors, late),
    );
    (is > was).then(|| format!("descriptors grew from {was} to {is}"))
}

/// Returns what a server uses after each 500 steps of 60,000, in looks that chance disturbs:
/// `memory` and `descriptors` after so many steps, and what is under way.
fn looked(memory: impl Fn(u64) -> u64, descriptors: impl Fn(u64) -> u64) -> Vec<Use> {
    let mut rng = volary_testkit::rng::Rng::new(1);
    let look = |number| {
        let steps = number * 500;
        Use {
            steps,
            memory: 12_000 + memory(steps) + rng.below(400),
            descriptors: 60 + descriptors(steps) + rng.below(4),
        }
    };
    (0..120_u64).map(look).collect()
}

#[test]
fn growth_is_told_from_chance() {
    // Tables that fill up in the first steps are no growth.
    let fills = |steps: u64| steps.min(WARM) / 4;
    assert_eq!(growth(&looked(fills, |_| 0)), None);
    let leaks = |steps: u64| steps / 10;
    let told = growth(&looked(leaks, |_| 0)).expect("a leak of 100 bytes in each step");
    assert!(told.contains("memory"), "{told}");
    let told = growth(&looked(fills, |steps| steps / 1000)).expect("a leak of descriptors");
    assert!(told.contains("descriptors"), "{told}");
}
