//! readdir: with small buffers, from cookies, and while the directory changes.

use crate::suite::{Case, Item, case_list};
use std::collections::HashMap;
use volary_core::{Cookie, Kind, NodeId};

case_list! {
    about ReadDir;
    an_empty_directory_lists_nothing with WRITE;
    dot_and_dot_dot_are_not_listed with WRITE;
    the_listing_agrees_with_lookup with WRITE;
    attributes_in_a_listing_are_right with WRITE;
    room_for_one_entry_is_enough with WRITE;
    room_for_no_name_still_gives_an_entry with WRITE;
    a_thousand_entries_are_each_given_once with WRITE;
    each_cookie_goes_on_after_its_entry with WRITE;
    listing_from_the_start_again_sees_what_is_new with WRITE;
    what_stays_is_given_once_while_others_are_removed with WRITE;
    what_stays_is_given_once_while_others_come with WRITE;
    what_stays_is_given_once_while_others_are_renamed with WRITE;
    everything_can_be_removed_while_listing with WRITE;
    a_file_cannot_be_listed with WRITE;
    a_cookie_that_was_never_given_is_invalid with WRITE;
    odd_cookies_do_no_harm with WRITE;
    a_removed_directory_that_is_open_lists_nothing with WRITE;
    two_listings_at_once_do_not_disturb_each_other with WRITE;
    cookies_hold_across_opens with WRITE | STABLE_COOKIES;
    cookies_hold_after_reattaching with WRITE | STABLE_COOKIES;
}

/// Makes a directory with `count` files, whose names are long and short in turn, and returns it.
fn filled(c: &Case, count: usize) -> NodeId {
    let dir = c.dir(c.root(), "d");
    for i in 0..count {
        c.touch(dir, name(c, i));
    }
    dir
}

fn name(c: &Case, i: usize) -> String {
    if i.is_multiple_of(3) {
        format!("f{i}")
    } else {
        c.fitting(format!("a longer name, number {i}"))
    }
}

/// Returns how many times each name occurs in a listing.
fn counted(items: &[Item]) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for item in items {
        let name = String::from_utf8(item.name.clone()).expect("UTF-8");
        *counts.entry(name).or_insert(0) += 1;
    }
    counts
}

#[track_caller]
fn assert_each_once(items: &[Item], of: impl IntoIterator<Item = String>) {
    let counts = counted(items);
    for name in of {
        assert_eq!(counts.get(&name), Some(&1), "how often '{name}' was given");
    }
}

fn an_empty_directory_lists_nothing(c: &Case) {
    let dir = c.dir(c.root(), "d");
    for room in [1, 100] {
        let open = c.open_to_read(dir);
        let (items, end) = c.readdir(open, Cookie::START, room, 100).expect("readdir");
        assert!(items.is_empty() && end);
        c.close(open);
    }
}

fn dot_and_dot_dot_are_not_listed(c: &Case) {
    let dir = filled(c, 5);
    for at in [c.root(), dir] {
        for item in c.list(at) {
            assert!(item.name != b"." && item.name != b"..");
        }
    }
}

fn the_listing_agrees_with_lookup(c: &Case) {
    let dir = filled(c, 20);
    c.dir(dir, "a directory");
    for item in c.list(dir) {
        let entry = c.lookup(dir, &item.name).expect("lookup");
        assert_eq!((item.node, item.kind), (entry.node, entry.attr.kind));
    }
}

fn attributes_in_a_listing_are_right(c: &Case) {
    let dir = filled(c, 10);
    c.file(dir, "with content", &[1; 777]);
    for item in c.list(dir) {
        let Some(attr) = item.attr else { continue };
        let real = c.attr(item.node);
        assert_eq!(attr.node, item.node);
        assert_eq!((attr.kind, attr.size), (real.kind, real.size));
        assert_eq!((attr.mode, attr.mtime), (real.mode, real.mtime));
    }
}

fn room_for_one_entry_is_enough(c: &Case) {
    let dir = filled(c, 40);
    let open = c.open_to_read(dir);
    let items = c.list_from(open, Cookie::START, 1);
    c.close(open);
    assert_eq!(items.len(), 40);
    assert_each_once(&items, (0..40).map(|i| name(c, i)));
}

