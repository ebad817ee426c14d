//! A cache of another volume, and links to files of one.

use crate::volumes::{clean, shape};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use volary_block::{MemDevice, Recorder};
use volary_cedar::CEDAR;
use volary_core::{
    Attach, BlockDevice, Call, Cancel, Cookie, Create, Cred, Ctx, DirBuf, Error, Format, Fs, Kind,
    Layer, Mode, Name, NodeId, Op, Options, Remote, RenameFlags, Result, SetAttr, Time,
};
use volary_testkit::Suite;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::NOW;

const MIB: u64 = 1 << 20;

/// Does something as root, `secs` after [`NOW`].
fn later<T>(secs: i64, act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: Time::new(NOW.secs + secs, 0),
        cancel: &cancel,
    })
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

type Act = Box<dyn FnOnce(&Fs) + Send>;

/// The line to the remote: it can be cut, and tells how much went over it.
struct Line {
    below: Fs,
    is_cut: AtomicBool,
    /// Reads after which it is cut.
    reads_left: AtomicU64,
    reads: AtomicU64,
    /// What is done once, before the next read.
    before_read: Mutex<Option<Act>>,
}

impl Layer for Line {
    fn below(&self) -> &Fs {
        &self.below
    }

    /// The remote is used again.
    fn detach(&self, _: &Ctx<'_>) -> Result<()> {
        Ok(())
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let lost = || Err(Error::note(Kind::Io, "the line is cut"));
        if op.call == Call::Read {
            let act = self.before_read.lock().unwrap().take();
            if let Some(act) = act {
                act(&self.below);
            }
            self.reads.fetch_add(1, Ordering::Relaxed);
            if self.reads_left.fetch_sub(1, Ordering::Relaxed) == 0 {
                self.is_cut.store(true, Ordering::Relaxed);
            }
        }
        match self.is_cut.load(Ordering::Relaxed) {
            true => lost(),
            false => call(),
        }
    }
}

/// A remote, the line to it, and a volume that keeps files of it.
struct Pair {
    far: Fs,
    line: Arc<Line>,
    dev: Arc<MemDevice>,
    fs: Fs,
}

fn attach_over(dev: Arc<dyn BlockDevice>, line: &Arc<Line>, called: &str) -> Result<Fs> {
    let line = line.clone();
    let open = move || match line.is_cut.load(Ordering::Relaxed) {
        true => Err(Kind::Io.into()),
        false => Ok(line.clone() as Fs),
    };
    CEDAR.attach_over(dev, &Attach::default(), Remote::new(called, open))
}

impl Pair {
    fn new(len: u64, make: &'static str) -> Self {
        let far = shape(64 * MIB).device();
        let far = CEDAR.attach(far, &Attach::default()).unwrap();
        let line = Arc::new(Line {
            below: far.clone(),
            is_cut: AtomicBool::new(false),
            reads_left: AtomicU64::new(u64::MAX),
            reads: AtomicU64::new(0),
            before_read: Mutex::new(None),
        });
        let dev = shape(len).made(make).device();
        let fs = attach_over(dev.clone(), &line, "far").unwrap();
        Self { far, line, dev, fs }
    }

    fn cache() -> Self {
        Self::new(8 * MIB, "cache=far")
    }

    fn cut(&self, is_cut: bool) {
        self.line.is_cut.store(is_cut, Ordering::Relaxed);
    }

    fn reads(&self) -> u64 {
        self.line.reads.load(Ordering::Relaxed)
    }

    /// Attaches again; without the remote if there is none.
    fn again(&mut self, remote: bool) {
        later(0, |cx| self.fs.detach(cx)).unwrap();
        clean(self.dev.clone()).unwrap();
        self.fs = match remote {
            true => attach_over(self.dev.clone(), &self.line, "far").unwrap(),
            false => CEDAR.attach(self.dev.clone(), &Attach::default()).unwrap(),
        };
    }

    fn end(self) {
        later(0, |cx| self.fs.detach(cx)).unwrap();
        clean(self.dev).unwrap();
    }
}

/// Returns bytes of which no two pages are alike.
fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 511 + i % 251 + seed) as u8).collect()
}

