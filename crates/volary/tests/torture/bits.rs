//! Each bit of the metadata of a small volume, turned over: on Cedar nothing is lost
//! and nothing is wrong without a word; on others nothing panics, and what is found
//! can be mended. `VOLARY_BITS=1` tries every bit, other numbers one in so many.

use std::sync::Arc;
use volary::block::MemDevice;
use volary::torture::{SIZE_MAX, Volume, scripts, volume};
use volary::{BlockDevice, CheckMode};
use volary_sim::tree::{self, Tree};
use volary_sim::{Subject, Traced};
use volary_testkit::suite::replay_command;
use volary_testkit::volumes::{as_root, attach_read_only, check};

const SECTOR: usize = 512;

/// One in so many bits is tried.
fn each(default: usize) -> usize {
    let given = std::env::var("VOLARY_BITS").ok();
    given.map_or(default, |n| n.parse().expect("VOLARY_BITS is a number"))
}

/// Returns which of so many bits are tried: each so and so many, or that of `VOLARY_BIT`.
fn these(count: usize, default: usize) -> impl Iterator<Item = usize> {
    let given = std::env::var("VOLARY_BIT").ok();
    let one = given.map(|n| n.parse().expect("VOLARY_BIT is a number"));
    let (first, step) = one.map_or((0, each(default)), |bit| (bit, count));
    (first..count).step_by(step)
}

/// Returns a volume after a script: as it is left, and as a power cut leaves it.
fn images(volume: &Volume) -> [Vec<u8>; 2] {
    let mut script = scripts::random(5, 80, &volume.preset_tree().unwrap(), SIZE_MAX / 4);
    script.0.push(volary::torture::Op::Sync);
    let cut = Arc::new(Traced::new(volume.make().unwrap()));
    volume.play(&script, &cut).unwrap();
    script.0.push(volary::torture::Op::Detach);
    let left = Arc::new(Traced::new(volume.make().unwrap()));
    volume.play(&script, &left).unwrap();
    [left.disk().to_vec(), cut.disk().to_vec()]
}

fn device(image: &[u8]) -> Arc<dyn BlockDevice> {
    Arc::new(MemDevice::from_vec(image.to_vec()))
}

/// Returns all that a volume holds, attached for reading.
fn read(volume: &Volume, dev: Arc<dyn BlockDevice>) -> Result<Tree, String> {
    let fs = attach_read_only(volume.format, dev, volume.attach).map_err(|e| e.to_string())?;
    as_root(|cx| tree::read(&fs, cx))
}

/// Mends a volume; what it holds then. A second check finds nothing and writes nothing.
fn mended(volume: &Volume, dev: &Arc<dyn BlockDevice>) -> Result<Tree, String> {
    let run = || check(volume.format, dev.clone(), CheckMode::Mend, "").map_err(|e| e.to_string());
    let (report, found) = run()?;
    if report.left() > 0 {
        return Err(format!("fsck -y leaves {found:?}"));
    }
    let (report, found) = run()?;
    if (report.found, report.written) != (0, 0) {
        return Err(format!("a second fsck -y finds {found:?}"));
    }
    read(volume, dev.clone())
}

/// Sectors of pages that the format made: of Cedar those that begin with its magic
/// number.
fn cedars(image: &[u8]) -> Vec<usize> {
    let magic = &image[..4];
    let all = image.chunks(SECTOR).enumerate();
    all.filter(|(_, s)| s.starts_with(magic))
        .map(|(i, _)| i)
        .collect()
}

#[test]
fn no_bit_of_cedars_metadata_loses_anything() {
    let volume = volume("cedar").unwrap();
    let step = each(801);
    for (image, was_left) in images(volume).iter().zip([true, false]) {
        let whole = read(volume, device(image)).unwrap();
        let (mut tried, mut flagged) = (0, 0);
        for sector in cedars(image) {
            let bits = sector * SECTOR * 8..(sector + 1) * SECTOR * 8;
            for bit in bits.filter(|bit| bit % step == 0) {
                let what = format!("bit {bit}, left {was_left}");
                let mut bytes = image.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let dev = device(&bytes);
                let found = read(volume, dev.clone()).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(found == whole, "{what}: another tree");
                // As every attaching recovers it, and as fsck does.
                let (report, _) = check(volume.format, dev.clone(), CheckMode::Look, "").unwrap();
                flagged += u64::from(report.found > 0);
                let found = mended(volume, &dev).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert!(found == whole, "{what}: another tree once it is mended");
                tried += 1;
            }
        }
        println!("cedar, left {was_left}: {tried} bits, {flagged} told by fsck -n");
        assert!(tried > 100 && flagged > 0);
    }
}

/// Volumes without checksums: what a bit says may be believed, but nothing panics, and
/// what `fsck -y` mends stays mended.
fn bits_of(name: &str) {
    let volume = volume(name).unwrap();
    let [image, _] = images(volume);
    let whole = read(volume, device(&image)).unwrap();
    let (mut tried, mut silent, mut refused) = (0, 0, 0);
    let mut bad = Vec::new();
    for bit in these(image.len() * 8, 601) {
        let sector = &image[bit / 8 / SECTOR * SECTOR..][..SECTOR];
        if sector.iter().all(|byte| *byte == sector[0]) {
            continue;
        }
        let mut bytes = image.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let dev = device(&bytes);
        let other = read(volume, dev.clone()).is_ok_and(|found| found != whole);
        let told = check(volume.format, dev.clone(), CheckMode::Look, "");
        tried += 1;
        silent += u64::from(other && told.is_ok_and(|(report, _)| report.found == 0));
        match check(volume.format, dev.clone(), CheckMode::Mend, "") {
            Err(_) => refused += 1,
            Ok((report, first)) => {
                let (again, then) = check(volume.format, dev, CheckMode::Mend, "").unwrap();
                if (report.left(), again.found, again.written) != (0, 0, 0) {
                    let again = replay_command("VOLARY_BIT", &bit.to_string());
                    let lines = [first.join("\n  "), then.join("\n  "), again];
                    bad.push(lines.join("\nand then\n  "));
                }
            }
        }
    }
    println!("{name}: {tried} bits, {refused} that fsck refuses, {silent} that are believed");
    let count = bad.len();
    assert!(bad.is_empty(), "{name}: {count} bits:\n{}", bad.join("\n"));
    assert!(tried > 10 || std::env::var_os("VOLARY_BIT").is_some());
}

#[test]
fn any_bit_of_fat_may_be_wrong() {
    bits_of("fat12");
    bits_of("fat32");
}

#[test]
fn any_bit_of_ffs_may_be_wrong() {
    bits_of("ffs1");
    bits_of("ffs2");
}
