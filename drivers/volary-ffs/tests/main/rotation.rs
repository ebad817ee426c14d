//! Rotationally optimal blocks (section 3.3 of the paper), on disks that were told to have
//! tracks and cylinders: by where blocks land, and by the tables.

use crate::volumes::{attach, clean, shape};
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Create, Ctx, Fs, Kind, Mode, Name, NodeId, OpenId, Place, SetAttr};
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;
/// Blocks of a track and of a cylinder of [`DISK`].
const TRACK: u64 = 4;
const CYLINDER: u64 = 32;

/// Tracks of four blocks, eight in a cylinder, 3600 revolutions a minute.
const DISK: &str = "block=4096,fragment=512,nsect=32,ntrak=8,rps=60";

fn new_file(fs: &Fs, cx: &Ctx<'_>, text: &str) -> (NodeId, OpenId) {
    let name = Name::new(text.as_bytes()).expect("a name");
    let made = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default());
    let (entry, open) = made.expect("create");
    (entry.node, open)
}

/// Returns the blocks of a file, counted from the start of the volume.
fn blocks(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> Vec<u64> {
    let open = fs.open(cx, node, Mode::Read).expect("open");
    let mut extents = Vec::new();
    let done = fs.extents(cx, open, 0, u64::MAX, &mut extents);
    done.expect("extents");
    fs.close(cx, open).expect("close");
    let of_run = |extent: &volary_core::Extent| match extent.place {
        Place::Device(at) => at / BLOCK..(at + extent.len) / BLOCK,
        _ => panic!("no place: {extent:?}"),
    };
    extents.iter().flat_map(of_run).collect()
}

fn end(fs: &Fs, cx: &Ctx<'_>, dev: &Arc<MemDevice>) {
    fs.detach(cx).expect("detach");
    clean(dev.clone()).expect("clean");
}

#[test]
fn blocks_are_as_far_apart_as_the_next_transfer_takes_to_begin() {
    // A block passes in 2.08 ms.
    let ways: [(&'static str, [u64; 6]); 4] = [
        (
            "nsect=32,ntrak=8,block=4096,fragment=512,rps=60,maxcontig=1",
            [0, 1, 2, 3, 4, 5],
        ),
        (
            "nsect=32,ntrak=8,block=4096,fragment=512,rps=60,maxcontig=1,rotdelay=4",
            [0, 2, 4, 6, 8, 10],
        ),
        (
            "nsect=32,ntrak=8,block=4096,fragment=512,rps=60,maxcontig=2,rotdelay=4",
            [0, 1, 3, 4, 6, 7],
        ),
        (
            "old,nsect=32,ntrak=8,block=4096,fragment=512,rps=60,maxcontig=1,rotdelay=10",
            [0, 4, 8, 12, 16, 20],
        ),
    ];
    for (make, expected) in ways {
        let dev = shape("ffs1", 8 * MIB).made(make).device();
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            let (node, open) = new_file(&fs, cx, "file");
            let content = vec![1; 6 * BLOCK as usize];
            fs.write(cx, open, Some(0), &content).expect("write");
            fs.close(cx, open).expect("close");
            let there = blocks(&fs, cx, node);
            let from_first: Vec<_> = there.iter().map(|block| block - there[0]).collect();
            assert_eq!(from_first, expected, "{make}");
            end(&fs, cx, &dev);
        });
    }
}

#[test]
fn in_place_of_a_taken_block_comes_the_one_that_passes_at_the_same_time() {
    let dev = shape("ffs1", 8 * MIB).made(DISK).device();
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        let files = ["a", "b"].map(|text| new_file(&fs, cx, text));
        for _ in 0..6 {
            for (_, open) in files {
                fs.write(cx, open, None, &[1; BLOCK as usize])
                    .expect("write");
            }
        }
        let mut moved = 0;
        for (node, open) in files {
            fs.close(cx, open).expect("close");
            let there = blocks(&fs, cx, node);
            assert_eq!(there.len(), 6);
            for pair in there.windows(2) {
                let wished = pair[0] + 1;
                assert_eq!(pair[1] / CYLINDER, wished / CYLINDER, "{there:?}");
                assert_eq!(pair[1] % TRACK, wished % TRACK, "{there:?}");
                moved += u32::from(pair[1] != wished);
            }
        }
        assert!(moved > 0, "none was in the other's way");
        end(&fs, cx, &dev);
    });
}

