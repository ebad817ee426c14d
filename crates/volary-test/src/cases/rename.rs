//! rename, and which nodes it may replace.

use crate::suite::{Case, case_list};
use volary_core::{Caps, Kind, NodeId};

case_list! {
    about Rename;
    a_missing_name_cannot_be_renamed with WRITE;
    a_renamed_file_keeps_node_and_content with WRITE;
    a_file_moves_to_another_directory with WRITE;
    a_directory_moves_with_all_in_it with WRITE;
    a_moved_directory_knows_its_new_parent with WRITE;
    renaming_to_a_longer_and_a_shorter_name with WRITE;
    rename_onto_itself_changes_nothing with WRITE;
    a_file_replaces_a_file with WRITE;
    a_replaced_file_that_is_open_lives_on with WRITE;
    a_file_does_not_replace_a_directory with WRITE;
    a_directory_does_not_replace_a_file with WRITE;
    a_directory_replaces_an_empty_directory with WRITE;
    a_directory_does_not_replace_one_with_entries with WRITE;
    a_directory_does_not_go_into_itself with WRITE;
    a_directory_does_not_replace_one_that_holds_it with WRITE;
    opens_stay_valid_across_a_rename with WRITE;
    a_symlink_is_renamed_itself with WRITE | SYMLINKS;
    a_rename_that_changes_case_only_keeps_the_new_case with WRITE | CASE_KEEPING without CASE_SENSITIVE;
    a_directory_renamed_in_case_only_keeps_what_it_holds with WRITE | CASE_KEEPING without CASE_SENSITIVE;
    rename_replaces_a_name_in_other_case with WRITE without CASE_SENSITIVE;
    a_rename_to_other_case_makes_another_name with WRITE | CASE_SENSITIVE;
    a_hundred_renames_in_a_row with WRITE;
    two_directories_can_take_turns_inside_each_other with WRITE;
    renames_are_there_after_reattaching with WRITE;
    rename_into_a_removed_directory_is_stale with WRITE;
    renaming_keeps_the_time_of_last_change with WRITE;
}

fn a_missing_name_cannot_be_renamed(c: &Case) {
    c.file(c.root(), "f", b"x");
    c.refuses(Kind::NotFound, || c.rename(c.root(), "g", c.root(), "h"));
    c.refuses(Kind::NotFound, || c.rename(c.root(), "g", c.root(), "f"));
    c.refuses(Kind::NotFound, || c.rename(c.root(), "g", c.root(), "g"));
}

fn a_renamed_file_keeps_node_and_content(c: &Case) {
    let node = c.file(c.root(), "a", b"content");
    c.rename(c.root(), "a", c.root(), "b").expect("rename");
    assert_eq!(c.find(c.root(), "b"), node);
    assert_eq!(c.lookup(c.root(), "a").unwrap_err(), Kind::NotFound);
    assert_eq!(c.attr(node).size, 7);
    assert_eq!(c.content(node), b"content");
    assert_eq!(c.names(c.root()), ["b"]);
}

fn a_file_moves_to_another_directory(c: &Case) {
    let (from, to) = (c.dir(c.root(), "from"), c.dir(c.root(), "to"));
    let node = c.file(from, "a", b"content");
    c.rename(from, "a", to, "a").expect("rename");
    assert!(c.names(from).is_empty());
    assert_eq!(c.names(to), ["a"]);
    assert_eq!(c.find(to, "a"), node);
    c.rename(to, "a", c.root(), "b").expect("rename");
    assert_eq!(c.find(c.root(), "b"), node);
    assert_eq!(c.content(node), b"content");
}

fn a_directory_moves_with_all_in_it(c: &Case) {
    let (from, to) = (c.dir(c.root(), "from"), c.dir(c.root(), "to"));
    let dir = c.dir(from, "d");
    let below = c.dir(dir, "below");
    let file = c.file(below, "f", b"content");
    c.rename(from, "d", to, "e").expect("rename");
    assert!(c.names(from).is_empty());
    assert_eq!(c.find(to, "e"), dir);
    assert_eq!(c.find(dir, "below"), below);
    assert_eq!(c.find(below, "f"), file);
    assert_eq!(c.content(file), b"content");
    c.file(below, "g", b"new");
    assert_eq!(c.names(below), ["f", "g"]);
}

