//! rename with flags: keeping an existing target, and swapping two entries.

use crate::suite::{Case, case_list};
use volary_core::{Kind, NodeId, RenameFlags};

case_list! {
    about Rename;
    keep_renames_to_a_free_name with WRITE;
    keep_does_not_replace with WRITE;
    keep_answers_invalid_before_exists with WRITE;
    a_swap_of_two_files with WRITE | SWAP;
    a_swap_of_a_file_and_a_directory with WRITE | SWAP;
    a_swap_across_directories with WRITE | SWAP;
    a_swap_with_a_missing_name_is_not_found with WRITE | SWAP;
    a_swap_of_a_directory_with_one_inside_it_is_invalid with WRITE | SWAP;
    swap_is_unsupported with WRITE without SWAP;
    swaps_are_there_after_reattaching with WRITE | SWAP;
}

fn keep_renames_to_a_free_name(c: &Case) {
    let node = c.file(c.root(), "a", b"x");
    c.rename_with(c.root(), "a", c.root(), "b", RenameFlags::KEEP)
        .expect("rename");
    assert_eq!(c.find(c.root(), "b"), node);
    assert_eq!(c.names(c.root()), ["b"]);
}

fn keep_does_not_replace(c: &Case) {
    let keep = RenameFlags::KEEP;
    c.file(c.root(), "a", b"a");
    c.file(c.root(), "b", b"b");
    c.dir(c.root(), "d");
    c.dir(c.root(), "e");
    for (from, to) in [("a", "b"), ("a", "d"), ("d", "a"), ("d", "e")] {
        c.refuses(Kind::Exists, || {
            c.rename_with(c.root(), from, c.root(), to, keep)
        });
    }
    c.refuses(Kind::NotFound, || {
        c.rename_with(c.root(), "x", c.root(), "b", keep)
    });
}

fn keep_answers_invalid_before_exists(c: &Case) {
    let a = c.dir(c.root(), "a");
    c.touch(a, "taken");
    c.refuses(Kind::Invalid, || {
        c.rename_with(c.root(), "a", a, "taken", RenameFlags::KEEP)
    });
}

fn swap(c: &Case, from: NodeId, name: &str, to: NodeId, other: &str) -> volary_core::Result<()> {
    c.rename_with(from, name, to, other, RenameFlags::SWAP)
}

fn a_swap_of_two_files(c: &Case) {
    let (a, b) = (c.file(c.root(), "a", b"a"), c.file(c.root(), "b", b"bb"));
    swap(c, c.root(), "a", c.root(), "b").expect("swap");
    assert_eq!((c.find(c.root(), "a"), c.find(c.root(), "b")), (b, a));
    assert_eq!(c.content(a), b"a");
    assert_eq!(c.content(b), b"bb");
}

fn a_swap_of_a_file_and_a_directory(c: &Case) {
    let (file, dir) = (c.file(c.root(), "f", b"x"), c.dir(c.root(), "d"));
    c.touch(dir, "below");
    swap(c, c.root(), "f", c.root(), "d").expect("swap");
    assert_eq!((c.find(c.root(), "d"), c.find(c.root(), "f")), (file, dir));
    assert_eq!(c.names(dir), ["below"]);
}

fn a_swap_across_directories(c: &Case) {
    let (a, b) = (c.dir(c.root(), "a"), c.dir(c.root(), "b"));
    let (x, y) = (c.dir(a, "x"), c.dir(b, "y"));
    swap(c, a, "x", b, "y").expect("swap");
    assert_eq!((c.find(a, "x"), c.find(b, "y")), (y, x));
    assert_eq!(c.fs().parent(&c.cx(), x).expect("parent").node, b);
    assert_eq!(c.fs().parent(&c.cx(), y).expect("parent").node, a);
}

fn a_swap_with_a_missing_name_is_not_found(c: &Case) {
    c.file(c.root(), "a", b"a");
    c.refuses(Kind::NotFound, || swap(c, c.root(), "a", c.root(), "b"));
    c.refuses(Kind::NotFound, || swap(c, c.root(), "b", c.root(), "a"));
}

fn a_swap_of_a_directory_with_one_inside_it_is_invalid(c: &Case) {
    let a = c.dir(c.root(), "a");
    let b = c.dir(a, "b");
    c.touch(b, "f");
    c.refuses(Kind::Invalid, || swap(c, c.root(), "a", b, "f"));
    c.refuses(Kind::Invalid, || swap(c, b, "f", c.root(), "a"));
}

fn swap_is_unsupported(c: &Case) {
    c.file(c.root(), "a", b"a");
    c.file(c.root(), "b", b"b");
    c.refuses(Kind::Unsupported, || swap(c, c.root(), "a", c.root(), "b"));
}

fn swaps_are_there_after_reattaching(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.file(dir, "a short name", b"1");
    c.file(c.root(), "f", b"22");
    swap(c, dir, "a short name", c.root(), "f").expect("swap");
    let before = c.tree();
    if c.reattach() {
        before.assert_same(&c.tree());
    }
}
