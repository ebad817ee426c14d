//! Damage of many kinds, mended: a second check finds nothing and writes nothing, what was
//! not damaged is there, and the Sleuth Kit reads it as we do.

use crate::volumes::{attach, check, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{BlockDevice, CheckMode, Create, Fs, Name, NodeId, SetAttr};
use volary_testkit::rng::pattern;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;
const SHAPES: [Shape; 3] = [
    shape("ffs1", 4 * MIB).made("block=4096,fragment=512"),
    shape("ffs2", 4 * MIB).made("block=4096,fragment=512,order=big"),
    shape("ffs1", 4 * MIB).made("block=4096,fragment=512,old"),
];

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

fn put(fs: &Fs, dir: NodeId, text: &str, len: usize) -> NodeId {
    as_root(|cx| {
        let set = SetAttr::default();
        let (entry, open) = fs
            .create(cx, dir, name(text), Create::New, &set)
            .expect("create");
        let content = pattern(len as u64, len);
        fs.write(cx, open, Some(0), &content).expect("write");
        fs.close(cx, open).expect("close");
        entry.node
    })
}

/// A volume with some files, what it holds, and where inodes stand on it.
struct Made {
    shape: Shape,
    image: Vec<u8>,
    tree: Tree,
    /// Inodes of: directory `a`, its child `a/b`, file `a/one`, file `large`.
    inos: [u64; 4],
}

fn made(shape: Shape) -> Made {
    let dev = shape.device();
    let fs = attach(dev.clone(), "");
    let (tree, inos) = as_root(|cx| {
        let set = SetAttr::default();
        let a = fs.mkdir(cx, fs.root(), name("a"), &set).expect("a").node;
        let b = fs.mkdir(cx, a, name("b"), &set).expect("b").node;
        let one = put(&fs, a, "one", 3000);
        put(&fs, b, "two", 9000);
        let large = put(&fs, fs.root(), "large", 200_000);
        for i in 0..30 {
            put(&fs, b, &format!("small {i}"), i * 37);
        }
        let tree = Tree::read(&fs, cx).expect("the tree");
        fs.detach(cx).expect("detach");
        (tree, [a, b, one, large].map(|node| node.ino.get()))
    });
    Made {
        shape,
        image: dev.to_vec(),
        tree,
        inos,
    }
}

impl Made {
    fn field(&self, what: &str) -> u64 {
        let dumped = crate::dump(&self.image, "superblock").expect("dump");
        let line = dumped
            .lines()
            .find(|line| line.contains(&format!(" {what} ")));
        let word = line.expect("a field").split_whitespace().nth(2);
        word.expect("a value").parse().expect("a number")
    }

    fn is_big(&self) -> bool {
        self.shape.make.contains("order=big")
    }

    fn is_ufs2(&self) -> bool {
        self.shape.kind == "ffs2"
    }

    /// Where an inode stands.
    fn inode(&self, ino: u64) -> usize {
        let (ipg, size) = (self.field("fs_ipg"), if self.is_ufs2() { 256 } else { 128 });
        let group = ino / ipg * self.field("fs_fpg") + self.field("fs_iblkno");
        (group * 512 + ino % ipg * size) as usize
    }

    /// Where the first block of an inode is.
    fn block(&self, ino: u64) -> usize {
        let at = self.inode(ino);
        let number = |bytes: &[u8]| {
            let fold = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
            match self.is_big() {
                true => bytes.iter().fold(0, fold),
                false => bytes.iter().rev().fold(0, fold),
            }
        };
        let range = if self.is_ufs2() { 112..120 } else { 40..44 };
        number(&self.image[at + range.start..at + range.end]) as usize * 512
    }

    fn group(&self, number: u64) -> usize {
        ((number * self.field("fs_fpg") + self.field("fs_cblkno")) * 512) as usize
    }
}

type Damage = (&'static str, fn(&Made, &mut [u8]));

/// Kinds of damage, with what finds them first.
const DAMAGE: &[Damage] = &[
    ("inode", |m, image| {
        image[m.inode(m.inos[2])..][..2].copy_from_slice(&[0xff, 0xff]);
    }),
    ("inode", |m, image| {
        let at = m.inode(m.inos[3]) + if m.is_ufs2() { 16 } else { 8 };
        image[at..at + 8].fill(0x7f);
    }),
    ("bad-block", |m, image| {
        let at = m.inode(m.inos[2]) + if m.is_ufs2() { 112 } else { 40 };
        image[at..at + 4].fill(0x7f);
    }),
    ("duplicate-blocks", |m, image| {
        let at = if m.is_ufs2() { 112 } else { 40 };
        let (from, to) = (m.inode(m.inos[3]) + at, m.inode(m.inos[2]) + at);
        image.copy_within(from..from + 8, to);
    }),
    ("block-count", |m, image| {
        let at = m.inode(m.inos[2]) + if m.is_ufs2() { 24 } else { 104 };
        image[at..at + 4].fill(1);
    }),
    ("beyond-end", |m, image| {
        let at = m.inode(m.inos[2]) + if m.is_ufs2() { 112 } else { 40 };
        let len = if m.is_ufs2() { 8 } else { 4 };
        image.copy_within(at..at + len, at + 5 * len);
    }),
    ("link-count", |m, image| {
        let at = m.inode(m.inos[2]) + 2;
        image[at..at + 2].fill(3);
    }),
    ("link-count", |m, image| {
        let at = m.inode(m.inos[0]) + 2;
        image[at..at + 2].fill(0);
    }),
    ("directory-size", |m, image| {
        let at = m.inode(m.inos[0]) + if m.is_ufs2() { 16 } else { 8 };
        image[at + if m.is_big() { 7 } else { 0 }] = 8;
    }),
    ("entry", |m, image| {
        image[m.block(m.inos[1]) + 12 + 4..][..2].fill(0xff);
    }),
    ("entry", |m, image| {
        image[m.block(m.inos[1]) + 512 + 4..][..2].fill(0);
    }),
    ("dots", |m, image| image[m.block(m.inos[1])..][..4].fill(0)),
    ("dots", |m, image| {
        let at = m.block(m.inos[1]);
        image.copy_within(at..at + 4, at + 12);
    }),
    ("name", |m, image| image[m.block(m.inos[0]) + 24 + 8] = b'/'),
    ("unallocated", |m, image| {
        let at = m.block(m.inos[0]) + 24;
        image[at..at + 4].copy_from_slice(&if m.is_big() {
            [0, 0, 0, 100]
        } else {
            [100, 0, 0, 0]
        });
    }),
    ("unconnected", |m, image| {
        image[m.block(m.inos[0]) + 24..][..4].fill(0);
    }),
    ("unreferenced", |m, image| {
        image[m.block(2) + 24..][..4].fill(0);
    }),
    ("free-map", |m, image| {
        let at = m.group(0);
        let map = at + offset(m, at, 96);
        image[map..map + 100].fill(0xff);
    }),
    ("lost-blocks", |m, image| {
        let at = m.group(0);
        let map = at + offset(m, at, 96);
        image[map + 20..map + 100].fill(0);
    }),
    ("inode-map", |m, image| {
        let at = m.group(0);
        let map = at + offset(m, at, 92);
        image[map] = 0;
    }),
    ("summary", |m, image| image[m.group(1) + 24..][..16].fill(1)),
    ("summary", |m, image| image[m.group(0) + 52..][..32].fill(0)),
    ("group", |m, image| image[m.group(1) + 4..][..4].fill(0)),
    ("group", |m, image| image[m.group(1)..][..512].fill(0xee)),
    ("replica", |m, image| {
        let at = ((m.field("fs_fpg") + m.field("fs_sblkno")) * 512) as usize;
        image[at..at + 1376].fill(0);
    }),
    ("totals", |m, image| {
        let at = if m.is_ufs2() { 65_536 } else { 8192 };
        let field = if m.shape.make.contains("old") {
            192
        } else {
            1008
        };
        image[at + field..][..16].fill(0);
    }),
    ("dirty", |m, image| {
        image[if m.is_ufs2() { 65_536 } else { 8192 } + 209] = 0;
    }),
];

fn offset(m: &Made, group: usize, field: usize) -> usize {
    let bytes: [u8; 4] = m.image[group + field..][..4].try_into().expect("four");
    let offset = match m.is_big() {
        true => u32::from_be_bytes(bytes),
        false => u32::from_le_bytes(bytes),
    };
    offset as usize
}

/// How many files of a tree are gone: neither by their names nor in `lost+found`.
fn lost(before: &Tree, after: &Tree) -> usize {
    let is_there = |hash: &Option<[u8; 32]>| after.0.values().any(|leaf| leaf.hash == *hash);
    let files = before.0.values().filter(|leaf| leaf.hash.is_some());
    files.filter(|leaf| !is_there(&leaf.hash)).count()
}

/// What is wrong with how one kind of damage is mended.
fn mended(m: &Made, (code, damage): &Damage) -> Result<(), String> {
    let mut image = m.image.clone();
    damage(m, &mut image);
    let dev = Arc::new(MemDevice::from_vec(image));
    let (_, found) = check(dev.clone(), CheckMode::Look);
    if !found
        .iter()
        .any(|line| line.starts_with(&format!("{code}:")))
    {
        return Err(format!("not found: {found:#?}"));
    }
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    if report.left() > 0 {
        return Err(format!("{} left: {found:#?}", report.left()));
    }
    let (again, found) = check(dev.clone(), CheckMode::Mend);
    if (again.found, again.written) != (0, 0) {
        return Err(format!("{} written again: {found:#?}", again.written));
    }
    let fs = attach(dev as Arc<dyn BlockDevice>, "");
    let tree = as_root(|cx| Tree::read(&fs, cx)).map_err(|e| e.to_string())?;
    // The damaged file itself, or one with whom it shares blocks.
    match lost(&m.tree, &tree) {
        0 | 1 => Ok(()),
        lost => Err(format!("{lost} files are lost")),
    }
}

#[test]
fn damage_is_mended_and_nothing_else_is_lost() {
    let mut failures = Vec::new();
    for shape in SHAPES {
        let m = made(shape);
        for (number, damage) in DAMAGE.iter().enumerate() {
            if let Err(words) = mended(&m, damage) {
                let way = m.shape.name();
                failures.push(format!("{way}: {number} {}: {words}", damage.0));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn preening_stops_at_damage_and_writes_nothing() {
    let m = made(SHAPES[0]);
    for (code, damage) in DAMAGE {
        let mut image = m.image.clone();
        damage(&m, &mut image);
        let dev = Arc::new(MemDevice::from_vec(image.clone()));
        let (report, _) = check(dev.clone(), CheckMode::Preen);
        let is_damage = matches!(
            *code,
            "inode" | "bad-block" | "duplicate-blocks" | "entry" | "dots" | "name" | "group"
        );
        if is_damage {
            assert!(report.left() > 0, "{code}");
            assert_eq!((report.written, report.mended), (0, 0), "{code}");
            assert!(dev.to_vec() == image, "{code}");
        }
    }
}
