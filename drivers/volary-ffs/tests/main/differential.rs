//! Random operations on volumes and on the model; our check and [other readers](crate::readers)
//! look at each volume at the end. `VOLARY_SEQS` says how many sequences of each kind.

use crate::readers::Readers;
use crate::volumes::{clean, shape};
use std::cell::RefCell;
use std::rc::Rc;
use volary_testkit::diff::Diff;
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

/// Sequences on volumes of each shape.
const COUNT: u64 = 60;

const SHAPES: &[Shape] = &[
    shape("ffs1", 12 * MIB),
    shape("ffs1", 12 * MIB).made("order=big,block=4096,fragment=1024"),
    shape("ffs2", 12 * MIB),
    shape("ffs2", 24 * MIB).made("order=big,block=16384"),
    shape("ffs1", 12 * MIB).made("old"),
    shape("ffs1", 24 * MIB).made("old,order=big,block=4096,fragment=4096"),
    // Soon full.
    shape("ffs1", 512 << 10),
    shape("ffs2", 512 << 10),
];

fn run_on(shape: Shape, count: u64, readers: &mut Readers) {
    let lived = Rc::new(RefCell::new(None));
    let last = lived.clone();
    let make = move || {
        let dev = shape.device();
        last.replace(Some(dev.clone()));
        let fresh = shape.fresh_on(dev.clone());
        fresh.checked_by(move || clean(dev.clone()))
    };
    Diff::new(shape.name(), make).run_then(0, count, |seed| {
        if let Some(dev) = lived.take() {
            readers.take(shape, seed, &dev.to_vec());
        }
    });
}

/// What the sequences leave is read by others at the end, all together: a guest costs seconds.
#[test]
fn volumes_equal_the_model_and_others_read_them() {
    let mut readers = Readers::new();
    for shape in SHAPES {
        run_on(*shape, COUNT, &mut readers);
    }
    println!("{}", readers.end());
}
