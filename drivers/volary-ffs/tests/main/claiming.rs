//! Volumes that claim more than there is: the work goes by what is there.

use crate::hostile::{Base, bases};
use crate::{attach_as, check};
use std::cell::Cell;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Answer, Check, CheckMode, Format, Kind, Name, Options, Progress, Result, Time};
use volary_ffs::FFS;

/// Bytes of a block and of a fragment.
const BLOCK: usize = 4096;
const FRAGMENT: usize = 512;

/// Returns a number as the volume has it, in so many bytes.
fn number(base: &Base, value: u64, len: usize) -> Vec<u8> {
    match base.is_big {
        true => value.to_be_bytes()[8 - len..].to_vec(),
        false => value.to_le_bytes()[..len].to_vec(),
    }
}

/// Makes a directory that consists of one block of free entries, over and over, through three levels of pointers.
fn over_and_over(base: &Base, size: u64) -> Vec<u8> {
    let topic = format!("inode {}", base.inode("dir"));
    let width = match base.name.starts_with("UFS2") {
        true => 8,
        false => 4,
    };
    let mut bytes = base.image.clone();
    let last = bytes.len() / FRAGMENT - BLOCK / FRAGMENT;
    let blocks = [3, 2, 1, 0].map(|back| last - back * BLOCK / FRAGMENT);
    let [free, levels @ ..] = blocks;
    let mut put = |at: usize, what: &[u8]| bytes[at..at + what.len()].copy_from_slice(what);
    let entry = [number(base, 0, 4), number(base, 512, 2), vec![0; 506]].concat();
    put(free * FRAGMENT, &entry.repeat(BLOCK / 512));
    let mut below = free;
    for level in levels {
        let pointer = number(base, below as u64, width);
        put(level * FRAGMENT, &pointer.repeat(BLOCK / width));
        below = level;
    }
    // What the direct pointers lead to, the first ones of the directory, stays.
    let pointers = levels.map(|level| number(base, level as u64, width));
    put(base.place(&topic, "di_ib"), &pointers.concat());
    put(base.place(&topic, "di_size"), &number(base, size, 8));
    bytes
}

#[test]
fn a_directory_longer_than_the_volume_is_refused() {
    for base in bases() {
        let bytes = over_and_over(&base, 1 << 40);
        let fs = attach_as(&bytes, "").expect("attach");
        let find = |dir, name: &[u8]| {
            crate::as_root(|cx| fs.lookup(cx, dir, Name::new(name).expect("a name")))
        };
        let found = find(fs.root(), b"dir").and_then(|dir| find(dir.node, b"no"));
        let refused = found.expect_err("a refusal");
        assert_eq!(refused.kind(), Kind::Corrupt, "{}", base.name);
        let told = check(&bytes).expect("check");
        let told = told
            .iter()
            .filter(|line| line.starts_with("directory-size"));
        assert!(told.count() > 0, "{}", base.name);
    }
}

/// Stops a check at once, and keeps how far it would have gone.
#[derive(Default)]
struct Stops(Cell<u64>);

impl Progress for Stops {
    fn progress(&self, _: &'static str, _: u64, total: u64) -> Result<()> {
        self.0.set(total);
        Err(Kind::Interrupted.into())
    }
}

#[test]
fn a_replica_is_looked_for_where_one_can_be_and_the_search_can_be_stopped() {
    let dev = Arc::new(MemDevice::new(1 << 44));
    let stops = Stops::default();
    let how = Check {
        mode: CheckMode::Look,
        now: Time::EPOCH,
        options: Options::new(),
    };
    let checked = FFS.check(dev, &how, &mut |_| Answer::No, &stops);
    assert_eq!(checked.unwrap_err(), Kind::Interrupted);
    assert_eq!(stops.0.get(), 16 << 30);
}
