//! unlink and rmdir, and files that are open when their name is removed.

use crate::suite::{Case, case_list};
use volary_core::{Create, Kind, Mode, SetAttr};

case_list! {
    about Unlink | RmDir;
    unlink_takes_away_the_name_and_the_node with WRITE;
    unlink_of_a_missing_name_is_not_found with WRITE;
    unlink_of_a_directory_is_refused with WRITE;
    an_open_file_outlives_its_name with WRITE;
    an_open_file_without_a_name_can_be_cut_and_grown with WRITE;
    an_open_file_without_a_name_has_no_links with WRITE;
    the_name_of_an_open_file_can_be_used_again with WRITE;
    a_file_without_a_name_goes_with_its_last_open with WRITE;
    room_comes_back_with_the_last_open with WRITE;
    a_file_open_and_without_a_name_is_gone_after_reattaching with WRITE;
    rmdir_takes_away_an_empty_directory with WRITE;
    rmdir_of_a_missing_name_is_not_found with WRITE;
    rmdir_of_a_file_is_refused with WRITE;
    rmdir_of_a_directory_with_entries_is_refused with WRITE;
    rmdir_after_its_entries_have_moved_away with WRITE;
    a_directory_that_held_many_entries_can_be_removed with WRITE;
    room_comes_back_when_all_is_removed with WRITE;
    what_was_removed_stays_so_after_reattaching with WRITE;
}

fn unlink_takes_away_the_name_and_the_node(c: &Case) {
    let node = c.file(c.root(), "f", &[1; 5000]);
    c.touch(c.root(), "stays");
    c.unlink(c.root(), "f").expect("unlink");
    assert_eq!(c.lookup(c.root(), "f").unwrap_err(), Kind::NotFound);
    assert_eq!(c.getattr(node).unwrap_err(), Kind::Stale);
    for mode in [Mode::Read, Mode::Write, Mode::ReadWrite] {
        assert_eq!(c.try_open(node, mode).unwrap_err(), Kind::Stale);
    }
    let got = c.setattr(node, &SetAttr::size(1));
    assert_eq!(got.unwrap_err(), Kind::Stale);
    assert_eq!(c.names(c.root()), ["stays"]);
}

fn unlink_of_a_missing_name_is_not_found(c: &Case) {
    c.touch(c.root(), "f");
    c.refuses(Kind::NotFound, || c.unlink(c.root(), "g"));
    c.unlink(c.root(), "f").expect("unlink");
    c.refuses(Kind::NotFound, || c.unlink(c.root(), "f"));
}

fn unlink_of_a_directory_is_refused(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.refuses(Kind::IsDir, || c.unlink(c.root(), "d"));
    c.touch(dir, "f");
    c.refuses(Kind::IsDir, || c.unlink(c.root(), "d"));
}

fn an_open_file_outlives_its_name(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open(node);
    c.unlink(c.root(), "f").expect("unlink");
    assert_eq!(c.read(open, 0, 100).expect("read"), b"content");
    assert_eq!(c.write(open, 7, b", and more").expect("write"), 17);
    assert_eq!(c.append(open, b"!").expect("append"), 18);
    assert_eq!(c.read(open, 0, 100).expect("read"), b"content, and more!");
    c.fs().fsync(&c.cx(), open, false).expect("fsync");
    assert_eq!(c.attr(node).size, 18);
    c.close(open);
}

fn an_open_file_without_a_name_can_be_cut_and_grown(c: &Case) {
    let node = c.file(c.root(), "f", &[3; 20_000]);
    let open = c.open(node);
    c.unlink(c.root(), "f").expect("unlink");
    c.resize(node, 10);
    c.resize(node, 15_000);
    let mut want = vec![0; 15_000];
    want[..10].fill(3);
    assert!(c.read(open, 0, 20_000).expect("read") == want);
    c.close(open);
}

fn an_open_file_without_a_name_has_no_links(c: &Case) {
    let node = c.touch(c.root(), "f");
    let open = c.open(node);
    c.unlink(c.root(), "f").expect("unlink");
    assert_eq!(c.attr(node).nlink, 0);
    c.close(open);
}

fn the_name_of_an_open_file_can_be_used_again(c: &Case) {
    let old = c.file(c.root(), "f", b"old");
    let open = c.open(old);
    c.unlink(c.root(), "f").expect("unlink");
    let new = c.file(c.root(), "f", b"new one");
    assert_ne!(new, old);
    c.write(open, 0, b"OLD and longer").expect("write");
    assert_eq!(c.content(new), b"new one");
    assert_eq!(c.read(open, 0, 100).expect("read"), b"OLD and longer");
    c.close(open);
    assert_eq!(c.content(new), b"new one");
    assert_eq!(c.getattr(old).unwrap_err(), Kind::Stale);
}

fn a_file_without_a_name_goes_with_its_last_open(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let (a, b) = (c.open(node), c.open_to_read(node));
    c.unlink(c.root(), "f").expect("unlink");
    c.close(a);
    assert_eq!(c.read(b, 0, 10).expect("read"), b"x");
    assert_eq!(c.attr(node).size, 1);
    c.close(b);
    assert_eq!(c.getattr(node).unwrap_err(), Kind::Stale);
}

