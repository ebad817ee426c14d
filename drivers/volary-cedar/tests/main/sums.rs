//! Checksums of data: a device that has changed a byte is told, wherever it is, and nothing
//! else is refused.

use crate::volumes::{attach, check, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_cedar::CEDAR;
use volary_core::{
    BlockDevice, CheckMode, Create, Extent, Fs, Kind, Mode, Name, Place, Result, SetAttr,
};
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::volumes::{self, Shape, as_root};

const SHAPE: Shape = shape(8 << 20).made("page=512,log=642k,checksums");
const LEN: usize = 30_000;

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

/// Makes a file, in pieces of this length.
fn put(fs: &Fs, path: &str, content: &[u8], piece: usize) {
    as_root(|cx| {
        let set = SetAttr::default();
        let (_, open) = fs.create(cx, fs.root(), name(path), Create::Truncate, &set)?;
        for part in content.chunks(piece) {
            fs.write(cx, open, None, part)?;
        }
        fs.close(cx, open)
    })
    .unwrap();
}

/// Writes into a file, at this place.
fn patch(fs: &Fs, path: &str, at: u64, data: &[u8]) {
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name(path))?.node;
        let open = fs.open(cx, node, Mode::Write)?;
        fs.write(cx, open, Some(at), data)?;
        fs.close(cx, open)
    })
    .unwrap();
}

/// Reads a file, in pieces of this length.
fn get(fs: &Fs, path: &str, piece: usize) -> Result<Vec<u8>> {
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name(path))?.node;
        let open = fs.open(cx, node, Mode::Read)?;
        let (mut out, mut buf) = (Vec::new(), vec![0; piece]);
        let read = loop {
            match fs.read(cx, open, out.len() as u64, &mut buf) {
                Ok(0) => break Ok(()),
                Ok(len) => out.extend(&buf[..len]),
                Err(e) => break Err(e),
            }
        };
        fs.close(cx, open)?;
        read.map(|()| out)
    })
}

/// Returns where a byte of a file is on the device.
fn place(fs: &Fs, path: &str, at: u64) -> u64 {
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name(path))?.node;
        let open = fs.open(cx, node, Mode::Read)?;
        let mut found: Vec<Extent> = Vec::new();
        fs.extents(cx, open, at, 1, &mut found)?;
        fs.close(cx, open)?;
        match found.first().map(|e| &e.place) {
            Some(Place::Device(start)) => Result::Ok(*start),
            other => panic!("{other:?}"),
        }
    })
    .unwrap()
}

fn leave(fs: &Fs) {
    as_root(|cx| fs.detach(cx)).unwrap();
}

/// Changes one bit on a device.
fn flip(dev: &MemDevice, at: u64) {
    let mut byte = [0; 512];
    let start = at - at % 512;
    dev.read_at(start, &mut byte).unwrap();
    byte[(at % 512) as usize] ^= 0x10;
    dev.write_at(start, &byte).unwrap();
}

#[test]
fn one_bit_that_changed_is_told_and_the_rest_is_read() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    let content = pattern(1, LEN);
    put(&fs, "hit", &content, 777);
    put(&fs, "whole", &content, LEN);
    let at = place(&fs, "hit", 12_345);
    leave(&fs);
    flip(&dev, at);

    let fs = attach(dev.clone(), "");
    assert_eq!(get(&fs, "whole", 4096).unwrap(), content);
    for piece in [100, 512, 5000, LEN] {
        let e = get(&fs, "hit", piece).unwrap_err();
        assert_eq!(e.kind(), Kind::Corrupt);
        let words = e.to_string();
        let unit = at - at % 512;
        assert!(words.contains(&unit.to_string()), "{words}: not {unit}");
        assert!(words.contains("12288"), "{words}");
    }
    leave(&fs);
    let fs = attach(dev.clone(), "checksums=ignore");
    let found = get(&fs, "hit", 4096).unwrap();
    let differ = found.iter().zip(&content).filter(|(a, b)| a != b).count();
    assert_eq!((found.len(), differ), (LEN, 1));
    leave(&fs);

    let (report, _) = check(dev.clone(), CheckMode::Look);
    assert_eq!(report.found, 0, "data is read only if that is asked for");
    let look = |mode| volumes::check(&CEDAR, dev.clone(), mode, "data").unwrap();
    let (report, found) = look(CheckMode::Look);
    assert_eq!((report.found, report.left()), (1, 1), "{found:?}");
    assert!(found[0].starts_with("data: "), "{found:?}");
    let (report, _) = look(CheckMode::Preen);
    assert_eq!(
        (report.left(), report.written),
        (1, 0),
        "no cut leaves that"
    );
    assert_eq!(look(CheckMode::Mend).0.left(), 0);
    let (report, found) = look(CheckMode::Mend);
    assert_eq!((report.found, report.written), (0, 0), "{found:?}");
    let fs = attach(dev, "");
    assert_eq!(get(&fs, "hit", 4096).unwrap().len(), LEN);
}

