//! What node ids mean, and when they no longer do.

use crate::own::{Own, can_mount};
use crate::side::Side;
use std::fs;
use tempfile::TempDir;
use volary_core::{Caps, Kind, NodeId};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn an_id_keeps_its_meaning_when_another_process_renames() {
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        let side = Side::new(dir.path(), by_handle);
        let (a, b) = (side.dir(side.root(), b"a"), side.dir(side.root(), b"b"));
        let file = side.file(a, b"f");
        fs::write(dir.path().join("a/f"), "content").unwrap();
        fs::rename(dir.path().join("a/f"), dir.path().join("b/g")).unwrap();
        fs::rename(dir.path().join("b"), dir.path().join("a/b")).unwrap();
        assert_eq!(side.content(file).unwrap(), b"content");
        assert_eq!(side.find(b, b"g"), file);
        assert_eq!(side.fs.parent(&side.cx(), b).unwrap().node, a);
    }
}

/// A node that a listing has seen is told by its number and its time of birth from
/// then on; another may get the number at any moment.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "ages of nodes are what this is about"
)]
fn a_listing_and_a_lookup_mean_the_same_nodes_though_numbers_are_used_again() {
    let dir = TempDir::new().unwrap();
    let side = Side::new(dir.path(), true);
    let make = |range: std::ops::Range<u32>| {
        for at in range {
            fs::write(dir.path().join(format!("f{at:03}")), b"").unwrap();
        }
    };
    let agree = |count: usize| {
        let listed = side.listed(side.root()).unwrap();
        assert_eq!(listed.len(), count);
        for (name, node) in listed {
            assert_eq!(side.find(side.root(), &name), node);
        }
    };
    make(0..100);
    for round in 0..20 {
        // In every other round they are old enough to be told so.
        if round % 2 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(40));
        }
        agree(100);
        agree(100);
        let seen = side.listed(side.root()).unwrap();
        for at in 0..50 {
            fs::remove_file(dir.path().join(format!("f{at:03}"))).unwrap();
        }
        make(0..50);
        let now = side.listed(side.root()).unwrap();
        assert!(seen[..50].iter().zip(&now).all(|(old, new)| old.1 != new.1));
        assert_eq!(seen[50..], now[50..]);
        agree(100);
    }
}

#[test]
fn an_id_is_stale_once_another_process_removed_the_node() {
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        let side = Side::new(dir.path(), by_handle);
        let (file, below) = (side.file(side.root(), b"f"), side.dir(side.root(), b"d"));
        fs::remove_file(dir.path().join("f")).unwrap();
        fs::remove_dir(dir.path().join("d")).unwrap();
        for node in [file, below] {
            assert_eq!(side.attr(node).unwrap_err(), Kind::Stale);
            assert!(side.content(node).is_err());
        }
        assert_eq!(side.lookup(below, b"x").unwrap_err(), Kind::Stale);
        let made = side.create(below, b"x", volary_core::Create::New);
        assert_eq!(made.unwrap_err(), Kind::Stale);
    }
}

#[test]
fn ids_survive_a_restart_where_nodes_are_opened_by_handle() {
    if !is_root() {
        eprintln!("SKIPPED: to open by handle takes root");
        return;
    }
    let dir = TempDir::new().unwrap();
    let side = Side::new(dir.path(), true);
    let a = side.dir(side.root(), b"a");
    let (below, file) = (side.dir(a, b"below"), side.file(a, b"f"));
    side.fs.detach(&side.cx()).unwrap();
    fs::rename(dir.path().join("a"), dir.path().join("other")).unwrap();

    let side = Side::new(dir.path(), true);
    for node in [file, below, a] {
        assert_eq!(side.attr(node).unwrap().node, node);
    }
    assert_eq!(side.fs.parent(&side.cx(), below).unwrap().node, a);
    assert_eq!(side.content(file).unwrap(), b"");

    // Without handles they must not mean anything else.
    let side = Side::new(dir.path(), false);
    for node in [file, below, a] {
        assert_eq!(side.attr(node).unwrap_err(), Kind::Stale);
    }
}

/// Ids of all that is in a tree and beside the directory `inside` of it, its
/// root among them.
fn outside_of(dir: &TempDir) -> Vec<NodeId> {
    let whole = Side::new(dir.path(), true);
    let outside = whole.find(whole.root(), b"outside");
    vec![
        whole.root(),
        outside,
        whole.find(outside, b"canary"),
        whole.find(whole.root(), b"link"),
    ]
}

#[test]
fn an_id_of_a_node_outside_opens_nothing() {
    let dir = TempDir::new().unwrap();
    for below in ["inside", "inside/d", "outside"] {
        fs::create_dir(dir.path().join(below)).unwrap();
    }
    fs::write(dir.path().join("outside/canary"), "outside").unwrap();
    std::os::unix::fs::symlink("outside", dir.path().join("link")).unwrap();
    let nodes = outside_of(&dir);
    for by_handle in [true, false] {
        let side = Side::new(&dir.path().join("inside"), by_handle);
        for &node in &nodes {
            assert_eq!(side.attr(node).unwrap_err(), Kind::Stale, "{node:?}");
            assert_eq!(side.content(node).unwrap_err(), Kind::Stale);
            assert_eq!(side.names(node).unwrap_err(), Kind::Stale);
            assert_eq!(side.lookup(node, b"canary").unwrap_err(), Kind::Stale);
            let got = side.fs.parent(&side.cx(), node);
            assert_eq!(got.unwrap_err(), Kind::Stale);
            let got = side.fs.readlink(&side.cx(), node);
            assert_eq!(got.unwrap_err(), Kind::Stale);
        }
    }
}

