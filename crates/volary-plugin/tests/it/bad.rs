//! Plug-ins that are none, lie, hang and crash: a line or `Io`, in bounded time, and nothing else
//! is harmed.

use crate::built;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use volary_core::{
    Access, Attach, Cancel, Cookie, Cred, Ctx, DirBuf, Error, Fs, Kind, Mode, Name, NodeId,
    Options, Result,
};

fn bad() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bad.c");
        built::compiled("bad", &source, &[])
    })
}

fn with_cx<T>(cancel: &Cancel, call: impl FnOnce(&Ctx<'_>) -> T) -> T {
    call(&Ctx {
        cred: &Cred::root(),
        now: built::now(),
        cancel,
    })
}

/// Those that never answer are waited for.
const HANG: [&str; 3] = ["never", "spin", "attach-never"];

fn opened(how: &str) -> Result<Fs> {
    // All others answer, however busy the host is.
    let timeout = if HANG.contains(&how) { 2 } else { 60 };
    let attach = Attach {
        options: Options::parse(&format!("plugin-timeout={timeout}")),
        ..Attach::default()
    };
    built::apart_with(bad(), how, &attach)
}

fn file() -> NodeId {
    NodeId::new(2, 0).unwrap()
}

fn getattr(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| fs.getattr(cx, file()).map(drop))
}

fn list(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| {
        let open = fs.open(cx, fs.root(), Mode::Read)?;
        let mut out = DirBuf::new(100, 10_000, true);
        fs.readdir(cx, open, Cookie::START, &mut out).map(drop)
    })
}

fn read(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| {
        let open = fs.open(cx, file(), Mode::Read)?;
        fs.read(cx, open, 0, &mut [0; 100]).map(drop)
    })
}

fn write(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| {
        let open = fs.open(cx, file(), Mode::Write)?;
        fs.write(cx, open, Some(10), b"data").map(drop)
    })
}

fn append(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| {
        let open = fs.open(cx, file(), Mode::Write)?;
        fs.write(cx, open, None, b"data").map(drop)
    })
}

fn readlink(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| fs.readlink(cx, file()).map(drop))
}

fn listxattr(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| fs.listxattr(cx, file()).map(drop))
}

fn access(fs: &Fs) -> Result<()> {
    with_cx(&Cancel::new(), |cx| {
        fs.access(cx, file(), Access::READ).map(drop)
    })
}

type Call = fn(&Fs) -> Result<()>;

#[track_caller]
fn assert_words(e: &Error, kind: Kind, words: &str, how: &str) {
    let line = e.to_string();
    assert_eq!(e.kind(), kind, "{how}: {line}");
    assert!(line.contains(words), "{how}: {line}");
    assert!(
        !line.contains('\n') && !line.contains('\u{1b}'),
        "{how}: {line}"
    );
}

#[test]
fn what_is_no_plug_in_is_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let nothing = file("nothing.c", b"int nothing;\n");
    let at_load =
        b"#include <stdlib.h>\n__attribute__((constructor)) static void x(void) { abort(); }\n";
    let at_load = file("at_load.c", at_load);
    let text = file("libtext.so", b"no library\n");
    let cut = std::fs::read(bad()).unwrap();
    let cut = file("libcut.so", &cut[..cut.len() / 3]);
    // The loader itself does not survive it: only in a process of its own.
    assert!(matches!(
        built::apart(&cut, "").err().unwrap().kind(),
        Kind::Io | Kind::Invalid
    ));
    for (library, kind, words) in [
        (
            dir.path().join("libmissing.so"),
            Kind::NotFound,
            "no such plug-in",
        ),
        (text, Kind::Invalid, "is no library"),
        (dir.path().to_owned(), Kind::Invalid, "is no library"),
        (
            built::compiled("nothing", &nothing, &[]),
            Kind::Invalid,
            "FileSystemCreate",
        ),
    ] {
        for open in [built::apart, built::within] {
            let e = open(&library, "").err().unwrap();
            assert_words(&e, kind, words, &library.display().to_string());
        }
    }
    let e = built::apart(&built::compiled("at_load", &at_load, &[]), "")
        .err()
        .unwrap();
    assert_words(
        &e,
        Kind::Io,
        "was ended by signal 6 as it attached",
        "at load",
    );
}

