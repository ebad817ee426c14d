//! Volumes that claim more than there is: what they claim is refused, so that it costs neither time
//! nor memory.

use crate::images::{Images, can_make, can_mount};
use crate::{attach_as, file, memory, tools};
use std::fs;
use volary_core::{Format, Kind, Mode, Name, NodeId};
use volary_ntfs::NTFS;
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;
const STRIDE: usize = 512;

/// A volume in memory, whose records can be changed.
struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Returns where a record stands.
    fn record(&self, which: &str) -> usize {
        let text = tools::dump(&memory(self.bytes.clone()), &format!("record {which}"));
        let rest = text.split("at byte ").nth(1).expect("a place");
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// Returns where the first attribute of a type stands in a record.
    fn attr(&self, record: usize, kind: u32) -> usize {
        let mut at = record + usize::from(self.bytes[record + 20]);
        while self.word(at) != kind {
            assert_ne!(self.word(at), u32::MAX, "no attribute {kind:#x}");
            at += self.word(at + 4) as usize;
        }
        at
    }

    /// Writes bytes that do not touch the last words of sectors.
    fn put(&mut self, at: usize, bytes: &[u8]) {
        let strides = [at % STRIDE, (at + bytes.len() - 1) % STRIDE];
        assert!(strides.iter().all(|within| *within < STRIDE - 2));
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn find(&self, options: &str, name: &str) -> volary_core::Result<NodeId> {
        let fs = attach_as(memory(self.bytes.clone()), options)?;
        as_root(|cx| Ok(fs.lookup(cx, fs.root(), Name::new(name.as_bytes())?)?.node))
    }

    /// Reads a file from its start.
    fn read(&self, name: &str) -> volary_core::Result<usize> {
        let fs = attach_as(memory(self.bytes.clone()), "")?;
        as_root(|cx| {
            let node = fs.lookup(cx, fs.root(), Name::new(name.as_bytes())?)?.node;
            let open = fs.open(cx, node, Mode::Read)?;
            fs.read(cx, open, 0, &mut [0; 5000])
        })
    }

    fn found(&self) -> Vec<String> {
        tools::check(&memory(self.bytes.clone()))
    }
}

fn volume(fill: impl FnOnce(&std::path::Path)) -> Option<Image> {
    can_mount().then(|| {
        let images = Images::new();
        let image = images.filled("", 6 * MIB, fill);
        Image {
            bytes: fs::read(image).expect("an image"),
        }
    })
}

#[test]
fn a_torn_record_is_told_with_its_place() {
    let Some(mut image) = volume(|dir| fs::write(dir.join("file"), "x").unwrap()) else {
        return;
    };
    let record = image.record("/file");
    image.bytes[record + 1022] ^= 1;
    let e = image.find("", "file").unwrap_err();
    assert_eq!(e, Kind::Corrupt);
    let at = e.as_corrupt().map(|corrupt| corrupt.offset);
    assert_eq!(at, Some(record as u64 + 1022), "{e}");
    assert!(image.found().iter().any(|line| line.contains("torn")));
}

#[test]
fn sizes_that_are_claimed_cost_nothing() {
    let Some(image) = volume(|dir| fs::write(dir.join("file"), [7; 9000]).unwrap()) else {
        return;
    };
    let record = image.record("/file");
    let data = image.attr(record, 0x80);
    // Allocated, in use, initialized.
    for (place, value) in [
        (40, 1u64 << 50),
        (48, 1 << 61),
        (56, u64::MAX),
        (24, 1 << 40),
    ] {
        let mut image = Image {
            bytes: image.bytes.clone(),
        };
        image.put(data + place, &value.to_le_bytes());
        let read = image.read("file");
        assert!(read.is_err() || read == Ok(5000), "{place}: {read:?}");
        assert!(!image.found().is_empty(), "{place}");
    }
}

#[test]
fn a_compressed_unit_of_rubbish_is_refused() {
    let Some(mut image) = volume(|dir| fs::write(dir.join("file"), [0xff; 9000]).unwrap()) else {
        return;
    };
    let data = image.attr(image.record("/file"), 0x80);
    image.put(data + 12, &[1]);
    image.put(data + 34, &[4]);
    assert_eq!(image.read("file").unwrap_err(), Kind::Corrupt);
    image.put(data + 34, &[63]);
    assert_eq!(image.read("file").unwrap_err(), Kind::Corrupt);
    image.put(data + 12, &[2]);
    assert_eq!(image.read("file").unwrap_err(), Kind::Unsupported);
}

#[test]
fn encrypted_files_are_listed_and_refused() {
    let Some(mut image) = volume(|dir| fs::write(dir.join("file"), [7; 9000]).unwrap()) else {
        return;
    };
    let data = image.attr(image.record("/file"), 0x80);
    image.put(data + 13, &[0x40]);
    assert!(image.find("", "file").is_ok());
    let e = image.read("file").unwrap_err();
    assert_eq!(e, Kind::Unsupported);
    assert!(e.to_string().contains("encrypted"), "{e}");
}

#[test]
fn a_tree_that_leads_to_itself_ends() {
    let names = |dir: &std::path::Path| {
        for n in 0..200 {
            fs::write(dir.join(format!("name of number {n}")), "").unwrap();
        }
    };
    let Some(image) = volume(names) else { return };
    let listed = tools::dump(&memory(image.bytes.clone()), "index");
    let place = |title: &str| -> usize {
        let rest = listed.split(title).nth(1).expect("a block");
        let rest = rest.split("at byte ").nth(1).expect("a place");
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits
            .and_then(|digits| digits.parse().ok())
            .expect("a number")
    };
    // The first entry of each block gets one below it: the block itself.
    let mut bytes = image.bytes.clone();
    for block in 0..3 {
        let at = place(&format!("block {block},"));
        let entries = at + 24 + image.word(at + 24) as usize;
        let len = usize::from(bytes[entries + 8]);
        bytes[entries + 12] |= 1;
        bytes[entries + len - 8..entries + len].copy_from_slice(&(block as u64).to_le_bytes());
    }
    let image = Image { bytes };
    for n in 0..200 {
        let _ = image.find("", &format!("name of number {n}"));
    }
    let found = image.found();
    assert!(
        found
            .iter()
            .any(|line| line.contains("wrongly") || line.starts_with("index")),
        "{found:?}"
    );
}

#[test]
fn the_mirror_stands_in_for_the_first_records() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let path = images.made("a.img", "", 6 * MIB);
    let whole = Image {
        bytes: fs::read(path).expect("an image"),
    };
    for number in ["0", "3"] {
        let record = whole.record(number);
        let mut bytes = whole.bytes.clone();
        bytes[record..record + 1024].fill(0x5a);
        let image = Image { bytes };
        assert!(
            attach_as(memory(image.bytes.clone()), "").is_ok(),
            "{number}"
        );
        assert!(
            image
                .found()
                .iter()
                .any(|line| line.starts_with("record: ")),
            "{number}"
        );
    }
}

