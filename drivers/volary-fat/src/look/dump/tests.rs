use super::*;
use crate::make::make;
use crate::volume::layout::FatKind;
use volary_block::MemDevice;
use volary_core::{Make, Options};

/// Returns a FAT12 volume with a file of a long name in two runs, and its table of owners.
fn volume() -> MemDevice {
    let dev = MemDevice::new(1 << 20);
    let how = Make {
        label: Some("TEST".into()),
        now: Time::from_secs(1_000_000_000),
        options: Options::parse("unix,cluster=512,align=no,serial=1234ABCD"),
        ..Make::default()
    };
    make(&dev, FatKind::Fat12, &how).unwrap();
    let layout = Layout::read(&dev).unwrap();
    let mut root = vec![0; 512];
    dev.read_at(layout.root_offset(), &mut root).unwrap();
    let mut entry: DirEntry = zerocopy::FromZeros::new_zeroed();
    entry.DIR_Name = *b"ALONGN~1TXT";
    entry.DIR_FileSize.set(1200);
    entry.set_first_cluster(5, false);
    UnixData {
        kind: FileKind::File,
        mode: 0o640,
        owner: 3,
        generation: 1,
    }
    .write(&mut entry);
    let name = long::LongName::new(b"a long name.txt").unwrap();
    let mut new = Vec::new();
    for part in name.entries(crate::names::short::checksum(&entry.DIR_Name)) {
        new.extend_from_slice(zerocopy::IntoBytes::as_bytes(&part));
    }
    new.extend_from_slice(zerocopy::IntoBytes::as_bytes(&entry));
    root[64..64 + new.len()].copy_from_slice(&new);
    dev.write_at(layout.root_offset(), &root).unwrap();
    // FAT: 5 -> 6 -> 8 -> end, 9 -> 9.
    let mut fat = vec![0; 16];
    dev.read_at(layout.fat_offset(0), &mut fat).unwrap();
    for (n, next) in [(5, 6_u16), (6, 8), (8, 0xfff), (9, 9)] {
        let at = n + n / 2;
        let old = u16::from_le_bytes([fat[at], fat[at + 1]]);
        let new = if n % 2 == 1 {
            old & 0xf | next << 4
        } else {
            old & 0xf000 | next
        };
        fat[at..at + 2].copy_from_slice(&new.to_le_bytes());
    }
    dev.write_at(layout.fat_offset(0), &fat).unwrap();
    dev
}

fn text(dev: &MemDevice, what: &str) -> Result<String> {
    let what: Vec<String> = what.split('|').map(Into::into).collect();
    let mut out = String::new();
    dump(dev, &what, &mut out).map(|()| out)
}

#[track_caller]
fn assert_has(text: &str, words: &[&str]) {
    for w in words {
        assert!(text.contains(w), "no '{w}' in:\n{text}");
    }
}

#[test]
fn every_topic_prints_what_is_stored() {
    let dev = volume();
    assert_has(
        &text(&dev, "boot").unwrap(),
        &[
            "11  BPB_BytsPerSec    00 02",
            "512 (0x200)",
            "\"TEST       \"",
            "fat12: ",
        ],
    );
    assert_has(
        &text(&dev, "fat|0-9").unwrap(),
        &["0 ff8 fff fff 000 000 006 008 000\n", "8 fff 009\n"],
    );
    assert_has(
        &text(&dev, "cluster|2").unwrap(),
        &["56 4f 4c 41 52 59 4f 57", "VOLARYOW", "\n*\n"],
    );
    assert_has(
        &text(&dev, "dir|/").unwrap(),
        &[
            "---l---- cluster",
            "TEST",
            "VOLARY.OWN",
            "a long name.txt",
            "file 0640 owner 3 generation 1",
            "end",
        ],
    );
    assert_has(
        &text(&dev, "entry|/A Long Name.TXT").unwrap(),
        &[
            "slot 2 at",
            "LDIR_Ord",
            "part 2 of a long name: xt",
            "part 1 of a long name: a long name.t",
            "DIR_FileSize",
            "1200 (0x4b0)",
        ],
    );
    assert_eq!(
        text(&dev, "entry|/alongn~1.txt"),
        text(&dev, "entry|/a long name.txt")
    );
    assert_has(
        &text(&dev, "chain|/a long name.txt").unwrap(),
        &["clusters 5-6", "clusters 8-8", "3 cluster(s) in 2 run(s)"],
    );
    assert_has(&text(&dev, "owners").unwrap(), &["0 owner(s)"]);
}

#[test]
fn fat32_has_its_own_fields() {
    let dev = MemDevice::new(2 << 20);
    let how = Make {
        options: Options::parse("small"),
        ..Make::default()
    };
    make(&dev, FatKind::Fat32, &how).unwrap();
    assert_has(&text(&dev, "boot").unwrap(), &["BPB_RootClus"]);
    assert_eq!(text(&dev, "boot|6"), text(&dev, "boot"));
    assert_has(&text(&dev, "fsinfo").unwrap(), &["FSI_Free_Count"]);
    assert_has(&text(&dev, "chain|/").unwrap(), &["clusters 2-2"]);
    assert_has(&text(&dev, "dir|2").unwrap(), &["0 end"]);
}

#[test]
fn bad_requests_are_refused_with_a_reason() {
    let dev = volume();
    for (what, kind) in [
        ("", Kind::Invalid),
        ("nosuch", Kind::Invalid),
        ("cluster", Kind::Invalid),
        ("cluster|1", Kind::Invalid),
        ("cluster|99999", Kind::Invalid),
        ("cluster|x", Kind::Invalid),
        ("fat|5-4", Kind::Invalid),
        ("fat|0-99999", Kind::Invalid),
        ("dir|/nosuch", Kind::NotFound),
        ("dir|/a long name.txt", Kind::NotDir),
        ("entry|/", Kind::Invalid),
        ("entry|/a long name.txt/x", Kind::NotDir),
        ("chain|/", Kind::Invalid),
        ("fsinfo", Kind::NotFound),
        ("boot|0|1", Kind::Invalid),
    ] {
        assert_eq!(text(&dev, what).unwrap_err(), kind, "{what}");
    }
}

#[test]
fn damage_is_printed_up_to_where_it_is() {
    let dev = volume();
    let mut out = String::new();
    let e = dump(&dev, &["chain".into(), "9".into()], &mut out).unwrap_err();
    assert_eq!(e, Kind::Corrupt);
    assert_has(&out, &["clusters 9-9"]);
    dev.write_at(510, &[0, 0]).unwrap();
    assert_has(
        &text(&dev, "boot").unwrap(),
        &["BPB_Media", "damaged: boot sector signature"],
    );
    assert_eq!(text(&dev, "dir|/").unwrap_err(), Kind::Corrupt);
}
