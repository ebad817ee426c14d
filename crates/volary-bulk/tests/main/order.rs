//! In which order files come.

use crate::volumes::{SHAPES, TURNS, laid, run_one};
use std::collections::BTreeMap;
use volary_bulk::{Options, Shuffle, Way};
use volary_core::Name;
use volary_testkit::turns::{Turns, runs};
use volary_testkit::volumes::as_root;

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
