//! Images that makefs makes of a tree of the host, in all formats and byte orders.

use crate::lists::{hex, lines, without_the_examiners};
use crate::oracle::{by_sleuthkit, on_disk};
use crate::{attach, check, content};
use std::path::Path;
use std::sync::Arc;
use volary_block::{MemDevice, Recorder};
use volary_core::{Attach, BlockDevice, FileKind, Format, Mode, Name, Time};
use volary_ffs::FFS;
use volary_testkit::oracle::{Tool, dissect, have, host, python, sleuthkit};
use volary_testkit::rng::pattern;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::as_root;

pub(crate) const MAKEFS: Tool = Tool {
    program: "makefs",
    package: "makefs",
};

/// Longer than an inode has room for.
fn long_target() -> String {
    format!("{}large", "./".repeat(100))
}

/// A tree with files of sizes around every border.
fn fill(dir: &Path) {
    std::fs::create_dir_all(dir.join("deep/er/and/deeper")).expect("mkdir");
    std::fs::create_dir(dir.join("many")).expect("mkdir");
    let write = |name: String, bytes: &[u8]| std::fs::write(dir.join(name), bytes).expect("write");
    let borders = [
        0, 511, 512, 1023, 1024, 4095, 4096, 49_151, 49_152, 49_153, 98_304,
    ];
    for (seed, size) in borders.into_iter().enumerate() {
        write(format!("deep/size-{size}"), &pattern(seed as u64, size));
    }
    write("large".into(), &pattern(99, 3_500_000));
    for i in 0..300 {
        write(
            format!("many/{}-{i}", "n".repeat(i % 200)),
            &pattern(i as u64, i),
        );
    }
    std::os::unix::fs::symlink("large", dir.join("short-link")).expect("symlink");
    std::os::unix::fs::symlink(long_target(), dir.join("long-link")).expect("symlink");
    std::fs::hard_link(dir.join("large"), dir.join("deep/same")).expect("link");
}

/// Returns an image of a directory; `None` if makefs is not there.
pub(crate) fn make(dir: &Path, options: &[&str]) -> Option<Vec<u8>> {
    if !have(&[MAKEFS]) {
        return None;
    }
    let image = tempfile::NamedTempFile::new().expect("a file");
    let made = MAKEFS
        .command()
        .args(["-t", "ffs"])
        .args(options)
        .arg(image.path())
        .arg(dir)
        .output();
    let made = made.expect("makefs");
    assert!(made.status.success(), "{made:?}");
    Some(std::fs::read(image.path()).expect("the image"))
}

/// All that makefs can make, small and large blocks.
const WAYS: [(&str, &str, &str); 6] = [
    ("le", "8m", "version=1,bsize=8192,fsize=1024"),
    ("be", "8m", "version=1,bsize=8192,fsize=1024"),
    ("be", "16m", "version=1,bsize=4096,fsize=512,density=2048"),
    ("le", "8m", "version=2,bsize=8192,fsize=1024"),
    ("be", "8m", "version=2,bsize=16384,fsize=2048"),
    ("le", "24m", "version=2,bsize=65536,fsize=8192"),
];

/// Each image with what it was made of.
fn each(act: impl Fn(&str, &Path, &[u8])) {
    let dir = tempfile::tempdir().expect("a directory");
    fill(dir.path());
    for (order, size, format) in WAYS {
        let options = ["-B", order, "-s", size, "-o", format];
        let Some(image) = make(dir.path(), &options) else {
            return;
        };
        act(&format!("{order} {format}"), dir.path(), &image);
    }
}

