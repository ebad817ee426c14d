//! lookup and parent.

use crate::suite::{Case, case_list};
use volary_core::{FileKind, Kind};

case_list! {
    about Lookup | Parent;
    a_missing_name_is_not_found;
    a_name_leads_to_the_same_node_each_time with WRITE;
    lookup_gives_the_attributes_that_getattr_gives with WRITE;
    names_in_different_directories_are_different_nodes with WRITE;
    a_directory_forty_deep_is_found with WRITE;
    the_parent_of_a_directory_is_the_one_that_holds_it with WRITE;
    a_file_has_no_parent with WRITE;
    lookup_in_a_file_is_refused with WRITE;
    lookup_in_a_removed_directory_is_stale with WRITE;
    no_two_nodes_have_the_same_number with WRITE;
    ids_stay_what_they_are_after_reattaching with WRITE | STABLE_IDS;
}

fn a_missing_name_is_not_found(c: &Case) {
    for name in ["no-such-name", "x", "no such name with blanks and a dot."] {
        let got = c.lookup(c.root(), c.fitting(name));
        assert_eq!(got.unwrap_err(), Kind::NotFound, "{name}");
    }
}

fn a_name_leads_to_the_same_node_each_time(c: &Case) {
    let (file, dir) = (c.touch(c.root(), "f"), c.dir(c.root(), "d"));
    for _ in 0..3 {
        assert_eq!(c.find(c.root(), "f"), file);
        assert_eq!(c.find(c.root(), "d"), dir);
    }
}

fn lookup_gives_the_attributes_that_getattr_gives(c: &Case) {
    let node = c.file(c.root(), "f", b"12345");
    let entry = c.lookup(c.root(), "f").expect("lookup");
    assert_eq!(entry.node, node);
    assert_eq!(entry.attr.node, node);
    let attr = c.attr(node);
    assert_eq!(
        (entry.attr.kind, entry.attr.size, entry.attr.mtime),
        (attr.kind, attr.size, attr.mtime)
    );
    assert_eq!((attr.kind, attr.size), (FileKind::File, 5));
}

fn names_in_different_directories_are_different_nodes(c: &Case) {
    let (a, b) = (c.dir(c.root(), "a"), c.dir(c.root(), "b"));
    let in_a = c.file(a, "f", b"in a");
    let in_b = c.file(b, "f", b"in b");
    assert_ne!(in_a, in_b);
    assert_eq!(c.content(c.find(a, "f")), b"in a");
    assert_eq!(c.content(c.find(b, "f")), b"in b");
}

fn a_directory_forty_deep_is_found(c: &Case) {
    let mut made = vec![c.root()];
    for depth in 0..40 {
        made.push(c.dir(made[depth], format!("d{depth}")));
    }
    c.file(made[40], "deep", b"down here");
    let mut at = c.root();
    for (depth, want) in made.iter().enumerate().skip(1) {
        at = c.find(at, format!("d{}", depth - 1));
        assert_eq!(at, *want);
    }
    assert_eq!(c.content(c.find(at, "deep")), b"down here");
}

fn the_parent_of_a_directory_is_the_one_that_holds_it(c: &Case) {
    let a = c.dir(c.root(), "a");
    let b = c.dir(a, "b");
    let parent = |node| c.fs().parent(&c.cx(), node).expect("parent");
    assert_eq!(parent(a).node, c.root());
    assert_eq!(parent(b).node, a);
    assert_eq!(parent(b).attr.node, a);
}

fn a_file_has_no_parent(c: &Case) {
    let node = c.touch(c.root(), "f");
    let got = c.fs().parent(&c.cx(), node);
    assert_eq!(got.unwrap_err(), Kind::NotDir);
}

fn lookup_in_a_file_is_refused(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    // A session rejects this before it calls the driver; here the driver must only do no damage.
    assert!(c.lookup(node, "x").is_err());
    assert!(c.mkdir(node, "x").is_err());
    assert!(c.unlink(node, "x").is_err());
    assert_eq!(c.content(node), b"content");
}

fn lookup_in_a_removed_directory_is_stale(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.rmdir(c.root(), "d").expect("rmdir");
    assert_eq!(c.lookup(dir, "x").unwrap_err(), Kind::Stale);
    assert_eq!(c.fs().parent(&c.cx(), dir).unwrap_err(), Kind::Stale);
}

fn no_two_nodes_have_the_same_number(c: &Case) {
    let mut numbers = vec![c.root().ino];
    for d in 0..5 {
        let dir = c.dir(c.root(), format!("d{d}"));
        numbers.push(dir.ino);
        for f in 0..20 {
            numbers.push(c.touch(dir, format!("f{f}")).ino);
        }
    }
    let all = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all);
}

fn ids_stay_what_they_are_after_reattaching(c: &Case) {
    let (root, dir) = (c.root(), c.dir(c.root(), "d"));
    let file = c.file(dir, "f", b"x");
    let gone = c.touch(dir, "gone");
    c.unlink(dir, "gone").expect("unlink");
    if !c.reattach() {
        return;
    }
    assert_eq!(c.root(), root);
    // After reattaching: by ids alone, before any name is looked up.
    assert_eq!(c.attr(file).size, 1);
    assert_eq!(c.attr(dir).kind, FileKind::Dir);
    assert_eq!(c.fs().parent(&c.cx(), dir).expect("parent").node, root);
    assert_eq!(c.content(file), b"x");
    assert_eq!(c.find(root, "d"), dir);
    assert_eq!(c.find(dir, "f"), file);
    assert_eq!(c.getattr(gone).unwrap_err(), Kind::Stale);
}
