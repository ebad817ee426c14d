//! Random bytes of metadata changed.

use crate::check::base::{KINDS, base};
use crate::check::cuts::cut;
use crate::check::image::Image;
use crate::check::reader::files;
use crate::check::run::{assert_kept, check, mend, show};
use volary_core::CheckMode;

/// Returns how many seeds; `FSCK_SEEDS=FROM..TO` replays or soaks.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let Ok(text) = std::env::var("FSCK_SEEDS") else {
        return 0..default;
    };
    let (from, to) = text.split_once("..").expect("FSCK_SEEDS=FROM..TO");
    from.parse().unwrap()..to.parse().unwrap()
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }
}

/// Byte offsets of all metadata past the boot sectors: the FATs' used part as
/// one, and all directories.
fn spots(image: &Image) -> (Vec<usize>, Vec<usize>) {
    let fat: Vec<usize> = (0..image
        .fat_len
        .min(image.clusters as usize * image.bits as usize / 8))
        .collect();
    let mut dirs = Vec::new();
    let mut todo = vec![0];
    let mut seen = Vec::new();
    while let Some(dir) = todo.pop() {
        for at in image.slots(dir) {
            let raw = &image.bytes[at..at + 32];
            // fsck.fat takes any byte past 0x7F in a label for damage.
            if raw[11] == 8 {
                continue;
            }
            dirs.push(at);
            let start = image.start(at);
            if raw[11] == 0x10 && raw[0] != b'.' && raw[0] != 0xe5 && !seen.contains(&start) {
                seen.push(start);
                todo.push(start);
            }
        }
    }
    (fat, dirs)
}

/// Returns a base volume with some bytes changed.
fn damaged(kind: &str, seed: u64) -> Image {
    let mut image = base(kind);
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..20 {
        r.below(2);
    }
    let (fat, dirs) = spots(&image);
    for _ in 0..=r.below(12) {
        let value = match r.below(4) {
            0 => 0,
            1 => 0xff,
            _ => r.below(256) as u8,
        };
        if r.below(3) == 0 {
            let at = fat[r.below(fat.len().min(600))];
            for copy in 0..image.fats {
                let at = image.reserved + copy * image.fat_len + at;
                image.bytes[at] = value;
            }
        } else {
            let live: Vec<usize> = dirs
                .iter()
                .copied()
                .filter(|&d| image.bytes[d] != 0)
                .collect();
            let at = live[r.below(live.len())] + r.below(32);
            image.bytes[at] = value;
        }
    }
    image
}

#[test]
fn random_damage_is_mended() {
    for seed in seeds(60) {
        for kind in KINDS {
            let about = format!("FSCK_SEEDS={seed}..{} {kind}", seed + 1);
            let image = damaged(kind, seed);
            let before = files(&image);
            let done = mend(&image.bytes, &about);
            assert_kept(&before, &done, &about);
        }
    }
}

#[test]
fn random_damage_is_mended_in_spite_of_power_cuts() {
    for seed in seeds(12) {
        for kind in KINDS {
            let about = format!("FSCK_SEEDS={seed}..{} {kind}", seed + 1);
            cut(&damaged(kind, seed).bytes, &about);
        }
    }
}

#[test]
fn preening_random_damage_mends_all_or_writes_nothing() {
    for seed in seeds(60) {
        for kind in KINDS {
            let image = damaged(kind, seed);
            let done = check(&image.bytes, CheckMode::Preen, "");
            let Ok(report) = &done.report else {
                continue;
            };
            let about = format!("FSCK_SEEDS={seed}..{} {kind}", seed + 1);
            if report.left() > 0 {
                assert!(!done.wrote(), "{about}: {}", show(&done.findings));
            }
        }
    }
}

#[test]
fn boot_sectors_and_all_else_of_any_bytes_never_panic() {
    for seed in seeds(60) {
        for kind in KINDS {
            let mut image = base(kind);
            let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let system = image.data + 8 * image.cluster;
            for _ in 0..=r.below(40) {
                let at = if r.below(2) == 0 {
                    r.below(96)
                } else {
                    r.below(system)
                };
                image.bytes[at] = r.below(256) as u8;
            }
            let done = check(&image.bytes, CheckMode::Mend, "");
            if done.report.is_ok_and(|r| r.left() == 0) {
                let again = check(&done.bytes, CheckMode::Mend, "");
                let about = format!("FSCK_SEEDS={seed}..{} {kind}", seed + 1);
                assert!(
                    !again.wrote(),
                    "{about}: {}\nthen {}",
                    show(&done.findings),
                    show(&again.findings)
                );
            }
        }
    }
}
