//! The path walk.

use crate::{Make, OTHER, kind, root, user, volume};
use std::sync::Arc;
use volary_core::{Kind, NodeId, SetAttr};
use volary_session::{Follow, PATH_MAX, SYMLINKS_MAX, Session, Volume};

/// `/a/b/f`, with symlinks around it.
struct Scene {
    volume: Arc<Volume>,
    s: Session,
    a: NodeId,
    b: NodeId,
    f: NodeId,
}

const LINKS: &[(&str, &str)] = &[
    ("to_b", "a/b"),
    ("to_f", "/a/b/f"),
    ("to_to_f", "to_f"),
    ("up", "../../.."),
    ("slash", "to_b/"),
    ("loop1", "loop2"),
    ("loop2", "loop1"),
    ("nowhere", "a/none"),
];

fn scene() -> Scene {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let a = s.dir(top, "a", 0o755);
    let b = s.dir(a, "b", 0o755);
    let f = s.file(b, "f", 0o644);
    for (name, target) in LINKS {
        let set = SetAttr::mode(0o777);
        s.symlink(top, name.as_bytes(), target.as_bytes(), &set)
            .unwrap();
    }
    let set = SetAttr::mode(0o777);
    s.symlink(b, b"back", b"../b/./f", &set).unwrap();
    Scene { volume, s, a, b, f }
}

#[test]
fn paths_lead_where_posix_says() {
    let Scene { s, a, b, f, .. } = scene();
    let top = s.root();
    for (path, node) in [
        ("/", top),
        ("//", top),
        (".", top),
        ("..", top),
        ("/../..", top),
        ("a", a),
        ("/a/", a),
        ("//a///b//", b),
        ("a/b/f", f),
        ("a/./b/../b/f", f),
        ("to_b", b),
        ("to_b/", b),
        ("to_b/f", f),
        ("to_b/..", a),
        ("to_f", f),
        ("to_to_f", f),
        ("up", top),
        ("up/a/b", b),
        ("slash/f", f),
        ("a/b/back", f),
        ("to_b/back", f),
    ] {
        let found = s.walk(path.as_bytes(), Follow::Yes).unwrap();
        assert_eq!(found.node, node, "{path}");
        assert_eq!(found.attr.node, node, "{path}");
    }
}

#[test]
fn paths_that_lead_nowhere_say_why() {
    let Scene { s, .. } = scene();
    let long_name = "n".repeat(256);
    let long_path = "a/".repeat(PATH_MAX / 2 + 1);
    let fits = format!("{}a", "./".repeat(PATH_MAX / 2));
    assert_eq!(fits.len(), PATH_MAX);
    s.walk(fits.as_bytes(), Follow::Yes).unwrap();
    for (path, expected) in [
        ("", Kind::NotFound),
        ("none", Kind::NotFound),
        ("a/none/b", Kind::NotFound),
        ("nowhere", Kind::NotFound),
        ("a/b/f/", Kind::NotDir),
        ("a/b/f/x", Kind::NotDir),
        ("a/b/f/..", Kind::NotDir),
        ("a/b/f/.", Kind::NotDir),
        ("to_f/", Kind::NotDir),
        ("to_f/x", Kind::NotDir),
        ("loop1", Kind::SymlinkLoop),
        ("loop1/x", Kind::SymlinkLoop),
        ("a\0b", Kind::Invalid),
        (&long_name, Kind::NameTooLong),
        (&long_path, Kind::NameTooLong),
    ] {
        let found = s.walk(path.as_bytes(), Follow::Yes);
        assert_eq!(kind(found), Some(expected), "{path}");
    }
}

#[test]
fn a_last_symlink_is_itself_unless_followed_or_a_slash_is_after_it() {
    let Scene { s, b, f, .. } = scene();
    let link = s.find(s.root(), "to_b").unwrap();
    let walk = |path: &str| s.walk(path.as_bytes(), Follow::No).map(|e| e.node);
    assert_eq!(walk("to_b"), Ok(link));
    assert_eq!(walk("to_b/"), Ok(b));
    assert_eq!(walk("to_b/f"), Ok(f));
    assert_eq!(walk("to_b/."), Ok(b));
    assert_eq!(walk("slash/"), Ok(b));
    assert_eq!(walk("to_f/"), Err(Kind::NotDir.into()));
    assert_eq!(walk("loop1"), s.find(s.root(), "loop1"));
}

