//! Random operations on volumes and on the model; our check looks at each volume at the end.
//! `VOLARY_SEQS` says how many sequences of each kind.

use crate::volumes::{MIB, SHAPES, clean, shape};
use volary_testkit::diff::Diff;
use volary_testkit::volumes::Shape;

/// Sequences on volumes of each shape.
const COUNT: u64 = 20;

fn run_on(shape: Shape) {
    let make = move || {
        let dev = shape.device();
        let fresh = shape.fresh_on(dev.clone());
        fresh.checked_by(move || clean(dev.clone()))
    };
    Diff::new(shape.name(), make).run_then(0, COUNT, |_| ());
}

#[test]
fn volumes_equal_the_model() {
    // The last are soon full.
    let small = [
        shape("v7", MIB / 2),
        shape("sysv", MIB / 2).made("inodes=64"),
    ];
    SHAPES.iter().chain(&small).for_each(|shape| run_on(*shape));
}