fn parent(c: &Case, dir: NodeId) -> NodeId {
    c.fs().parent(&c.cx(), dir).expect("parent").node
}

fn a_moved_directory_knows_its_new_parent(c: &Case) {
    let (a, b) = (c.dir(c.root(), "a"), c.dir(c.root(), "b"));
    let dir = c.dir(a, "d");
    c.rename(a, "d", b, "d").expect("rename");
    assert_eq!(parent(c, dir), b);
    c.rename(b, "d", c.root(), "d").expect("rename");
    assert_eq!(parent(c, dir), c.root());
    if c.reattach() {
        let dir = c.find(c.root(), "d");
        assert_eq!(parent(c, dir), c.root());
    }
}

fn renaming_to_a_longer_and_a_shorter_name(c: &Case) {
    let long = "a much longer name than the one before, to need more room";
    let long = long[..long.len().min(c.caps().name_max.into())].trim_end();
    let node = c.file(c.root(), "s", b"x");
    c.touch(c.root(), "neighbour");
    for _ in 0..5 {
        c.rename(c.root(), "s", c.root(), long).expect("rename");
        assert_eq!(c.names(c.root()), [long, "neighbour"]);
        c.rename(c.root(), long, c.root(), "s").expect("rename");
        assert_eq!(c.names(c.root()), ["neighbour", "s"]);
    }
    assert_eq!(c.find(c.root(), "s"), node);
}

fn rename_onto_itself_changes_nothing(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.file(dir, "f", b"x");
    c.file(c.root(), "f", b"y");
    let before = c.tree();
    c.rename(c.root(), "f", c.root(), "f").expect("rename f");
    c.rename(c.root(), "d", c.root(), "d").expect("rename d");
    before.assert_same(&c.tree());
    assert_eq!(c.find(c.root(), "d"), dir);
}

fn a_file_replaces_a_file(c: &Case) {
    let new = c.file(c.root(), "new", b"new content");
    let old = c.file(c.root(), "old", &[1; 10_000]);
    c.rename(c.root(), "new", c.root(), "old").expect("rename");
    assert_eq!(c.names(c.root()), ["old"]);
    assert_eq!(c.find(c.root(), "old"), new);
    assert_eq!(c.content(new), b"new content");
    assert_eq!(c.getattr(old).unwrap_err(), Kind::Stale);
}

fn a_replaced_file_that_is_open_lives_on(c: &Case) {
    c.file(c.root(), "new", b"new");
    let old = c.file(c.root(), "old", b"old");
    let open = c.open(old);
    c.rename(c.root(), "new", c.root(), "old").expect("rename");
    assert_eq!(c.read(open, 0, 10).expect("read"), b"old");
    c.write(open, 3, b"er").expect("write");
    assert_eq!(c.content(c.find(c.root(), "old")), b"new");
    c.close(open);
    assert_eq!(c.getattr(old).unwrap_err(), Kind::Stale);
}

fn a_file_does_not_replace_a_directory(c: &Case) {
    c.file(c.root(), "f", b"x");
    let dir = c.dir(c.root(), "d");
    c.refuses(Kind::IsDir, || c.rename(c.root(), "f", c.root(), "d"));
    c.touch(dir, "g");
    c.refuses(Kind::IsDir, || c.rename(c.root(), "f", c.root(), "d"));
}

fn a_directory_does_not_replace_a_file(c: &Case) {
    c.file(c.root(), "f", b"x");
    c.dir(c.root(), "d");
    c.refuses(Kind::NotDir, || c.rename(c.root(), "d", c.root(), "f"));
    if c.caps().has(Caps::SYMLINKS) {
        c.symlink(c.root(), "s", b"f").expect("symlink");
        c.refuses(Kind::NotDir, || c.rename(c.root(), "d", c.root(), "s"));
    }
}