#[test]
fn what_was_moved_out_has_no_parent_and_is_stale_after_a_restart() {
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        fs::create_dir(dir.path().join("inside")).unwrap();
        let side = Side::new(&dir.path().join("inside"), by_handle);
        let moved = side.dir(side.root(), b"d");
        let file = side.file(moved, b"f");
        fs::rename(dir.path().join("inside/d"), dir.path().join("d")).unwrap();
        let got = side.fs.parent(&side.cx(), moved);
        assert_eq!(got.unwrap_err(), Kind::Stale);
        let again = Side::new(&dir.path().join("inside"), by_handle);
        for node in [moved, file] {
            assert_eq!(again.attr(node).unwrap_err(), Kind::Stale);
        }
    }
}

#[test]
fn stable_ids_are_claimed_where_nodes_are_opened_by_handle() {
    if !can_mount() {
        return;
    }
    let own = Own::new("tmpfs");
    fs::create_dir(own.path().join("d")).unwrap();
    for path in ["", "d"] {
        for by_handle in [true, false] {
            let side = Side::new(&own.path().join(path), by_handle);
            let stable = side.fs.caps().has(Caps::STABLE_IDS);
            assert_eq!(stable, by_handle, "{path} {by_handle}");
        }
    }
}

/// The host's kernel forgets all that it knew of a file system on an image.
fn mount_again(own: &Own) {
    let run = |program: &str, words: &[&std::ffi::OsStr]| {
        let done = std::process::Command::new(program).args(words).status();
        assert!(done.expect("the program").success(), "{program} {words:?}");
    };
    let (point, image) = (own.path().as_os_str(), own.path().with_file_name("image"));
    run("umount", &[point]);
    run(
        "mount",
        &["-o".as_ref(), "loop".as_ref(), image.as_os_str(), point],
    );
}

#[test]
fn what_the_kernel_forgot_is_found_in_the_tree_and_nowhere_else() {
    if !can_mount() {
        return;
    }
    let own = Own::new("ext4");
    let at = |own: &Own, path: &str| own.path().join(path);
    fs::create_dir_all(at(&own, "top/a/b")).unwrap();
    fs::create_dir(at(&own, "beside")).unwrap();
    let side = Side::new(&at(&own, "top"), true);
    let deep = side.find(side.find(side.root(), b"a"), b"b");
    let [file, linked, gone, out] = [&b"file"[..], b"linked", b"gone", b"out"].map(|name| {
        let node = side.file(deep, name);
        let path = format!("top/a/b/{}", String::from_utf8_lossy(name));
        fs::write(at(&own, &path), name).unwrap();
        node
    });
    let link = side.fs.symlink(
        &side.cx(),
        deep,
        crate::side::name(b"link"),
        b"file",
        &volary_core::SetAttr::default(),
    );
    let link = link.unwrap().node;
    let moves = [("top/a/b/out", "beside/out"), ("top/a/b", "top/moved")];
    fs::hard_link(at(&own, "top/a/b/linked"), at(&own, "beside/linked")).unwrap();
    fs::remove_file(at(&own, "top/a/b/gone")).unwrap();
    for (from, to) in moves {
        fs::rename(at(&own, from), at(&own, to)).unwrap();
    }
    let whole = Side::new(own.path(), true);
    let canary = whole.file(whole.find(whole.root(), b"beside"), b"canary");
    drop((side, whole));
    mount_again(&own);

    // The name that the kernel knows first is the one outside.
    fs::read(at(&own, "beside/linked")).unwrap();
    let side = Side::new(&at(&own, "top"), true);
    assert_eq!(side.attr(link).unwrap().node, link);
    for (node, content) in [(file, &b"file"[..]), (linked, b"linked"), (deep, b"")] {
        assert_eq!(side.attr(node).unwrap().node, node);
        if !content.is_empty() {
            assert_eq!(side.content(node).unwrap(), content);
        }
    }
    for _ in 0..2 {
        for node in [gone, out, canary] {
            assert_eq!(side.attr(node).unwrap_err(), Kind::Stale);
            assert_eq!(side.content(node).unwrap_err(), Kind::Stale);
        }
    }
    // Back in the tree, it is what it was.
    fs::rename(at(&own, "beside/out"), at(&own, "top/out")).unwrap();
    assert_eq!(side.find(side.root(), b"out"), out);
    assert_eq!(side.content(out).unwrap(), b"out");
}

#[test]
fn what_is_mounted_beneath_is_not_of_the_volume() {
    if !can_mount() {
        return;
    }
    let (own, other) = (Own::new("tmpfs"), Own::new("tmpfs"));
    fs::write(other.path().join("canary"), "outside").unwrap();
    fs::create_dir(own.path().join("point")).unwrap();
    fs::write(own.path().join("file"), "").unwrap();
    let bind = rustix::mount::mount_bind(other.path(), own.path().join("point"));
    bind.expect("a bind mount");
    for by_handle in [true, false] {
        let side = Side::new(own.path(), by_handle);
        let got = side.lookup(side.root(), b"point");
        let refused = got.unwrap_err();
        assert_eq!(refused, Kind::CrossVolume);
        assert!(
            refused.to_string().contains("another file system"),
            "{refused}"
        );
        assert_eq!(side.names(side.root()).unwrap(), [b"file".to_vec()]);
    }
    let flags = rustix::mount::UnmountFlags::DETACH;
    rustix::mount::unmount(own.path().join("point"), flags).expect("unmount");
}
