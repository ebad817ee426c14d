//! Every target on inputs from seeds: what CI can afford of the fuzzing.
//! `VOLARY_FUZZ_RUNS` sets how many (default 2000 a target: a quarter of a minute);
//! `VOLARY_SEED` runs one seed again, or with both that many from there on; `VOLARY_TARGET` only the targets
//! whose names begin so.

use std::panic::{AssertUnwindSafe, catch_unwind};
use volary_fuzz::{
    cedar, crypt, ext4, fat, ffs, fuse, iso, nfs, nfs_client, ntfs, parts, plugin, qcow2, smb,
    users, v7,
};

#[global_allocator]
static HEAP: volary_fuzz::heap::Bounded = volary_fuzz::heap::Bounded;

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 29] = [
    ("nfs", nfs::calls),
    ("nfs_replies", some_replies),
    ("iso", iso::driver),
    ("ext4", ext4::driver),
    ("ntfs", ntfs::driver),
    ("ffs_check", ffs::check),
    ("ffs", ffs::driver),
    ("v7_check", v7::check),
    ("v7", v7::driver),
    ("cedar_check", cedar::check),
    ("cedar", cedar::driver),
    ("driver", fat::driver),
    ("check", fat::check),
    ("tools", fat::tools),
    ("smb_negotiate", smb::negotiate),
    ("smb_setup", smb::setup),
    ("smb_logon", smb::logon),
    ("smb_headers", smb::headers),
    ("smb_pipe", smb::pipe),
    ("smb_requests", smb::requests),
    ("smb_connections", some_connections),
    ("fuse", some_fuse),
    ("qcow2", qcow2::image),
    ("partitions", parts::tables),
    ("crypt", crypt::attach),
    ("users", users::list),
    ("plugin_wire", plugin::wire),
    ("plugin_table", plugin::table),
    ("plugin_paths", plugin::paths),
];

/// Each is a connection or three, and takes as long as ten of others: one in eight.
fn some_replies(input: &[u8]) {
    if input.first().is_none_or(|byte| byte % 8 == 0) {
        nfs_client::replies(input);
    }
}

/// Runs one input in eight: each opens three connections.
fn some_connections(input: &[u8]) {
    if input.get(1).is_none_or(|byte| byte % 8 == 2) {
        smb::connections(input);
    }
}

/// Runs one input in eight: each starts two threads, which switch at every request.
fn some_fuse(input: &[u8]) {
    if input.get(1).is_none_or(|byte| byte % 8 == 1) {
        fuse::requests(input);
    }
}

/// One request of each kind, most of which succeed.
const EACH_REQUEST: &[u8] = include_bytes!("../seeds/fuse_requests/all");

/// A seed that failed once; on every kind of volume since.
const FAILED: u64 = 269;

#[test]
fn damaged_volumes_cannot_hurt_any_target() {
    // One test for all: the bound on the heap is for the whole process.
    seeds();
    failed_seed();
    fixtures();
    fuse::requests(EACH_REQUEST);
}

/// Returns all of them, or the ones whose names begin as `VOLARY_TARGET` says.
fn targets() -> impl Iterator<Item = (&'static str, Target)> {
    let wanted = std::env::var("VOLARY_TARGET").unwrap_or_default();
    TARGETS
        .into_iter()
        .filter(move |(name, _)| name.starts_with(&wanted))
}

fn seeds() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let runs = variable("VOLARY_FUZZ_RUNS");
    let (first, runs) = match variable("VOLARY_SEED") {
        Some(seed) => (seed, runs.unwrap_or(1)),
        None => (0, runs.unwrap_or(2000)),
    };
    for seed in first..first.saturating_add(runs) {
        let input = bytes(seed);
        for (name, target) in targets() {
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                panic!(
                    "target {name} fails; again: VOLARY_SEED={seed} cargo test --profile soak \
                     --package volary-fuzz --test smoke"
                );
            }
        }
    }
}

fn failed_seed() {
    let mut input = bytes(FAILED);
    for base in (0..16).chain(0xfe..=0xff) {
        input[0] = base;
        for (name, target) in TARGETS {
            let done = catch_unwind(AssertUnwindSafe(|| target(&input)));
            assert!(done.is_ok(), "target {name}, seed {FAILED} on base {base}");
        }
    }
}

/// Inputs that failed once, named after the target that they failed.
fn fixtures() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    for file in files {
        let input = std::fs::read(&file).expect("a fixture");
        let stem = file.file_name().unwrap_or_default().to_string_lossy();
        let target = TARGETS.iter().find(|(name, _)| stem.starts_with(name));
        let (_, target) = target.expect("a fixture is named after its target");
        let done = catch_unwind(AssertUnwindSafe(|| target(&input)));
        assert!(done.is_ok(), "fuzz/fixtures/{stem} fails");
    }
}

/// Returns the input of a seed: 16 to 400 bytes.
fn bytes(seed: u64) -> Vec<u8> {
    let mut x = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    let len = 16 + next() % 384;
    (0..len).map(|_| (next() >> 32) as u8).collect()
}
