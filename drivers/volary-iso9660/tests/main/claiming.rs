//! Images that claim more than there is: the work goes by what is there.

use crate::hand::{Entry, Image, ROOT, SECTOR, ce, px};
use crate::{attach, device};
use volary_core::{CheckMode, Kind, Name};
use volary_iso9660::ISO9660;
use volary_testkit::volumes::{self, as_root};

/// Checks an image; how many files it has, and what is wrong.
fn check(bytes: &[u8]) -> (u64, Vec<String>) {
    let checked = volumes::check(&ISO9660, device(bytes), CheckMode::Look, "");
    let (report, found) = checked.expect("a check");
    let files = report.facts.iter().find(|fact| fact.key == "files");
    let files = files.expect("a count").value.to_string();
    (files.parse().expect("a number"), found)
}

fn count(found: &[String], words: &str) -> usize {
    found.iter().filter(|line| line.contains(words)).count()
}

#[test]
fn a_block_belongs_to_one_directory() {
    const DIRS: u32 = 100;
    let mut image = Image::new().long(ROOT + 20 + DIRS);
    let names: Vec<_> = (0..DIRS).map(|n| format!("D{n:03}")).collect();
    let (first, end) = (ROOT + 10, ROOT + 10 + DIRS);
    // Each directory says that it goes on to the end, over all that follow.
    let to_end = |block: u32| (end - block) * SECTOR as u32;
    let place = |name, block| Entry {
        len: to_end(block),
        ..Entry::dir(name, block)
    };
    let dirs = names.iter().zip(first..);
    let mut root = dirs.map(|(name, block)| place(name.as_bytes(), block));
    let mut records = vec![Entry {
        len: 4 * SECTOR as u32,
        ..Entry::dir(&[0], ROOT)
    }];
    records.extend(root.by_ref().take(30));
    let mut block = ROOT;
    while !records.is_empty() {
        let bytes: Vec<_> = records.iter().flat_map(Entry::bytes).collect();
        image.put(block, 0, &bytes);
        records = root.by_ref().take(30).collect();
        block += 1;
    }
    for block in first..end {
        let own = place(&[0], block);
        let parent = Entry::dir(&[1], ROOT);
        let file = Entry::file(b"A.;1", 1, 5);
        let all = [own, parent, file];
        image.put(
            block,
            0,
            &all.iter().flat_map(Entry::bytes).collect::<Vec<_>>(),
        );
    }
    let bytes = image.bytes();
    let (files, found) = check(&bytes);
    assert_eq!(files, u64::from(DIRS), "each file is met once");
    let overlaps = count(&found, "the first record of another");
    assert_eq!(overlaps, DIRS as usize - 1, "{found:?}");
    let fs = attach(&bytes);
    as_root(|cx| {
        let find =
            |dir, name: &str| fs.lookup(cx, dir, Name::new(name.as_bytes()).expect("a name"));
        let dir = find(fs.root(), "d000").expect("the first directory").node;
        assert!(find(dir, "a").is_ok());
        assert_eq!(find(dir, "b").unwrap_err().kind(), Kind::Corrupt);
    });
}

#[test]
fn sections_without_an_end_are_read_once() {
    const BLOCKS: u32 = 40;
    let mut image = Image::new().long(ROOT + BLOCKS + 1);
    let section = Entry {
        flags: 0x80,
        ..Entry::file(b"A.;1", 1, 5)
    };
    let own = Entry {
        len: BLOCKS * SECTOR as u32,
        ..Entry::dir(&[0], ROOT)
    };
    let full = section.bytes().repeat(40);
    for block in ROOT + 1..ROOT + BLOCKS {
        image.put(block, 0, &full);
    }
    image.put(ROOT, 0, &own.bytes());
    let (_, found) = check(&image.bytes());
    assert_eq!(count(&found, "without its last section"), 1, "{found:?}");
}

#[test]
fn continuation_areas_belong_to_one_record() {
    const AREA: u32 = ROOT + 2;
    let mut image = Image::new();
    let file = |_| {
        Entry::file(b"A.;1", 1, 5)
            .with(&px(0o100_644, 1))
            .with(&ce(AREA, 0, 30 << 10))
    };
    image.rocky(&(0..15).map(file).collect::<Vec<_>>());
    let (_, found) = check(&image.bytes());
    // The whole volume has room for four.
    let refused = count(&found, "areas of which each belongs to one record");
    assert!((11..15).contains(&refused), "{refused}: {found:?}");
}

#[test]
fn the_areas_of_one_record_have_an_end() {
    const AREA: u32 = ROOT + 2;
    let mut image = Image::new().long(400);
    // Three areas, each as long as one may be.
    for area in [AREA, AREA + 20] {
        image.put(area, 0, &ce(area + 20, 0, 30 << 10));
    }
    let file = Entry::file(b"A.;1", 1, 5)
        .with(&px(0o100_644, 1))
        .with(&ce(AREA, 0, 30 << 10));
    image.rocky(&[file]);
    let (_, found) = check(&image.bytes());
    assert_eq!(count(&found, "at most 65536 bytes"), 1, "{found:?}");
}

#[test]
fn empty_blocks_end_a_directory() {
    let mut image = Image::new().long(ROOT + 200);
    let own = Entry {
        len: 150 * SECTOR as u32,
        ..Entry::dir(&[0], ROOT)
    };
    image.put(ROOT, 0, &own.bytes());
    image.put(ROOT + 100, 0, &Entry::file(b"A.;1", 1, 5).bytes());
    let (files, found) = check(&image.bytes());
    assert_eq!((files, count(&found, "64 empty")), (0, 1), "{found:?}");
}