/// A volume's numbers, as they are dumped.
struct Numbers(BTreeMap<String, i64>);

impl Numbers {
    fn of(image: &[u8], what: &str) -> Self {
        let dumped = crate::dump(image, what).expect("dump");
        let number = |line: &str| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        };
        Self(dumped.lines().filter_map(number).collect())
    }

    fn get(&self, field: &str) -> usize {
        *self.0.get(field).expect(field) as usize
    }

    /// `cbtocylno` and `cbtorpos` of 4.4BSD's `fs.h`, of a block's first sector.
    fn place(&self, block: usize) -> (usize, usize) {
        let (nsect, spc) = (self.get("fs_old_nsect"), self.get("fs_old_spc"));
        let sector = block * self.get("fs_frag") * self.get("fs_old_nspf");
        let track = sector % spc / nsect * self.get("fs_old_trackskew");
        let angle = track + sector % spc % nsect * self.get("fs_old_interleave");
        let position = angle % nsect * self.get("fs_old_nrpos") / self.get("fs_old_npsect");
        (sector / spc, position)
    }
}

/// Disks, of which the first has tracks that blocks do not fit.
const DISKS: [&str; 3] = [
    "nsect=33,ntrak=5,trackskew=3,order=big,block=4096,fragment=1024",
    "nsect=32,ntrak=8,interleave=3,nrpos=4,cpg=8",
    "old,nsect=17,ntrak=4,block=8192,fragment=1024",
];

fn number<const N: usize>(image: &[u8], at: usize, is_big: bool) -> i64 {
    let bytes: Vec<u8> = image[at..at + N].to_vec();
    let value = |value: i64, byte: &u8| value << 8 | i64::from(*byte);
    let unsigned = match is_big {
        true => bytes.iter().fold(0, value),
        false => bytes.iter().rev().fold(0, value),
    };
    let spare = 64 - 8 * N as u32;
    unsigned << spare >> spare
}

#[test]
fn the_rotational_layout_tables_list_each_block_at_its_position() {
    for make in DISKS {
        let image = shape("ffs1", 8 * MIB).made(make).device().to_vec();
        let is_big = make.contains("order=big");
        let sb = Numbers::of(&image, "superblock");
        let (positions, cycle) = (sb.get("fs_old_nrpos"), sb.get("fs_old_cpc"));
        let sectors = sb.get("fs_frag") * sb.get("fs_old_nspf");
        assert!(
            (cycle * sb.get("fs_old_spc")).is_multiple_of(sectors) && cycle > 0,
            "{make}"
        );
        let (first, next) = (
            8192 + sb.get("fs_old_postbloff"),
            8192 + sb.get("fs_old_rotbloff"),
        );
        let mut listed = BTreeMap::new();
        for cylinder in 0..cycle {
            for position in 0..positions {
                let at = first + 2 * (cylinder * positions + position);
                let mut block = number::<2>(&image, at, is_big);
                while block >= 0 {
                    let before = listed.insert(block as usize, (cylinder, position));
                    assert_eq!(before, None, "{make}: block {block} twice");
                    let step = i64::from(image[next + block as usize]);
                    block = if step == 0 { -1 } else { block + step };
                }
            }
        }
        let all = 0..cycle * sb.get("fs_old_spc") / sectors;
        let expected = all.map(|block| (block, sb.place(block)));
        assert_eq!(listed, expected.collect(), "{make}");
    }
}

