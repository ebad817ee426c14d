//! What the format says of a volume.

use crate::images::{Images, XORRISO};
use crate::{attach, device, hand};
use volary_core::{CheckMode, Format, Kind, Make, Quiet, Tune};
use volary_iso9660::ISO9660;
use volary_testkit::oracle::have;
use volary_testkit::volumes::{self, as_root};
use volary_testkit::{Fresh, Suite};

fn check(bytes: &[u8]) -> Vec<String> {
    let (_, found) = volumes::check(&ISO9660, device(bytes), CheckMode::Look, "").expect("a check");
    found
}

#[test]
fn the_suite_holds() {
    Suite::new("iso9660", || Fresh::new(attach(&hand::in_sections()))).run();
    if have(&[XORRISO]) {
        let bytes = std::fs::read(Images::new().xorriso()).expect("image");
        Suite::new("iso9660 with Rock Ridge", move || {
            Fresh::new(attach(&bytes))
        })
        .run();
    }
}

#[test]
fn good_volumes_are_clean_and_damage_is_told() {
    assert_eq!(check(&hand::in_sections()), [""; 0]);
    let mut cut = hand::in_sections();
    cut.truncate(45 * 2048);
    let told = check(&cut);
    assert!(told[0].starts_with("truncated: "), "{told:?}");
    assert!(told.iter().any(|t| t.starts_with("extent: ")), "{told:?}");
    let mut bytes = hand::in_sections();
    // The byte order that is not read of the first file's place.
    bytes[20 * 2048 + 68 + 6] ^= 1;
    let told = check(&bytes);
    assert!(told[0].starts_with("byte-order: "), "{told:?}");
    let mut bytes = hand::in_sections();
    bytes[20 * 2048 + 68] = 20;
    let told = check(&bytes);
    assert!(told[0].starts_with("record: "), "{told:?}");
    let mut bytes = hand::in_sections();
    bytes[18 * 2048 + 2] = 55;
    let told = check(&bytes);
    assert!(told[0].starts_with("path-table: "), "{told:?}");
}

#[test]
fn what_is_booted_is_told() {
    let mut image = hand::Image::new();
    image.put(17, 0, b"\0CD001\x01EL TORITO SPECIFICATION");
    image.put(17, 71, &19u32.to_le_bytes());
    let mut entry = [0; 32];
    (entry[0], entry[30], entry[31]) = (1, 0x55, 0xaa);
    let sum = 0u16.wrapping_sub(1).wrapping_sub(0xaa55);
    entry[28..30].copy_from_slice(&sum.to_le_bytes());
    image.put(19, 0, &entry);
    let mut entry = [0; 32];
    entry[0] = 0x88;
    entry[6] = 4;
    entry[8] = 30;
    image.put(19, 32, &entry);
    image.put(19, 64, &[0x91, 0xef, 1, 0]);
    entry[8] = 31;
    image.put(19, 96, &entry);
    let bytes = image.bytes();
    let facts = ISO9660.info(device(&bytes)).expect("info");
    let boot: Vec<_> = facts.iter().filter(|f| f.key == "boot image").collect();
    assert_eq!(
        boot[0].value,
        "80x86 BIOS, no emulation, sector 30, 4 x 512 bytes"
    );
    assert_eq!(
        boot[1].value,
        "UEFI, no emulation, sector 31, 4 x 512 bytes"
    );
    let mut text = String::new();
    ISO9660
        .dump(device(&bytes), &["boot".into()], &mut text)
        .expect("dump");
    assert!(text.starts_with("catalog at sector 19, valid"), "{text}");
}

#[test]
fn structures_are_shown_as_they_are_stored() {
    let bytes = hand::in_sections();
    for (topic, words) in [
        ("descriptors", "sector 16: type 1, primary"),
        ("directory", "extent 30 size 2048 flags 0x80 \"BIG.BIN;1\""),
        ("path-table", "1 extent 20 parent 1"),
    ] {
        let mut text = String::new();
        let what = [topic.to_owned()];
        ISO9660
            .dump(device(&bytes), &what, &mut text)
            .expect("dump");
        assert!(text.contains(words), "{text}");
    }
    for what in ["nothing", "directory x"] {
        let what: Vec<String> = what.split(' ').map(Into::into).collect();
        let e = ISO9660.dump(device(&bytes), &what, &mut String::new());
        assert_eq!(e.unwrap_err(), Kind::Invalid);
    }
}

#[test]
fn the_map_has_every_byte_once() {
    let bytes = hand::in_sections();
    for cells in [1, 7, 64, 100_000] {
        let map = ISO9660.map(device(&bytes), cells).expect("map");
        let all = map.cells.iter();
        let sum: u64 = all
            .map(|c| c.system + c.dir + c.file + c.broken + c.free)
            .sum();
        assert_eq!(sum, bytes.len() as u64, "{cells}");
        assert_eq!(map.breaks, 2);
        // BIG.BIN lies in several pieces, OTHER in one.
        let files: u64 = map.cells.iter().map(|c| c.file).sum();
        let broken: u64 = map.cells.iter().map(|c| c.broken).sum();
        assert_eq!((files, broken), (2048, 4 * 2048));
    }
}

#[test]
fn nothing_is_made_or_changed() {
    let dev = device(&hand::in_sections());
    let made = ISO9660.make(dev.clone(), "iso9660", &Make::default());
    assert_eq!(made.unwrap_err(), Kind::Unsupported);
    let tuned = ISO9660.tune(dev.clone(), &Tune::default(), &Quiet);
    assert_eq!(tuned.unwrap_err(), Kind::Unsupported);
    assert_eq!(ISO9660.mark_bad(dev, &[1]).unwrap_err(), Kind::Unsupported);
}

#[test]
fn a_detached_volume_is_stale() {
    let fs = attach(&hand::in_sections());
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), volary_core::Mode::Read).unwrap();
        fs.detach(cx).unwrap();
        assert_eq!(fs.getattr(cx, fs.root()).unwrap_err(), Kind::Stale);
        assert_eq!(fs.close(cx, open).unwrap_err(), Kind::Stale);
        fs.detach(cx).unwrap();
    });
}
