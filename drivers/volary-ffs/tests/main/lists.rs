//! NetBSD's images against their lists, and against what sleuthkit and dissect.ffs read.

use crate::oracle::{by_sleuthkit, on_disk};
use crate::{attach, check, content, shared};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use volary_core::{Attr, Cookie, DirBuf, FileKind, Fs, Kind, Mode, Name};
use volary_testkit::oracle::{dissect, have, python, sleuthkit};
use volary_testkit::tree::Tree;
use volary_testkit::volumes::as_root;

const IMAGES: [&str; 3] = ["ufs-4.3bsd", "ufs1-le", "ufs2-le"];

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|b| format!("{b:02x}")).collect()
}

/// Returns a node in the form of the lists.
fn line(fs: &Fs, attr: &Attr, path: &str) -> String {
    let owner = format!("{:o} {} {}", attr.mode, attr.uid, attr.gid);
    match attr.kind {
        FileKind::Dir => format!("d {owner} {} {path}", attr.nlink),
        FileKind::File => {
            let hash = hex(&content(fs, attr));
            format!("f {owner} {} {} {hash} {path}", attr.size, attr.nlink)
        }
        FileKind::Symlink => {
            let target = as_root(|cx| fs.readlink(cx, attr.node)).expect("readlink");
            let target = String::from_utf8_lossy(&target);
            format!("l {owner} {} {} {path} -> {target}", attr.size, attr.nlink)
        }
        kind => {
            let kind = match kind {
                FileKind::BlockDevice => "block special file",
                FileKind::CharDevice => "character special file",
                FileKind::Fifo => "fifo",
                _ => "socket",
            };
            let (major, minor) = (attr.rdev >> 32, attr.rdev & 0xffff_ffff);
            format!("s {kind} {:o} {major}:{minor} {path}", attr.mode)
        }
    }
}

/// Every node, a line each; what must hold between operations is looked at on the way.
pub(crate) fn lines(fs: &Fs) -> BTreeSet<String> {
    as_root(|cx| {
        let root = fs.getattr(cx, fs.root()).expect("the root");
        let mut lines = BTreeSet::from([line(fs, &root, ".")]);
        let mut dirs = vec![(".".to_owned(), fs.root())];
        while let Some((path, dir)) = dirs.pop() {
            let open = fs.open(cx, dir, Mode::Read).expect("open");
            let mut at = Cookie::START;
            loop {
                // Few at a time, so that places are tried.
                let mut out = DirBuf::new(7, 1 << 16, true);
                let end = fs.readdir(cx, open, at, &mut out).expect("readdir");
                for entry in out.iter() {
                    let name = Name::new(entry.name).expect("a name");
                    let found = fs.lookup(cx, dir, name).expect("lookup");
                    assert_eq!((found.node, found.attr.kind), (entry.node, entry.kind));
                    assert_eq!(Some(found.attr), entry.attr);
                    let path = format!("{path}/{}", String::from_utf8_lossy(entry.name));
                    if entry.kind == FileKind::Dir {
                        assert_eq!(fs.parent(cx, entry.node).expect("parent").node, dir);
                        dirs.push((path.clone(), entry.node));
                    }
                    lines.insert(line(fs, &found.attr, &path));
                }
                at = out.last_cookie().unwrap_or(at);
                if end {
                    break;
                }
            }
            fs.close(cx, open).expect("close");
        }
        lines
    })
}

#[test]
fn every_image_holds_what_its_list_says() {
    for name in IMAGES {
        let Some(image) = shared::image(name) else {
            return;
        };
        let ours = lines(&attach(&image));
        let list = shared::list(name);
        let theirs: BTreeSet<String> = list.lines().skip(1).map(str::to_owned).collect();
        let differ: Vec<_> = ours.symmetric_difference(&theirs).take(9).collect();
        assert!(differ.is_empty(), "{name}: {differ:#?}");
        assert!(theirs.len() > 300);
    }
}

#[test]
fn sleuthkit_reads_the_same_times_and_contents() {
    if !have(&[sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER]) {
        return;
    }
    // Of 4.3BSD's directories it reads nothing.
    for name in ["ufs1-le", "ufs2-le"] {
        let Some(image) = shared::image(name) else {
            return;
        };
        let theirs = sleuthkit::tree(on_disk(&image).path()).expect("sleuthkit");
        let mut ours = as_root(|cx| Tree::read(&attach(&image), cx)).expect("our tree");
        ours.0
            .retain(|_, leaf| matches!(leaf.kind, FileKind::File | FileKind::Dir));
        let theirs = without_the_examiners(theirs);
        ours.map(by_sleuthkit).assert_same(&theirs);
    }
}

#[test]
fn dissect_reads_the_same() {
    let Some(python) = python::with_dissect_ffs() else {
        return;
    };
    for name in ["ufs1-le", "ufs2-le"] {
        let Some(image) = shared::image(name) else {
            return;
        };
        let theirs = dissect::trees(&python, &[on_disk(&image).path()]).expect("dissect.ffs");
        let ours = as_root(|cx| Tree::read(&attach(&image), cx)).expect("our tree");
        theirs[0].assert_same(&ours);
    }
}

/// fls lists orphans in a directory of its own.
pub(crate) fn without_the_examiners(mut tree: Tree) -> Tree {
    tree.0.retain(|path, _| !path.starts_with(b"$OrphanFiles"));
    tree
}

#[test]
fn the_check_finds_nothing_on_good_images() {
    for name in IMAGES.iter().chain(&["ufs-little", "ufs-big"]) {
        let Some(image) = shared::image(name) else {
            return;
        };
        assert_eq!(check(&image).expect(name), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_replica_of_the_superblock_serves_when_the_first_is_gone() {
    for (name, at) in [("ufs-4.3bsd", 8192), ("ufs1-le", 8192), ("ufs2-le", 65_536)] {
        let Some(mut image) = shared::image(name) else {
            return;
        };
        let good = lines(&attach(&image));
        let listed = crate::dump(&image, "superblocks").expect("dump");
        let sectors: Vec<u64> = listed
            .lines()
            .filter(|line| line.ends_with("good"))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse().ok())
            .collect();
        assert_eq!(sectors.len(), 5, "{listed}");
        image[at..at + 8192].fill(0);
        let e = crate::attach_as(&image, "").err().expect("no superblock");
        assert_eq!(e.kind(), Kind::Corrupt);
        assert!(e.to_string().contains("superblock=SECTOR"), "{e}");
        for sector in sectors.iter().filter(|&&sector| sector * 512 != at as u64) {
            let fs = crate::attach_as(&image, &format!("superblock={sector}")).expect("attach");
            assert_eq!(lines(&fs), good);
        }
    }
}

#[test]
fn owners_of_hard_links_are_one_node() {
    for name in IMAGES {
        let Some(image) = shared::image(name) else {
            return;
        };
        let list = shared::list(name);
        let is_linked = |line: &&str| line.starts_with("f ") && line.split(' ').nth(5) == Some("2");
        let paths: Vec<&str> = list
            .lines()
            .filter(is_linked)
            .filter_map(|l| l.split("./").nth(1))
            .collect();
        let [a, b] = paths.as_slice() else {
            panic!("{paths:?}")
        };
        let fs = attach(&image);
        let find = |path: &str| {
            as_root(|cx| {
                path.split('/').fold(fs.root(), |dir, name| {
                    let name = Name::new(name.as_bytes()).expect("a name");
                    fs.lookup(cx, dir, name).expect("lookup").node
                })
            })
        };
        assert_eq!(find(a), find(b));
    }
}
