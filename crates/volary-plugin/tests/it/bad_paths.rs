//! Plug-ins that are asked by paths, and lie: a line or `Io`, bounded, and the volume goes on.

use crate::built;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use volary_core::{
    Attach, Cancel, Caps, Cookie, Create, Cred, Ctx, DirBuf, Error, Fs, Kind, Mode, Name, NodeId,
    Result, SetAttr,
};

fn opened(how: &str) -> Result<Fs> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let library = BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bad_paths.c");
        built::compiled("bad_paths", &source, &[])
    });
    built::apart_with(library, how, &Attach::default())
}

fn with_cx<T>(call: impl FnOnce(&Ctx<'_>) -> T) -> T {
    call(&Ctx {
        cred: &Cred::root(),
        now: built::now(),
        cancel: &Cancel::new(),
    })
}

#[track_caller]
fn assert_words(e: &Error, kind: Kind, words: &str, how: &str) {
    let line = e.to_string();
    assert_eq!(e.kind(), kind, "{how}: {line}");
    assert!(
        line.contains(words) && !line.contains('\n'),
        "{how}: {line}"
    );
}

fn find(fs: &Fs, cx: &Ctx<'_>, name: &[u8]) -> Result<NodeId> {
    fs.lookup(cx, fs.root(), Name::new(name)?).map(|e| e.node)
}

#[test]
fn a_table_of_paths_that_does_not_fit_is_refused_in_words() {
    for (how, kind, words) in [
        ("no-table", Kind::Unsupported, "no such file system"),
        ("version", Kind::Unsupported, "version 2"),
        ("size-none", Kind::Unsupported, "0 bytes"),
        ("no-readdir", Kind::Io, "no function readdir"),
        ("caps-case", Kind::Unsupported, "casefold"),
        ("caps-name", Kind::Io, "longest name"),
    ] {
        assert_words(&opened(how).err().expect(how), kind, words, how);
    }
    let fs = opened("size-least").unwrap();
    with_cx(|cx| find(&fs, cx, b"file")).unwrap();
    // What no path can promise is not promised.
    let caps = opened("").unwrap().caps();
    assert!(caps.has(Caps::WRITE) && !caps.has(Caps::STABLE_IDS) && !caps.has(Caps::CRASH_SAFE));
}

fn getattr(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    find(fs, cx, b"file").map(drop)
}

fn list(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    let open = fs.open(cx, fs.root(), Mode::Read)?;
    let mut out = DirBuf::new(1000, 10_000, false);
    let listed = fs.readdir(cx, open, Cookie::START, &mut out);
    fs.close(cx, open)?;
    let names: Vec<_> = out.iter().map(|e| e.name).collect();
    listed.map(|_| assert_eq!(names, [b"file"]))
}

fn read(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    let open = fs.open(cx, find(fs, cx, b"file")?, Mode::Read)?;
    fs.read(cx, open, 0, &mut [0; 100]).map(drop)
}

fn root(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    fs.getattr(cx, fs.root()).map(drop)
}

fn create(fs: &Fs, cx: &Ctx<'_>, name: &[u8]) -> Result<()> {
    let (name, set) = (Name::new(name)?, SetAttr::default());
    fs.create(cx, fs.root(), name, Create::New, &set).map(drop)
}

fn create_dir(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    create(fs, cx, b"dir")
}

fn create_nothing(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    create(fs, cx, b"new")
}

fn link(fs: &Fs, cx: &Ctx<'_>) -> Result<()> {
    let file = find(fs, cx, b"file")?;
    fs.link(cx, file, fs.root(), Name::new(b"other")?).map(drop)
}

type Call = fn(&Fs, &Ctx<'_>) -> Result<()>;

const LIES: &[(&str, Call, Kind, &str)] = &[
    ("root", root, Kind::Io, "root that is no directory"),
    ("kind", getattr, Kind::Io, "kind 99"),
    ("mode", getattr, Kind::Io, "mode 100644"),
    ("size", getattr, Kind::Io, "size"),
    ("answer", getattr, Kind::Io, "answered 5"),
    ("name-slash", list, Kind::Io, "no name"),
    ("name-empty", list, Kind::Io, "no name"),
    ("name-null", list, Kind::Io, "NULL"),
    ("name-long", list, Kind::Io, "more than 255 bytes"),
    ("entry-kind", list, Kind::Io, "kind 99"),
    ("answer-1", list, Kind::Io, "answered 1"),
    ("endless", list, Kind::TooManyOpen, "no room for one more"),
    ("read-more", read, Kind::Io, "101 bytes where 100"),
    ("read-error", read, Kind::Io, "no error"),
    ("made-dir", create_dir, Kind::Io, "another kind"),
    ("made-nothing", create_nothing, Kind::Stale, ""),
    ("links", link, Kind::Io, "two files"),
];

#[test]
fn a_lie_about_paths_is_an_error_and_the_volume_goes_on() {
    for (how, call, kind, words) in LIES {
        let fs = opened(how).expect(how);
        let e = with_cx(|cx| call(&fs, cx)).expect_err(how);
        assert_words(&e, *kind, words, how);
        with_cx(|cx| fs.statfs(cx)).expect(how);
        assert!(fs.findings().is_empty(), "{how}");
    }
    // What is not known of an entry is looked up; what is gone by then is left out.
    for how in ["", "unknown", "gone"] {
        with_cx(|cx| list(&opened(how).unwrap(), cx)).expect(how);
    }
}

#[test]
fn a_crash_by_a_path_is_io_and_ids_of_before_are_stale() {
    let fs = opened("crash").unwrap();
    with_cx(|cx| {
        let dir = find(&fs, cx, b"dir").unwrap();
        let e = find(&fs, cx, b"file").unwrap_err();
        assert_words(&e, Kind::Io, "signal 6", "crash");
        assert_eq!(fs.getattr(cx, dir).unwrap_err(), Kind::Stale);
        assert_ne!(find(&fs, cx, b"dir").unwrap(), dir);
        assert!(fs.getattr(cx, fs.root()).is_ok());
    });
}

#[test]
fn what_is_open_is_busy_where_it_cannot_be_kept_without_its_name() {
    let fs = opened("").unwrap();
    with_cx(|cx| {
        let name = Name::new(b"file").unwrap();
        let open = fs
            .open(cx, find(&fs, cx, b"file").unwrap(), Mode::Read)
            .unwrap();
        assert_eq!(fs.unlink(cx, fs.root(), name).unwrap_err(), Kind::Busy);
        fs.close(cx, open).unwrap();
        fs.unlink(cx, fs.root(), name).unwrap();
    });
}