#[test]
fn what_makefs_makes_is_read_as_the_tree_it_was_made_of() {
    each(|way, dir, image| {
        let fs = attach(image);
        lines(&fs);
        let ours = as_root(|cx| Tree::read(&fs, cx)).expect("our tree");
        let is_link = |leaf: &volary_testkit::tree::Leaf| leaf.kind == FileKind::Symlink;
        assert_eq!(
            ours.0.values().filter(|leaf| is_link(leaf)).count(),
            2,
            "{way}"
        );
        let plain = |tree: Tree| {
            let mut tree = tree.map(|leaf| {
                (leaf.owner, leaf.links) = (None, None);
                leaf.mtime = leaf.mtime.map(|time| Time::from_secs(time.secs));
            });
            tree.0
                .retain(|path, leaf| !is_link(leaf) && !path.ends_with(b"-link"));
            tree
        };
        plain(ours).assert_same(&plain(host::tree(dir).expect("the tree")));
        let links = as_root(|cx| {
            let find = |dir, name: &[u8]| fs.lookup(cx, dir, Name::new(name)?);
            let deep = find(fs.root(), b"deep").expect("deep").node;
            let same = find(deep, b"same").expect("same");
            assert_eq!(same.node, find(fs.root(), b"large").expect("large").node);
            let target = |name| fs.readlink(cx, find(fs.root(), name).expect("link").node);
            (same.attr.nlink, target(b"short-link"), target(b"long-link"))
        });
        assert_eq!(links.0, 2);
        assert_eq!(links.1.expect("readlink"), b"large");
        assert_eq!(links.2.expect("readlink"), long_target().into_bytes());
    });
}

#[test]
fn the_check_finds_nothing_that_makefs_does_not_leave() {
    each(|way, _, image| {
        let found = check(image).expect("check");
        assert!(found.is_empty(), "{way}: {found:#?}");
    });
}

#[test]
fn sleuthkit_reads_the_same_on_what_makefs_made() {
    if !have(&[sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER]) {
        return;
    }
    each(|way, _, image| {
        // It does not find UFS2's superblock where makefs puts it.
        if way.contains("version=2") {
            return;
        }
        let theirs = sleuthkit::tree(on_disk(image).path()).expect("sleuthkit");
        let mut ours = as_root(|cx| Tree::read(&attach(image), cx)).expect("our tree");
        ours.0.retain(|_, leaf| leaf.kind != FileKind::Symlink);
        ours.map(by_sleuthkit)
            .assert_same(&without_the_examiners(theirs));
    });
}

#[test]
fn dissect_reads_the_same_on_what_makefs_made() {
    let Some(python) = python::with_dissect_ffs() else {
        return;
    };
    each(|way, _, image| {
        if way.starts_with("be") {
            return;
        }
        let theirs = dissect::trees(&python, &[on_disk(image).path()]).expect("dissect.ffs");
        let ours = as_root(|cx| Tree::read(&attach(image), cx)).expect("our tree");
        theirs[0].assert_same(&ours);
    });
}

#[test]
fn a_run_is_read_in_one_request() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("large"), pattern(1, 900_000)).expect("write");
    let Some(image) = make(
        dir.path(),
        &["-s", "8m", "-o", "version=1,bsize=8192,fsize=1024"],
    ) else {
        return;
    };
    let dev = MemDevice::new(image.len() as u64);
    dev.write_at(0, &image).expect("an image in memory");
    let recorder = Arc::new(Recorder::counting(Arc::new(dev)));
    let fs = FFS
        .attach(recorder.clone(), &Attach::default())
        .expect("attach");
    let name = Name::new(b"large").expect("a name");
    let attr = as_root(|cx| fs.lookup(cx, fs.root(), name))
        .expect("lookup")
        .attr;
    let mut runs = Vec::new();
    as_root(|cx| {
        let open = fs.open(cx, attr.node, Mode::Read).expect("open");
        fs.extents(cx, open, 0, attr.size, &mut runs)
            .expect("extents");
        let before = recorder.counts().reads;
        let mut bytes = vec![0; attr.size as usize];
        fs.read(cx, open, 0, &mut bytes).expect("read");
        let requests = recorder.counts().reads - before;
        assert_eq!(hex(&bytes), hex(&pattern(1, 900_000)));
        // The last one holds less than a request of the cache; it may be read with more.
        assert!(
            requests <= runs.len() as u64 + 1,
            "{requests} for {}",
            runs.len()
        );
        fs.close(cx, open).expect("close");
    });
    assert_eq!(content(&fs, &attr).len(), 900_000);
}
