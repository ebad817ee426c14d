//! The conformance suite on volumes of each kind and shape; fsck.fat looks at
//! each volume when a case is done.

use crate::volumes::{fresh, fresh_paper, shape};
use volary_testkit::Suite;
use volary_testkit::oracle::{dosfstools, have};
use volary_testkit::volumes::Shape;

const MIB: u64 = 1 << 20;

fn suite(shape: Shape) -> Suite {
    have(&[dosfstools::FSCK]);
    Suite::new(shape.name(), move || fresh(&shape))
}

#[test]
fn fat12_holds_to_its_word() {
    suite(shape("fat12", 8 * MIB).made("root-entries=4096")).run();
}

#[test]
fn fat16_holds_to_its_word() {
    suite(shape("fat16", 16 * MIB).made("root-entries=4096")).run();
}

#[test]
fn fat32_holds_to_its_word() {
    suite(shape("fat32", 40 * MIB)).run();
}

#[test]
fn with_the_unix_extension_each_kind_holds_to_its_word() {
    for shape in [
        shape("fat12", 8 * MIB).made("root-entries=4096"),
        shape("fat16", 16 * MIB).made("root-entries=4096"),
        shape("fat32", 40 * MIB),
    ] {
        suite(shape.attached("unix=on")).run();
    }
}

#[test]
fn sectors_of_every_size_hold_to_their_word() {
    for make in [
        "sector=1024,root-entries=4096",
        "sector=2048,root-entries=4096",
        "sector=4096,root-entries=4096",
    ] {
        suite(shape("fat12", 24 * MIB).made(make)).run();
    }
}

#[test]
fn large_clusters_hold_to_their_word() {
    for (make, len) in [
        ("cluster=4k,root-entries=4096", 12 * MIB),
        ("cluster=16k,root-entries=4096", 24 * MIB),
        ("cluster=64k,root-entries=4096", 48 * MIB),
    ] {
        suite(shape("fat12", len).made(make)).run();
    }
    suite(shape("fat32", 272 * MIB).made("cluster=4k")).run();
}

#[test]
fn requests_of_a_sector_hold_to_their_word() {
    let shape = shape("fat16", 16 * MIB).made("root-entries=4096");
    suite(shape.attached("iosize=4k")).run();
}

/// The paper's layout, whose bits fsck.fat takes for damage: our own check
/// looks at each volume instead.
#[test]
fn the_papers_layout_holds_to_its_word() {
    let narrow = "its device numbers have 16 bits";
    for attach in [
        "unix=dosfs,names=unix",
        "unix=dosfs,names=lower",
        "unix=dosfs",
    ] {
        for shape in [
            shape("fat12", 8 * MIB).made("root-entries=4096"),
            shape("fat16", 16 * MIB).made("root-entries=4096"),
        ] {
            let shape = shape.attached(attach);
            let mut suite = Suite::new(shape.name(), move || fresh_paper(&shape))
                .leave_out("fifos_sockets_and_devices_are_kept", narrow)
                .leave_out("mknod_over_what_is_there_is_refused", narrow);
            if attach.contains("names=unix") {
                let why = "control characters are names in it";
                suite = suite.leave_out("a_name_that_the_format_cannot_keep_is_invalid", why);
            }
            suite.run();
        }
    }
}