/// Returns the node at a path.
fn node(fs: &Fs, secs: i64, path: &str) -> Result<NodeId> {
    later(secs, |cx| {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(fs.root(), |at, part| {
            Ok(fs.lookup(cx, at, name(part))?.node)
        })
    })
}

fn put(fs: &Fs, secs: i64, path: &str, content: &[u8]) {
    let (dir, last) = path.rsplit_once('/').unwrap_or(("", path));
    let dir = node(fs, secs, dir).unwrap();
    later(secs, |cx| {
        let set = SetAttr::default();
        let made = fs.create(cx, dir, name(last), Create::Truncate, &set);
        let (_, open) = made.unwrap();
        fs.write(cx, open, Some(0), content).unwrap();
        fs.close(cx, open).unwrap();
    });
}

fn get(fs: &Fs, secs: i64, path: &str) -> Result<Vec<u8>> {
    let node = node(fs, secs, path)?;
    later(secs, |cx| {
        let size = fs.getattr(cx, node)?.size;
        let open = fs.open(cx, node, Mode::Read)?;
        let mut content = vec![0; size as usize + 1];
        let read = fs.read(cx, open, 0, &mut content);
        fs.close(cx, open)?;
        content.truncate(read?);
        Ok(content)
    })
}

/// All of a volume, but for counts of links: a cache knows of a directory's directories
/// only once it was listed.
fn tree(fs: &Fs, secs: i64) -> Tree {
    let mut tree = later(secs, |cx| Tree::read(fs, cx)).unwrap();
    tree.0.values_mut().for_each(|leaf| leaf.links = None);
    tree
}

/// A small tree.
fn plant(far: &Fs) {
    let mkdir = |path: &str| {
        let (dir, last) = path.rsplit_once('/').unwrap_or(("", path));
        let dir = node(far, 0, dir).unwrap();
        later(0, |cx| far.mkdir(cx, dir, name(last), &SetAttr::default())).unwrap();
    };
    mkdir("docs");
    mkdir("docs/old");
    put(far, 0, "readme", b"read me");
    put(far, 0, "docs/large", &bytes(700_000, 1));
    put(far, 0, "docs/old/empty", b"");
    let set = SetAttr::default();
    later(0, |cx| {
        far.symlink(cx, far.root(), name("to"), b"docs/large", &set)
    })
    .unwrap();
}

#[test]
fn a_cache_shows_the_remotes_tree_and_without_it_what_was_read() {
    let mut pair = Pair::cache();
    plant(&pair.far);
    let all = tree(&pair.far, 0);
    assert_eq!(tree(&pair.fs, 0), all);
    let reads = pair.reads();
    assert!(reads > 0);
    assert_eq!(tree(&pair.fs, 1), all);
    assert_eq!(pair.reads(), reads, "what is here is not read again");
    pair.cut(true);
    assert_eq!(tree(&pair.fs, 2), all);
    pair.again(true);
    assert_eq!(tree(&pair.fs, 3), all, "attached while the remote is away");
    pair.again(false);
    assert_eq!(tree(&pair.fs, 4), all, "attached without a remote");
    pair.end();
}

#[test]
fn what_is_not_here_is_not_to_be_had_without_the_remote() {
    let pair = Pair::cache();
    plant(&pair.far);
    assert_eq!(get(&pair.fs, 0, "readme").unwrap(), b"read me");
    node(&pair.fs, 0, "docs/large").unwrap();
    pair.cut(true);
    assert_eq!(get(&pair.fs, 1, "readme").unwrap(), b"read me");
    assert_eq!(get(&pair.fs, 1, "docs/large").unwrap_err(), Kind::Io);
    let unseen = get(&pair.fs, 1, "docs/old").unwrap_err();
    assert_eq!(unseen, Kind::Io, "docs was never listed");
    pair.cut(false);
    // It is asked again after some seconds.
    assert_eq!(get(&pair.fs, 2, "docs/large").unwrap_err(), Kind::Io);
    assert_eq!(get(&pair.fs, 9, "docs/large").unwrap(), bytes(700_000, 1));
    pair.end();
}

