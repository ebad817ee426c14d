//! Random operations on volumes and on the model; our check looks at each volume at the end.
//! `VOLARY_SEQS` says how many sequences of each kind.

use crate::volumes::shape;
use volary_testkit::diff::Diff;
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

fn run(shape: Shape, count: u64) {
    Diff::new(shape.name(), move || shape.fresh()).run(0, count);
}

#[test]
fn ufs1_equals_the_model() {
    run(shape("ffs1", 12 * MIB), 100);
    run(
        shape("ffs1", 12 * MIB).made("order=big,block=4096,fragment=1024"),
        100,
    );
}

#[test]
fn ufs2_equals_the_model() {
    run(shape("ffs2", 12 * MIB), 100);
    run(shape("ffs2", 24 * MIB).made("order=big,block=16384"), 100);
}

#[test]
fn bsd_4_3_equals_the_model() {
    run(shape("ffs1", 12 * MIB).made("old"), 100);
    run(
        shape("ffs1", 24 * MIB).made("old,order=big,block=8192,fragment=8192"),
        100,
    );
}

#[test]
fn a_volume_that_is_soon_full_equals_the_model() {
    for kind in ["ffs1", "ffs2"] {
        run(shape(kind, 512 << 10), 100);
    }
}