fn a_directory_replaces_an_empty_directory(c: &Case) {
    let new = c.dir(c.root(), "new");
    c.file(new, "f", b"x");
    let old = c.dir(c.root(), "old");
    c.rename(c.root(), "new", c.root(), "old").expect("rename");
    assert_eq!(c.names(c.root()), ["old"]);
    assert_eq!(c.find(c.root(), "old"), new);
    assert_eq!(c.names(new), ["f"]);
    assert_eq!(c.getattr(old).unwrap_err(), Kind::Stale);
}

fn a_directory_does_not_replace_one_with_entries(c: &Case) {
    c.dir(c.root(), "new");
    c.touch(c.dir(c.root(), "old"), "f");
    c.refuses(Kind::NotEmpty, || {
        c.rename(c.root(), "new", c.root(), "old")
    });
}

fn a_directory_does_not_go_into_itself(c: &Case) {
    let a = c.dir(c.root(), "a");
    let b = c.dir(a, "b");
    let deep = c.dir(b, "deep");
    c.touch(deep, "taken");
    for (to, name) in [(a, "x"), (b, "x"), (deep, "x"), (a, "b"), (deep, "taken")] {
        c.refuses(Kind::Invalid, || c.rename(c.root(), "a", to, name));
    }
}

fn a_directory_does_not_replace_one_that_holds_it(c: &Case) {
    let a = c.dir(c.root(), "a");
    let b = c.dir(a, "b");
    c.dir(b, "deep");
    c.refuses(Kind::NotEmpty, || c.rename(b, "deep", c.root(), "a"));
    c.refuses(Kind::NotEmpty, || c.rename(a, "b", c.root(), "a"));
}

fn opens_stay_valid_across_a_rename(c: &Case) {
    let (from, to) = (c.dir(c.root(), "from"), c.dir(c.root(), "to"));
    let node = c.file(from, "f", b"one");
    let open = c.open(node);
    let listing = c.open_to_read(from);
    let longer = c.fitting("a longer name for it");
    c.rename(from, "f", to, &longer).expect("rename");
    c.rename(c.root(), "from", to, "from").expect("rename");
    c.append(open, b" two").expect("append");
    assert_eq!(c.read(open, 0, 100).expect("read"), b"one two");
    c.close(open);
    let items = c.list_from(listing, volary_core::Cookie::START, 10);
    assert!(items.is_empty());
    c.close(listing);
    assert_eq!(c.content(c.find(to, &longer)), b"one two");
}

fn a_symlink_is_renamed_itself(c: &Case) {
    c.file(c.root(), "f", b"x");
    let link = c.symlink(c.root(), "s", b"f").expect("symlink").node;
    c.rename(c.root(), "s", c.root(), "t").expect("rename");
    assert_eq!(c.find(c.root(), "t"), link);
    assert_eq!(c.names(c.root()), ["f", "t"]);
    c.rename(c.root(), "t", c.root(), "f").expect("rename");
    assert_eq!(c.fs().readlink(&c.cx(), link).expect("readlink"), b"f");
    assert_eq!(c.names(c.root()), ["f"]);
}

fn a_rename_that_changes_case_only_keeps_the_new_case(c: &Case) {
    for (name, new) in [
        ("name.txt", "NAME.TXT"),
        ("a long name", "A Long Name"),
        ("Mixed", "mIXED"),
    ] {
        let node = c.file(c.root(), name, b"x");
        c.rename(c.root(), name, c.root(), new).expect("rename");
        assert_eq!(c.names(c.root()), [new]);
        assert_eq!(c.find(c.root(), name), node);
        assert_eq!(c.content(node), b"x");
        c.unlink(c.root(), name).expect("unlink");
    }
}

fn a_directory_renamed_in_case_only_keeps_what_it_holds(c: &Case) {
    let dir = c.dir(c.root(), "dir");
    c.touch(dir, "f");
    c.rename(c.root(), "dir", c.root(), "DIR").expect("rename");
    assert_eq!(c.names(c.root()), ["DIR"]);
    assert_eq!(c.find(c.root(), "dir"), dir);
    assert_eq!(c.names(dir), ["f"]);
}

