//! One damage to the structures of a volume, and its repair, which loses nothing: of each file at
//! least as many bytes can be read after `fsck -y` as before, and a second `fsck -y` finds nothing.
//!
//! `VOLARY_DAMAGE=1000` tries so many on each kind of volume; `VOLARY_DAMAGE_SEED=7` that one.

use std::collections::HashSet;
use std::sync::Arc;
use volary::block::{Faulty, MemDevice};
use volary::{BlockDevice, CheckMode, CheckReport};
use volary_core::{Create, Ctx, Fs, Kind, Name, NodeId, SetAttr};
use volary_sim::rng::{Rng, pattern};
use volary_testkit::readable::{Content, Readable};
use volary_testkit::suite::replay_command;
use volary_testkit::volumes::{Shape, as_root, attach, attach_read_only, check};

const SECTOR: usize = 512;

/// Damages of each kind of volume that are tried where no number is given.
const TRIES: u64 = 60;

/// Bytes by which a sector of a file is recognised.
const HEAD: usize = 16;

fn shape(kind: &'static str, len: u64, make: &'static str) -> Shape {
    let format = volary::format_of(kind).expect("a format");
    Shape::new(format, kind, len).made(make)
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

/// Files of all sizes, some in turns with others, in directories below each other.
fn fill(fs: &Fs, cx: &Ctx<'_>) {
    let set = SetAttr::owned(0o755, 0, 0);
    let (mut dir, mut seed) = (fs.root(), 0);
    for depth in 0..3 {
        for (text, len) in [
            ("tiny", 300),
            ("small", 3000),
            ("odd", 9001),
            ("large", 61_440),
        ] {
            seed += 1;
            put(fs, cx, dir, &[text], &pattern(seed, len));
        }
        put(
            fs,
            cx,
            dir,
            &["one turn", "other turn"],
            &pattern(100 + seed, 20_000),
        );
        match fs.symlink(cx, dir, name("link"), b"to/somewhere/else", &set) {
            Err(e) if e == Kind::Unsupported => {}
            made => _ = made.expect("symlink"),
        }
        for i in 0..12 {
            let text = format!("a name that is rather long, number {i}");
            let over = text.len().saturating_sub(fs.caps().name_max.into());
            let text = &text[over..];
            put(fs, cx, dir, &[text], &pattern(1000 + 20 * depth + i, 700));
        }
        dir = fs.mkdir(cx, dir, name("below"), &set).expect("mkdir").node;
    }
}

/// Files that get a piece each in turns, of their own part of `bytes`.
fn put(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, names: &[&str], bytes: &[u8]) {
    let set = SetAttr::owned(0o644, 0, 0);
    let part = bytes.len() / names.len();
    let make = |text: &&str| {
        fs.create(cx, dir, name(text), Create::New, &set)
            .expect("create")
            .1
    };
    let opens: Vec<_> = names.iter().map(make).collect();
    for at in (0..part).step_by(1 << 12) {
        for (open, bytes) in opens.iter().zip(bytes.chunks_exact(part)) {
            let piece = &bytes[at..part.min(at + (1 << 12))];
            fs.write(cx, *open, Some(at as u64), piece).expect("write");
        }
    }
    opens
        .iter()
        .for_each(|open| fs.close(cx, *open).expect("close"));
}

/// A volume, what its files hold, and the sectors that do not belong to files.
pub(crate) struct Made {
    pub(crate) shape: Shape,
    pub(crate) image: Vec<u8>,
    pub(crate) content: Content,
    structures: Vec<usize>,
}

impl Made {
    pub(crate) fn new(shape: Shape) -> Self {
        let dev = shape.device();
        let fs = attach(shape.format(), dev.clone(), "").expect("attach");
        let content = as_root(|cx| {
            fill(&fs, cx);
            let content = Content::read(&fs, cx).expect("the content");
            fs.detach(cx).expect("detach");
            content
        });
        let image = dev.to_vec();
        let heads = |bytes: &Vec<u8>| {
            let heads = bytes.chunks(SECTOR).filter_map(|sector| sector.get(..HEAD));
            heads.map(<[u8]>::to_vec).collect::<Vec<_>>()
        };
        let files: HashSet<Vec<u8>> = content.0.values().flat_map(heads).collect();
        let is_structure = |sector: &[u8]| {
            let is_empty = sector.iter().all(|byte| *byte == sector[0]);
            !is_empty && !files.contains(&sector[..HEAD])
        };
        let sectors = image.chunks(SECTOR).enumerate();
        let structures = sectors.filter(|(_, sector)| is_structure(sector));
        Self {
            structures: structures.map(|(number, _)| number).collect(),
            shape,
            image,
            content,
        }
    }

    /// Returns what can be read of a volume, which perhaps cannot even be attached.
    pub(crate) fn readable(&self, dev: &Arc<MemDevice>) -> Readable {
        let fs = attach_read_only(self.shape.format(), dev.clone(), "");
        let Ok(fs) = fs else {
            return Readable::default();
        };
        as_root(|cx| self.content.readable(&fs, cx))
    }

    fn mend(&self, dev: &Arc<MemDevice>) -> volary::Result<(CheckReport, Vec<String>)> {
        let dev = dev.clone() as Arc<dyn BlockDevice>;
        check(self.shape.format(), dev, CheckMode::Mend, "")
    }

    /// Returns what is wrong with how one damage is mended, if anything is; else how many bytes could be
    /// read before and after.
    fn try_one(&self, seed: u64) -> Result<[u64; 2], String> {
        let mut image = self.image.clone();
        let what = damage(&mut image, &self.structures, &mut Rng::new(seed));
        let dev = Arc::new(MemDevice::from_vec(image));
        let before = self.readable(&dev);
        let first = self.mend(&dev);
        let after = self.readable(&dev);
        let lost = after.lost_since(&before);
        let mut wrong = match &first {
            // What cannot be mended is left.
            Err(_) => Vec::new(),
            Ok((report, _)) if report.left() > 0 => vec!["fsck -y leaves some".to_owned()],
            Ok(_) => match self.mend(&dev) {
                Ok((again, _)) if (again.found, again.written) == (0, 0) => Vec::new(),
                again => vec![format!("a second fsck -y: {again:?}")],
            },
        };
        wrong.extend(lost);
        if wrong.is_empty() {
            return Ok([before.total(), after.total()]);
        }
        let found = first.map_or_else(|e| e.to_string(), |(_, found)| found.join("\n  "));
        Err(format!(
            "{seed}: {what}: {}\n  {found}",
            wrong.join("\n    ")
        ))
    }
}

/// Damages one place of the structures, in a way that is likely to be believed, or not.
fn damage(image: &mut [u8], structures: &[usize], rng: &mut Rng) -> String {
    let sector = *rng.pick(structures);
    let bytes = &mut image[sector * SECTOR..][..SECTOR];
    // Where something is, more often than not.
    let at = loop {
        let at = rng.index(SECTOR);
        if bytes[at] != 0 || rng.one_in(16) {
            break at;
        }
    };
    let (two, four) = (at & !1, at & !3);
    let how = match rng.below(8) {
        0 | 1 => {
            bytes[at] ^= 1 << rng.below(8);
            "a bit"
        }
        2 => {
            bytes[at] = *rng.pick(&[0, 0xff]);
            "a byte of one value"
        }
        3 => {
            bytes[two..two + 2].copy_from_slice(&rng.next_u64().to_le_bytes()[..2]);
            "two bytes"
        }
        4 => {
            bytes[four..four + 4].copy_from_slice(&rng.next_u64().to_le_bytes()[..4]);
            "four bytes"
        }
        5 => {
            let from = rng.index(SECTOR / 4) * 4;
            bytes.copy_within(from..from + 4, four);
            "four bytes of the same sector"
        }
        6 => {
            bytes.fill(0);
            "zeros"
        }
        _ => {
            bytes.copy_from_slice(&pattern(rng.next_u64(), SECTOR));
            "rubbish"
        }
    };
    format!("sector {sector}, byte {at}: {how}")
}

fn number(variable: &str) -> Option<u64> {
    let given = std::env::var(variable).ok();
    given.map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is a number"))
    })
}

