//! Opens: their kinds, their ends, and open ids that were never given.

use super::seen::{Seen, dirs, files, of_kind, sample};
use crate::suite::{Case, case_list};
use std::collections::HashSet;
use volary_core::{Cookie, FileKind, Kind, Mode, NodeId, OpenId};

case_list! {
    about Open | Close | Read | ReadDir | GetAttr | Lookup;
    a_directory_cannot_be_read_as_a_file;
    a_file_does_not_list;
    an_open_that_has_ended_is_stale;
    closing_twice_is_stale;
    opens_that_never_were_are_stale;
    nodes_that_never_were_are_stale;
    an_open_outlives_another_of_the_same_file;
    many_opens_at_once_each_read_their_file;
}

fn a_directory_cannot_be_read_as_a_file(c: &Case) {
    for seen in dirs(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        for (offset, len) in [(0, 100), (0, 0), (4096, 1)] {
            let got = c.read(open, offset, len).map(|got| got.len());
            match (got, len) {
                (Err(e), _) => assert_eq!(e, Kind::IsDir, "read of {}", seen.shown()),
                (Ok(_), 0) => {}
                (Ok(n), _) => panic!("{} was read: {n} bytes", seen.shown()),
            }
        }
        c.close(open);
    }
}

fn a_file_does_not_list(c: &Case) {
    for seen in files(&sample(c, c.manifest())).take(20) {
        let open = c.open_to_read(seen.node);
        let got = c
            .readdir(open, Cookie::START, 10, 1000)
            .map(|(items, _)| items.len());
        let got = got.expect_err("a file was listed");
        assert_eq!(got, Kind::NotDir, "readdir of {}", seen.shown());
        c.close(open);
    }
}

fn ended(c: &Case, open: OpenId, what: &str) {
    let got = c.read(open, 0, 10).expect_err("a read");
    assert_eq!(got, Kind::Stale, "read of {what}");
    let got = c
        .readdir(open, Cookie::START, 10, 1000)
        .map(|(items, _)| items.len());
    assert_eq!(
        got.expect_err("a listing"),
        Kind::Stale,
        "readdir of {what}"
    );
}

fn some_of_both<'a, 'b>(all: &'a [Seen<'b>]) -> impl Iterator<Item = &'a Seen<'b>> {
    files(all)
        .take(10)
        .chain(of_kind(all, FileKind::Dir).take(5))
}

fn an_open_that_has_ended_is_stale(c: &Case) {
    for seen in some_of_both(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        c.close(open);
        ended(c, open, &format!("an ended open of {}", seen.shown()));
    }
}

fn closing_twice_is_stale(c: &Case) {
    for seen in some_of_both(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        c.close(open);
        let got = c.fs().close(&c.cx(), open);
        let got = got.expect_err("a second close");
        assert_eq!(got, Kind::Stale, "second close of {}", seen.shown());
    }
}

fn opens_that_never_were_are_stale(c: &Case) {
    let all = sample(c, c.manifest());
    let open = c.open_to_read(all[0].node);
    for made_up in [0, 12_345_678, 1 << 40, u64::MAX - 1, u64::MAX] {
        ended(c, OpenId(made_up), &format!("made-up open {made_up}"));
        let got = c.fs().close(&c.cx(), OpenId(made_up));
        assert_eq!(got.expect_err("a close"), Kind::Stale, "close of {made_up}");
    }
    c.close(open);
}

fn nodes_that_never_were_are_stale(c: &Case) {
    let known: HashSet<_> = sample(c, c.manifest())
        .iter()
        .map(|seen| seen.node.ino)
        .collect();
    for number in [987_654_321, 1 << 33, (1 << 48) + 5, u64::MAX / 2, u64::MAX] {
        let node = NodeId::new(number, 0).expect("not 0");
        if known.contains(&node.ino) {
            continue;
        }
        let (fs, cx) = (c.fs(), c.cx());
        let stale = |what: &str, e: volary_core::Error| {
            assert_eq!(e, Kind::Stale, "{what} of made-up node {number}");
        };
        stale("getattr", fs.getattr(&cx, node).expect_err("getattr"));
        stale("open", fs.open(&cx, node, Mode::Read).expect_err("open"));
        stale(
            "lookup",
            c.lookup(node, "x").map(|e| e.node).expect_err("lookup"),
        );
        stale(
            "parent",
            fs.parent(&cx, node).map(|e| e.node).expect_err("parent"),
        );
        stale("readlink", fs.readlink(&cx, node).expect_err("readlink"));
    }
}

fn an_open_outlives_another_of_the_same_file(c: &Case) {
    for seen in files(&sample(c, c.manifest())).take(20) {
        let (one, other) = (c.open_to_read(seen.node), c.open_to_read(seen.node));
        assert_ne!(one, other, "one number for two opens");
        c.close(one);
        if let Some(want) = seen.want.content.read(0, 100) {
            assert!(
                c.read(other, 0, 100).is_ok_and(|got| got == want),
                "{}",
                seen.shown()
            );
        }
        c.close(other);
    }
}

fn many_opens_at_once_each_read_their_file(c: &Case) {
    let all = sample(c, c.manifest());
    let some: Vec<_> = files(&all).take(100).collect();
    let opens: Vec<_> = some.iter().map(|seen| c.open_to_read(seen.node)).collect();
    for (seen, &open) in some.iter().zip(&opens) {
        if let Some(want) = seen.want.content.read(0, 1000) {
            assert!(
                c.read(open, 0, 1000).is_ok_and(|got| got == want),
                "{}",
                seen.shown()
            );
        }
    }
    opens.into_iter().for_each(|open| c.close(open));
}