#[test]
fn symlinks_are_followed_so_many_times_and_no_more() {
    let Scene { s, f, .. } = scene();
    let (top, set) = (s.root(), SetAttr::mode(0o777));
    s.symlink(top, b"s0", b"a/b/f", &set).unwrap();
    for i in 1..=SYMLINKS_MAX {
        let (name, target) = (format!("s{i}"), format!("s{}", i - 1));
        s.symlink(top, name.as_bytes(), target.as_bytes(), &set)
            .unwrap();
    }
    let walk = |n: u32| s.walk(format!("s{n}").as_bytes(), Follow::Yes);
    assert_eq!(walk(SYMLINKS_MAX - 1).unwrap().node, f);
    assert_eq!(kind(walk(SYMLINKS_MAX)), Some(Kind::SymlinkLoop));
}

#[test]
fn a_walk_can_begin_elsewhere() {
    let Scene { s, a, b, f, .. } = scene();
    let from = |dir, path: &str| {
        s.walk_from(dir, path.as_bytes(), Follow::Yes)
            .map(|e| e.node)
    };
    assert_eq!(from(a, "b/f"), Ok(f));
    assert_eq!(from(b, "back"), Ok(f));
    assert_eq!(from(b, "/a"), Ok(a));
    assert_eq!(from(b, ".."), Ok(a));
    assert_eq!(from(f, "x"), Err(Kind::NotDir.into()));
    assert_eq!(from(f, "."), Err(Kind::NotDir.into()));
}

#[test]
fn the_parent_of_a_path_is_where_its_last_name_is_or_would_be() {
    let Scene { s, a, b, .. } = scene();
    let top = s.root();
    for (path, dir, name) in [
        ("a", top, "a"),
        ("/new", top, "new"),
        ("/new/", top, "new"),
        ("a/b/new", b, "new"),
        ("a//b//", a, "b"),
        ("to_b/new", b, "new"),
        ("to_b", top, "to_b"),
        ("/", top, "."),
        ("a/b/.", b, "."),
        ("a/b/..", b, ".."),
    ] {
        let found = s.walk_parent(path.as_bytes()).unwrap();
        assert_eq!(found, (dir, name.as_bytes().to_vec()), "{path}");
    }
    let found = s.walk_parent_from(a, b"b/x").unwrap();
    assert_eq!(found, (b, b"x".to_vec()));
    for (path, expected) in [
        ("", Kind::NotFound),
        ("none/x", Kind::NotFound),
        ("a/b/f/x", Kind::NotDir),
        ("a/b/f/", Kind::NotDir),
        ("to_f/x", Kind::NotDir),
        ("to_b/", Kind::NotDir),
        ("loop1/x", Kind::SymlinkLoop),
    ] {
        let found = s.walk_parent(path.as_bytes());
        assert_eq!(kind(found), Some(expected), "{path}");
    }
}

#[test]
fn every_directory_on_the_way_must_be_searchable() {
    let Scene {
        volume, s, a, f, ..
    } = scene();
    let other = user(&volume, OTHER);
    assert_eq!(other.walk(b"to_f", Follow::Yes).unwrap().node, f);
    s.setattr(a, &SetAttr::mode(0o766)).unwrap();
    for path in ["a/b", "a/b/f", "to_f", "a/..", "a/.", "a/none"] {
        let found = other.walk(path.as_bytes(), Follow::Yes);
        assert_eq!(kind(found), Some(Kind::Access), "{path}");
    }
    other.walk(b"a", Follow::Yes).unwrap();
    assert_eq!(kind(other.walk_parent(b"a/b/x")), Some(Kind::Access));
}