fn nothing_is_lost(shape: Shape) {
    let made = Made::new(shape);
    let what = made.shape.name();
    let seeds = match number("VOLARY_DAMAGE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("VOLARY_DAMAGE").unwrap_or(TRIES),
    };
    let tries = seeds.end - seeds.start;
    let (mut bad, mut sums) = (Vec::new(), [0, 0]);
    for tried in seeds.map(|seed| made.try_one(seed)) {
        match tried {
            Ok(bytes) => [0, 1].iter().for_each(|&i| sums[i] += bytes[i]),
            Err(words) => bad.push(words),
        }
    }
    let files = made.content.0.values().map(|bytes| bytes.len() as u64);
    let whole = tries * files.sum::<u64>();
    let [before, after] = sums.map(|sum| sum * 100 / whole);
    let count = made.structures.len();
    println!("{what}: {tries} damages of {count} sectors: {before}% read before, {after}% after");
    let again = replay_command("VOLARY_DAMAGE_SEED", "SEED");
    let count = bad.len();
    assert!(
        bad.is_empty(),
        "{what}: {count} of {tries}; {again}\n{}",
        bad.join("\n")
    );
}

/// Returns all kinds of volume that are written.
pub(crate) fn shapes() -> Vec<Shape> {
    let ffs = "block=4096,fragment=512,density=4096";
    vec![
        shape("fat12", 600 << 10, "cluster=512,root-entries=64"),
        shape("fat16", 2200 << 10, "cluster=512,root-entries=64"),
        shape("fat32", 800 << 10, "cluster=512,small"),
        shape("fat12", 600 << 10, "cluster=512,unix,root-entries=64"),
        shape("fat32", 800 << 10, "cluster=512,small,unix"),
        shape("ffs1", 800 << 10, ffs),
        shape(
            "ffs1",
            800 << 10,
            "old,order=big,block=4096,fragment=1024,density=4096",
        ),
        shape("ffs2", 1 << 20, ffs),
        shape(
            "ffs2",
            1 << 20,
            "order=big,block=4096,fragment=512,density=4096",
        ),
        shape("cedar", 1 << 20, "page=512,name-table=48k,log=186k"),
    ]
}

