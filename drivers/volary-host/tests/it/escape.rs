//! Nothing outside of the directory is reached, whoever races and whatever the
//! names are.
//!
//! The swapper of symlinks is raced in 100,000 rounds, half of them in each way of
//! finding nodes; in as many as `VOLARY_ROUNDS` says if it is set.

use crate::side::{Side, name};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use volary_core::{Create, FileKind, Kind, Mode, NodeId, SetAttr, SetTime, Time};

const INSIDE: &[u8] = b"inside";

/// A directory to attach, and beside it a tree that nothing may touch.
struct Ground {
    dir: TempDir,
    before: BTreeMap<PathBuf, String>,
}

impl Ground {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        for below in ["inside", "outside", "outside/d"] {
            fs::create_dir(dir.path().join(below)).unwrap();
        }
        for canary in ["outside/f", "outside/secret", "outside/d/f"] {
            fs::write(dir.path().join(canary), "outside").unwrap();
        }
        // Reading would move it, if anything read.
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        for canary in ["outside/f", "outside/secret", "outside/d/f"] {
            let file = fs::File::open(dir.path().join(canary)).unwrap();
            let times = fs::FileTimes::new().set_accessed(old);
            file.set_times(times).unwrap();
        }
        let before = seen(&dir.path().join("outside"));
        Self { dir, before }
    }

    fn inside(&self) -> PathBuf {
        self.dir.path().join("inside")
    }

    fn side(&self, by_handle: bool) -> Side {
        Side::new(&self.inside(), by_handle)
    }

    /// All that a look at the tree outside shows is what it was.
    fn assert_untouched(&self) {
        assert_eq!(seen(&self.dir.path().join("outside")), self.before);
    }
}

/// Names, contents, and every attribute but the time at which a directory was
/// last listed, which is by this.
fn seen(top: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut left = vec![top.to_owned()];
    while let Some(path) = left.pop() {
        let attr = fs::symlink_metadata(&path).unwrap();
        let owner = (attr.mode(), attr.uid(), attr.gid(), attr.nlink());
        let times = (attr.mtime_nsec(), attr.ctime(), attr.ctime_nsec());
        let mut words = format!("{owner:?} {times:?} {} ", attr.len());
        if attr.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        } else {
            words += &format!("{:?} ", attr.accessed().unwrap());
        }
        all.insert(path, words);
    }
    all
}

fn rounds() -> u64 {
    let wanted = std::env::var("VOLARY_ROUNDS").ok();
    wanted.map_or(100_000, |n| n.parse().expect("a number"))
}

/// Swaps two entries over and over, for as long as `work` goes on; how often.
fn while_swapping(a: &Path, b: &Path, work: impl FnOnce()) -> u64 {
    let (done, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).expect("a swap");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&done);
        work();
    });
    count.into_inner()
}

/// What was answered, to see that the race was one.
#[derive(Default, Debug)]
struct Tally {
    reached: u64,
    refused: u64,
}

impl Tally {
    fn take<T>(&mut self, got: volary_core::Result<T>) -> Option<T> {
        match got {
            Ok(value) => {
                self.reached += 1;
                Some(value)
            }
            Err(_) => {
                self.refused += 1;
                None
            }
        }
    }
}

/// Goes through the entry `x`, now a directory and now a symlink to the tree
/// outside, and does to what is in it all that can be done by a name.
fn go_through(side: &Side, tally: &mut Tally, round: u64) {
    let root = side.root();
    let Some(entry) = tally.take(side.lookup(root, b"x")) else {
        return;
    };
    match entry.attr.kind {
        FileKind::Dir => {}
        FileKind::Symlink => {
            // By its id it must be refused for what it is.
            assert!(side.lookup(entry.node, b"secret").is_err());
            assert!(side.names(entry.node).is_err());
            return;
        }
        kind => panic!("{kind:?}"),
    }
    let dir = entry.node;
    if let Some(found) = tally.take(side.lookup(dir, b"secret")) {
        let content = tally.take(side.content(found.node));
        assert!(content.is_none_or(|content| content == INSIDE));
    }
    match round % 4 {
        0 => {
            let names = tally.take(side.names(dir)).unwrap_or_default();
            assert!(!names.contains(&b"f".to_vec()), "{names:?}");
        }
        1 => {
            if let Some((_, open)) = tally.take(side.create(dir, b"made", Create::Open)) {
                side.close(open);
            }
        }
        2 => {
            tally.take(side.fs.unlink(&side.cx(), dir, name(b"made")));
        }
        _ => {
            let parent = tally.take(side.fs.parent(&side.cx(), dir));
            assert!(parent.is_none_or(|parent| parent.node == root));
        }
    }
}

