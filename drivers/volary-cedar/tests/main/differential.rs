//! Random operations on Cedar volumes and on the model. `VOLARY_SEQS` says how
//! many sequences of each kind.

use crate::volumes::shape;
use volary_testkit::diff::Diff;
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

fn run(shape: Shape, count: u64) {
    Diff::new(shape.name(), move || shape.fresh()).run(0, count);
}

#[test]
fn pages_of_4096_equal_the_model() {
    run(shape(24 * MIB), 150);
}

#[test]
fn pages_of_a_sector_equal_the_model() {
    run(shape(12 * MIB).made("page=512,log=642k"), 60);
}

#[test]
fn files_with_checksums_equal_the_model() {
    run(shape(24 * MIB).made("checksums"), 40);
    run(shape(12 * MIB).made("page=512,log=642k,checksums"), 40);
}

#[test]
fn a_commit_with_each_change_equals_the_model() {
    run(shape(16 * MIB).attached("commit=0"), 40);
}