fn room_for_no_name_still_gives_an_entry(c: &Case) {
    let dir = filled(c, 10);
    let open = c.open_to_read(dir);
    let (mut all, mut at) = (Vec::new(), Cookie::START);
    loop {
        let (items, end) = c.readdir(open, at, 0, 0).expect("readdir");
        assert!(items.len() <= 1, "{} entries in room for none", items.len());
        at = items.last().map_or(at, |i| i.next);
        all.extend(items);
        if end {
            break;
        }
        assert!(all.len() <= 10, "no end of it");
    }
    c.close(open);
    assert_each_once(&all, (0..10).map(|i| name(c, i)));
}

fn a_thousand_entries_are_each_given_once(c: &Case) {
    let dir = filled(c, 1000);
    let open = c.open_to_read(dir);
    for room in [7, 100, 5000] {
        let items = c.list_from(open, Cookie::START, room);
        assert_eq!(items.len(), 1000, "in buffers of {room}");
        assert_each_once(&items, (0..1000).map(|i| name(c, i)));
    }
    c.close(open);
}

fn each_cookie_goes_on_after_its_entry(c: &Case) {
    let dir = filled(c, 30);
    let open = c.open_to_read(dir);
    let all = c.list_from(open, Cookie::START, 100);
    for (i, item) in all.iter().enumerate().rev() {
        let rest = c.list_from(open, item.next, 4);
        let names =
            |items: &[Item]| -> Vec<Vec<u8>> { items.iter().map(|i| i.name.clone()).collect() };
        assert_eq!(names(&rest), names(&all[i + 1..]), "after entry {i}");
    }
    c.close(open);
}

fn listing_from_the_start_again_sees_what_is_new(c: &Case) {
    let dir = filled(c, 5);
    let open = c.open_to_read(dir);
    assert_eq!(c.list_from(open, Cookie::START, 3).len(), 5);
    c.touch(dir, "new");
    c.unlink(dir, name(c, 1)).expect("unlink");
    let items = c.list_from(open, Cookie::START, 3);
    c.close(open);
    assert_eq!(items.len(), 5);
    assert_each_once(&items, ["new".into(), name(c, 0)]);
}

/// Lists `dir` four entries at a time, and calls `change(step)` after each step.
fn list_under_change(c: &Case, dir: NodeId, mut change: impl FnMut(usize)) -> Vec<Item> {
    let open = c.open_to_read(dir);
    let (mut all, mut at) = (Vec::new(), Cookie::START);
    for step in 0.. {
        let (items, end) = c.readdir(open, at, 4, 1000).expect("readdir");
        at = items.last().map_or(at, |i| i.next);
        all.extend(items);
        assert!(step < 1000, "no end of it");
        if end {
            break;
        }
        change(step);
    }
    c.close(open);
    all
}

fn what_stays_is_given_once_while_others_are_removed(c: &Case) {
    let dir = filled(c, 60);
    // The odd ones are removed, from both ends.
    let mut going: Vec<usize> = (0..60).filter(|i| i % 2 == 1).collect();
    let items = list_under_change(c, dir, |step| {
        for _ in 0..2 {
            if going.is_empty() {
                return;
            }
            let at = if step.is_multiple_of(2) {
                0
            } else {
                going.len() - 1
            };
            c.unlink(dir, name(c, going.remove(at))).expect("unlink");
        }
    });
    assert_each_once(&items, (0..60).filter(|i| i % 2 == 0).map(|i| name(c, i)));
    assert!(counted(&items).values().all(|&n| n == 1));
}

fn what_stays_is_given_once_while_others_come(c: &Case) {
    let dir = filled(c, 40);
    // Makes holes first, so that new entries can land before the current position.
    for i in 0..10 {
        c.unlink(dir, name(c, i)).expect("unlink");
    }
    let items = list_under_change(c, dir, |step| {
        if step < 30 {
            c.touch(dir, c.fitting(format!("new and with a long name {step}")));
        }
    });
    assert_each_once(&items, (10..40).map(|i| name(c, i)));
    assert!(counted(&items).values().all(|&n| n == 1));
}

