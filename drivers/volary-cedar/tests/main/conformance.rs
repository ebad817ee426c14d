//! The conformance suite on volumes of several shapes; our check looks at each
//! when a case is done.

use crate::volumes::shape;
use volary_testkit::Suite;
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

fn run(shape: Shape) {
    Suite::new(shape.name(), move || shape.fresh()).run();
}

#[test]
fn pages_of_4096_hold_to_their_word() {
    run(shape(24 * MIB));
}

#[test]
fn pages_of_a_sector_hold_to_their_word() {
    run(shape(12 * MIB).made("page=512,log=642k"));
}

#[test]
fn large_pages_and_sectors_hold_to_their_word() {
    run(shape(48 * MIB).made("page=16k"));
    run(shape(24 * MIB).sectors(4096));
}

#[test]
fn files_with_checksums_hold_to_their_word() {
    run(shape(24 * MIB).made("checksums"));
}

#[test]
fn a_small_log_holds_to_its_word() {
    run(shape(12 * MIB).made("log=1440k"));
}

#[test]
fn data_written_as_it_comes_holds_to_its_word() {
    run(shape(24 * MIB).attached("data=through,commit=0"));
}

#[test]
fn a_map_that_is_saved_as_before_holds_to_its_word() {
    run(shape(24 * MIB).made("map=saved"));
    run(shape(12 * MIB).made("page=512,log=642k,map=saved,checksums"));
}
