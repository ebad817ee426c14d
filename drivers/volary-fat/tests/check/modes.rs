//! Options, answers, and which of two names stays.

use crate::check::base::{KINDS, base};
use crate::check::image::Image;
use crate::check::reader::files;
use crate::check::run::{Ram, check};
use std::sync::Arc;
use volary_core::{Answer, Check, CheckMode, Finding, Format, Kind, Options, Quiet, Time};
use volary_fat::FAT;

/// Returns a volume with a lost chain of one cluster.
fn with_lost_chain(kind: &str) -> Image {
    let mut image = base(kind);
    let n = image.free();
    image.set_fat(n, image.end());
    image
}

#[test]
fn what_is_refused_stays_and_is_asked_once() {
    let mut image = with_lost_chain("fat16");
    let at = image.find("DIR1").at;
    image.set_size(at, 5);
    let dev = Arc::new(Ram::new(&image.bytes));
    let how = Check {
        mode: CheckMode::Ask,
        now: Time::from_secs(1_700_000_000),
        options: Options::new(),
    };
    let mut asked = Vec::new();
    let mut answer = |f: &Finding| {
        asked.push(f.code);
        if f.code == "dir-size" {
            Answer::Yes
        } else {
            Answer::No
        }
    };
    let report = FAT.check(dev.clone(), &how, &mut answer, &Quiet).unwrap();
    assert_eq!(asked, ["dir-size", "lost-chain"]);
    assert_eq!((report.found, report.mended), (2, 1));
    let left = check(&dev.bytes(), CheckMode::Look, "");
    assert_eq!(left.codes(), ["lost-chain"]);
}

#[test]
fn lost_chains_are_freed_where_that_is_asked_for() {
    for kind in KINDS {
        let image = with_lost_chain(kind);
        let done = check(&image.bytes, CheckMode::Mend, "lost=free");
        let after = files(&Image::new(done.bytes.clone()).unwrap());
        assert_eq!(after, files(&image), "{kind}");
        assert_eq!(
            check(&done.bytes, CheckMode::Look, "").codes(),
            [""; 0],
            "{kind}"
        );
    }
}

#[test]
fn preening_saves_lost_chains_where_that_is_asked_for() {
    for kind in KINDS {
        let done = check(&with_lost_chain(kind).bytes, CheckMode::Preen, "lost=save");
        let after = files(&Image::new(done.bytes.clone()).unwrap());
        assert!(after.contains_key("/lost+found/FSCK0000.REC"), "{kind}");
        assert_eq!(
            check(&done.bytes, CheckMode::Look, "").codes(),
            [""; 0],
            "{kind}"
        );
    }
}

#[test]
fn an_unknown_option_is_refused() {
    let done = check(&base("fat12").bytes, CheckMode::Look, "lots=free");
    assert_eq!(done.report.unwrap_err(), Kind::Invalid);
}

#[test]
fn the_new_name_of_a_renamed_directory_stays_as_its_dot_dot_says() {
    for kind in KINDS {
        let mut image = base(kind);
        let old = image.find("DIR1/SUB").at;
        let raw: Vec<u8> = image.bytes[old..old + 32].to_vec();
        let sub = image.start(old);
        let above = image.start(image.find("DIR2").at);
        let new = image.slots(above)[3];
        image.bytes[new..new + 32].copy_from_slice(&raw);
        let dot_dot = image.slots(sub)[1];
        image.set_start(dot_dot, above);
        let done = check(&image.bytes, CheckMode::Preen, "");
        let after = files(&Image::new(done.bytes.clone()).unwrap());
        assert!(
            after.contains_key("/DIR2/SUB/DEEP.BIN"),
            "{kind}: {:?}",
            done.codes()
        );
        assert!(!after.contains_key("/DIR1/SUB/DEEP.BIN"), "{kind}");
        assert_eq!(
            check(&done.bytes, CheckMode::Look, "").codes(),
            [""; 0],
            "{kind}"
        );
    }
}

#[test]
fn the_new_name_of_a_renamed_file_stays_as_its_birth_says() {
    for kind in KINDS {
        for later in [false, true] {
            let mut image = base(kind);
            let one = image.find("ONEBIN").at;
            let two = image.slots(image.start(image.find("DIR2").at))[3];
            let mut raw: Vec<u8> = image.bytes[one..one + 32].to_vec();
            raw[..11].copy_from_slice(b"MOVED      ");
            image.bytes[two..two + 32].copy_from_slice(&raw);
            let new = if later { two } else { one };
            image.bytes[new + 13] += 1;
            let done = check(&image.bytes, CheckMode::Preen, "");
            assert_eq!(
                done.report.as_ref().map(|r| r.left()),
                Ok(0),
                "{kind}: {:?}",
                done.codes()
            );
            let after = files(&Image::new(done.bytes.clone()).unwrap());
            assert_eq!(after.contains_key("/DIR2/MOVED"), later, "{kind}");
            assert_eq!(after.contains_key("/ONE.BIN"), !later, "{kind}");
        }
    }
}