/// Returns the names in a directory, in order.
fn names(fs: &Fs, secs: i64, dir: &str) -> Result<Vec<Vec<u8>>> {
    let dir = node(fs, secs, dir)?;
    later(secs, |cx| {
        let open = fs.open(cx, dir, Mode::Read)?;
        let mut buf = DirBuf::new(100, 8000, false);
        let read = fs.readdir(cx, open, Cookie::START, &mut buf);
        fs.close(cx, open)?;
        read.map(|_| buf.iter().map(|entry| entry.name.to_vec()).collect())
    })
}

#[test]
fn a_directory_that_was_never_listed_is_not_empty_without_the_remote() {
    let mut pair = Pair::cache();
    plant(&pair.far);
    node(&pair.fs, 0, "docs/old").unwrap();
    let all = names(&pair.fs, 0, "docs").unwrap();
    assert_eq!(all.len(), 2);
    put(&pair.far, 10, "docs/new", b"");
    // A look at a directory that changed does not take its names.
    let docs = node(&pair.fs, 11, "docs").unwrap();
    later(11, |cx| pair.fs.getattr(cx, docs)).unwrap();
    pair.cut(true);
    for (secs, dir) in [(12, ""), (12, "docs/old")] {
        let e = names(&pair.fs, secs, dir).unwrap_err();
        assert!(e == Kind::Io && e.to_string().contains("not here"), "{e}");
    }
    assert_eq!(names(&pair.fs, 12, "docs").unwrap(), all);
    assert_eq!(node(&pair.fs, 12, "none").unwrap_err(), Kind::Io);
    assert_eq!(node(&pair.fs, 12, "docs/none").unwrap_err(), Kind::NotFound);
    pair.again(false);
    assert_eq!(names(&pair.fs, 13, "").unwrap_err(), Kind::Io);
    assert_eq!(names(&pair.fs, 13, "docs").unwrap(), all);
    pair.end();
}

#[test]
fn what_changes_on_the_remote_changes_here() {
    let pair = Pair::cache();
    plant(&pair.far);
    assert_eq!(tree(&pair.fs, 0), tree(&pair.far, 0));
    put(&pair.far, 10, "readme", b"read this");
    put(&pair.far, 10, "docs/large", &bytes(900_000, 2));
    assert_eq!(get(&pair.fs, 11, "readme").unwrap(), b"read this");
    let (far, root) = (&pair.far, pair.far.root());
    later(12, |cx| {
        let docs = far.lookup(cx, root, name("docs")).unwrap().node;
        let old = far.lookup(cx, docs, name("old")).unwrap().node;
        far.unlink(cx, old, name("empty")).unwrap();
        far.rmdir(cx, docs, name("old")).unwrap();
        // A directory with names becomes a file.
        far.rename(
            cx,
            root,
            name("docs"),
            root,
            name("moved"),
            RenameFlags::REPLACE,
        )
        .unwrap();
    });
    put(far, 13, "docs", b"a file now");
    assert_eq!(get(&pair.fs, 14, "docs").unwrap(), b"a file now");
    assert_eq!(node(&pair.fs, 14, "moved/old").unwrap_err(), Kind::NotFound);
    assert_eq!(tree(&pair.fs, 14), tree(far, 14));
    pair.end();
}

#[test]
fn an_open_file_is_read_on_when_it_changes() {
    let pair = Pair::cache();
    put(&pair.far, 0, "f", &bytes(300_000, 1));
    let f = node(&pair.fs, 0, "f").unwrap();
    let open = later(0, |cx| pair.fs.open(cx, f, Mode::Read)).unwrap();
    put(&pair.far, 10, "f", &bytes(300_000, 2));
    // A look has what was here taken away.
    later(11, |cx| pair.fs.getattr(cx, f)).unwrap();
    let mut room = vec![0; 1000];
    later(11, |cx| pair.fs.read(cx, open, 100_000, &mut room)).unwrap();
    assert!(room == bytes(300_000, 2)[100_000..101_000]);
    later(11, |cx| pair.fs.close(cx, open)).unwrap();
    pair.end();
}

