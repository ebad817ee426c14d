//! The conformance suite on volumes of several shapes; our check looks at each when a case
//! is done.

use crate::volumes::{has_fragments, shape};
use volary_testkit::Suite;
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

fn run(shape: Shape) {
    let suite = Suite::new(shape.name(), move || shape.fresh());
    let why = "fragments are left in blocks that are partly taken: no large file has them";
    match has_fragments(&shape) {
        true => suite.leave_out("a_full_volume_says_so_and_keeps_what_it_has", why),
        false => suite,
    }
    .run();
}

#[test]
fn ufs1_holds_to_its_word() {
    run(shape("ffs1", 16 * MIB));
    run(shape("ffs1", 24 * MIB).made("order=big,block=8192,fragment=8192,density=8192"));
}

#[test]
fn ufs2_holds_to_its_word() {
    run(shape("ffs2", 16 * MIB).made("order=big"));
    run(shape("ffs2", 32 * MIB).made("block=16384,fragment=2048"));
}

#[test]
fn bsd_4_3_holds_to_its_word() {
    run(shape("ffs1", 16 * MIB).made("old,block=4096,fragment=1024"));
    run(shape("ffs1", 16 * MIB).made("old,order=big"));
}

#[test]
fn large_blocks_hold_to_their_word() {
    run(shape("ffs1", 48 * MIB).made("block=65536,fragment=8192"));
    run(shape("ffs2", 48 * MIB).made("block=65536,fragment=65536,order=big"));
}
