//! Many files, and Linux's own driver. A few in each run; with `VOLARY_SUITES=all`, very many.

use crate::images::{Images, can_mount, fill, mounted, run};
use crate::oracle::told;
use crate::{attach_as, file, tools};
use std::fs;
use std::path::Path;
use std::process::Command;
use volary_core::FileKind;
use volary_testkit::oracle::vm;
use volary_testkit::tree::Tree;
use volary_testkit::view::{assert_same, host, ours};
use volary_testkit::volumes::as_root;

/// Returns whether all is asked for, or a part.
pub(crate) fn all() -> bool {
    std::env::var_os("VOLARY_SUITES").is_some_and(|suites| suites == "all")
}

/// A tree of so many files in directories of a hundred, with links.
fn plant(dir: &Path, count: u64) {
    for n in 0..count {
        let below = dir.join(format!("dir {}", n / 100));
        if n % 100 == 0 {
            fs::create_dir(&below).unwrap();
        }
        let name = below.join(format!("a file of number {n}"));
        let len = usize::try_from(n * 37 % 5000).unwrap();
        fs::write(&name, volary_testkit::rng::pattern(n, len)).unwrap();
        if n % 10 == 0 {
            fs::hard_link(&name, dir.join(format!("link {n}"))).unwrap();
        }
    }
}

#[test]
fn many_files_are_read_as_ntfs_3g_reads_them() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let count = if all() { 10_000 } else { 500 };
    let image = images.filled("", 128 << 20, |dir| plant(dir, count));
    let dev = file(&image);
    let fs = attach_as(dev.clone(), "").expect("attach");
    let seen = ours(&fs, &dev);
    assert_eq!(tools::check(&dev), [""; 0]);
    let mount = mounted(&images, &image, "ro");
    assert_same("many", &told(&seen), &told(&host(mount.dir())));
}

#[test]
fn a_large_directory_is_listed_and_searched() {
    if !can_mount() {
        return;
    }
    let images = Images::new();
    let count = if all() { 100_000 } else { 3000 };
    let image = images.filled("", 256 << 20, |dir| {
        let line =
            format!("seq -f 'name of number %.0f' 1 {count} | tr '\\n' '\\0' | xargs -0 touch");
        run(Command::new("sh").args(["-ec", &line]).current_dir(dir));
    });
    let dev = file(&image);
    let fs = attach_as(dev.clone(), "").expect("attach");
    // It looks each name up.
    let tree = as_root(|cx| Tree::read(&fs, cx)).expect("a walk");
    assert_eq!(tree.0.len(), count);
    assert_eq!(tools::check(&dev), [""; 0]);
}

/// Linux reads modes, owners and link counts in its own way.
fn as_linux_tells(tree: Tree) -> Tree {
    tree.map(|leaf| {
        leaf.owner = None;
        leaf.links = None;
        if leaf.kind == FileKind::Symlink {
            leaf.hash = None;
        }
    })
}

#[test]
fn linux_reads_the_same() {
    if !can_mount() {
        return;
    }
    let Some(vmrun) = vm::find() else { return };
    let images = Images::new();
    let image = images.filled("", 12 << 20, |dir| {
        fill(dir);
        // ntfs3 takes what ntfs-3g keeps symlinks in for files.
        for len in [1, 60, 400] {
            fs::remove_file(dir.join(format!("link{len}"))).unwrap();
        }
    });
    let volume = vm::Volume {
        image: &image,
        kind: "ntfs3",
        options: "iocharset=utf8",
    };
    let theirs = vm::trees(&vmrun, &[volume]).expect("Linux");
    let fs = attach_as(file(&image), "").expect("attach");
    let seen = as_root(|cx| Tree::read(&fs, cx)).expect("a walk");
    as_linux_tells(seen).assert_same(&as_linux_tells(theirs[0].clone()));
}