#[test]
fn a_table_that_does_not_fit_is_refused_in_words() {
    for (how, kind, words) in [
        (
            "no-table",
            Kind::Unsupported,
            "no such file system in version 1",
        ),
        ("version", Kind::Unsupported, "version 2"),
        ("size-none", Kind::Unsupported, "0 bytes"),
        ("size-odd", Kind::Unsupported, "bytes"),
        ("size-huge", Kind::Unsupported, "4294967295 bytes"),
        ("no-getattr", Kind::Io, "getattr"),
        ("create-crash", Kind::Io, "signal 6"),
        ("attach-crash", Kind::Io, "signal 6"),
        ("attach-never", Kind::Io, "did not attach in time"),
        ("attach-odd", Kind::Io, "attach answered 5"),
        ("attach-unknown", Kind::Io, "answered -1000"),
        ("attach-refused", Kind::Invalid, "no such disk"),
        ("caps-name", Kind::Io, "longest name"),
        ("caps-long", Kind::Io, "longest name"),
        ("caps-size", Kind::Io, "largest file"),
        ("caps-root", Kind::Io, "number 0"),
        ("caps-error", Kind::Io, "caps"),
    ] {
        let e = opened(how).err().expect(how);
        assert_words(&e, kind, words, how);
    }
    // A longer one is a newer one, of which the rest is not called; a shorter one has no more.
    for how in ["size-more", "size-less"] {
        let fs = opened(how).expect(how);
        getattr(&fs).expect(how);
        list(&fs).expect(how);
    }
}

const LIES: &[(&str, Call, Kind, &str)] = &[
    ("kind", getattr, Kind::Io, "kind 99"),
    ("mode", getattr, Kind::Io, "mode 100644"),
    ("other-node", getattr, Kind::Io, "another node"),
    ("zero-node", getattr, Kind::Io, "number 0"),
    ("nanos", getattr, Kind::Io, "nanoseconds"),
    ("size", getattr, Kind::Io, "size"),
    ("error", getattr, Kind::Io, "-999"),
    ("odd-answer", getattr, Kind::Io, "answered 7"),
    ("read-more", read, Kind::Io, "101 bytes where 100"),
    ("read-error", read, Kind::Io, "no error"),
    ("read-unknown", read, Kind::Io, "-29"),
    ("name-slash", list, Kind::Io, "no name"),
    ("name-nul", list, Kind::Io, "no name"),
    ("name-empty", list, Kind::Io, "no name"),
    ("name-null", list, Kind::Io, "name of 4 bytes"),
    ("name-dots", list, Kind::Io, "no name"),
    ("name-long", list, Kind::Io, "name of 300 bytes"),
    ("name-longer", list, Kind::Io, "name of 4294967295 bytes"),
    ("cookie-zero", list, Kind::Io, "cookie 0"),
    ("cookie-same", list, Kind::Io, "cookie 1 again"),
    ("entry-kind", list, Kind::Io, "kind 0"),
    ("entry-zero", list, Kind::Io, "number 0"),
    ("entry-attr", list, Kind::Io, "another node"),
    ("more-nothing", list, Kind::Io, "gives nothing"),
    ("answer-7", list, Kind::Io, "answered 7"),
    ("write", write, Kind::Io, "ended at 3"),
    ("append", append, Kind::Io, "ended at 3"),
    ("link-huge", readlink, Kind::Io, "mebibyte"),
    ("link-grows", readlink, Kind::Io, "ever grows"),
    ("xattr-empty", listxattr, Kind::Io, "empty name"),
    ("xattr-open", listxattr, Kind::Io, "without an end"),
    ("access", access, Kind::Io, "not asked for"),
];

#[test]
fn a_lie_is_an_error_and_the_volume_goes_on() {
    for (how, call, kind, words) in LIES {
        let fs = opened(how).expect(how);
        let e = call(&fs).expect_err(how);
        assert_words(&e, *kind, words, how);
        // The worker lives: a lie is no crash.
        with_cx(&Cancel::new(), |cx| fs.getattr(cx, fs.root())).expect(how);
        assert!(fs.findings().is_empty(), "{how}");
    }
}

#[test]
fn a_note_stands_in_the_error_and_no_terminal_obeys_it() {
    let find = |how: &str| {
        let fs = opened(how).unwrap();
        let name = Name::new(b"name").unwrap();
        with_cx(&Cancel::new(), |cx| fs.lookup(cx, fs.root(), name)).unwrap_err()
    };
    assert_words(&find("note"), Kind::NotFound, "name here", "note");
    assert_words(&find("long-note"), Kind::NotFound, "xxx", "long-note");
}

