//! The reference tree, with which drivers that only read are tested.

use crate::manifest::{Content, Manifest, Node};
use crate::rng::pattern;
use volary_core::{FileKind, Time};

/// Sizes that are prone to errors: around sectors, blocks and pages, and past the direct blocks.
pub const SIZES: [usize; 10] = [0, 1, 511, 512, 513, 4095, 4096, 4097, 65_537, (1 << 20) + 3];

/// The number of entries of the large directory.
pub const MANY: usize = 1000;

/// The size of the large file. A driver that takes memory as large as a file shows by it.
pub const LARGE: u64 = 64 << 20;

/// Returns the reference tree, which is always the same.
///
/// | path | content |
/// |---|---|
/// | `sizes/` | a file of each of [`SIZES`] |
/// | `many/` | [`MANY`] small files |
/// | `deep/` | nested directories, with a file in each |
/// | `links/` | a file with three names, one of them in another directory |
/// | `symlinks/` | short, long, dangling, absolute, with `.`, `..` and `//` in it |
/// | `special/` | a fifo |
/// | `names/` | names in Unicode, of 255 bytes, of one byte, with odd characters, or that differ only in case |
/// | `attributes/` | modes, owners and times |
/// | `large/` | a file of [`LARGE`] bytes, all but three parts of it zeros |
/// | `empty/` | nothing |
///
/// If the large file does not fit: `without(Lack::FilesOver(reference::LARGE - 1))`.
pub fn tree() -> Manifest {
    let mut tree = Manifest::default();
    sizes(&mut tree);
    many(&mut tree);
    deep(&mut tree);
    links(&mut tree);
    symlinks(&mut tree);
    names(&mut tree);
    attributes(&mut tree);
    dir(&mut tree, "special");
    tree.add("special/fifo", dated(Node::new(FileKind::Fifo), 90));
    large(&mut tree);
    dir(&mut tree, "empty");
    tree
}

/// Sets the mtime to some days after the beginning of 2020, at an even second.
fn dated(mut node: Node, days: i64) -> Node {
    node.mtime = Time::from_secs(1_577_836_800 + days * 86_400 + days * 2);
    node
}

fn dir(tree: &mut Manifest, path: &str) {
    let mut node = dated(Node::new(FileKind::Dir), path.len() as i64);
    node.mode = 0o755;
    tree.add(path, node);
}

fn file(len: usize, seed: u64) -> Node {
    let node = Node {
        content: Content::Bytes(pattern(seed, len).into()),
        ..Node::new(FileKind::File)
    };
    dated(node, (seed % 1000) as i64)
}

fn sizes(tree: &mut Manifest) {
    dir(tree, "sizes");
    for size in SIZES {
        tree.add(format!("sizes/{size}"), file(size, size as u64));
    }
}

fn large(tree: &mut Manifest) {
    dir(tree, "large");
    let part = |at, seed, len| (at, pattern(seed, len).into());
    let node = Node {
        content: Content::Sparse {
            len: LARGE,
            parts: vec![
                part(0, 401, 70_001),
                part(LARGE / 2 - 3, 402, 10_000),
                part(LARGE - 5001, 403, 5001),
            ],
        },
        ..Node::new(FileKind::File)
    };
    tree.add("large/file", dated(node, 400));
}

fn many(tree: &mut Manifest) {
    dir(tree, "many");
    for i in 0..MANY {
        let seed = 10_000 + i as u64;
        tree.add(format!("many/entry {i:04}"), file(i % 7, seed));
    }
}

fn deep(tree: &mut Manifest) {
    let mut path = "deep".to_owned();
    dir(tree, &path);
    for depth in 0..12 {
        tree.add(format!("{path}/file"), file(100 + depth, depth as u64));
        path = format!("{path}/d{depth}");
        dir(tree, &path);
    }
    // Two directories with the same name in different directories.
    for path in ["deep/twin", "deep/d0/twin"] {
        dir(tree, path);
        tree.add(format!("{path}/in"), file(path.len(), path.len() as u64));
    }
}

fn links(tree: &mut Manifest) {
    dir(tree, "links");
    dir(tree, "links/other");
    let number = tree.add("links/first", file(5000, 77));
    tree.link("links/second", number);
    tree.link("links/other/third", number);
    tree.add("links/alone", file(5000, 78));
}

fn symlinks(tree: &mut Manifest) {
    dir(tree, "symlinks");
    let long = ["a-part-of-a-long-target"; 40].join("/");
    for (name, target) in [
        ("short", "x"),
        ("sibling", "../sizes/4096"),
        ("of 59", &long[..59]),
        ("of 60", &long[..60]),
        ("of 61", &long[..61]),
        ("of 255", &long[..255]),
        ("long", &long[..]),
        ("dangling", "nowhere/at all"),
        ("absolute", "/etc/passwd"),
        ("to itself", "to itself"),
        ("to a directory", "../many"),
        ("as it is", ".//a/./../b//"),
        ("unicode", "größe/名前"),
    ] {
        let node = Node {
            target: target.into(),
            mode: 0o777,
            ..Node::new(FileKind::Symlink)
        };
        tree.add(format!("symlinks/{name}"), dated(node, 50));
    }
}

fn names(tree: &mut Manifest) {
    dir(tree, "names");
    let long = "l".repeat(255);
    // The same length as `long`, and different only in the last byte.
    let longer = format!("{}m", &long[..254]);
    let unicode = "ü".repeat(127);
    for (i, name) in [
        "a",
        "ab",
        "abc",
        "ABC",
        "Größe",
        "名前",
        "😀",
        "e\u{301}",
        "é",
        "with space",
        " before",
        "after ",
        ".hidden",
        "...",
        "dot.",
        "back\\slash",
        "new\nline",
        "quote\"star*ask?",
        "colon:pipe|",
        "-rf",
        &long,
        &longer,
        &unicode,
    ]
    .into_iter()
    .enumerate()
    {
        tree.add(format!("names/{name}"), file(i + 1, 200 + i as u64));
    }
    tree.add(b"names/not \xff utf-8".as_slice(), file(9, 300));
}

fn attributes(tree: &mut Manifest) {
    dir(tree, "attributes");
    for mode in [0o000, 0o400, 0o644, 0o755, 0o777, 0o1644, 0o2755, 0o4755] {
        let mut node = file(3, mode.into());
        node.mode = mode;
        tree.add(format!("attributes/mode {mode:04o}"), node);
    }
    for (uid, gid) in [(1, 2), (1000, 1000), (65_533, 65_532)] {
        let mut node = file(3, uid.into());
        (node.uid, node.gid) = (uid, gid);
        tree.add(format!("attributes/owner {uid} {gid}"), node);
    }
    for (name, time) in [
        ("1980", Time::from_secs(315_619_200)),
        ("2030", Time::from_secs(1_893_456_000)),
        ("odd second", Time::from_secs(1_600_000_001)),
        ("fraction", Time::new(1_600_000_002, 123_456_700)),
    ] {
        let mut node = file(3, 1);
        node.mtime = time;
        tree.add(format!("attributes/time {name}"), node);
    }
    let mut node = dated(Node::new(FileKind::Dir), 7);
    (node.mode, node.uid, node.gid) = (0o1770, 5, 6);
    tree.add("attributes/directory", node);
}