#[test]
fn a_remote_that_is_lost_in_the_middle_leaves_nothing_of_the_file() {
    let mut pair = Pair::cache();
    put(&pair.far, 0, "f", &bytes(1_500_000, 1));
    node(&pair.fs, 0, "f").unwrap();
    let free = |fs: &Fs| later(0, |cx| fs.statfs(cx)).unwrap().free;
    let before = free(&pair.fs);
    pair.line.reads_left.store(2, Ordering::Relaxed);
    let e = get(&pair.fs, 0, "f").unwrap_err();
    assert!(
        e == Kind::Io && e.to_string().contains("while it was fetched"),
        "{e}"
    );
    assert_eq!(free(&pair.fs), before);
    pair.again(false);
    assert_eq!(get(&pair.fs, 0, "f").unwrap_err(), Kind::Io);
    pair.line.reads_left.store(u64::MAX, Ordering::Relaxed);
    pair.cut(false);
    pair.again(true);
    assert_eq!(get(&pair.fs, 0, "f").unwrap(), bytes(1_500_000, 1));
    pair.end();
}

#[test]
fn a_file_that_changes_while_it_is_fetched_is_fetched_again() {
    let pair = Pair::cache();
    put(&pair.far, 0, "f", &bytes(600_000, 1));
    let change = |fs: &Fs| put(fs, 10, "f", &bytes(500_000, 2));
    *pair.line.before_read.lock().unwrap() = Some(Box::new(change));
    let f = node(&pair.fs, 0, "f").unwrap();
    let open = later(0, |cx| pair.fs.open(cx, f, Mode::Read)).unwrap();
    let mut room = vec![0; 600_000];
    let n = later(0, |cx| pair.fs.read(cx, open, 0, &mut room)).unwrap();
    assert!(room[..n] == bytes(500_000, 2), "{n} bytes");
    later(0, |cx| pair.fs.close(cx, open)).unwrap();
    pair.end();
}

#[test]
fn what_was_used_the_longest_ago_makes_room() {
    let pair = Pair::cache();
    let room = later(0, |cx| pair.fs.statfs(cx)).unwrap().free;
    let third = room as usize * 3 / 10;
    for (i, file) in ["a", "b", "c", "d"].into_iter().enumerate() {
        put(&pair.far, 0, file, &bytes(third, i));
    }
    for (at, file) in [(10, "a"), (20, "b"), (30, "c"), (40, "a")] {
        get(&pair.fs, at, file).unwrap();
    }
    assert!(get(&pair.fs, 50, "d").unwrap() == bytes(third, 3));
    pair.cut(true);
    let is_here = |file: &str| get(&pair.fs, 60, file).is_ok();
    assert_eq!(["a", "b", "c", "d"].map(is_here), [true, false, true, true]);
    pair.end();
}

#[test]
fn a_file_that_is_open_does_not_make_room() {
    let pair = Pair::cache();
    let room = later(0, |cx| pair.fs.statfs(cx)).unwrap().free as usize;
    put(&pair.far, 0, "a", &bytes(room * 6 / 10, 1));
    put(&pair.far, 0, "b", &bytes(room * 6 / 10, 2));
    let a = node(&pair.fs, 0, "a").unwrap();
    let open = later(0, |cx| pair.fs.open(cx, a, Mode::Read)).unwrap();
    assert!(
        get(&pair.fs, 10, "b").unwrap() == bytes(room * 6 / 10, 2),
        "read through"
    );
    pair.cut(true);
    let mut got = vec![0; 1000];
    later(11, |cx| pair.fs.read(cx, open, 0, &mut got)).unwrap();
    assert!(got == bytes(1000, 1));
    later(11, |cx| pair.fs.close(cx, open)).unwrap();
    assert_eq!(get(&pair.fs, 12, "b").unwrap_err(), Kind::Io);
    pair.end();
}