#[test]
fn what_ends_or_hangs_is_io_with_one_line_and_comes_back() {
    for (how, words) in [
        ("never", "did not answer for 2 seconds"),
        ("spin", "did not answer for 2 seconds"),
        ("crash", "was ended by signal 11"),
        ("abort", "was ended by signal 6"),
        ("exit", "ended by itself with status 3"),
        ("wild", "signal"),
    ] {
        let fs = opened(how).expect(how);
        let held = with_cx(&Cancel::new(), |cx| fs.open(cx, fs.root(), Mode::Read)).unwrap();
        let e = getattr(&fs).expect_err(how);
        assert_words(&e, Kind::Io, words, how);
        let lines = fs.findings();
        assert_eq!(lines.len(), 1, "{how}: {lines:?}");
        assert!(lines[0].message.contains(words), "{how}: {lines:?}");
        with_cx(&Cancel::new(), |cx| {
            let root = fs.getattr(cx, fs.root()).expect(how);
            assert_eq!(root.node, fs.root());
            // Of what was before, nothing leads anywhere.
            let mut out = DirBuf::new(1, 1, false);
            let listed = fs.readdir(cx, held, Cookie::START, &mut out);
            assert_eq!(listed.unwrap_err(), Kind::Stale, "{how}");
            assert_eq!(fs.getattr(cx, file()).unwrap_err(), Kind::Stale, "{how}");
            let name = Name::new(b"file").unwrap();
            let now = fs.lookup(cx, fs.root(), name).expect(how);
            assert_ne!(now.node, file(), "{how}");
        });
    }
}

#[test]
fn one_that_never_lives_long_is_not_started_without_end() {
    let fs = opened("crash").unwrap();
    let mut ended = 0;
    for _ in 0..200 {
        let name = Name::new(b"file").unwrap();
        let found = with_cx(&Cancel::new(), |cx| {
            let entry = fs.lookup(cx, fs.root(), name)?;
            fs.getattr(cx, entry.node)
        });
        assert_eq!(found.unwrap_err(), Kind::Io);
        ended += fs.findings().len();
    }
    assert!(ended < 100, "{ended} processes for 200 calls");
}

#[test]
fn what_it_may_not_do_it_cannot_and_what_it_prints_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("of-the-host")).unwrap();
    // A duplicate outlives `exec`, as what a program opens in C does.
    let _open = rustix::io::dup(&file).unwrap();
    for how in [
        "fork",
        "exec",
        "inherited",
        "kill-parent",
        "tkill-parent",
        "limit-parent",
        "limit-self",
        "flood",
    ] {
        let fs = opened(how).expect(how);
        getattr(&fs).expect(how);
        assert!(fs.findings().is_empty(), "{how}");
    }
    let fs = opened("log-flood").unwrap();
    getattr(&fs).unwrap();
    let lines = wait_for_lines(&fs);
    assert!(lines.len() <= 256, "{}", lines.len());
    assert!(lines.iter().all(|l| !l.message.contains(['\n', '\u{1b}'])));
}

/// They come by themselves, a little later.
fn wait_for_lines(fs: &Fs) -> Vec<volary_core::Finding> {
    for _ in 0..100_000 {
        let lines = fs.findings();
        if !lines.is_empty() {
            return lines;
        }
        std::thread::yield_now();
    }
    panic!("no lines");
}

#[test]
fn a_listing_without_end_ends_where_there_is_no_room() {
    list(&opened("huge").unwrap()).unwrap();
}

#[test]
fn a_callback_after_the_return_finds_nothing() {
    // The plug-in's own state is one for all that load it in a process: it has a copy of its own here.
    let own = tempfile::tempdir().unwrap();
    let copy = own.path().join("liblate.so");
    std::fs::copy(bad(), &copy).unwrap();
    for open in [built::apart, built::within] {
        let fs = open(&copy, "late").unwrap();
        list(&fs).unwrap();
        std::thread::park_timeout(std::time::Duration::from_millis(400));
        loop {
            match getattr(&fs) {
                Err(e) if e.kind() == Kind::Busy => std::thread::yield_now(),
                done => break done.unwrap(),
            }
        }
    }
}

#[test]
fn a_caller_who_has_lost_interest_is_told_to_the_plug_in() {
    let fs = built::apart(bad(), "cancel").unwrap();
    let cancel = Arc::new(Cancel::new());
    let other = Arc::clone(&cancel);
    let caller = std::thread::spawn(move || with_cx(&other, |cx| fs.getattr(cx, file())));
    cancel.set();
    assert_eq!(caller.join().unwrap().unwrap_err(), Kind::Interrupted);
}