/// Opens, cuts and changes `y`, now a file and now a symlink to one outside.
fn go_at_file(side: &Side, tally: &mut Tally, round: u64) {
    let root = side.root();
    let how = if round.is_multiple_of(2) {
        Create::Open
    } else {
        Create::Truncate
    };
    if let Some((_, open)) = tally.take(side.create(root, b"y", how)) {
        side.fs.write(&side.cx(), open, Some(0), INSIDE).unwrap();
        side.close(open);
    }
    let Some(entry) = tally.take(side.lookup(root, b"y")) else {
        return;
    };
    let set = SetAttr {
        mtime: Some(SetTime::To(Time::from_secs(5))),
        ..SetAttr::owned(0o600, 7, 7)
    };
    tally.take(side.fs.setattr(&side.cx(), entry.node, &set));
    let open = side.fs.open(&side.cx(), entry.node, Mode::ReadWrite);
    if let Some(open) = tally.take(open) {
        assert_eq!(entry.attr.kind, FileKind::File);
        side.close(open);
    }
}

#[test]
fn a_swapper_of_symlinks_leads_nowhere() {
    for by_handle in [true, false] {
        let ground = Ground::new();
        let inside = ground.inside();
        fs::create_dir(inside.join("x")).unwrap();
        fs::write(inside.join("x/secret"), INSIDE).unwrap();
        fs::write(inside.join("y"), INSIDE).unwrap();
        symlink("../outside", inside.join("x2")).unwrap();
        symlink("../outside/f", inside.join("y2")).unwrap();
        let side = ground.side(by_handle);
        let mut tally = Tally::default();
        let rounds = rounds() / 4;
        let mut swapped = while_swapping(&inside.join("x"), &inside.join("x2"), || {
            (0..rounds).for_each(|round| go_through(&side, &mut tally, round));
        });
        swapped += while_swapping(&inside.join("y"), &inside.join("y2"), || {
            (0..rounds).for_each(|round| go_at_file(&side, &mut tally, round));
        });
        println!("by_handle {by_handle}: {swapped} swaps, {tally:?}");
        ground.assert_untouched();
        assert!(swapped > 0 && tally.reached > 0 && tally.refused > 0);
    }
}

#[test]
fn a_directory_that_is_carried_out_and_back_leads_nowhere() {
    for by_handle in [true, false] {
        let ground = Ground::new();
        fs::create_dir_all(ground.inside().join("x/below")).unwrap();
        fs::create_dir(ground.dir.path().join("z")).unwrap();
        let side = ground.side(by_handle);
        let (root, below) = (side.root(), {
            let x = side.find(side.root(), b"x");
            side.find(x, b"below")
        });
        let mut tally = Tally::default();
        // A swap with a directory outside, so that it is out half of the time.
        while_swapping(
            &ground.inside().join("x"),
            &ground.dir.path().join("z"),
            || {
                for _ in 0..rounds() / 10 {
                    up_to(&side, root, below, &mut tally);
                }
            },
        );
        ground.assert_untouched();
        assert!(tally.reached > 0 && tally.refused > 0, "{tally:?}");
    }
}

/// Goes up from a directory: to the root at most.
fn up_to(side: &Side, root: NodeId, from: NodeId, tally: &mut Tally) {
    let mut at = from;
    for _ in 0..3 {
        let Some(above) = tally.take(side.fs.parent(&side.cx(), at)) else {
            return;
        };
        if above.node == root {
            return;
        }
        at = above.node;
    }
    panic!("past the root");
}

/// Bytes of which bad names are made.
const ODD: &[&[u8]] = &[
    b".",
    b"..",
    b"...",
    b"\\",
    b"..\\",
    b":",
    b"*",
    b"\n",
    b"\r",
    b"\t",
    b"\x1b",
    b"\x7f",
    b"\xff",
    b"\xc0\xaf",
    b"%2f",
    b"%00",
    b" ",
    b"~",
    b"$HOME",
    b"`id`",
    b"-rf",
    b"\xe2\x88\x95",
    b"proc",
    b"self",
    b"fd",
    b"C:",
    b"CON",
    b"\xed\xa0\x80",
];

