//! What the driver shares with the host's other processes: owners, locks, news.

use self::sink::Changes;
use crate::side::{Side, name};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use volary_core::{
    Caps, Change, Cookie, Cred, DirBuf, FileKind, Kind, Lock, Mode, NodeId, OpenId, Place, SetAttr,
};

#[test]
fn what_root_makes_belongs_to_the_caller_whatever_the_umask() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: to give files away takes root");
        return;
    }
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        let mut side = Side::new(dir.path(), by_handle);
        side.cred = Cred::new(1234, 567);
        let (root, cx) = (side.root(), side.cx());
        let set = SetAttr::mode(0o777);
        let made = side
            .fs
            .create(&cx, root, name(b"f"), volary_core::Create::New, &set)
            .unwrap();
        side.close(made.1);
        side.fs.mkdir(&cx, root, name(b"d"), &set).unwrap();
        side.fs
            .mknod(&cx, root, name(b"p"), FileKind::Fifo, 0, &set)
            .unwrap();
        side.fs
            .symlink(&cx, root, name(b"s"), b"target", &set)
            .unwrap();
        for (entry, mode) in [("f", 0o777), ("d", 0o777), ("p", 0o777), ("s", 0o777)] {
            let seen = fs::symlink_metadata(dir.path().join(entry)).unwrap();
            let got = (seen.uid(), seen.gid(), seen.mode() & 0o7777);
            assert_eq!(got, (1234, 567, mode), "{entry}");
        }
    }
}

#[test]
fn a_directory_with_set_gid_gives_its_group() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: to give files away takes root");
        return;
    }
    let dir = TempDir::new().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(0), Some(4242)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o2777)).unwrap();
    let mut side = Side::new(dir.path(), true);
    side.cred = Cred::new(1234, 567);
    let file = side.file(side.root(), b"f");
    let attr = side.attr(file).unwrap();
    assert_eq!((attr.uid, attr.gid), (1234, 4242));
}

fn range(owner: u64, offset: u64, len: u64, exclusive: bool) -> Lock {
    Lock {
        owner,
        offset,
        len,
        exclusive,
        unlock: false,
        test: false,
    }
}

/// Returns whether another process could have the file, to itself or with others.
fn others_could(file: &File) -> (bool, bool) {
    let could = |operation| {
        let had = rustix::fs::fcntl_lock(file, operation).is_ok();
        if had {
            rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingUnlock).unwrap();
        }
        had
    };
    let alone = could(FlockOperation::NonBlockingLockExclusive);
    (alone, could(FlockOperation::NonBlockingLockShared))
}

#[test]
fn other_processes_see_the_locks_of_all_owners() {
    let dir = TempDir::new().unwrap();
    let side = Side::new(dir.path(), true);
    let node = side.file(side.root(), b"f");
    let file = File::options()
        .read(true)
        .write(true)
        .open(dir.path().join("f"))
        .unwrap();
    let open = |mode| side.fs.open(&side.cx(), node, mode).unwrap();
    let (a, b) = (open(Mode::ReadWrite), open(Mode::Read));
    let lock = |open: OpenId, lock: Lock| side.fs.lock(&side.cx(), open, lock);
    let unlock = |lock: Lock| Lock {
        unlock: true,
        ..lock
    };
    assert_eq!(others_could(&file), (true, true));
    // Two share a range; the host keeps it until both have given it back.
    lock(a, range(1, 0, 100, false)).unwrap();
    lock(b, range(2, 50, 100, false)).unwrap();
    assert_eq!(others_could(&file), (false, true));
    lock(a, unlock(range(1, 0, 100, false))).unwrap();
    assert_eq!(others_could(&file), (false, true));
    // One alone.
    lock(b, unlock(range(2, 0, 0, false))).unwrap();
    lock(a, range(1, 10, 10, true)).unwrap();
    assert_eq!(others_could(&file), (false, false));
    // The end of another open changes nothing; of this one, all.
    side.close(b);
    assert_eq!(others_could(&file), (false, false));
    side.close(a);
    assert_eq!(others_could(&file), (true, true));
}

#[test]
fn a_lock_of_another_process_is_in_the_way() {
    let dir = TempDir::new().unwrap();
    // To the host, two volumes are as two processes.
    let (side, other) = (Side::new(dir.path(), true), Side::new(dir.path(), false));
    let node = side.file(side.root(), b"f");
    let open = side.fs.open(&side.cx(), node, Mode::ReadWrite).unwrap();
    let theirs = other.find(other.root(), b"f");
    let their_open = other.fs.open(&other.cx(), theirs, Mode::Read).unwrap();
    let shared = range(1, 0, u64::MAX, false);
    other.fs.lock(&other.cx(), their_open, shared).unwrap();
    let try_lock = |exclusive, test| {
        let lock = Lock {
            test,
            ..range(1, 5, 5, exclusive)
        };
        side.fs.lock(&side.cx(), open, lock).map_err(|e| e.kind())
    };
    assert_eq!(try_lock(true, true), Err(Kind::Locked));
    assert_eq!(try_lock(true, false), Err(Kind::Locked));
    assert_eq!(try_lock(false, false), Ok(()));
    other.close(their_open);
    assert_eq!(try_lock(true, false), Ok(()));
    side.close(open);
}

/// A sink that keeps what it is told.
mod sink {
    use std::sync::Mutex;
    use volary_core::{Change, ChangeSink};

    #[derive(Default)]
    pub(crate) struct Changes(Mutex<Vec<Change>>);

    impl ChangeSink for Changes {
        fn changed(&self, change: Change) {
            self.0.lock().unwrap().push(change);
        }
    }