fn all_of(kind: &str, count: usize) {
    let shapes = shapes()
        .into_iter()
        .filter(|shape| shape.kind.starts_with(kind));
    let shapes: Vec<Shape> = shapes.collect();
    assert_eq!(shapes.len(), count);
    shapes.into_iter().for_each(nothing_is_lost);
}

#[test]
fn mending_fat_takes_nothing_that_can_be_read() {
    all_of("fat", 5);
}

#[test]
fn mending_ffs1_takes_nothing_that_can_be_read() {
    all_of("ffs1", 2);
}

#[test]
fn mending_v7_takes_nothing_that_can_be_read() {
    nothing_is_lost(shape("v7", 600 << 10, "inodes=128"));
    nothing_is_lost(shape("sysv", 600 << 10, "inodes=128,order=big"));
}

#[test]
fn mending_ffs2_takes_nothing_that_can_be_read() {
    all_of("ffs2", 2);
}

#[test]
fn mending_cedar_takes_nothing_that_can_be_read() {
    all_of("cedar", 1);
}

/// Through the block cache: what is read at a time is no more than a block, a page or a cluster.
#[test]
fn a_sector_of_a_file_that_the_device_cannot_read_costs_no_other_block() {
    for shape in shapes() {
        let made = Made::new(shape);
        let what = made.shape.name();
        let large = &made.content.0[b"large".as_slice()];
        let bad = &large[30 * SECTOR..31 * SECTOR];
        let place = made.image.chunks(SECTOR).position(|sector| sector == bad);
        let start = place.expect("the sector") as u64 * SECTOR as u64;
        let dev = Arc::new(Faulty::new(Arc::new(MemDevice::from_vec(
            made.image.clone(),
        ))));
        dev.bad_reads(start..start + SECTOR as u64);
        let fs = attach_read_only(made.shape.format(), dev, "").expect("attach");
        let mut readable = as_root(|cx| made.content.readable(&fs, cx));
        let its = readable.0.remove(b"large".as_slice()).expect("the file");
        let len = large.len() as u64;
        assert!(
            (len - 4096..len).contains(&its),
            "{what}: {its} of {len} bytes"
        );
        for (path, bytes) in &readable.0 {
            let len = made.content.0[path].len() as u64;
            assert_eq!(*bytes, len, "{what}: {}", String::from_utf8_lossy(path));
        }
    }
}

/// The chain of a file, which leads nowhere in its middle, in both FATs.
#[test]
fn a_chain_that_is_broken_in_the_middle_is_read_up_to_there() {
    let made = Made::new(shape("fat16", 2200 << 10, "cluster=512,root-entries=64"));
    let large = &made.content.0[b"large".as_slice()];
    let link = chain_of(&made.image, &large[60 * SECTOR..61 * SECTOR]);
    let mut image = made.image.clone();
    let fats: Vec<usize> = (0..image.len() - 8)
        .step_by(2)
        .filter(|&at| made.image[at..at + 8] == link)
        .collect();
    assert_eq!(fats.len(), 2, "the two FATs");
    for at in fats {
        image[at..at + 2].copy_from_slice(&0xffef_u16.to_le_bytes());
    }
    let readable = made.readable(&Arc::new(MemDevice::from_vec(image)));
    let lost = made.content.0.len() as u64 - readable.0.len() as u64;
    assert_eq!(
        (lost, readable.0[b"large".as_slice()]),
        (0, 61 * SECTOR as u64)
    );
}

/// Four links of the chain from the cluster with this content on, which lies in one piece there.
fn chain_of(image: &[u8], content: &[u8]) -> Vec<u8> {
    let sectors = |bytes: &[u8]| u16::from_le_bytes([bytes[0], bytes[1]]) as usize;
    let reserved = sectors(&image[14..]);
    let root = (sectors(&image[17..]) * 32).div_ceil(SECTOR);
    let data = reserved + 2 * sectors(&image[22..]) + root;
    let place = image.chunks(SECTOR).position(|sector| sector == content);
    let cluster = place.expect("the cluster") - data + 2;
    let links = (1..5).flat_map(|next| ((cluster + next) as u16).to_le_bytes());
    links.collect()
}
