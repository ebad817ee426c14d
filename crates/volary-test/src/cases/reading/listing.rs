//! Listings with buffers of all sizes, and from every cookie.

use super::seen::{Seen, dirs, sample, walk};
use crate::suite::as_kept;
use crate::suite::{Case, Item, case_list};
use std::collections::BTreeMap;
use volary_core::{Cookie, Kind};

case_list! {
    about ReadDir;
    every_directory_lists_what_it_holds;
    listings_agree_with_lookups;
    listings_are_the_same_in_buffers_of_any_size;
    a_listing_goes_on_from_each_cookie;
    a_listing_can_begin_again;
    two_listings_in_turns_do_not_mix;
    after_the_last_cookie_nothing_comes;
    a_cookie_that_was_never_given_does_no_harm;
}

/// Returns the names as the volume returns them: in lower case if it does not keep case.
fn wanted(c: &Case, seen: &Seen<'_>) -> Vec<Vec<u8>> {
    let names = c.manifest().names(&seen.path).iter();
    let mut names: Vec<_> = names.map(|name| as_kept(c.caps(), name)).collect();
    names.sort();
    names
}

fn sorted(items: &[Item]) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = items.iter().map(|item| item.name.clone()).collect();
    names.sort();
    names
}

fn every_directory_lists_what_it_holds(c: &Case) {
    for seen in dirs(&walk(c, c.manifest())) {
        let (got, want) = (sorted(&c.list(seen.node)), wanted(c, seen));
        let extra = got.iter().find(|name| want.binary_search(name).is_err());
        let extra = extra.map(|name| volary_core::escape(name).to_string());
        assert_eq!(extra, None, "{} lists what it does not hold", seen.shown());
        let missing = want.iter().find(|name| got.binary_search(name).is_err());
        let missing = missing.map(|name| volary_core::escape(name).to_string());
        assert_eq!(
            missing,
            None,
            "{} does not list what it holds",
            seen.shown()
        );
        assert_eq!(got.len(), want.len(), "{} lists a name twice", seen.shown());
    }
}

fn listings_agree_with_lookups(c: &Case) {
    let all = walk(c, c.manifest());
    for dir in dirs(&all) {
        let items = c.list(dir.node);
        let listed: BTreeMap<_, _> = items.iter().map(|item| (&item.name, item)).collect();
        for name in c.manifest().names(&dir.path) {
            let shown = volary_core::escape(name);
            let item = listed.get(&as_kept(c.caps(), name));
            let item = item.unwrap_or_else(|| panic!("'{shown}' is not listed"));
            let entry = c.lookup(dir.node, name).expect("lookup");
            assert_eq!(item.kind, entry.attr.kind, "listed kind of '{shown}'");
            assert_eq!(item.node, entry.node, "listed node of '{shown}'");
            if let Some(mut attr) = item.attr {
                attr.atime = entry.attr.atime;
                assert_eq!(attr, entry.attr, "listed attributes of '{shown}'");
            }
        }
    }
}

fn listings_are_the_same_in_buffers_of_any_size(c: &Case) {
    for seen in dirs(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let want: Vec<_> = c.list(seen.node).into_iter().map(|i| i.name).collect();
        for (entries_max, names_max) in [
            (1, 1),
            (1, 1 << 16),
            (2, 20),
            (3, 300),
            (1000, 1),
            (1000, 300),
            (5000, 1 << 16),
        ] {
            let (mut got, mut at) = (Vec::new(), Cookie::START);
            loop {
                let (items, end) = c
                    .readdir(open, at, entries_max, names_max)
                    .expect("readdir");
                assert!(items.len() <= entries_max, "more than fits");
                assert!(end || !items.is_empty(), "nothing, but no end");
                at = items.last().map_or(at, |item| item.next);
                got.extend(items.into_iter().map(|item| item.name));
                assert!(
                    got.len() <= want.len(),
                    "{}: entries come again",
                    seen.shown()
                );
                if end {
                    break;
                }
            }
            assert!(
                got == want,
                "{} in buffers of {entries_max} entries and {names_max} bytes of names: {} entries \
                 of {}, or in another order",
                seen.shown(),
                got.len(),
                want.len()
            );
        }
        c.close(open);
    }
}

