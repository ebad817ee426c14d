//! Damage made by hand to take long: the work must stay in proportion to the
//! volume. Steps along chains are bounded by the check itself, which gives up
//! with an error; requests to the device are counted here.

use crate::check::base::base;
use crate::check::image::Image;
use crate::check::run::{Checked, assert_clean, check, show};
use volary_core::CheckMode;

fn link(image: &mut Image, chain: &[u32]) {
    for pair in chain.windows(2) {
        image.set_fat(pair[0], pair[1]);
    }
    image.set_fat(*chain.last().unwrap(), image.end());
}

fn entry(image: &mut Image, at: usize, name: &[u8; 11], attr: u8, start: u32, size: u32) {
    image.bytes[at..at + 32].fill(0);
    image.bytes[at..at + 11].copy_from_slice(name);
    image.bytes[at + 11] = attr;
    image.set_start(at, start);
    image.set_size(at, size);
}

/// Dots at the start of a directory.
fn dots(image: &mut Image, cluster: u32, parent: u32) {
    let at = image.cluster_at(cluster);
    image.bytes[at..at + image.cluster].fill(0);
    entry(image, at, b".          ", 0x10, cluster, 0);
    entry(image, at + 32, b"..         ", 0x10, parent, 0);
}

/// Returns a new directory in the root with room for some entries: their places.
fn directory(image: &mut Image, count: usize) -> Vec<usize> {
    let chain = image.free_many((count + 2).div_ceil(image.cluster / 32));
    link(image, &chain);
    for &n in &chain {
        let at = image.cluster_at(n);
        image.bytes[at..at + image.cluster].fill(0);
    }
    dots(image, chain[0], 0);
    let slot = image.end_slot(0);
    entry(image, slot, b"HEAVY      ", 0x10, chain[0], 0);
    image.slots(chain[0])[2..count + 2].to_vec()
}

fn number(n: usize) -> [u8; 11] {
    format!("{n:08}   ").into_bytes().try_into().unwrap()
}

/// Checks in every mode; what mending did. At most `requests` reads each.
fn in_every_mode(image: &Image, requests: usize, about: &str) -> Checked {
    for mode in [CheckMode::Look, CheckMode::Preen, CheckMode::Mend] {
        let done = check(&image.bytes, mode, "");
        let report = done.report.as_ref();
        let report = report.unwrap_or_else(|e| panic!("{about} {mode:?}: {e}"));
        assert!(
            done.reads <= requests,
            "{about} {mode:?}: {} reads",
            done.reads
        );
        if mode == CheckMode::Mend {
            assert_eq!(report.left(), 0, "{about}: {}", show(&done.findings));
            assert_clean(&done.bytes, about, &[]);
            let again = check(&done.bytes, CheckMode::Look, "");
            assert_eq!(again.codes(), [""; 0], "{about}");
            return done;
        }
    }
    unreachable!("the last mode returns");
}

#[test]
fn many_files_that_share_a_long_chain_take_no_time() {
    // All at its start, and each at another cluster of it.
    for step in [0, 2] {
        let mut image = base("fat16");
        let places = directory(&mut image, 2000);
        let chain = image.free_many(5000);
        link(&mut image, &chain);
        let cluster = image.cluster as u32;
        for (i, &at) in places.iter().enumerate() {
            let from = i * step;
            let size = (chain.len() - from) as u32 * cluster;
            entry(&mut image, at, &number(i), 0x20, chain[from], size);
        }
        in_every_mode(&image, 400_000, &format!("every {step}. cluster"));
    }
}

#[test]
fn many_files_of_one_name_take_no_time() {
    let mut image = base("fat16");
    for at in directory(&mut image, 4000) {
        entry(&mut image, at, b"SAME    TXT", 0x20, 0, 0);
    }
    let done = in_every_mode(&image, 200_000, "one name");
    // A thousand are told; all are counted and mended.
    assert_eq!(done.codes().len(), 1000);
    assert_eq!(done.report.expect("a report").found, 3999);
}

#[test]
fn directories_in_directories_take_no_time() {
    let mut image = base("fat16");
    let chain = image.free_many(4000);
    for (i, &n) in chain.iter().enumerate() {
        let parent = if i == 0 { 0 } else { chain[i - 1] };
        image.set_fat(n, image.end());
        dots(&mut image, n, parent);
        let slot = match i {
            0 => image.end_slot(0),
            _ => image.cluster_at(parent) + 64,
        };
        entry(&mut image, slot, b"DEEPER     ", 0x10, n, 9);
    }
    let done = in_every_mode(&image, 2_000_000, "deep");
    let last = done.findings.last().unwrap().path.as_ref().unwrap();
    let last = String::from_utf8_lossy(last);
    assert!(last.starts_with("/\u{2026}/DEEPER/"), "{last}");
    assert!(last.len() < 800, "{last}");
}
