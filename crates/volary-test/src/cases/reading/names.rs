//! Names that exist, names that do not, and parents.

use super::seen::{Seen, dirs, files, of_kind, sample, walk};
use crate::suite::{Case, case_list};
use volary_core::{Caps, FileKind, Kind, NodeId, escape, same_name};

case_list! {
    about Lookup | Parent;
    every_path_is_found;
    a_name_is_found_twice_as_the_same_node;
    a_name_that_is_not_there_is_not_found;
    names_are_told_by_case_or_not_as_claimed;
    a_name_past_the_greatest_length_is_not_there;
    a_lookup_does_not_follow_symlinks;
    a_lookup_in_what_is_no_directory_is_refused;
    every_directory_knows_its_parent;
    what_is_no_directory_has_no_parent;
}

fn every_path_is_found(c: &Case) {
    for seen in walk(c, c.manifest()) {
        assert_eq!(seen.attr.kind, seen.want.kind, "kind of {}", seen.shown());
    }
}

fn a_name_is_found_twice_as_the_same_node(c: &Case) {
    let first = walk(c, c.manifest());
    for (one, other) in first.iter().zip(walk(c, c.manifest())) {
        assert_eq!(one.node, other.node, "{}", one.shown());
    }
}

/// Asserts that `name` is not found in `dir`. If the manifest has an equal name there, does
/// nothing.
fn missing(c: &Case, dir: &Seen<'_>, name: &[u8]) {
    let there = c.manifest().names(&dir.path).iter();
    let exact = c.caps().has(Caps::CASE_SENSITIVE);
    let mut same = there.map(|other| {
        if exact {
            other == name
        } else {
            same_name(other, name)
        }
    });
    if same.any(|same| same) || volary_core::Name::new(name).is_err() {
        return;
    }
    match c.lookup(dir.node, name) {
        Ok(_) => panic!(
            "{}: found '{}', which is not there",
            dir.shown(),
            escape(name)
        ),
        Err(e) => assert!(
            [Kind::NotFound, Kind::NameTooLong, Kind::Invalid].contains(&e.kind()),
            "{}: '{}': {e:?}",
            dir.shown(),
            escape(name)
        ),
    }
}

fn a_name_that_is_not_there_is_not_found(c: &Case) {
    for dir in dirs(&sample(c, c.manifest())) {
        missing(c, dir, b"no such name");
        let names = c.manifest().names(&dir.path);
        for name in names.iter().take(60) {
            missing(c, dir, &name[..name.len() - 1]);
            missing(c, dir, &name[..name.len().min(1)]);
            missing(c, dir, &[name, b"x".as_slice()].concat());
            missing(c, dir, &name[1..]);
        }
    }
}

fn names_are_told_by_case_or_not_as_claimed(c: &Case) {
    for dir in dirs(&sample(c, c.manifest())) {
        for name in c.manifest().names(&dir.path).iter().take(60) {
            let other: Vec<u8> = name
                .iter()
                .map(|b| match b {
                    b'a'..=b'z' => b.to_ascii_uppercase(),
                    b => b.to_ascii_lowercase(),
                })
                .collect();
            if c.caps().has(Caps::CASE_SENSITIVE) {
                missing(c, dir, &other);
            } else {
                let (one, other) = (c.find(dir.node, name), c.find(dir.node, &other));
                assert_eq!(one, other, "'{}' in the other case", escape(name));
            }
        }
    }
}

fn a_name_past_the_greatest_length_is_not_there(c: &Case) {
    for dir in dirs(&sample(c, c.manifest())).take(5) {
        for over in [1, 2, 1000] {
            missing(c, dir, &vec![b'n'; usize::from(c.caps().name_max) + over]);
        }
    }
}

fn a_lookup_does_not_follow_symlinks(c: &Case) {
    for seen in of_kind(&walk(c, c.manifest()), FileKind::Symlink) {
        assert_eq!(seen.attr.kind, FileKind::Symlink, "{}", seen.shown());
    }
}

fn a_lookup_in_what_is_no_directory_is_refused(c: &Case) {
    let all = sample(c, c.manifest());
    let links = of_kind(&all, FileKind::Symlink).take(3);
    for seen in files(&all).take(10).chain(links) {
        for name in ["x", "file"] {
            let got = c.lookup(seen.node, name);
            assert!(got.is_err(), "found '{name}' in {}", seen.shown());
        }
    }
}

fn every_directory_knows_its_parent(c: &Case) {
    let parent = |node: NodeId| c.fs().parent(&c.cx(), node);
    let all = walk(c, c.manifest());
    for seen in of_kind(&all, FileKind::Dir) {
        let (up, _) = crate::manifest::split(&seen.path);
        let up = all
            .iter()
            .find(|other| other.path == up)
            .expect("its directory");
        let got = parent(seen.node).unwrap_or_else(|e| panic!("parent of {}: {e}", seen.shown()));
        assert_eq!(got.node, up.node, "parent of {}", seen.shown());
        assert_eq!(
            got.attr.node,
            up.node,
            "attributes of the parent of {}",
            seen.shown()
        );
        assert_eq!(
            got.attr.kind,
            FileKind::Dir,
            "kind of the parent of {}",
            seen.shown()
        );
        assert_eq!(
            got.attr.nlink,
            up.attr.nlink,
            "links of the parent of {}",
            seen.shown()
        );
    }
}

fn what_is_no_directory_has_no_parent(c: &Case) {
    for seen in files(&sample(c, c.manifest())).take(10) {
        let got = c.fs().parent(&c.cx(), seen.node);
        let got = got.expect_err("the parent of a file");
        assert_eq!(got, Kind::NotDir, "parent of {}", seen.shown());
    }
}