/// The counts of a group's free blocks by cylinder and position, as they are stored.
fn stored(image: &[u8], sb: &Numbers, group: usize, is_big: bool) -> BTreeMap<(usize, usize), i64> {
    let mask = !sb.0["fs_old_cgmask"] as usize;
    let start = group * sb.get("fs_fpg") + sb.get("fs_old_cgoffset") * (group & mask);
    let at = (start + sb.get("fs_cblkno")) * sb.get("fs_fsize");
    let head = Numbers::of(image, &format!("group {group}"));
    let positions = sb.get("fs_old_nrpos");
    let mut counts = BTreeMap::new();
    for cylinder in 0..sb.get("fs_old_cpg") {
        let total = number::<4>(
            image,
            at + head.get("cg_old_btotoff") + 4 * cylinder,
            is_big,
        );
        let mut sum = 0;
        for position in 0..positions {
            let place = head.get("cg_old_boff") + 2 * (cylinder * positions + position);
            let count = number::<2>(image, at + place, is_big);
            sum += count;
            counts.insert((cylinder, position), count);
        }
        assert_eq!(total, sum, "cylinder {cylinder} of group {group}");
    }
    counts.retain(|_, count| *count != 0);
    counts
}

/// Counts a group's free blocks by cylinder and position in the map of free fragments.
fn counted(image: &[u8], sb: &Numbers, group: usize) -> BTreeMap<(usize, usize), i64> {
    let bits = crate::dump(image, &format!("bitmap {group}")).expect("dump");
    let mut counts = BTreeMap::new();
    for block in free_blocks(&bits, group, sb) {
        *counts.entry(sb.place(block)).or_default() += 1;
    }
    counts
}

/// Returns the blocks of a group of which all fragments are free, of the ranges of these in words.
fn free_blocks(bits: &str, group: usize, sb: &Numbers) -> Vec<usize> {
    let (frag, base) = (sb.get("fs_frag"), group * sb.get("fs_fpg"));
    let free = bits
        .lines()
        .find_map(|line| line.trim().strip_prefix("free fragments: "));
    let ranges = free.expect("free fragments").split(", ").map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<usize>().expect("a number") - base;
        number(first).div_ceil(frag)..(number(last) + 1) / frag
    });
    ranges.flatten().collect()
}

#[test]
fn free_blocks_are_counted_by_cylinder_and_position() {
    for make in DISKS {
        let shape = shape("ffs1", 8 * MIB).made(make);
        let is_big = make.contains("order=big");
        let dev = shape.device();
        let right = |image: &[u8]| {
            let sb = Numbers::of(image, "superblock");
            let mut free = 0;
            for group in 0..sb.get("fs_ncg") {
                let counts = stored(image, &sb, group, is_big);
                assert_eq!(counts, counted(image, &sb, group), "{make}: group {group}");
                free += counts.values().sum::<i64>();
            }
            assert!(free > 500, "{make}: {free} free blocks");
        };
        right(&dev.to_vec());
        clean(dev.clone()).expect("clean");
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            for i in 0..20 {
                let (_, open) = new_file(&fs, cx, &format!("{i}"));
                let content = vec![1; 3000 * i];
                fs.write(cx, open, Some(0), &content).expect("write");
                fs.close(cx, open).expect("close");
            }
            end(&fs, cx, &dev);
        });
        right(&dev.to_vec());
    }
}

fn refused(kind: &'static str, make: &str) -> String {
    let dev = Arc::new(MemDevice::new(8 * MIB));
    let how = volary_core::Make {
        options: volary_core::Options::parse(make),
        ..Default::default()
    };
    let made = volary_core::Format::make(&volary_ffs::FFS, dev, kind, &how);
    let e = made.expect_err(make);
    assert_eq!(e.kind(), Kind::Invalid, "{make}");
    e.to_string()
}

#[test]
fn disks_that_cannot_be_are_refused() {
    for (kind, make, words) in [
        ("ffs2", "nsect=32,ntrak=8", "ffs2"),
        ("ffs1", "nsect=32", "ntrak="),
        ("ffs1", "nrpos=8", "nsect="),
        ("ffs1", "nsect=0,ntrak=8", "nsect=0: 1 to 4096"),
        ("ffs1", "nsect=32,ntrak=8,group=4096", "group="),
        (
            "ffs1",
            "nsect=33,ntrak=5,block=4096,cpg=12",
            "cpg=12: a multiple of 8",
        ),
        (
            "ffs1",
            "nsect=32,ntrak=8,trackskew=32",
            "trackskew=32: 0 to 31",
        ),
        ("ffs1", "nsect=4096,ntrak=4096,block=4096", "do not fit"),
    ] {
        let told = refused(kind, make);
        assert!(told.contains(words), "{make}: {told}");
    }
}