#[test]
fn a_file_larger_than_the_cache_is_read_through_it() {
    let pair = Pair::cache();
    put(&pair.far, 0, "small", b"small");
    put(&pair.far, 0, "vast", &bytes(9 << 20, 3));
    get(&pair.fs, 1, "small").unwrap();
    assert!(get(&pair.fs, 2, "vast").unwrap() == bytes(9 << 20, 3));
    pair.cut(true);
    assert_eq!(get(&pair.fs, 3, "vast").unwrap_err(), Kind::Io);
    assert_eq!(
        get(&pair.fs, 3, "small").unwrap(),
        b"small",
        "it had to make no room"
    );
    pair.end();
}

#[test]
fn a_use_of_a_copy_is_one_page_in_the_log() {
    let far = Pair::cache();
    put(&far.far, 0, "f", b"words");
    let dev = shape(8 * MIB).made("cache=far").device();
    let recorder = Arc::new(Recorder::counting(dev as Arc<dyn BlockDevice>));
    let fs = attach_over(recorder.clone(), &far.line, "far").unwrap();
    get(&fs, 0, "f").unwrap();
    later(0, |cx| fs.sync(cx)).unwrap();
    let written = |act: &dyn Fn()| {
        let before = recorder.counts().write_bytes;
        act();
        later(0, |cx| fs.sync(cx)).unwrap();
        (recorder.counts().write_bytes - before) / 4096
    };
    let f = node(&fs, 0, "f").unwrap();
    let used = |secs| {
        let open = later(secs, |cx| fs.open(cx, f, Mode::Read)).unwrap();
        later(secs, |cx| fs.close(cx, open)).unwrap();
    };
    assert_eq!(written(&|| used(100)), 7);
    let twice = written(&|| {
        used(200);
        used(200);
    });
    assert_eq!(twice, 7);
}

#[test]
fn nothing_of_the_remote_is_changed_through_a_cache() {
    let pair = Pair::cache();
    plant(&pair.far);
    let caps = pair.fs.caps();
    assert!(!caps.has(volary_core::Caps::WRITE) && caps.has(volary_core::Caps::SHARED));
    let readme = node(&pair.fs, 0, "readme").unwrap();
    let (fs, root) = (&pair.fs, pair.fs.root());
    let set = SetAttr::default();
    later(0, |cx| {
        let new = name("new");
        let kinds = [
            fs.create(cx, root, new, Create::New, &set).map(drop),
            fs.mkdir(cx, root, new, &set).map(drop),
            fs.symlink(cx, root, new, b"t", &set).map(drop),
            fs.link(cx, readme, root, new).map(drop),
            fs.unlink(cx, root, name("readme")),
            fs.rmdir(cx, root, name("docs")),
            fs.rename(cx, root, name("readme"), root, new, RenameFlags::REPLACE),
            fs.setattr(cx, readme, &SetAttr::size(0)).map(drop),
            fs.setxattr(cx, readme, b"user.a", b"1"),
            fs.removexattr(cx, readme, b"user.a"),
            fs.open(cx, readme, Mode::Write).map(drop),
        ];
        for (i, kind) in kinds.into_iter().enumerate() {
            assert_eq!(kind.unwrap_err(), Kind::ReadOnly, "call {i}");
        }
    });
    pair.end();
}

