//! The conformance suite on volumes of each layout; our check looks at each when a case is done.

use crate::volumes::{MIB, SHAPES, shape};
use volary_testkit::Suite;
use volary_testkit::volumes::Shape;

fn run(shape: Shape) {
    Suite::new(shape.name(), move || shape.fresh()).run();
}

#[test]
fn the_seventh_edition_holds_to_its_word() {
    run(SHAPES[0]);
    run(SHAPES[1]);
}

#[test]
fn system_v_holds_to_its_word() {
    run(SHAPES[2]);
    run(SHAPES[3].attached("sync"));
    run(shape("sysv", 16 * MIB).made("block=2048,order=big"));
}
