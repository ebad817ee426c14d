//! open, close and fsync, and open ids that come from outside.

use crate::suite::{Case, case_list};
use volary_core::{Cookie, Kind, Mode, OpenId};

case_list! {
    about Open | Close | Read | Write;
    opening_a_directory_for_writing_is_refused with WRITE;
    a_directory_cannot_be_read_or_written with WRITE;
    a_closed_open_is_stale with WRITE;
    opens_from_outside_are_stale with WRITE;
    an_open_is_not_another_after_it_was_closed with WRITE;
    many_opens_at_once with WRITE;
    opens_of_one_file_see_each_others_writes with WRITE;
    fsync_keeps_content_and_size with WRITE;
    the_root_can_be_opened_and_listed;
}

fn opening_a_directory_for_writing_is_refused(c: &Case) {
    let dir = c.dir(c.root(), "d");
    for node in [dir, c.root()] {
        for mode in [Mode::Write, Mode::ReadWrite] {
            c.refuses(Kind::IsDir, || c.try_open(node, mode));
        }
    }
}

fn a_directory_cannot_be_read_or_written(c: &Case) {
    let dir = c.dir(c.root(), "d");
    let open = c.open_to_read(dir);
    assert_eq!(c.read(open, 0, 10).unwrap_err(), Kind::IsDir);
    assert!(c.write(open, 0, b"x").is_err());
    assert!(c.append(open, b"x").is_err());
    c.close(open);
    assert!(c.names(dir).is_empty());
}

#[track_caller]
fn assert_stale(c: &Case, open: OpenId) {
    let (fs, cx) = (c.fs(), c.cx());
    assert_eq!(c.read(open, 0, 1).unwrap_err(), Kind::Stale);
    assert_eq!(c.write(open, 0, b"x").unwrap_err(), Kind::Stale);
    assert_eq!(c.append(open, b"x").unwrap_err(), Kind::Stale);
    assert_eq!(fs.fsync(&cx, open, false).unwrap_err(), Kind::Stale);
    assert_eq!(fs.close(&cx, open).unwrap_err(), Kind::Stale);
    let got = c.readdir(open, Cookie::START, 1, 100);
    assert_eq!(got.unwrap_err(), Kind::Stale);
}

fn a_closed_open_is_stale(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open(node);
    c.close(open);
    assert_stale(c, open);
    let open = c.open_to_read(c.root());
    c.close(open);
    assert_stale(c, open);
    assert_eq!(c.content(node), b"content");
}

fn opens_from_outside_are_stale(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    for shift in 0..64 {
        for id in [1 << shift, !(1_u64 << shift)] {
            assert_stale(c, OpenId(id));
        }
    }
    assert_eq!(c.content(node), b"content");
}

fn an_open_is_not_another_after_it_was_closed(c: &Case) {
    let (a, b) = (c.file(c.root(), "a", b"a"), c.file(c.root(), "b", b"b"));
    let old = c.open(a);
    c.close(old);
    let new: Vec<OpenId> = (0..100).map(|_| c.open(b)).collect();
    assert!(!new.contains(&old), "an id given out twice");
    assert_eq!(c.write(old, 0, b"x").unwrap_err(), Kind::Stale);
    new.into_iter().for_each(|open| c.close(open));
    assert_eq!((c.content(a), c.content(b)), (b"a".to_vec(), b"b".to_vec()));
}

fn many_opens_at_once(c: &Case) {
    let nodes: Vec<_> = (0..50_u8)
        .map(|i| c.file(c.root(), format!("file {i}"), &[i; 10]))
        .collect();
    let opens: Vec<_> = (0..10)
        .flat_map(|_| nodes.iter().map(|&n| c.open(n)))
        .collect();
    for (i, &open) in opens.iter().enumerate() {
        let want = u8::try_from(i % 50).expect("a byte");
        assert_eq!(c.read(open, 0, 10).expect("read"), [want; 10]);
    }
    opens.into_iter().rev().for_each(|open| c.close(open));
}

fn opens_of_one_file_see_each_others_writes(c: &Case) {
    let node = c.touch(c.root(), "f");
    let (a, b) = (c.open(node), c.open(node));
    c.write(a, 0, b"from a").expect("write");
    assert_eq!(c.read(b, 0, 10).expect("read"), b"from a");
    c.write(b, 5, b"b and longer").expect("write");
    assert_eq!(c.read(a, 0, 100).expect("read"), b"from b and longer");
    assert_eq!(c.attr(node).size, 17);
    c.close(a);
    assert_eq!(c.read(b, 0, 4).expect("read"), b"from");
    c.close(b);
}

fn fsync_keeps_content_and_size(c: &Case) {
    let node = c.touch(c.root(), "f");
    let open = c.open(node);
    let mut want = Vec::new();
    for i in 0..20_u8 {
        want.extend([i; 700]);
        c.append(open, &[i; 700]).expect("append");
        c.fs()
            .fsync(&c.cx(), open, i.is_multiple_of(2))
            .expect("fsync");
    }
    c.close(open);
    assert!(c.content(node) == want);
    let dir = c.open_to_read(c.root());
    c.fs()
        .fsync(&c.cx(), dir, false)
        .expect("fsync of a directory");
    c.close(dir);
}

fn the_root_can_be_opened_and_listed(c: &Case) {
    let open = c.open_to_read(c.root());
    for item in c.list_from(open, Cookie::START, 10) {
        assert_eq!(c.find(c.root(), &item.name), item.node);
    }
    c.close(open);
}
