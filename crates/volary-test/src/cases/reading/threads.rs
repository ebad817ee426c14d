//! Threads that read at the same time get the same answers.

use super::seen::{Seen, dirs, files, sample, walk};
use crate::suite::{Case, case_list, scope};
use volary_core::Cookie;

case_list! {
    about Read | ReadDir | Lookup;
    threads_that_read_one_open_agree;
    threads_that_read_different_files_agree;
    threads_that_walk_agree;
}

const THREADS: usize = 4;
/// The greatest size of a file that all threads read.
const LENGTH_MAX: u64 = 8 << 20;

fn threads_that_read_one_open_agree(c: &Case) {
    let all = sample(c, c.manifest());
    let len = |seen: &&Seen<'_>| seen.want.content.len();
    // Most of a larger file may be zeros, which are the same at every offset.
    let longest = files(&all)
        .filter(|seen| len(seen) <= LENGTH_MAX)
        .max_by_key(len);
    let Some(seen) = longest.or_else(|| files(&all).next()) else {
        return c.skip("the volume holds no file");
    };
    let (open, len) = (
        c.open_to_read(seen.node),
        seen.want.content.len().min(1 << 20),
    );
    scope(|s| {
        for thread in 0..THREADS as u64 {
            s.spawn(move || {
                for step in 0..200 {
                    let at = (step * 7919 + thread * 104_729) % (len + 1);
                    let want = seen.want.content.read(at, 1777);
                    let got = c.read(open, at, 1777).expect("read");
                    assert!(
                        want.is_none_or(|want| want == got),
                        "{} at {at}",
                        seen.shown()
                    );
                }
            });
        }
    });
    c.close(open);
}

fn threads_that_read_different_files_agree(c: &Case) {
    let all = sample(c, c.manifest());
    let all = &all;
    scope(|s| {
        for thread in 0..THREADS {
            s.spawn(move || {
                for seen in files(all).skip(thread).step_by(THREADS) {
                    let open = c.open_to_read(seen.node);
                    let got = c.read(open, 0, 70_000).expect("read");
                    let want = seen.want.content.read(0, 70_000);
                    assert!(want.is_none_or(|want| want == got), "{}", seen.shown());
                    c.close(open);
                }
            });
        }
    });
}

fn threads_that_walk_agree(c: &Case) {
    let nodes = || {
        walk(c, c.manifest())
            .iter()
            .map(|seen| seen.node)
            .collect::<Vec<_>>()
    };
    let want = nodes();
    let all = sample(c, c.manifest());
    let (want, nodes, all) = (&want, &nodes, &all);
    scope(|s| {
        for _ in 0..2 {
            s.spawn(move || assert!(&nodes() == want, "another thread found other nodes"));
            s.spawn(move || {
                for dir in dirs(all) {
                    let open = c.open_to_read(dir.node);
                    let count = c.list_from(open, Cookie::START, 3).len();
                    assert_eq!(
                        count,
                        c.manifest().names(&dir.path).len(),
                        "{}",
                        dir.shown()
                    );
                    c.close(open);
                }
            });
        }
    });
}
