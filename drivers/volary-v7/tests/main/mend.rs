//! Damage of each kind: it is found under its name, mended, and a second run finds nothing.

use crate::volumes::{MIB, attach, check, clean, name, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{BlockDevice, CheckMode, Create, Ctx, Format, Fs, Kind, Mode, NodeId, SetAttr};
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::volumes::{Shape, as_root, look};
use volary_v7::V7;

const SHAPES: [Shape; 2] = [
    shape("v7", MIB / 2).made("inodes=128"),
    shape("sysv", MIB / 2).made("inodes=128,order=big"),
];

fn file(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, text: &str, len: usize) -> u32 {
    let made = fs.create(cx, dir, name(text), Create::New, &SetAttr::default());
    let (entry, open) = made.expect("create");
    fs.write(cx, open, Some(0), &pattern(len as u64, len))
        .expect("write");
    fs.close(cx, open).expect("close");
    entry.node.ino.get() as u32
}

/// A volume that can be damaged, and the numbers of what it holds.
struct Base {
    shape: Shape,
    dev: Arc<MemDevice>,
    small: u32,
    large: u32,
    dir: u32,
    inner: u32,
}

impl Base {
    fn new(shape: Shape) -> Self {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        let (small, large, dir, inner) = as_root(|cx| {
            let made = fs.mkdir(cx, fs.root(), name("dir"), &SetAttr::default());
            let dir = made.expect("mkdir").node;
            let made = fs.mkdir(cx, dir, name("inner"), &SetAttr::default());
            let inner = made.expect("mkdir").node;
            let small = file(&fs, cx, fs.root(), "small", 300);
            let large = file(&fs, cx, dir, "large", 40_000);
            file(&fs, cx, inner, "deep", 10);
            fs.detach(cx).expect("detach");
            let number = |node: NodeId| node.ino.get() as u32;
            (small, large, number(dir), number(inner))
        });
        Self {
            shape,
            dev,
            small,
            large,
            dir,
            inner,
        }
    }

    fn bsize(&self) -> u64 {
        if self.shape.kind == "v7" { 512 } else { 1024 }
    }

    fn put(&self, at: u64, bytes: &[u8]) {
        self.dev.write_at(at, bytes).expect("write");
    }

    fn put16(&self, at: u64, n: u16) {
        match self.shape.kind {
            "v7" => self.put(at, &n.to_le_bytes()),
            _ => self.put(at, &n.to_be_bytes()),
        }
    }

    fn inode(&self, ino: u32, field: u64) -> u64 {
        2 * self.bsize() + u64::from(ino - 1) * 64 + field
    }

    /// Returns the address of an inode, as it is stored and as a number.
    fn address(&self, ino: u32, slot: u64) -> ([u8; 3], u64) {
        let mut raw = [0; 3];
        let at = self.inode(ino, 12 + 3 * slot);
        self.dev.read_at(at, &mut raw).expect("read");
        let [a, b, c] = raw.map(u64::from);
        let block = match self.shape.kind {
            "v7" => a << 16 | c << 8 | b,
            _ => a << 16 | b << 8 | c,
        };
        (raw, block)
    }

    /// Returns where the n-th entry of a directory is.
    fn entry(&self, dir: u32, n: u64) -> u64 {
        self.address(dir, 0).1 * self.bsize() + 16 * n
    }

    fn head(&self, v7: u64, sysv: u64) -> u64 {
        512 + if self.shape.kind == "v7" { v7 } else { sysv }
    }
}

type Damage = (&'static str, fn(&Base));

const ALL: &[Damage] = &[
    ("dirty", |b| match b.shape.kind {
        "v7" => b.put(512 + 412, &[1]),
        _ => b.put(512 + 500, &[1, 2, 3, 4]),
    }),
    ("inode", |b| b.put16(b.inode(b.small, 0), 0o150_644)),
    ("inode", |b| b.put16(b.inode(100, 2), 3)),
    ("inode", |b| b.put16(b.inode(1, 0), 0o040_755)),
    ("root", |b| b.put16(b.inode(2, 0), 0o100_644)),
    ("size", |b| match b.shape.kind {
        "v7" => b.put(b.inode(b.dir, 8), &[0, 0, 0x21, 0]),
        _ => b.put(b.inode(b.dir, 8), &[0, 0, 0, 0x21]),
    }),
    ("size", |b| b.put16(b.inode(b.small, 8), 0xffff)),
    ("bad-block", |b| b.put(b.inode(b.small, 12), &[0xff; 3])),
    ("bad-block", |b| {
        let (_, indirect) = b.address(b.large, 10);
        b.put(indirect * b.bsize() + 8, &[0xff; 4]);
    }),
    ("beyond-end", |b| {
        let (raw, _) = b.address(b.large, 3);
        b.put(b.inode(b.large, 12 + 9), &[0; 3]);
        b.put(b.inode(b.small, 15), &raw);
    }),
    ("duplicate-block", |b| {
        let (raw, _) = b.address(b.large, 3);
        b.put(b.inode(b.small, 12), &raw);
    }),
    ("duplicate-block", |b| {
        let (raw, _) = b.address(b.large, 10);
        b.put(b.inode(b.small, 12 + 30), &raw);
        b.put16(b.inode(b.small, 8), 0);
        b.put(b.inode(b.small, 8), &[0, 0, 0, 0]);
        let size = if b.shape.kind == "v7" { 8 } else { 10 };
        b.put16(b.inode(b.small, size), 40_000);
    }),
    ("duplicate-block", |b| {
        let (raw, _) = b.address(b.dir, 0);
        b.put(b.inode(b.inner, 12), &raw);
    }),
    ("dots", |b| b.put16(b.entry(b.dir, 0), 0)),
    ("dots", |b| b.put16(b.entry(b.inner, 1), 2)),
    ("dots", |b| b.put(b.inode(b.dir, 12), &[0; 3])),
    ("name", |b| b.put(b.entry(2, 2) + 2, b"a/b")),
    ("name", |b| b.put(b.entry(2, 2) + 2, &[0; 14])),
    ("padding", |b| b.put(b.entry(2, 3) + 10, b"x")),
    ("same-name", |b| b.put(b.entry(2, 3) + 2, b"dir\0\0\0")),
    ("unallocated", |b| b.put16(b.entry(2, 3), 99)),
    ("unallocated", |b| b.put16(b.entry(2, 3), 1)),
    ("unallocated", |b| b.put16(b.entry(2, 3), 9999)),
    ("twice", |b| b.put16(b.entry(b.inner, 2), b.inner as u16)),
    ("twice", |b| b.put16(b.entry(b.inner, 2), 2)),
    ("circle", |b| {
        // What holds both leads to neither, and each holds the other.
        b.put16(b.entry(2, 2), 0);
        b.put16(b.entry(b.inner, 2), b.dir as u16);
    }),
    ("unconnected", |b| b.put16(b.entry(2, 2), 0)),
    ("unreferenced", |b| b.put16(b.entry(2, 3), 0)),
    ("link-count", |b| b.put16(b.inode(b.small, 2), 7)),
    ("link-count", |b| b.put16(b.inode(b.dir, 2), 1)),
    ("free-list", |b| b.put16(b.head(6, 8), 0)),
    ("free-list", |b| {
        let (_, block) = b.address(b.small, 0);
        let low = (block as u16, b.head(8 + 4 * 5 + 2, 12 + 4 * 5 + 2));
        b.put16(low.1, low.0);
    }),
    ("free-list", |b| {
        // The list goes on in itself.
        let mut raw = [0; 4];
        b.dev.read_at(b.head(8, 12), &mut raw).expect("read");
        let low = if b.shape.kind == "v7" {
            [raw[3], raw[2]]
        } else {
            [raw[2], raw[3]]
        };
        let block = u64::from(u16::from_be_bytes(low));
        b.put16(block * b.bsize(), 1);
        b.put(
            block * b.bsize() + if b.shape.kind == "v7" { 2 } else { 4 },
            &raw,
        );
    }),
    ("inode-list", |b| {
        b.put16(b.head(208, 212), 1);
        b.put16(b.head(210, 216), 3);
    }),
    ("totals", |b| b.put16(b.head(420, 434), 77)),
    ("totals", |b| b.put16(b.head(422, 436), 77)),
];

fn mend(base: &Base, what: &str) -> Vec<String> {
    let (report, found) = check(base.dev.clone(), CheckMode::Mend);
    assert_eq!(report.left(), 0, "{what}: {found:?}");
    clean(base.dev.clone()).unwrap_or_else(|e| panic!("{what}: {found:?}, then {e}"));
    found
}

#[test]
fn each_kind_of_damage_is_found_by_its_name_and_mended() {
    for shape in SHAPES {
        for (at, (code, damage)) in ALL.iter().enumerate() {
            let what = format!("{} {code}, the {at}th", shape.name());
            let base = Base::new(shape);
            damage(&base);
            let before = base.dev.to_vec();
            // Some are so damaged that they cannot be told any more.
            if V7.probe(&*base.dev).expect("probe").is_none() {
                assert!(["root", "free-list"].contains(code), "{what}");
                continue;
            }
            let (looked, _) = check(base.dev.clone(), CheckMode::Look);
            assert!(looked.found > 0, "{what}");
            assert!(base.dev.to_vec() == before, "{what}: a look writes");
            let found = mend(&base, &what);
            let starts = found
                .iter()
                .any(|line| line.starts_with(&format!("{code}:")));
            assert!(starts, "{what}: {found:?}");
            let fs = attach(base.dev.clone(), "");
            let mut names = Vec::new();
            look(&fs, 100, |entry| names.push(entry.name.to_vec()));
            let is_there = |name: &[u8]| names.iter().any(|n| n == name);
            let is_lost = names.iter().any(|n| n.starts_with(b"#"));
            assert!(is_there(b"deep") || is_lost, "{what}: {found:?}");
        }
    }
}

/// Returns what a file holds, wherever it is.
fn content(fs: &Fs, cx: &Ctx<'_>, path: &[&str]) -> Vec<u8> {
    let mut node = fs.root();
    for text in path {
        node = fs.lookup(cx, node, name(text)).expect("lookup").node;
    }
    let open = fs.open(cx, node, Mode::Read).expect("open");
    let mut bytes = vec![0; 1000];
    let len = fs.read(cx, open, 0, &mut bytes).expect("read");
    fs.close(cx, open).expect("close");
    bytes.truncate(len);
    bytes
}

#[test]
fn what_is_another_files_is_not_mended_as_a_directory_or_as_addresses() {
    for shape in SHAPES {
        let base = Base::new(shape);
        let fs = attach(base.dev.clone(), "");
        let late = as_root(|cx| {
            let made = fs.mkdir(cx, fs.root(), name("late"), &SetAttr::default());
            let late = made.expect("mkdir").node.ino.get() as u32;
            fs.detach(cx).expect("detach");
            late
        });
        base.put(base.inode(late, 12), &base.address(base.small, 0).0);
        let deep = base.large + 1;
        base.put(base.inode(base.large, 12 + 30), &base.address(deep, 0).0);
        mend(&base, &shape.name());
        let fs = attach(base.dev.clone(), "");
        as_root(|cx| {
            assert_eq!(content(&fs, cx, &["small"]), pattern(300, 300));
            let deep = content(&fs, cx, &["dir", "inner", "deep"]);
            assert_eq!(deep, pattern(10, 10));
        });
    }
}

#[test]
fn what_a_crash_cannot_leave_stops_preening() {
    for shape in SHAPES {
        let base = Base::new(shape);
        base.put16(base.inode(base.small, 2), 7);
        let before = base.dev.to_vec();
        let (report, _) = check(base.dev.clone(), CheckMode::Preen);
        assert_eq!((report.found, report.mended), (1, 0));
        assert!(base.dev.to_vec() == before);
    }
}

#[test]
fn with_the_order_given_a_volume_without_a_root_is_mended() {
    let base = Base::new(SHAPES[0]);
    base.put16(base.inode(2, 0), 0);
    assert_eq!(V7.probe(&*base.dev).expect("probe"), None);
    let refused = V7.attach(base.dev.clone(), &volary_core::Attach::default());
    assert_eq!(refused.err().expect("refused"), Kind::Corrupt);
    let check = |mode| {
        volary_testkit::volumes::check(&V7, base.dev.clone(), mode, "order=pdp").expect("check")
    };
    let (report, found) = check(CheckMode::Mend);
    assert_eq!(report.left(), 0, "{found:?}");
    assert_eq!(check(CheckMode::Look).0.found, 0);
    clean(base.dev.clone()).expect("clean");
    let fs = attach(base.dev.clone(), "");
    let mut names = Vec::new();
    look(&fs, 100, |entry| names.push(entry.name.to_vec()));
    for name in [&b"lost+found"[..], b"large", b"deep"] {
        assert!(names.iter().any(|n| n == name), "{names:?}");
    }
}

#[test]
fn whatever_bytes_are_wrong_one_run_mends_all() {
    let mut rng = Rng::new(7);
    for round in 0..400 {
        let base = Base::new(SHAPES[round % 2]);
        let system = base.bsize() * 2 + 128 * 64 + 20 * base.bsize();
        for _ in 0..=rng.below(6) {
            let at = 512 + rng.below(system - 512);
            let len = 1 + rng.index(4);
            let bytes: Vec<u8> = (0..len).map(|_| rng.below(256) as u8).collect();
            base.put(at, &bytes);
        }
        let Ok(fs) = V7.attach(base.dev.clone(), &volary_core::Attach::default()) else {
            continue;
        };
        look(&fs, 60, |_| ());
        drop(fs);
        let _ = V7.map(base.dev.clone(), 10);
        mend(&base, &format!("round {round}"));
    }
}