fn what_stays_is_given_once_while_others_are_renamed(c: &Case) {
    let dir = filled(c, 40);
    let items = list_under_change(c, dir, |step| {
        if step < 10 {
            let new = c.fitting(format!("renamed to something longer {step}"));
            c.rename(dir, name(c, step), dir, new).expect("rename");
        }
    });
    assert_each_once(&items, (10..40).map(|i| name(c, i)));
}

fn everything_can_be_removed_while_listing(c: &Case) {
    let dir = filled(c, 200);
    let open = c.open_to_read(dir);
    let mut at = Cookie::START;
    loop {
        let (items, end) = c.readdir(open, at, 7, 10_000).expect("readdir");
        for item in &items {
            c.unlink(dir, &item.name).expect("unlink");
        }
        at = items.last().map_or(at, |i| i.next);
        if end {
            break;
        }
    }
    c.close(open);
    assert!(c.names(dir).is_empty());
    c.rmdir(c.root(), "d").expect("rmdir");
}

fn a_file_cannot_be_listed(c: &Case) {
    let open = c.open_to_read(c.file(c.root(), "f", b"x"));
    let got = c.readdir(open, Cookie::START, 10, 1000);
    assert_eq!(got.unwrap_err(), Kind::NotDir);
    c.close(open);
}

fn a_cookie_that_was_never_given_is_invalid(c: &Case) {
    let dir = filled(c, 5);
    let open = c.open_to_read(dir);
    let got = c.readdir(open, Cookie(u64::MAX), 10, 1000);
    assert_eq!(got.unwrap_err(), Kind::Invalid);
    c.close(open);
}

fn odd_cookies_do_no_harm(c: &Case) {
    let dir = filled(c, 5);
    let open = c.open_to_read(dir);
    for shift in 0..64 {
        for cookie in [1 << shift, (1_u64 << shift) - 1, !(1 << shift)] {
            if let Ok((items, _)) = c.readdir(open, Cookie(cookie), 10, 1000) {
                for item in items {
                    assert_eq!(c.find(dir, &item.name), item.node);
                }
            }
        }
    }
    assert_eq!(c.list_from(open, Cookie::START, 100).len(), 5);
    c.close(open);
}

fn a_removed_directory_that_is_open_lists_nothing(c: &Case) {
    let dir = c.dir(c.root(), "d");
    let open = c.open_to_read(dir);
    c.rmdir(c.root(), "d").expect("rmdir");
    match c.readdir(open, Cookie::START, 10, 1000) {
        Ok((items, end)) => assert!(items.is_empty() && end),
        Err(e) => assert_eq!(e, Kind::Stale),
    }
    c.close(open);
}

fn two_listings_at_once_do_not_disturb_each_other(c: &Case) {
    let dir = filled(c, 50);
    let (a, b) = (c.open_to_read(dir), c.open_to_read(dir));
    let mut ends = [(Vec::new(), Cookie::START), (Vec::new(), Cookie::START)];
    for step in 0..200 {
        let (open, room) = if step % 2 == 0 { (a, 3) } else { (b, 5) };
        let (all, at) = &mut ends[step % 2];
        let (items, _) = c.readdir(open, *at, room, 1000).expect("readdir");
        *at = items.last().map_or(*at, |i| i.next);
        all.extend(items);
    }
    c.close(a);
    c.close(b);
    for (all, _) in &ends {
        assert_eq!(all.len(), 50);
        assert_each_once(all, (0..50).map(|i| name(c, i)));
    }
}

fn cookies_hold_across_opens(c: &Case) {
    let dir = filled(c, 30);
    let open = c.open_to_read(dir);
    let all = c.list_from(open, Cookie::START, 100);
    c.close(open);
    let open = c.open_to_read(dir);
    let rest = c.list_from(open, all[11].next, 100);
    c.close(open);
    assert_eq!(rest.len(), 18);
    assert_eq!(rest[0].name, all[12].name);
}

fn cookies_hold_after_reattaching(c: &Case) {
    let dir = filled(c, 30);
    let open = c.open_to_read(dir);
    let all = c.list_from(open, Cookie::START, 100);
    c.close(open);
    if !c.reattach() {
        return;
    }
    let open = c.open_to_read(c.find(c.root(), "d"));
    let rest = c.list_from(open, all[11].next, 100);
    c.close(open);
    assert_eq!(rest.len(), 18);
    assert_eq!(rest[0].name, all[12].name);
}