fn rename_replaces_a_name_in_other_case(c: &Case) {
    let new = c.file(c.root(), "new", b"new");
    let old = c.file(c.root(), "Old Name", b"old");
    c.rename(c.root(), "new", c.root(), "OLD NAME")
        .expect("rename");
    assert_eq!(c.names(c.root()).len(), 1);
    assert_eq!(c.find(c.root(), "old name"), new);
    assert_eq!(c.getattr(old).unwrap_err(), Kind::Stale);
}

fn a_rename_to_other_case_makes_another_name(c: &Case) {
    let lower = c.file(c.root(), "name", b"lower");
    let upper = c.file(c.root(), "NAME", b"upper");
    c.rename(c.root(), "name", c.root(), "Name")
        .expect("rename");
    assert_eq!(c.find(c.root(), "Name"), lower);
    assert_eq!(c.find(c.root(), "NAME"), upper);
}

fn a_hundred_renames_in_a_row(c: &Case) {
    let dirs = [c.dir(c.root(), "a"), c.dir(c.root(), "b"), c.root()];
    let node = c.file(dirs[0], "f", b"content");
    let (mut dir, mut name) = (dirs[0], "f".to_string());
    for i in 0..100 {
        let name_of = format!("{} name", "n".repeat(1 + i % 37));
        let (to, new) = (dirs[i % 3], c.fitting(name_of));
        c.rename(dir, &name, to, &new).expect("rename");
        assert_eq!(c.find(to, &new), node);
        (dir, name) = (to, new);
    }
    assert_eq!(c.content(node), b"content");
    let left: usize = dirs.iter().map(|&d| c.names(d).len()).sum();
    assert_eq!(left, 3);
}

fn two_directories_can_take_turns_inside_each_other(c: &Case) {
    let (a, b) = (c.dir(c.root(), "a"), c.dir(c.root(), "b"));
    c.file(a, "in a", b"a");
    c.file(b, "in b", b"b");
    for _ in 0..3 {
        c.rename(c.root(), "a", b, "a").expect("a into b");
        c.refuses(Kind::Invalid, || c.rename(c.root(), "b", a, "b"));
        c.rename(b, "a", c.root(), "a").expect("a back");
        c.rename(c.root(), "b", a, "b").expect("b into a");
        assert_eq!(parent(c, b), a);
        c.rename(a, "b", c.root(), "b").expect("b back");
    }
    assert_eq!(
        (c.names(a), c.names(b)),
        (vec!["in a".into()], vec!["in b".into()])
    );
}

fn renames_are_there_after_reattaching(c: &Case) {
    let (a, b) = (c.dir(c.root(), "a"), c.dir(c.root(), "b"));
    for i in 0..10 {
        c.file(a, format!("file {i}"), &[i; 100]);
        c.file(b, format!("target {i}"), b"replaced");
    }
    for i in 0..10 {
        let (name, new) = (format!("file {i}"), format!("target {i}"));
        c.rename(a, name, b, new).expect("rename");
    }
    c.rename(c.root(), "b", a, "moved").expect("rename");
    let before = c.tree();
    if c.reattach() {
        before.assert_same(&c.tree());
    }
}

fn rename_into_a_removed_directory_is_stale(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.touch(c.root(), "f");
    c.rmdir(c.root(), "d").expect("rmdir");
    c.refuses(Kind::Stale, || c.rename(c.root(), "f", dir, "f"));
    c.refuses(Kind::Stale, || c.rename(dir, "f", c.root(), "f"));
}

fn renaming_keeps_the_time_of_last_change(c: &Case) {
    let dir = c.dir(c.root(), "d");
    let node = c.file(c.root(), "f", b"x");
    let before = c.attr(node).mtime;
    c.pass(1000);
    c.rename(c.root(), "f", dir, "g").expect("rename");
    assert_eq!(c.attr(node).mtime, before);
}
