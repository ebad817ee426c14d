//! Random operations on Cedar volumes and on the model. `VOLARY_SEQS` says how
//! many sequences of each kind.

use crate::volumes::Shape;
use volary_testkit::diff::Diff;

const MIB: u64 = 1 << 20;

fn run(shape: Shape, count: u64) {
    Diff::new(shape.name(), move || shape.fresh()).run(0, count);
}

#[test]
fn pages_of_4096_equal_the_model() {
    run(Shape::new(24 * MIB), 150);
}

#[test]
fn pages_of_a_sector_equal_the_model() {
    run(Shape::new(12 * MIB).made("page=512,log=642k"), 60);
}

#[test]
fn a_commit_with_each_change_equals_the_model() {
    run(Shape::new(16 * MIB).attached("commit=0"), 40);
}
