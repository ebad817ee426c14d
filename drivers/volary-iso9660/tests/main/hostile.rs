//! Damaged images: answers, never a panic.

use crate::images::{Images, XORRISO};
use crate::{attach_as, device, hand};
use volary_core::{Answer, Check, CheckMode, FileKind, Format, Options, Quiet, Time};
use volary_iso9660::ISO9660;
use volary_testkit::oracle::have;
use volary_testkit::rng::Rng;
use volary_testkit::volumes::look;

fn try_all(bytes: &[u8]) {
    for options in ["", "names=joliet", "names=iso"] {
        if let Ok(fs) = attach_as(bytes, options) {
            look(&fs, 400, |entry| {
                assert!(entry.kind != FileKind::Dir || entry.node.ino.get() % 512 == 0);
            });
        }
    }
    let how = Check {
        mode: CheckMode::Look,
        now: Time::EPOCH,
        options: Options::new(),
    };
    let _ = ISO9660.check(device(bytes), &how, &mut |_| Answer::No, &Quiet);
    let _ = ISO9660.info(device(bytes));
    let _ = ISO9660.map(device(bytes), 100);
    let _ = ISO9660.probe(&*device(bytes));
    for topic in ["descriptors", "directory", "path-table", "boot"] {
        let _ = ISO9660.dump(device(bytes), &[topic.into()], &mut String::new());
    }
}

#[test]
fn every_byte_of_the_structures_can_be_wrong() {
    let good = hand::in_sections();
    let structures = (16 * 2048..16 * 2048 + 190)
        .chain(17 * 2048..17 * 2048 + 8)
        .chain(18 * 2048..18 * 2048 + 10)
        .chain(20 * 2048..20 * 2048 + 260);
    for at in structures {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            try_all(&bytes);
        }
    }
}

#[test]
fn images_can_end_anywhere() {
    let good = hand::in_sections();
    for len in [
        0,
        1,
        512,
        16 * 2048,
        16 * 2048 + 7,
        17 * 2048,
        20 * 2048,
        20 * 2048 + 99,
    ] {
        try_all(&good[..len]);
    }
}

#[test]
fn damage_by_chance_hurts_nobody() {
    if !have(&[XORRISO]) {
        return;
    }
    let good = std::fs::read(Images::new().xorriso()).expect("image");
    // Descriptors, path tables and directories; the data come after them.
    let end = good.len().min(300 << 10);
    let mut rng = Rng::new(9660);
    for _ in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..=rng.below(40) {
            let at = 16 * 2048 + rng.below((end - 16 * 2048) as u64) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        try_all(&bytes);
    }
}
