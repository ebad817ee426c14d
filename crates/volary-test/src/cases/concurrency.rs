//! Many threads at once: each operation must be atomic.

use crate::rng::pattern;
use crate::suite::{Case, case_list, scope};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use volary_core::{Cookie, Create, Kind, Mode};

case_list! {
    about Read | Write | Create | Unlink | Rename | ReadDir | Sync | Lookup | MkDir;
    writers_of_different_files_do_not_disturb_each_other with WRITE;
    writers_of_different_ranges_do_not_disturb_each_other with WRITE;
    a_reader_sees_each_write_whole_or_not_at_all with WRITE;
    appends_by_many_threads_all_arrive_whole with WRITE;
    of_many_who_create_a_name_one_succeeds with WRITE;
    of_many_who_remove_a_name_one_succeeds with WRITE;
    of_many_who_rename_a_name_one_succeeds with WRITE;
    creating_and_removing_in_one_directory with WRITE;
    listing_while_others_come_and_go with WRITE;
    making_and_removing_directories_in_each_other with WRITE;
    renaming_directories_into_each_other_makes_no_loop with WRITE;
    cutting_and_appending_leave_a_sane_file with WRITE;
    a_replacing_rename_never_leaves_the_name_free with WRITE;
    syncing_while_others_write with WRITE;
    lookups_while_others_write with WRITE;
}

const THREADS: usize = 4;

/// Runs `work` in [`THREADS`] threads that start together.
fn together(work: impl Fn(usize) + Sync) {
    let start = Barrier::new(THREADS);
    scope(|s| {
        for t in 0..THREADS {
            let (start, work) = (&start, &work);
            s.spawn(move || {
                start.wait();
                work(t);
            });
        }
    });
}

/// Runs `others` repeatedly in two threads until `work` is done.
fn beside(work: impl Fn() + Sync, others: impl Fn() + Sync) {
    let done = AtomicBool::new(false);
    scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    others();
                }
            });
        }
        s.spawn(|| {
            // Set even if `work` panics; otherwise the other threads would never end.
            struct Done<'a>(&'a AtomicBool);
            impl Drop for Done<'_> {
                fn drop(&mut self) {
                    self.0.store(true, Ordering::Release);
                }
            }
            let _done = Done(&done);
            work();
        });
    });
}

fn writers_of_different_files_do_not_disturb_each_other(c: &Case) {
    let content = |t: usize, i: u64| pattern(t as u64 * 1000 + i, 5000);
    together(|t| {
        for i in 0..20 {
            c.file(c.root(), format!("file {i} of {t}"), &content(t, i));
        }
    });
    for t in 0..THREADS {
        for i in 0..20 {
            let node = c.find(c.root(), format!("file {i} of {t}"));
            assert!(c.content(node) == content(t, i), "file {i} of {t}");
        }
    }
    assert_eq!(c.names(c.root()).len(), 20 * THREADS);
}

fn writers_of_different_ranges_do_not_disturb_each_other(c: &Case) {
    let node = c.touch(c.root(), "f");
    // Neighbouring ranges share sectors and pages.
    let (len, rounds) = (777, 40);
    together(|t| {
        let open = c.open(node);
        for i in 0..rounds {
            let offset = (i * THREADS + t) * len;
            c.write(open, offset as u64, &pattern(offset as u64, len))
                .expect("write");
        }
        c.close(open);
    });
    let content = c.content(node);
    assert_eq!(content.len(), rounds * THREADS * len);
    for (i, part) in content.chunks(len).enumerate() {
        assert!(part == pattern((i * len) as u64, len), "range {i}");
    }
}

fn a_reader_sees_each_write_whole_or_not_at_all(c: &Case) {
    let node = c.file(c.root(), "f", &[0; 4096]);
    let (writer, reader) = (c.open(node), c.open_to_read(node));
    beside(
        || {
            for i in 0..500_u32 {
                let byte = (i % 251) as u8;
                c.write(writer, 0, &[byte; 4096]).expect("write");
            }
        },
        || {
            let got = c.read(reader, 0, 4096).expect("read");
            assert_eq!(got.len(), 4096);
            assert!(got.iter().all(|&b| b == got[0]), "half of a write");
        },
    );
    c.close(writer);
    c.close(reader);
}