/// Returns the `n`-th bad name: no two are the same.
fn bad_name(n: usize) -> Vec<u8> {
    let (mut bytes, mut left) = (Vec::new(), n + 1);
    while left > 0 {
        bytes.extend_from_slice(ODD[left % ODD.len()]);
        left /= ODD.len();
    }
    bytes
}

#[test]
fn five_thousand_bad_names_are_names_and_nothing_more() {
    for by_handle in [true, false] {
        let ground = Ground::new();
        let side = ground.side(by_handle);
        let (root, cx) = (side.root(), side.cx());
        let mut tried = 0;
        for n in 0..6_000 {
            let bytes = bad_name(n);
            let Ok(odd) = volary_core::Name::new(&bytes) else {
                continue;
            };
            if side.lookup(root, &bytes).is_ok() {
                continue;
            }
            tried += 1;
            let node = side.file(root, &bytes);
            assert_eq!(side.find(root, &bytes), node);
            assert_eq!(side.names(root).unwrap(), std::slice::from_ref(&bytes));
            let other = [&bytes[..], b"2"].concat();
            side.fs.link(&cx, node, root, name(&other)).unwrap();
            side.fs.unlink(&cx, root, odd).unwrap();
            let flags = volary_core::RenameFlags::KEEP;
            side.fs
                .rename(&cx, root, name(&other), root, odd, flags)
                .unwrap();
            side.fs.unlink(&cx, root, odd).unwrap();
            let dir = side.dir(root, &bytes);
            assert_eq!(side.fs.parent(&cx, dir).unwrap().node, root);
            side.fs.rmdir(&cx, root, odd).unwrap();
            let set = SetAttr::default();
            let link = side.fs.symlink(&cx, root, odd, &bytes, &set).unwrap();
            assert_eq!(side.fs.readlink(&cx, link.node).unwrap(), bytes);
            side.fs.unlink(&cx, root, odd).unwrap();
        }
        assert!(tried >= 5_000, "only {tried}");
        let long = [b'x'; 256];
        assert_eq!(side.lookup(root, &long).unwrap_err(), Kind::NameTooLong);
        ground.assert_untouched();
    }
}

#[test]
fn symlinks_are_read_and_never_followed() {
    for by_handle in [true, false] {
        let ground = Ground::new();
        let side = ground.side(by_handle);
        let (root, cx) = (side.root(), side.cx());
        let outside = ground.dir.path().join("outside/f");
        let targets: [&[u8]; 6] = [
            b"../outside/f",
            b"../outside",
            b"/proc/self/root/etc/passwd",
            b"/proc/self/fd/0",
            b".",
            outside.as_os_str().as_encoded_bytes(),
        ];
        for target in targets {
            symlink(
                std::ffi::OsStr::new(std::str::from_utf8(target).unwrap()),
                ground.inside().join("link"),
            )
            .unwrap();
            let link = side.find(root, b"link");
            assert_eq!(side.fs.readlink(&cx, link).unwrap(), target);
            assert_eq!(side.lookup(link, b"f").unwrap_err(), Kind::NotDir);
            for mode in [Mode::Read, Mode::ReadWrite] {
                assert_eq!(side.fs.open(&cx, link, mode).unwrap_err(), Kind::Invalid);
            }
            for how in [Create::Open, Create::Truncate] {
                let got = side.create(root, b"link", how);
                assert_eq!(got.unwrap_err(), Kind::Invalid);
            }
            let got = side.fs.setattr(&cx, link, &SetAttr::size(0));
            assert_eq!(got.unwrap_err(), Kind::Invalid);
            let got = side.fs.rmdir(&cx, root, name(b"link"));
            assert_eq!(got.unwrap_err(), Kind::NotDir);
            // Its own attributes, and not those of what it leads to.
            let set = SetAttr {
                mtime: Some(SetTime::To(Time::from_secs(5))),
                ..SetAttr::mode(0o700)
            };
            side.fs.setattr(&cx, link, &set).unwrap();
            side.fs.unlink(&cx, root, name(b"link")).unwrap();
        }
        ground.assert_untouched();
    }
}
