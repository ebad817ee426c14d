//! Archives that Info-ZIP made of the reference tree, and broken ones, under the conformance suite.

use std::process::Command;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_driver::core::{Attach, BlockDevice, Caps, Format, Fs, Result, unkept};
use volary_example_zip::ZIP;
use volary_test::{Fresh, Lack, Manifest, Suite, damage, reference, rng};

/// Returns what zip can hold of the reference tree.
fn tree() -> Manifest {
    let caps = Caps {
        bits: !(Caps::HARD_LINKS | Caps::DEVICES),
        name_max: u16::MAX,
        size_max: u64::MAX,
        time_step: 1_000_000_000,
    };
    reference::tree().fitting(&caps)
}

/// Returns an archive of what is in a directory.
fn archive(manifest: &Manifest, options: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    manifest.write_dir(dir.path()).expect("a tree");
    let out = tempfile::tempdir().expect("a directory");
    let out = out.path().join("out.zip");
    let mut zip = Command::new("zip");
    zip.args(["-qry"]).args(options).arg(&out).arg(".");
    zip.current_dir(dir.path());
    assert!(zip.status().expect("zip").success(), "{zip:?}");
    std::fs::read(out).expect("an archive")
}

fn device(bytes: &[u8]) -> Arc<dyn BlockDevice> {
    Arc::new(MemDevice::from_vec(bytes.to_vec()))
}

fn attach(bytes: &[u8]) -> Result<Fs> {
    ZIP.attach(device(bytes), &Attach::default())
}

#[test]
fn what_info_zip_made_is_read_as_it_was() {
    let manifest = tree();
    // Deflated, stored, and with sizes of 64 bits.
    for options in [&["-9"][..], &["-0"], &["-fz"]] {
        let bytes = archive(&manifest, options);
        let fs = attach(&bytes).expect("attach");
        assert!(fs.findings().is_empty(), "{:?}", fs.findings());
        let dev = device(&bytes);
        let attach = move || ZIP.attach(dev.clone(), &Attach::default()).expect("attach");
        let make = move || Fresh::new(attach()).reattach(attach.clone());
        Suite::reading(format!("zip {options:?}"), make, &manifest).run();
    }
}

#[test]
fn the_format_does_what_it_says() {
    assert_eq!(unkept(&ZIP, &device(&[])), [""; 0]);
    for (bytes, is_zip) in [
        (archive(&tree(), &[]), true),
        (b"PK\x05\x06".to_vec(), true),
        (vec![0; 1024], false),
    ] {
        let found = ZIP.probe(&*device(&bytes)).expect("probe");
        assert_eq!(found.is_some(), is_zip);
    }
}

#[test]
fn damage_is_an_error_at_worst() {
    let few = tree().without(Lack::FilesOver(600));
    let few = few.without(Lack::Names(|name| name.starts_with(b"entry")));
    let tally = damage::survived(&archive(&few, &[]), 2000, |bytes| attach(&bytes));
    assert!(tally.refused > 100 && tally.noticed > 100, "{tally:?}");
}

#[test]
fn what_is_cut_off_is_refused_and_a_byte_that_changed_is_noticed() {
    let few = tree().without(Lack::Names(|name| name != b"sizes" && name != b"4097"));
    let bytes = archive(&few, &["-0"]);
    let cut = attach(&bytes[..bytes.len() - 30]);
    let line = cut.err().expect("a refusal").to_string();
    assert!(line.starts_with("damaged: the end"), "{line}");
    let content = rng::pattern(4097, 4097);
    let place = bytes
        .windows(100)
        .position(|bytes| bytes == &content[..100]);
    let mut changed = bytes.clone();
    changed[place.expect("a stored file")] ^= 1;
    let fs = attach(&changed).expect("attach");
    let why = Manifest::of_volume(&fs).map(drop).expect_err("damage");
    assert!(why.contains("its checksum is another"), "{why}");
}