#[test]
fn a_local_name_stands_for_a_file_of_the_remote() {
    let mut pair = Pair::new(8 * MIB, "remote=far");
    plant(&pair.far);
    let (fs, root) = (pair.fs.clone(), pair.fs.root());
    let set = SetAttr::default();
    let link = |path: &str, to: &str| {
        let node = node(&fs, 0, path)?;
        later(0, |cx| {
            fs.setxattr(cx, node, b"user.cedar.remote", to.as_bytes())
        })
    };
    later(0, |cx| fs.mkdir(cx, root, name("own"), &set)).unwrap();
    later(0, |cx| fs.mkdir(cx, root, name("theirs"), &set)).unwrap();
    put(&fs, 0, "own/mine", b"mine");
    put(&fs, 0, "own/big", b"");
    assert_eq!(
        link("own/mine", "/docs/large").unwrap_err(),
        Kind::NotPermitted
    );
    assert_eq!(link("own/big", "/docs").unwrap_err(), Kind::NotPermitted);
    assert_eq!(link("own/big", "docs").unwrap_err(), Kind::Invalid);
    assert_eq!(link("own/big", "/none").unwrap_err(), Kind::NotFound);
    link("own/big", "/docs/large").unwrap();
    link("theirs", "/docs").unwrap();
    assert!(get(&fs, 1, "own/big").unwrap() == bytes(700_000, 1));
    assert!(get(&fs, 1, "theirs/large").unwrap() == bytes(700_000, 1));
    let big = node(&fs, 1, "theirs/large").unwrap();
    let path = later(1, |cx| fs.getxattr(cx, big, b"user.cedar.remote")).unwrap();
    assert_eq!(path, b"/docs/large");
    // A link is renamed like any other name, and stands for the same.
    let own = node(&fs, 1, "own").unwrap();
    later(1, |cx| {
        fs.rename(
            cx,
            own,
            name("big"),
            root,
            name("renamed"),
            RenameFlags::REPLACE,
        )
    })
    .unwrap();
    put(&pair.far, 10, "docs/large", b"small now");
    assert_eq!(get(&fs, 11, "renamed").unwrap(), b"small now");
    let open = later(11, |cx| {
        fs.create(cx, root, name("renamed"), Create::Truncate, &set)
    });
    assert_eq!(open.unwrap_err(), Kind::ReadOnly);
    pair.again(true);
    let fs = pair.fs.clone();
    assert_eq!(get(&fs, 12, "renamed").unwrap(), b"small now");
    node(&fs, 12, "theirs/old/empty").unwrap();
    later(12, |cx| fs.rmdir(cx, root, name("theirs"))).unwrap();
    later(12, |cx| fs.unlink(cx, root, name("renamed"))).unwrap();
    assert_eq!(get(&fs, 12, "own/mine").unwrap(), b"mine");
    node(&pair.far, 12, "docs/old/empty").expect("the remote has it still");
    pair.end();
}

#[test]
fn a_listing_goes_on_while_the_remote_is_away() {
    let pair = Pair::cache();
    for i in 0..300 {
        put(&pair.far, 0, &format!("file {i}"), b"");
    }
    let (fs, root) = (&pair.fs, pair.fs.root());
    let open = later(0, |cx| fs.open(cx, root, Mode::Read)).unwrap();
    let (mut from, mut names) = (Cookie::START, 0);
    loop {
        let mut buf = DirBuf::new(50, 4000, true);
        let end = later(0, |cx| fs.readdir(cx, open, from, &mut buf)).unwrap();
        names += buf.iter().count();
        from = buf.iter().last().map_or(from, |e| e.next);
        pair.cut(true);
        if end {
            break;
        }
    }
    assert_eq!(names, 300);
    later(0, |cx| fs.close(cx, open)).unwrap();
    pair.end();
}

#[test]
fn remotes_and_volumes_that_do_not_fit_are_refused() {
    let pair = Pair::cache();
    let attach = |dev: Arc<MemDevice>, called| attach_over(dev, &pair.line, called).map(drop);
    let other = attach(shape(8 * MIB).made("cache=near").device(), "far").unwrap_err();
    assert!(
        other == Kind::Invalid && other.to_string().contains("near"),
        "{other}"
    );
    let none = attach(shape(8 * MIB).device(), "far").unwrap_err();
    assert!(
        none == Kind::Invalid && none.to_string().contains("without"),
        "{none}"
    );
    let refuse = |make: &str| {
        let how = volary_core::Make {
            options: Options::parse(make),
            ..volary_core::Make::default()
        };
        let dev = Arc::new(MemDevice::new(8 * MIB));
        CEDAR.make(dev, "cedar", &how).unwrap_err()
    };
    assert_eq!(refuse("cache=a,remote=b"), Kind::Invalid);
    assert_eq!(refuse("cache="), Kind::Invalid);
    assert_eq!(refuse(&format!("cache={}", "x".repeat(256))), Kind::Invalid);
    pair.end();
}

#[test]
fn its_own_files_hold_to_their_word() {
    let shape = shape(24 * MIB).made("remote=far");
    Suite::new(shape.name(), move || shape.fresh()).run();
}