fn appends_by_many_threads_all_arrive_whole(c: &Case) {
    let node = c.touch(c.root(), "f");
    let record = |t: usize, i: u32| format!("<{t}:{i:03}>{}", "x".repeat(100 + t)).into_bytes();
    together(|t| {
        let open = c.open(node);
        for i in 0..50 {
            c.append(open, &record(t, i)).expect("append");
        }
        c.close(open);
    });
    let content = c.content(node);
    let mut next = [0; THREADS];
    let mut rest = &content[..];
    while !rest.is_empty() {
        let t = usize::from(rest[1] - b'0');
        let want = record(t, next[t]);
        assert!(rest.starts_with(&want), "record {} of {t}", next[t]);
        rest = &rest[want.len()..];
        next[t] += 1;
    }
    assert_eq!(next, [50; THREADS]);
}

fn of_many_who_create_a_name_one_succeeds(c: &Case) {
    for round in 0..30 {
        let (name, won) = (format!("name {round}"), AtomicUsize::new(0));
        together(|t| {
            let done = if t.is_multiple_of(2) {
                c.create(c.root(), &name, Create::New)
                    .map(|(_, open)| c.close(open))
            } else {
                c.mkdir(c.root(), &name).map(drop)
            };
            match done {
                Ok(()) => {
                    won.fetch_add(1, Ordering::Relaxed);
                }
                Err(e) => assert_eq!(e, Kind::Exists),
            }
        });
        assert_eq!(won.into_inner(), 1);
    }
    assert_eq!(c.names(c.root()).len(), 30);
}

fn of_many_who_remove_a_name_one_succeeds(c: &Case) {
    for round in 0..30 {
        let (name, won) = (format!("name {round}"), AtomicUsize::new(0));
        c.file(c.root(), &name, b"x");
        together(|_| match c.unlink(c.root(), &name) {
            Ok(()) => {
                won.fetch_add(1, Ordering::Relaxed);
            }
            Err(e) => assert_eq!(e, Kind::NotFound),
        });
        assert_eq!(won.into_inner(), 1);
    }
    assert!(c.names(c.root()).is_empty());
}

fn of_many_who_rename_a_name_one_succeeds(c: &Case) {
    for round in 0..30 {
        let (name, won) = (format!("name {round}"), AtomicUsize::new(0));
        let node = c.file(c.root(), &name, b"x");
        together(
            |t| match c.rename(c.root(), &name, c.root(), format!("new {round} {t}")) {
                Ok(()) => {
                    won.fetch_add(1, Ordering::Relaxed);
                }
                Err(e) => assert_eq!(e, Kind::NotFound),
            },
        );
        assert_eq!(won.into_inner(), 1);
        assert_eq!(c.content(node), b"x");
    }
    assert_eq!(c.names(c.root()).len(), 30);
}

fn creating_and_removing_in_one_directory(c: &Case) {
    let dir = c.dir(c.root(), "d");
    together(|t| {
        for i in 0..100 {
            let name = c.fitting(format!("file {i} of thread {t}"));
            let node = c.file(dir, &name, name.as_bytes());
            assert_eq!(c.content(node), name.as_bytes());
            if i % 4 != 0 {
                c.unlink(dir, &name).expect("unlink");
            }
        }
    });
    let names = c.names(dir);
    assert_eq!(names.len(), 25 * THREADS);
    for name in names {
        assert_eq!(c.content(c.find(dir, &name)), name.as_bytes());
    }
}

fn listing_while_others_come_and_go(c: &Case) {
    let dir = c.dir(c.root(), "d");
    for i in 0..30 {
        c.touch(dir, format!("it stays {i}"));
    }
    beside(
        || {
            for i in 0..150 {
                let name = c.fitting(format!("file that goes again {i}"));
                c.touch(dir, &name);
                c.rename(dir, &name, dir, "shorter").expect("rename");
                c.unlink(dir, "shorter").expect("unlink");
            }
        },
        || {
            let open = c.open_to_read(dir);
            let items = c.list_from(open, Cookie::START, 5);
            c.close(open);
            let staying = items.iter().filter(|i| i.name.starts_with(b"it stays"));
            assert_eq!(staying.count(), 30, "those that stay, each once");
        },
    );
    assert_eq!(c.names(dir).len(), 30);
}