fn a_listing_goes_on_from_each_cookie(c: &Case) {
    for seen in dirs(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let all = c.list_from(open, Cookie::START, 100);
        // Backwards, so that no answer can come from the position left by the last read.
        for (index, item) in all.iter().enumerate().rev() {
            let want: Vec<_> = all[index + 1..].iter().map(|i| &i.name).take(3).collect();
            let (got, _) = c.readdir(open, item.next, 3, 1 << 16).expect("readdir");
            let got: Vec<_> = got.iter().map(|i| &i.name).collect();
            assert!(
                got.len() == want.len().min(3) || !got.is_empty(),
                "nothing after a cookie"
            );
            assert!(
                want.starts_with(&got),
                "{}: other entries after the cookie of entry {index}",
                seen.shown()
            );
        }
        c.close(open);
    }
}

fn a_listing_can_begin_again(c: &Case) {
    for seen in dirs(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let all = sorted(&c.list_from(open, Cookie::START, 100));
        let _ = c.readdir(open, Cookie::START, 2, 1 << 16).expect("readdir");
        let again = sorted(&c.list_from(open, Cookie::START, 7));
        assert!(all == again, "{} lists something else again", seen.shown());
        c.close(open);
    }
}

fn two_listings_in_turns_do_not_mix(c: &Case) {
    let all = sample(c, c.manifest());
    let dirs: Vec<_> = dirs(&all).collect();
    for pair in dirs.windows(2) {
        for pair in [[pair[0], pair[1]], [pair[0], pair[0]]] {
            let opens = pair.map(|seen| c.open_to_read(seen.node));
            assert_ne!(opens[0], opens[1], "one number for two opens");
            let mut got = [Vec::new(), Vec::new()];
            let mut at = [Some(Cookie::START); 2];
            while at.iter().any(Option::is_some) {
                for i in 0..2 {
                    let Some(from) = at[i] else { continue };
                    let (items, end) = c.readdir(opens[i], from, 9, 1 << 16).expect("readdir");
                    assert!(end || !items.is_empty(), "nothing, but no end");
                    at[i] = items.last().map(|item| item.next).filter(|_| !end);
                    got[i].extend(items);
                    assert!(got[i].len() <= 100_000, "a listing without an end");
                }
            }
            for (seen, got) in pair.iter().zip(&got) {
                assert!(sorted(got) == wanted(c, seen), "{} in turns", seen.shown());
            }
            opens.into_iter().for_each(|open| c.close(open));
        }
    }
}

fn after_the_last_cookie_nothing_comes(c: &Case) {
    for seen in dirs(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let all = c.list_from(open, Cookie::START, 100);
        let last = all.last().map_or(Cookie::START, |item| item.next);
        for _ in 0..2 {
            let (more, end) = c.readdir(open, last, 10, 1 << 16).expect("readdir");
            assert!(more.is_empty(), "{}: entries after the last", seen.shown());
            assert!(end, "{}: no end after the last", seen.shown());
        }
        c.close(open);
    }
}

fn a_cookie_that_was_never_given_does_no_harm(c: &Case) {
    for seen in dirs(&sample(c, c.manifest())) {
        let open = c.open_to_read(seen.node);
        let want = wanted(c, seen);
        for cookie in [7_777_777, 1 << 32, i64::MAX as u64, u64::MAX - 1, u64::MAX] {
            match c.readdir(open, Cookie(cookie), 10, 1 << 16) {
                Err(e) => assert!(
                    [Kind::Invalid, Kind::Stale].contains(&e.kind()),
                    "{}: cookie {cookie}: {e:?}",
                    seen.shown()
                ),
                Ok((items, _)) => {
                    let known = |item: &Item| want.binary_search(&item.name).is_ok();
                    assert!(items.iter().all(known), "{}: cookie {cookie}", seen.shown());
                }
            }
        }
        assert!(
            sorted(&c.list_from(open, Cookie::START, 50)) == want,
            "{}",
            seen.shown()
        );
        c.close(open);
    }
}
