//! Layers that change nothing are not noticed: the conformance suite under each.

use crate::{Rig, n};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use volary_core::{Caps, Fs, Result, SetAttr, Time};
use volary_layers::{
    Audit, CaseFold, Count, Crypt, CryptCost, DirCache, Fault, IdMap, Munge, Outside, Pace, Quota,
    QuotaBounds, Side, Squash, Subtree, Symlinks, Throttle, Trace,
};
use volary_mem::{Mem, MemOptions};
use volary_testkit::Suite;
use volary_testkit::diff::Diff;

fn holds_under(name: &str, layer: fn(Fs) -> Fs) {
    holds_on(8 << 20, name, layer);
}

fn holds_on(size: u64, name: &str, layer: fn(Fs) -> Fs) {
    let make = move || Mem::attach(MemOptions::sized(size), Time::EPOCH).unwrap();
    Suite::new("mem", make).under(name, layer).run();
}

/// Small: cases fill volumes, and ciphers without optimisation take their time.
const CRYPT_SIZE: u64 = 5 << 20;

#[test]
fn the_suite_holds_under_count() {
    holds_under("count", |fs| Arc::new(Count::new(fs)));
}

#[test]
fn the_suite_holds_under_trace() {
    holds_under("trace", |fs| Arc::new(Trace::new(fs, Arc::new(|_| {}))));
}

#[test]
fn the_suite_holds_under_faults_that_never_come() {
    holds_under("fault", |fs| {
        Arc::new(Fault::parse(fs, "any%0,ioctl@1000000").unwrap())
    });
}

#[test]
fn the_suite_holds_in_a_subtree() {
    holds_under("subtree", |fs| {
        let rig = Rig::over(fs.clone());
        let set = SetAttr::default();
        fs.mkdir(&rig.cx(), fs.root(), n("top"), &set).unwrap();
        Arc::new(Subtree::new(fs, b"/top").unwrap())
    });
}

#[test]
fn the_suite_holds_with_all_ids_moved() {
    holds_under("idmap", |fs| {
        let words = "u:0:100000:100000,g:0:200000:100000,squash:7:7";
        Arc::new(IdMap::parse(fs, words).unwrap())
    });
}

#[test]
fn the_suite_holds_under_squash() {
    holds_under("squash", |fs| Arc::new(Squash::parse(fs, "7:7").unwrap()));
}

#[test]
fn the_suite_holds_under_audit() {
    holds_under("audit", |fs| {
        Arc::new(Audit::new(fs, Box::new(std::io::sink())))
    });
}

/// No time passes but by waiting.
#[derive(Default)]
struct Still(std::sync::Mutex<Duration>);

impl Pace for Still {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }
    fn wait(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

#[test]
fn the_suite_holds_under_throttle() {
    holds_under("throttle", |fs| {
        let pace = Arc::new(Still::default());
        Arc::new(Throttle::parse(fs, pace, "ops=1000,bytes=1M").unwrap())
    });
}

fn wide(each: bool) -> QuotaBounds {
    QuotaBounds {
        bytes: Some(u64::MAX),
        nodes: Some(1_000_000),
        each,
    }
}

#[test]
fn the_suite_holds_under_quotas_that_are_not_reached() {
    holds_under("quota", |fs| Arc::new(Quota::new(fs, wide(false)).unwrap()));
    holds_under("quota of each", |fs| {
        Arc::new(Quota::new(fs, wide(true)).unwrap())
    });
}

#[test]
fn the_suite_holds_under_casefold() {
    holds_under("casefold", |fs| Arc::new(CaseFold::new(fs).unwrap()));
}

#[test]
fn the_suite_holds_under_munge() {
    holds_under("munge", |fs| Arc::new(Munge::new(fs, Side::Above)));
    let make = || {
        let mut options = MemOptions::sized(8 << 20);
        options.caps = options.caps.without(Caps::ANY_NAME);
        let below = Mem::attach(options, Time::EPOCH).unwrap();
        Arc::new(Munge::new(below, Side::Below)) as Fs
    };
    Suite::new("mem that refuses names under munge=below", make).run();
}

#[test]
fn the_suite_holds_under_symlinks() {
    holds_under("symlinks", |fs| Arc::new(Symlinks::new(fs).unwrap()));
}

#[test]
fn the_suite_holds_under_dircache() {
    holds_under("dircache", |fs| {
        Arc::new(DirCache::new(fs, 1 << 20, None).unwrap())
    });
    holds_under("a dircache of no room", |fs| {
        Arc::new(DirCache::new(fs, 0, None).unwrap())
    });
}

#[test]
fn the_suite_holds_under_a_stack_of_them() {
    holds_under("a stack", |fs| {
        let fs: Fs = Arc::new(Quota::new(fs, wide(false)).unwrap());
        let fs: Fs = Arc::new(Audit::new(fs, Box::new(std::io::sink())));
        let fs: Fs = Arc::new(DirCache::new(fs, 1 << 20, None).unwrap());
        let fs: Fs = Arc::new(Symlinks::new(fs).unwrap());
        let fs: Fs = Arc::new(Munge::new(fs, Side::Above));
        let fs: Fs = Arc::new(CaseFold::new(fs).unwrap());
        Arc::new(Squash::parse(fs, "root:7:7").unwrap())
    });
}

/// Numbers that anybody can guess.
struct Dice(AtomicU64);

impl Outside for Dice {
    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        for byte in bytes {
            let count = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            *byte = (count ^ count >> 29).to_le_bytes()[4];
        }
        Ok(())
    }
}

/// At a cost that tests can pay.
pub(crate) fn try_crypt(below: Fs, words: &[u8]) -> Result<Fs> {
    let cost = CryptCost {
        memory: 8,
        passes: 1,
        lanes: 1,
    };
    let seed = AtomicU64::new(below.statfs(&Rig::over(below.clone()).cx())?.free);
    Ok(Arc::new(Crypt::new(
        below,
        Arc::new(Dice(seed)),
        words,
        cost,
    )?))
}

pub(crate) fn crypt(below: Fs) -> Fs {
    try_crypt(below, b"words").unwrap()
}

#[test]
fn the_suite_holds_under_crypt() {
    holds_on(CRYPT_SIZE, "crypt", crypt);
    let make = || {
        let mut options = MemOptions::sized(CRYPT_SIZE);
        options.caps = options.caps.without(
            Caps::ANY_NAME | Caps::CASE_SENSITIVE | Caps::HOLES | Caps::MODES | Caps::SYMLINKS,
        );
        crypt(Mem::attach(options, Time::EPOCH).unwrap())
    };
    Suite::new("crypt over a volume that can little", make).run();
}

#[test]
fn the_suite_holds_under_a_dircache_over_crypt() {
    holds_on(CRYPT_SIZE, "dircache over crypt", |fs| {
        Arc::new(DirCache::new(crypt(fs), 1 << 20, None).unwrap())
    });
}

#[test]
fn crypt_is_not_noticed_by_random_operations() {
    let make = || crypt(Mem::attach(MemOptions::sized(64 << 20), Time::EPOCH).unwrap());
    Diff::new("mem under crypt", make).run(0, 20);
}