fn free(c: &Case) -> u64 {
    c.fs().sync(&c.cx()).expect("sync");
    c.fs().statfs(&c.cx()).expect("statfs").free
}

fn room_comes_back_with_the_last_open(c: &Case) {
    c.touch(c.root(), "f");
    let before = free(c);
    let open = c.open(c.find(c.root(), "f"));
    c.write(open, 0, &vec![1; 300_000]).expect("write");
    c.unlink(c.root(), "f").expect("unlink");
    assert!(before - free(c) >= 300_000, "the open keeps the room");
    c.close(open);
    assert!(free(c) >= before);
}

fn a_file_open_and_without_a_name_is_gone_after_reattaching(c: &Case) {
    c.touch(c.root(), "g");
    let before = free(c);
    let node = c.file(c.root(), "f", &vec![1; 300_000]);
    let _open = c.open(node);
    c.unlink(c.root(), "f").expect("unlink");
    if !c.reattach() {
        return;
    }
    assert_eq!(c.names(c.root()), ["g"]);
    assert_eq!(c.getattr(node).unwrap_err(), Kind::Stale);
    assert!(free(c) >= before, "its room is free again");
}

fn rmdir_takes_away_an_empty_directory(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.rmdir(c.root(), "d").expect("rmdir");
    assert_eq!(c.lookup(c.root(), "d").unwrap_err(), Kind::NotFound);
    assert_eq!(c.getattr(dir).unwrap_err(), Kind::Stale);
    assert!(c.names(c.root()).is_empty());
}

fn rmdir_of_a_missing_name_is_not_found(c: &Case) {
    c.refuses(Kind::NotFound, || c.rmdir(c.root(), "d"));
}

fn rmdir_of_a_file_is_refused(c: &Case) {
    c.file(c.root(), "f", b"x");
    c.refuses(Kind::NotDir, || c.rmdir(c.root(), "f"));
}

fn rmdir_of_a_directory_with_entries_is_refused(c: &Case) {
    let dir = c.dir(c.root(), "d");
    let below = c.dir(dir, "below");
    c.refuses(Kind::NotEmpty, || c.rmdir(c.root(), "d"));
    c.touch(below, "f");
    c.refuses(Kind::NotEmpty, || c.rmdir(c.root(), "d"));
    c.refuses(Kind::NotEmpty, || c.rmdir(dir, "below"));
}

fn rmdir_after_its_entries_have_moved_away(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.dir(dir, "below");
    c.touch(dir, "f");
    c.rename(dir, "below", c.root(), "below").expect("rename");
    c.rename(dir, "f", c.root(), "f").expect("rename");
    c.rmdir(c.root(), "d").expect("rmdir");
    assert_eq!(c.names(c.root()), ["below", "f"]);
}

fn a_directory_that_held_many_entries_can_be_removed(c: &Case) {
    let dir = c.dir(c.root(), "d");
    let name = |i| c.fitting(format!("of a great many, entry number {i}"));
    for i in 0..500 {
        c.touch(dir, name(i));
    }
    for i in 0..500 {
        c.unlink(dir, name(i)).expect("unlink");
    }
    c.rmdir(c.root(), "d").expect("rmdir");
}

fn room_comes_back_when_all_is_removed(c: &Case) {
    let fill = || {
        let dir = c.dir(c.root(), "d");
        for i in 0..100 {
            let (_, open) = c
                .create(dir, format!("file number {i}"), Create::New)
                .expect("create");
            c.write(open, 0, &vec![1; 3000]).expect("write");
            c.close(open);
        }
        dir
    };
    let empty = |dir| {
        for name in c.names(dir) {
            c.unlink(dir, name).expect("unlink");
        }
        c.rmdir(c.root(), "d").expect("rmdir");
    };
    // A first round, as a volume may allocate space at first use and keep it.
    empty(fill());
    let before = free(c);
    for _ in 0..3 {
        let dir = fill();
        assert!(before - free(c) >= 300_000, "the files take room");
        empty(dir);
        assert_eq!(free(c), before);
    }
}

fn what_was_removed_stays_so_after_reattaching(c: &Case) {
    for i in 0..30 {
        c.file(c.root(), format!("file {i}"), b"x");
    }
    let dir = c.dir(c.root(), "d");
    let node = c.touch(dir, "f");
    for i in 0..29 {
        c.unlink(c.root(), format!("file {i}")).expect("unlink");
    }
    c.unlink(dir, "f").expect("unlink");
    c.rmdir(c.root(), "d").expect("rmdir");
    if c.reattach() {
        assert_eq!(c.names(c.root()), ["file 29"]);
        assert_eq!(c.getattr(node).unwrap_err(), Kind::Stale);
        assert_eq!(c.getattr(dir).unwrap_err(), Kind::Stale);
    }
}