#[test]
fn every_bit_of_a_small_file_is_covered() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    put(&fs, "small", &pattern(3, 700), 700);
    let at = place(&fs, "small", 0);
    leave(&fs);
    for byte in 0..700 {
        flip(&dev, at + byte);
        let fs = attach(dev.clone(), "");
        assert!(get(&fs, "small", 4096).is_err(), "byte {byte}");
        leave(&fs);
        flip(&dev, at + byte);
    }
    // What is behind the end is nobody's.
    flip(&dev, at + 700);
    let fs = attach(dev, "");
    assert_eq!(get(&fs, "small", 4096).unwrap(), pattern(3, 700));
}

#[test]
fn what_is_changed_by_any_way_is_covered_after() {
    let mut rng = Rng::new(5);
    for seed in 0..60 {
        let dev = SHAPE.device();
        let fs = attach(dev.clone(), "");
        let mut content = pattern(seed, 1 + rng.index(60_000));
        put(&fs, "f", &content, 1 + rng.index(9000));
        for _ in 0..rng.index(5) {
            let at = rng.index(content.len() + 900);
            let data = pattern(seed + 7, 1 + rng.index(5000));
            match rng.index(3) {
                0 => {
                    let size = SetAttr::size(at as u64);
                    let node = as_root(|cx| fs.lookup(cx, fs.root(), name("f"))).unwrap();
                    as_root(|cx| fs.setattr(cx, node.node, &size)).unwrap();
                    content.resize(at, 0);
                }
                _ => {
                    patch(&fs, "f", at as u64, &data);
                    content.resize(content.len().max(at + data.len()), 0);
                    content[at..at + data.len()].copy_from_slice(&data);
                }
            }
            if content.is_empty() {
                content.push(1);
                patch(&fs, "f", 0, &content);
            }
        }
        assert_eq!(get(&fs, "f", 4096).unwrap(), content, "seed {seed}");
        let at = place(&fs, "f", rng.index(content.len()) as u64);
        leave(&fs);
        let (report, found) = volumes::check(&CEDAR, dev.clone(), CheckMode::Look, "data").unwrap();
        assert_eq!(report.found, 0, "seed {seed}: {found:?}");
        flip(&dev, at);
        let fs = attach(dev, "");
        assert!(get(&fs, "f", 4096).is_err(), "seed {seed}");
    }
}

#[test]
fn large_files_have_longer_units() {
    let shape = shape(48 << 20).made("log=1440k,checksums");
    let dev = shape.device();
    let fs = attach(dev.clone(), "");
    let content = pattern(8, 12 << 20);
    put(&fs, "large", &content, 1 << 20);
    // Not in order: this one is read to be summed.
    put(&fs, "other", &content[..5_000_000], 1 << 20);
    patch(&fs, "other", 2_000_000, &content[..10]);
    let at = [
        place(&fs, "large", 7_654_321),
        place(&fs, "other", 4_999_999),
    ];
    assert_eq!(get(&fs, "large", 100_000).unwrap(), content);
    leave(&fs);
    at.into_iter().for_each(|at| flip(&dev, at));
    let fs = attach(dev, "");
    for (path, piece) in [("large", 4096), ("large", 1 << 20), ("other", 4096)] {
        assert!(get(&fs, path, piece).is_err(), "{path} by {piece}");
    }
}

#[test]
fn older_versions_keep_theirs() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    put(&fs, "f", &pattern(1, 2000), 2000);
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name("f"))?.node;
        fs.setxattr(cx, node, b"user.cedar.keep", b"3")
    })
    .unwrap();
    put(&fs, "f", &pattern(2, 3000), 3000);
    assert_eq!(get(&fs, "f!1", 4096).unwrap(), pattern(1, 2000));
    let at = place(&fs, "f!1", 1999);
    leave(&fs);
    flip(&dev, at);
    let fs = attach(dev, "");
    assert!(get(&fs, "f!1", 4096).is_err());
    assert_eq!(get(&fs, "f", 4096).unwrap(), pattern(2, 3000));
}

#[test]
fn a_volume_without_them_is_as_it_was() {
    let dev = Arc::new(MemDevice::new(8 << 20));
    volumes::make(&CEDAR, dev.clone(), "cedar", "page=512,log=642k");
    let fs = attach(dev.clone(), "");
    put(&fs, "f", &pattern(1, 2000), 2000);
    let at = place(&fs, "f", 100);
    leave(&fs);
    flip(&dev, at);
    assert_eq!(get(&attach(dev, ""), "f", 4096).unwrap().len(), 2000);
}