    impl Changes {
        pub(crate) fn any(&self, is: impl Fn(&Change) -> bool) -> bool {
            self.0.lock().unwrap().iter().any(is)
        }

        pub(crate) fn all(&self) -> String {
            format!("{:?}", self.0.lock().unwrap())
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "other processes give no sign")]
fn comes(changes: &Changes, is: impl Fn(&Change) -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !changes.any(&is) {
        assert!(Instant::now() < end, "not told; only {}", changes.all());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn shell(dir: &TempDir, script: &str) {
    let mut command = Command::new("sh");
    let done = command
        .args(["-c", script])
        .current_dir(dir.path())
        .status();
    assert!(done.expect("a shell").success());
}

#[test]
fn changes_of_other_processes_are_told_and_ours_are_not() {
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        let side = Side::new(dir.path(), by_handle);
        if !side.fs.caps().has(Caps::WATCH) {
            assert!(std::env::var_os("CI").is_none(), "no fanotify here");
            eprintln!("SKIPPED: no fanotify here");
            return;
        }
        let changes = Arc::new(Changes::default());
        let watch = side.fs.watch(changes.clone()).unwrap();
        let below = side.dir(side.root(), b"d");
        let file = side.file(below, b"f");
        side.lookup(below, b"f").unwrap();
        let root = side.root();

        shell(&dir, "touch new");
        comes(&changes, |c| matches!(c, Change::Entries(n) if *n == root));
        shell(&dir, "echo more >> d/f");
        comes(&changes, |c| matches!(c, Change::Data(n) if *n == file));
        shell(&dir, "chmod 600 d/f");
        comes(&changes, |c| matches!(c, Change::Attr(n) if *n == file));
        shell(&dir, "mv d/f d/g");
        comes(&changes, |c| matches!(c, Change::Entries(n) if *n == below));

        drop(watch);
        let ours = Arc::new(Changes::default());
        let watch = side.fs.watch(ours.clone()).unwrap();
        let open = side.fs.open(&side.cx(), file, Mode::Write).unwrap();
        side.fs.write(&side.cx(), open, Some(0), b"ours").unwrap();
        side.close(open);
        side.file(below, b"ours");
        side.fs
            .setattr(&side.cx(), file, &SetAttr::mode(0o644))
            .unwrap();
        shell(&dir, "touch d/last");
        comes(&ours, |c| matches!(c, Change::Entries(n) if *n == below));
        let of_file = |c: &Change| matches!(c, Change::Data(n) | Change::Attr(n) if *n == file);
        assert!(!ours.any(of_file), "{}", ours.all());
        drop(watch);
    }
}

fn places(side: &Side, node: NodeId, offset: u64, len: u64) -> Vec<(u64, u64, bool)> {
    let open = side.fs.open(&side.cx(), node, Mode::Read).unwrap();
    let mut out = Vec::new();
    side.fs
        .extents(&side.cx(), open, offset, len, &mut out)
        .unwrap();
    side.close(open);
    out.iter()
        .map(|e| (e.offset, e.len, e.place == Place::Hole))
        .collect()
}

#[test]
fn holes_are_told_from_data() {
    let dir = TempDir::new().unwrap();
    let side = Side::new(dir.path(), true);
    let node = side.file(side.root(), b"f");
    let file = File::options()
        .write(true)
        .open(dir.path().join("f"))
        .unwrap();
    file.set_len(4 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[1; 65_536], 1 << 20).unwrap();
    let (mib, data) = (1 << 20, 65_536);
    let all = [
        (0, mib, true),
        (mib, data, false),
        (mib + data, 3 * mib - data, true),
    ];
    assert_eq!(places(&side, node, 0, 4 << 20), all);
    assert_eq!(places(&side, node, mib + 1, 10), [(mib + 1, 10, false)]);
    assert_eq!(places(&side, node, 8 << 20, 10), [(8 << 20, 10, true)]);
}

/// Lists in steps, and each time again from a place in the middle of the last step.
fn in_steps(side: &Side, dir: NodeId, step: fn() -> DirBuf) -> Vec<(Vec<u8>, u64, FileKind)> {
    let open = side.fs.open(&side.cx(), dir, Mode::Read).unwrap();
    let (mut all, mut from) = (Vec::new(), Cookie::START);
    loop {
        let mut out = step();
        let end = side.fs.readdir(&side.cx(), open, from, &mut out).unwrap();
        let half = if end { out.len() } else { out.len() / 2 };
        for entry in out.iter().take(half) {
            all.push((entry.name.to_vec(), entry.node.ino.get(), entry.kind));
            from = entry.next;
        }
        if end {
            side.close(open);
            return all;
        }
    }
}

#[test]
fn names_and_numbers_are_listed_without_a_look_at_nodes() {
    for by_handle in [true, false] {
        let dir = TempDir::new().unwrap();
        for number in 0..5000 {
            File::create(dir.path().join(format!("a file with number {number}"))).unwrap();
        }
        fs::create_dir(dir.path().join("below")).unwrap();
        std::os::unix::fs::symlink("x", dir.path().join("link")).unwrap();
        let side = Side::new(dir.path(), by_handle);
        let mut whole = in_steps(&side, side.root(), || DirBuf::new(100, 1 << 20, true));
        let mut plain = in_steps(&side, side.root(), || {
            DirBuf::new(700, 1 << 20, false).numbers_do()
        });
        whole.sort_by(|a, b| a.0.cmp(&b.0));
        plain.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(plain.len(), 5002);
        assert!(plain == whole);
        // A whole id comes with a look up.
        let found = side.find(side.root(), b"link");
        assert!(whole.contains(&(b"link".to_vec(), found.ino.get(), FileKind::Symlink)));
    }
}
