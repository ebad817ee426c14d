//! One bit turned over in each structure: it is told, nothing panics, and nothing takes long.

use crate::images::{Images, can_mount, fill};
use crate::{attach_as, memory, tools};
use std::fs;
use std::sync::Arc;
use volary_core::{BlockDevice, Format};
use volary_ntfs::NTFS;
use volary_testkit::rng::Rng;
use volary_testkit::volumes::look;

/// Returns everything that can be asked of a volume; the findings of its check.
fn ask(dev: &Arc<dyn BlockDevice>, nodes: usize) -> Option<Vec<String>> {
    for options in ["", "show_sys_files,permissions"] {
        if let Ok(fs) = attach_as(dev.clone(), options) {
            look(&fs, nodes, |_| ());
        }
    }
    let _ = (NTFS.info(dev.clone()), NTFS.map(dev.clone(), 100));
    for what in [
        "boot",
        "record 0",
        "record /size4096",
        "list /size4096",
        "runs 0",
        "index",
        "security /few",
    ] {
        let what: Vec<String> = what.split(' ').map(Into::into).collect();
        let _ = NTFS.dump(dev.clone(), &what, &mut String::new());
    }
    let how = volary_core::Check {
        mode: volary_core::CheckMode::Look,
        now: volary_core::Time::EPOCH,
        options: volary_core::Options::new(),
    };
    let mut found = Vec::new();
    let mut tell = |finding: &volary_core::Finding| {
        found.push(format!("{}: {}", finding.code, finding.message));
        volary_core::Answer::No
    };
    let done = NTFS.check(dev.clone(), &how, &mut tell, &volary_core::Quiet);
    done.is_ok().then_some(found)
}

/// Returns a volume of many kinds of files, and its bytes.
fn volume(images: &Images) -> Vec<u8> {
    let image = images.filled("-c 1024", 6 << 20, |dir| {
        fill(dir);
        // What makes the volume large is not looked at here.
        for name in ["size300000", "size70000", "sparse", "many"] {
            let path = dir.join(name);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    });
    fs::read(image).expect("an image")
}

/// Returns the byte after the words "at byte".
fn place(text: &str) -> u64 {
    let rest = text.split("at byte ").nth(1).expect("a place");
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    digits
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

#[test]
fn a_bit_turned_over_in_any_structure_is_told() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let good = volume(&images);
    let dev = memory(good.clone());
    let record = |which: &str| place(&tools::dump(&dev, &format!("record {which}")));
    let in_use = |which: &str| {
        let text = tools::dump(&dev, &format!("record {which}"));
        let line = text.lines().find(|line| line.contains("bytes in use"));
        let words = line.and_then(|line| line.split_whitespace().nth(3));
        words
            .and_then(|word| word.parse::<u64>().ok())
            .expect("a number")
    };
    // What has a check sum, or stands twice, is told whatever the bit is; of the rest, what leads
    // somewhere.
    let places: Vec<(u64, u64)> = vec![
        (0xb, 3),
        (0x28, 0x18),
        (0x40, 1),
        (record("0") + 56, in_use("0") - 56),
        (record("1") + 56, in_use("1") - 56),
        (record("5") + 510, 2),
        (record("/size4096") + 4, 4),
        (record("/few") + 20, 3),
        (record("/size4096") + 56, 8),
        (record("6") + 56, 8),
        (record("/size1024") + 16, 4),
    ];
    for (at, len) in places {
        for step in 0..10 {
            let byte = at + step * 7919 % len;
            let mut bytes = good.clone();
            bytes[usize::try_from(byte).unwrap()] ^= 1 << (step % 8);
            // Without a check there is no volume to speak of: that was told.
            if let Some(found) = ask(&memory(bytes), 30) {
                assert!(
                    !found.is_empty(),
                    "byte {byte}, {} past {at}, step {step}",
                    byte - at
                );
            }
        }
    }
}

#[test]
fn bits_that_are_turned_over_anywhere_do_no_harm() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let good = volume(&images);
    let dev = memory(good.clone());
    let hot = [
        "0",
        "5",
        "6",
        "9",
        "10",
        "/few",
        "/size4096",
        "/size1024",
        "/link60",
    ];
    let hot: Vec<u64> = hot
        .iter()
        .map(|which| place(&tools::dump(&dev, &format!("record {which}"))))
        .collect();
    let index = place(
        tools::dump(&dev, "index")
            .split_once("block 0")
            .expect("a block")
            .1,
    );
    let mut rng = Rng::new(11);
    let turns = if crate::large::all() { 3000 } else { 60 };
    for turn in 0..turns {
        let mut bytes = good.clone();
        for _ in 0..=rng.below(6) {
            let at = match rng.below(10) {
                0 => index,
                _ => hot[usize::try_from(rng.below(hot.len() as u64)).unwrap()],
            };
            let byte = usize::try_from(at + rng.below(600)).unwrap();
            bytes[byte] = match turn % 2 {
                0 => bytes[byte] ^ 1 << rng.below(8),
                _ => u8::try_from(rng.below(256)).unwrap(),
            };
        }
        ask(&memory(bytes), 40);
    }
}
