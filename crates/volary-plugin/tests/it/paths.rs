//! Drivers that are asked by paths: a directory of the host, by the example in C.

use crate::built;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use volary_core::{Attach, Cancel, Caps, Create, Cred, Ctx, Fs, Kind, Mode, Name, NodeId, SetAttr};
use volary_test::{Everywhere, Fresh, Lack, Suite, reference};

/// Cases that need a file system of their own.
const SHARED: [&str; 9] = [
    "a_file_open_and_without_a_name_is_gone_after_reattaching",
    "statfs_notices_what_is_written_and_removed",
    "room_comes_back_with_the_last_open",
    "room_comes_back_when_all_is_removed",
    "room_on_a_full_volume_can_be_used_again",
    "a_full_volume_says_so_and_keeps_what_it_has",
    "a_write_that_does_not_fit_changes_nothing",
    "mkdir_on_a_full_volume_changes_nothing",
    "a_file_on_a_full_volume_can_be_overwritten",
];
const SHARED_WHY: &str = "the host's file system is shared with others, and not filled";
/// What Linux does otherwise below it.
const LINUX: [(&str, &str); 1] = [(
    "a_reader_sees_each_write_whole_or_not_at_all",
    "Linux's page cache takes a write page by page while others read",
)];

fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built::example("passthrough", &[]))
}

fn open(dir: &Path, read_only: bool) -> Fs {
    let how = Attach {
        read_only,
        ..Attach::default()
    };
    let config = dir.to_str().expect("a path");
    built::apart_with(library(), config, &how).expect("the directory")
}

fn in_memory() -> tempfile::TempDir {
    let base = Path::new("/dev/shm");
    let made = match base.is_dir() {
        true => tempfile::tempdir_in(base),
        false => tempfile::tempdir(),
    };
    made.expect("a directory")
}

/// A directory of its own for each case.
fn fresh() -> Fresh {
    let dir = in_memory();
    let (again, once_more) = (dir.path().to_owned(), dir.path().to_owned());
    Fresh::new(open(dir.path(), false))
        .reattach(move || open(&again, false))
        .read_only(move || open(&once_more, true))
        .keeping(dir)
}

#[test]
fn a_driver_that_is_asked_by_paths_holds_to_its_word() {
    let mut suite = Suite::new("passthrough, apart", fresh).own_clock();
    for case in SHARED {
        suite = suite.leave_out(case, SHARED_WHY);
    }
    for (case, why) in LINUX {
        suite = suite.leave_out(case, why);
    }
    suite.run();
}

#[test]
fn a_driver_that_is_asked_by_paths_holds_to_its_word_everywhere() {
    let mut all = Everywhere::new("passthrough, apart", fresh).each(Suite::own_clock);
    for case in SHARED {
        all = all.leave_out(case, SHARED_WHY);
    }
    for (case, why) in LINUX {
        all = all.leave_out(case, why);
    }
    all.run();
}

#[test]
fn what_is_read_by_paths_is_what_is_there() {
    let dir = in_memory();
    let path = dir.path().to_owned();
    let mut manifest = reference::tree();
    if !rustix::process::geteuid().is_root() {
        manifest = manifest.without(Lack::Owners);
    }
    manifest.write_dir(&path).unwrap();
    let manifest = manifest.fitting(&open(&path, true).caps());
    Suite::reading("passthrough, read", move || open(&path, true), &manifest).run();
}

#[test]
fn what_was_removed_while_it_was_open_is_cleared_away_by_the_next_that_attaches() {
    let dir = in_memory();
    let cx = &Ctx {
        cred: &Cred::root(),
        now: built::now(),
        cancel: &Cancel::new(),
    };
    let name = Name::new(b"file").unwrap();
    let held = || std::fs::read_dir(dir.path()).unwrap().count();
    let fs = open(dir.path(), false);
    let made = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default());
    let (entry, open_id) = made.unwrap();
    fs.write(cx, open_id, Some(0), b"data").unwrap();
    fs.unlink(cx, fs.root(), name).unwrap();
    assert_eq!(held(), 1, "it is kept for its open");
    // A look changes nothing, and shows nothing of it.
    let look = open(dir.path(), true);
    assert_eq!(
        volary_test::tree::entries(&look, cx, look.root())
            .unwrap()
            .len(),
        0
    );
    drop(look);
    assert_eq!(held(), 1);
    // As a power cut would leave it.
    drop(fs);
    assert_eq!(held(), 1);
    let fs = open(dir.path(), false);
    assert_eq!(held(), 0);
    // Nor does what detaches in good order leave anything.
    let made = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default());
    made.unwrap();
    fs.unlink(cx, fs.root(), name).unwrap();
    assert_eq!(held(), 1);
    fs.detach(cx).unwrap();
    assert_eq!(held(), 0);
    let fs = open(dir.path(), false);
    assert_eq!(fs.getattr(cx, entry.node).unwrap_err(), Kind::Stale);
    let hidden = Name::new(b".volary-removed-7").unwrap();
    let made = fs.create(cx, fs.root(), hidden, Create::New, &SetAttr::default());
    assert_eq!(made.unwrap_err(), Kind::NotPermitted);
}

#[test]
fn what_others_do_in_the_directory_is_noticed() {
    let dir = in_memory();
    let cx = &Ctx {
        cred: &Cred::root(),
        now: built::now(),
        cancel: &Cancel::new(),
    };
    let path = dir.path().join("file");
    std::fs::write(&path, b"one").unwrap();
    let fs = open(dir.path(), false);
    let find = || {
        fs.lookup(cx, fs.root(), Name::new(b"file").unwrap())
            .map(|e| e.node)
    };
    let first = find().unwrap();
    std::fs::rename(&path, dir.path().join("other")).unwrap();
    assert_eq!(find().unwrap_err(), Kind::NotFound);
    assert_eq!(fs.getattr(cx, first).unwrap_err(), Kind::Stale);
    std::fs::write(&path, b"two").unwrap();
    let second = find().unwrap();
    assert_ne!(first, second);
    std::fs::rename(dir.path().join("other"), &path).unwrap();
    // Another file by its number, at the same path.
    assert_eq!(fs.open(cx, second, Mode::Read).unwrap_err(), Kind::Stale);
    assert_eq!(fs.getattr(cx, second).unwrap_err(), Kind::Stale);
    assert!(fs.caps().has(Caps::SHARED) && !fs.caps().has(Caps::STABLE_IDS));
    assert_eq!(
        fs.getattr(cx, NodeId::new(999, 0).unwrap()).unwrap_err(),
        Kind::Stale
    );
}
