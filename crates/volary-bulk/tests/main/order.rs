//! In which order files come.

use crate::volumes::{
    Laid, SHAPES, TURNS, iso_of_directories, laid, many_directories, run, run_one, session,
    woven_directories,
};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_bulk::{Method, Options, Shuffle, Source, Way};
use volary_core::{BlockDevice, Geometry, Name, Result};
use volary_testkit::turns::{Turns, runs};
use volary_testkit::volumes::{as_root, attach_read_only};

fn shuffled(seed: u64, window: u64) -> Options {
    Options {
        shuffle: Some(Shuffle { seed, window }),
        ..Options::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_order_and_another_another() {
    let laid = laid(SHAPES[4], TURNS, false);
    let order = |seed| run_one(shuffled(seed, 64 << 20), &laid).order;
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));
}

#[test]
fn files_come_in_the_order_of_their_places() {
    // One extent each: the first is the only one.
    let laid = laid(SHAPES[4], Turns::new(40, 1, 16 << 10), false);
    let fs = laid.attach();
    let got = run_one(Options::default(), &laid);
    let direct = got
        .order
        .iter()
        .filter(|path| got.ways[*path] == Way::Direct);
    let place = |path: &Vec<u8>| -> Option<u64> {
        as_root(|cx| {
            let mut node = fs.root();
            for name in path.split(|b| *b == b'/') {
                node = fs.lookup(cx, node, Name::new(name).unwrap()).unwrap().node;
            }
            runs(&fs, cx, node).first().map(|run| run.0)
        })
    };
    let places: Vec<u64> = direct.filter_map(place).collect();
    assert!(places.len() > 40 && places.is_sorted(), "{places:?}");
}

/// A device that notes where it is read.
struct Noting {
    below: Arc<MemDevice>,
    reads: Mutex<Vec<(u64, u64)>>,
}

impl BlockDevice for Noting {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.reads.lock().push((offset, buf.len() as u64));
        self.below.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.below.write_at(offset, data)
    }
    fn flush(&self) -> Result<()> {
        self.below.flush()
    }
}

/// Returns how often a walk makes the device go elsewhere than on.
fn jumps(laid: &Laid, method: Method) -> usize {
    let noting = Arc::new(Noting {
        below: laid.device.clone(),
        reads: Mutex::default(),
    });
    let fs = attach_read_only(laid.format, noting.clone(), "").expect("attach");
    let options = Options {
        method,
        ..Options::default()
    };
    noting.reads.lock().clear();
    // Nothing is read but what the walk needs: the files are empty.
    let session = session(fs);
    run(
        options,
        &[Source::new(session.clone()).on(noting.clone())],
        &[&session],
    );
    let reads = noting.reads.lock();
    let pairs = reads.iter().zip(reads.iter().skip(1));
    pairs.filter(|(a, b)| a.0 + a.1 != b.0).count()
}

#[test]
fn inodes_and_directories_are_read_in_the_order_of_their_places() {
    for laid in many_directories() {
        let (ours, vanilla) = (jumps(&laid, Method::DaftM), jumps(&laid, Method::Vanilla));
        let name = &laid.name;
        assert!(ours * 3 < vanilla, "{name}: {ours} and {vanilla} jumps");
    }
}

#[test]
fn directories_of_ours_and_of_iso_9660_are_read_in_the_order_of_their_places() {
    // Larger than what the driver has in memory once it is attached.
    let fat = woven_directories(SHAPES[1].long(160 << 20), (16, 12));
    let (ours, vanilla) = (jumps(&fat, Method::DaftM), jumps(&fat, Method::Vanilla));
    assert!(ours < vanilla, "FAT: {ours} and {vanilla} jumps");
    let ffs = woven_directories(SHAPES[4].long(160 << 20), (16, 12));
    let (ours, vanilla) = (jumps(&ffs, Method::DaftM), jumps(&ffs, Method::Vanilla));
    assert!(ours < vanilla, "FFS: {ours} and {vanilla} jumps");
    let Some(iso) = iso_of_directories() else {
        return;
    };
    let (ours, vanilla) = (jumps(&iso, Method::DaftM), jumps(&iso, Method::Vanilla));
    assert!(ours * 3 < vanilla, "ISO 9660: {ours} and {vanilla} jumps");
}

#[test]
fn one_worker_sees_one_order() {
    let laid = laid(SHAPES[4], TURNS, false);
    let order = || run_one(Options::default(), &laid).order;
    assert_eq!(order(), order());
}

#[test]
fn a_shuffle_stays_within_its_window() {
    // Files one after the other, 16 KiB each.
    let laid = laid(SHAPES[4], Turns::new(60, 1, 16 << 10), false);
    let sorted = run_one(Options::default(), &laid).order;
    let place: BTreeMap<_, _> = sorted.iter().zip(0_usize..).collect();
    let turns = |order: &[Vec<u8>]| -> Vec<usize> {
        let of_turns = order.iter().filter(|path| path.starts_with(b"dir/turn"));
        of_turns.map(|path| place[path]).collect()
    };
    let within = turns(&run_one(shuffled(3, 128 << 10), &laid).order);
    let first = turns(&sorted)[0];
    let far = within
        .iter()
        .zip(first..)
        .map(|(at, i)| at.abs_diff(i))
        .max();
    assert!((1..=16).contains(&far.unwrap()), "{within:?}");
}