fn making_and_removing_directories_in_each_other(c: &Case) {
    together(|_| {
        for _ in 0..50 {
            // All threads use one name, so any of these calls may fail.
            if let Ok(entry) = c.mkdir(c.root(), "d") {
                let _ = c
                    .create(entry.node, "f", Create::Open)
                    .map(|(_, o)| c.close(o));
            }
            if let Ok(entry) = c.lookup(c.root(), "d") {
                let _ = c.unlink(entry.node, "f");
            }
            let _ = c.rmdir(c.root(), "d");
        }
    });
    // Whatever is left must be consistent.
    for name in c.names(c.root()) {
        let dir = c.find(c.root(), &name);
        for below in c.names(dir) {
            c.unlink(dir, below).expect("unlink");
        }
        c.rmdir(c.root(), name).expect("rmdir");
    }
}

fn renaming_directories_into_each_other_makes_no_loop(c: &Case) {
    let dirs: Vec<_> = (0..THREADS)
        .map(|t| c.dir(c.root(), format!("d{t}")))
        .collect();
    together(|t| {
        let (name, next) = (format!("d{t}"), dirs[(t + 1) % THREADS]);
        for _ in 0..50 {
            let _ = c.rename(c.root(), &name, next, &name);
            let _ = c.rename(next, &name, c.root(), &name);
        }
    });
    // Each directory can still be reached from the root, exactly once.
    assert_eq!(c.tree().0.len(), THREADS);
}

fn cutting_and_appending_leave_a_sane_file(c: &Case) {
    let node = c.touch(c.root(), "f");
    together(|t| {
        let open = c.open(node);
        for i in 0..100 {
            match (t + i) % 4 {
                0 => c.resize(node, (i * 37) as u64),
                _ => {
                    c.append(open, &[0xbb; 100]).expect("append");
                }
            }
        }
        c.close(open);
    });
    let content = c.content(node);
    assert_eq!(content.len() as u64, c.attr(node).size);
    assert!(content.iter().all(|&b| b == 0 || b == 0xbb));
}

fn a_replacing_rename_never_leaves_the_name_free(c: &Case) {
    c.file(c.root(), "name", b"content");
    beside(
        || {
            for _ in 0..100 {
                c.file(c.root(), "new", b"content");
                c.rename(c.root(), "new", c.root(), "name").expect("rename");
            }
        },
        || {
            let node = c.lookup(c.root(), "name").expect("the name is there").node;
            // The node may be replaced between lookup and open.
            if let Ok(open) = c.try_open(node, Mode::Read) {
                assert_eq!(c.read(open, 0, 100).expect("read"), b"content");
                c.close(open);
            }
        },
    );
    assert_eq!(c.names(c.root()), ["name"]);
}

fn syncing_while_others_write(c: &Case) {
    let dir = c.dir(c.root(), "d");
    beside(
        || {
            for i in 0..50_u8 {
                c.file(dir, format!("file {i}"), &vec![i; 3000]);
            }
        },
        || {
            c.fs().sync(&c.cx()).expect("sync");
            c.fs().statfs(&c.cx()).expect("statfs");
        },
    );
    for i in 0..50_u8 {
        let node = c.find(dir, format!("file {i}"));
        assert!(c.content(node) == vec![i; 3000]);
    }
}

fn lookups_while_others_write(c: &Case) {
    let dir = c.dir(c.root(), "d");
    let node = c.file(dir, "f", b"x");
    let last = AtomicUsize::new(1);
    beside(
        || {
            let open = c.open(node);
            for _ in 0..300 {
                let end = c.append(open, &[b'x'; 10]).expect("append");
                last.store(usize::try_from(end).expect("small"), Ordering::Release);
            }
            c.close(open);
        },
        || {
            let seen = last.load(Ordering::Acquire);
            let size = c.lookup(dir, "f").expect("lookup").attr.size;
            assert!(
                size >= seen as u64,
                "the size went back from {seen} to {size}"
            );
            assert_eq!(c.find(c.root(), "d"), dir);
        },
    );
    assert_eq!(c.attr(node).size, 3001);
}