#[test]
fn the_replica_of_the_boot_sector_is_found() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let path = images.made("a.img", "", 6 * MIB);
    assert_eq!(NTFS.replica(&*file(&path)).unwrap(), None);
    let mut bytes = fs::read(path).expect("an image");
    let first = bytes[..512].to_vec();
    bytes[..512].fill(0);
    let replica = NTFS
        .replica(&*memory(bytes.clone()))
        .unwrap()
        .expect("a replica");
    assert!(replica.is_confirmed && replica.bytes == first);
    assert_eq!((replica.home, replica.at), (0, bytes.len() as u64 - 512));
    let last = bytes.len() - 500;
    bytes[last] ^= 0xff;
    assert_eq!(NTFS.replica(&*memory(bytes)).unwrap(), None);
}

#[test]
fn a_volume_that_is_marked_is_read_with_a_word_about_it() {
    if !can_make() {
        return;
    }
    let images = Images::new();
    let path = images.made("a.img", "", 6 * MIB);
    let mut image = Image {
        bytes: fs::read(path).expect("an image"),
    };
    let flags = image.attr(image.record("3"), 0x70) + 24 + 10;
    image.put(flags, &[1]);
    let fs = attach_as(memory(image.bytes.clone()), "").expect("attach");
    let told = fs.findings();
    assert_eq!((told.len(), told[0].code), (1, "not-clean"));
    assert!(fs.findings().is_empty());
}
