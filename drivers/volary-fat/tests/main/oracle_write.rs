//! What we write, others read alike: names, sizes, hashes, times. fsck.fat has
//! nothing to say, nor has our own check.

use crate::samples::{comparable, tree, write_to};
use crate::volumes::{Image, attach, shape};
use volary_core::{Answer, Check, CheckMode, Format, Options, Quiet};
use volary_fat::FAT;
use volary_testkit::oracle::{dosfstools, have, mtools, sleuthkit, vm};
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;

const SHAPES: &[Shape] = &[
    shape("fat12", 6 * MIB),
    shape("fat16", 12 * MIB),
    shape("fat32", 40 * MIB),
    shape("fat16", 12 * MIB).attached("unix=on"),
    shape("fat32", 40 * MIB).attached("unix=on"),
    shape("fat16", 32 * MIB).made("sector=1024"),
    shape("fat12", 32 * MIB).made("cluster=32k"),
];

/// Returns a volume that we filled, and what is on it.
fn filled(shape: &Shape) -> (Image, Tree) {
    let dev = shape.device();
    let fs = attach(dev.clone(), shape.attach);
    let seen = as_root(|cx| {
        write_to(&fs, cx);
        let seen = tree(&fs, cx);
        fs.detach(cx).expect("detach");
        seen
    });
    (Image::of(&*dev), seen)
}

/// Without the file that holds owners, which only we hide.
fn without_owners(mut seen: Tree) -> Tree {
    seen.0.retain(|path, _| path != b"VOLARY.OWN");
    comparable(seen)
}

/// Without names of more than 240 bytes, which the Sleuth Kit cuts.
fn without_longest(mut seen: Tree) -> Tree {
    seen.0.retain(|path, _| path.len() <= 240);
    seen
}

#[test]
fn fsck_fat_mtools_and_sleuthkit_read_what_we_write() {
    let tools = [
        dosfstools::FSCK,
        mtools::MCOPY,
        sleuthkit::FLS,
        sleuthkit::ICAT,
    ];
    if !have(&tools) {
        return;
    }
    for shape in SHAPES {
        let (image, ours) = filled(shape);
        println!("{}: {} nodes", shape.name(), ours.0.len());
        dosfstools::check(&image.path()).expect("fsck.fat");
        let seen = mtools::tree(&image.path()).expect("mtools");
        ours.assert_same(&without_owners(seen));
        let seen = sleuthkit::tree(&image.path()).expect("the Sleuth Kit");
        without_longest(ours).assert_same(&without_longest(without_owners(seen)));
    }
}

#[test]
fn linux_reads_what_we_write() {
    let Some(vmrun) = vm::find() else { return };
    let all: Vec<_> = SHAPES.iter().map(filled).collect();
    let paths: Vec<_> = all.iter().map(|(image, _)| image.path()).collect();
    let volumes: Vec<_> = paths.iter().map(|path| vm::Volume::fat(path)).collect();
    let seen = vm::trees(&vmrun, &volumes).expect("Linux");
    for ((shape, (_, ours)), seen) in SHAPES.iter().zip(&all).zip(seen) {
        println!("{}", shape.name());
        ours.assert_same(&without_owners(seen));
    }
}

#[test]
fn our_check_finds_nothing_in_what_we_write() {
    let how = Check {
        mode: CheckMode::Look,
        now: volary_testkit::volumes::NOW,
        options: Options::new(),
    };
    for shape in SHAPES {
        let (image, _) = filled(shape);
        let mut found = Vec::new();
        let report = FAT.check(
            image.device(),
            &how,
            &mut |finding| {
                found.push(finding.message.clone());
                Answer::No
            },
            &Quiet,
        );
        let report = report.expect("the check");
        assert_eq!(report.found, 0, "{}: {found:?}", shape.name());
        assert_eq!(report.written, 0);
    }
}
