//! The effects of detaching.

use super::seen::{files, sample};
use crate::suite::{Case, case_list};
use volary_core::{Cookie, Kind, Mode};

case_list! {
    about Detach;
    detaching_ends_opens_and_all_else;
    sync_of_what_is_only_read_is_done;
}

fn detaching_ends_opens_and_all_else(c: &Case) {
    let all = sample(c, c.manifest());
    let dir = c.open_to_read(c.root());
    let file = files(&all).next();
    let open = file.map(|seen| c.open_to_read(seen.node));
    let (fs, cx) = (c.fs(), c.cx());
    fs.detach(&cx).expect("detach");
    fs.detach(&cx).expect("a second detach does nothing");
    let listed = c
        .readdir(dir, Cookie::START, 1, 100)
        .map(|(items, _)| items.len());
    assert_eq!(listed.expect_err("readdir"), Kind::Stale);
    if let (Some(seen), Some(open)) = (file, open) {
        assert_eq!(c.read(open, 0, 1).expect_err("read"), Kind::Stale);
        let opened = fs.open(&cx, seen.node, Mode::Read);
        assert_eq!(opened.expect_err("open"), Kind::Stale);
        assert_eq!(
            fs.getattr(&cx, seen.node).expect_err("getattr"),
            Kind::Stale
        );
    }
    let got = fs.getattr(&cx, fs.root()).expect_err("getattr of the root");
    assert_eq!(got, Kind::Stale);
}

fn sync_of_what_is_only_read_is_done(c: &Case) {
    c.fs().sync(&c.cx()).expect("sync");
    sample(c, c.manifest());
}
