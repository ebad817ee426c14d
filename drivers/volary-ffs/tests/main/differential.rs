//! Random operations on volumes and on the model; our check and [other readers](crate::readers)
//! look at each volume at the end. `VOLARY_SEQS` says how many sequences of each kind.

use crate::readers::Readers;
use crate::volumes::{clean, shape};
use std::cell::RefCell;
use std::rc::Rc;
use volary_testkit::diff::Diff;
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

/// So many sequences on volumes of each shape; what they leave is read by others, all together.
fn run(shapes: &[Shape], count: u64) {
    let mut readers = Readers::new();
    for shape in shapes {
        run_on(*shape, count, &mut readers);
    }
    println!("{}", readers.end());
}

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

#[test]
fn ufs1_equals_the_model() {
    let big = shape("ffs1", 12 * MIB).made("order=big,block=4096,fragment=1024");
    run(&[shape("ffs1", 12 * MIB), big], 100);
}

#[test]
fn ufs2_equals_the_model() {
    let big = shape("ffs2", 24 * MIB).made("order=big,block=16384");
    run(&[shape("ffs2", 12 * MIB), big], 100);
}

#[test]
fn bsd_4_3_equals_the_model() {
    let big = shape("ffs1", 24 * MIB).made("old,order=big,block=4096,fragment=4096");
    run(&[shape("ffs1", 12 * MIB).made("old"), big], 100);
}

#[test]
fn a_volume_that_is_soon_full_equals_the_model() {
    run(&["ffs1", "ffs2"].map(|kind| shape(kind, 512 << 10)), 100);
}
