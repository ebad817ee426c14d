//! The conformance suite on plug-ins.

use crate::built;
use std::path::Path;
use volary_core::{Attach, Cancel, Cookie, Cred, Ctx, DirBuf, Fs, Kind, Mode, Name};
use volary_test::{Fresh, Suite, everywhere};

#[test]
fn a_rust_driver_that_is_loaded_holds_to_its_word() {
    let library = built::memory();
    Suite::new("memory, loaded", move || {
        built::within(&library, "8M").unwrap()
    })
    .run();
}

#[test]
fn a_rust_driver_in_a_process_of_its_own_holds_to_its_word() {
    let library = built::memory();
    Suite::new("memory, apart", move || {
        built::apart(&library, "8M").unwrap()
    })
    .run();
}

/// A database of its own for each case, which outlives the volume.
fn on_sqlite(open: fn(&Path, &str, &Attach) -> Fs) -> impl Fn() -> Fresh {
    move || {
        let library = built::sqlite().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("volume.db").display().to_string();
        let again = path.clone();
        let read_only = path.clone();
        let how = |read_only| Attach {
            read_only,
            ..Attach::default()
        };
        Fresh::new(open(library, &path, &how(false)))
            .reattach(move || open(library, &again, &how(false)))
            .read_only(move || open(library, &read_only, &how(true)))
            .keeping(dir)
    }
}

#[test]
fn a_file_system_over_sqlite_in_a_process_of_its_own_holds_to_its_word() {
    if built::sqlite().is_some() {
        let open = |library: &Path, config: &str, how: &Attach| {
            built::apart_with(library, config, how).unwrap()
        };
        Suite::new("sqlite, apart", on_sqlite(open)).run();
    }
}

#[test]
fn a_file_system_over_sqlite_in_a_process_of_its_own_holds_to_its_word_everywhere() {
    if built::sqlite().is_some() {
        let open = |library: &Path, config: &str, how: &Attach| {
            built::apart_with(library, config, how).unwrap()
        };
        everywhere("sqlite, apart", on_sqlite(open));
    }
}

#[test]
fn the_smallest_plug_in_has_a_file() {
    let library = built::example("hello", &[]);
    for fs in [built::within(&library, ""), built::apart(&library, "")] {
        let fs = fs.unwrap();
        let cx = &Ctx {
            cred: &Cred::root(),
            now: built::now(),
            cancel: &Cancel::new(),
        };
        let name = Name::new(b"hello.txt").unwrap();
        let entry = fs.lookup(cx, fs.root(), name).unwrap();
        let open = fs.open(cx, entry.node, Mode::Read).unwrap();
        let mut text = [0; 64];
        let len = fs.read(cx, open, 7, &mut text).unwrap();
        assert_eq!(&text[..len], b"world.\n");
        let mut listing = DirBuf::new(8, 100, false);
        let root = fs.open(cx, fs.root(), Mode::Read).unwrap();
        assert!(fs.readdir(cx, root, Cookie::START, &mut listing).unwrap());
        assert_eq!(listing.get(0).unwrap().name, b"hello.txt");
        assert_eq!(
            fs.open(cx, entry.node, Mode::Write).unwrap_err(),
            Kind::ReadOnly
        );
        assert_eq!(fs.unlink(cx, fs.root(), name).unwrap_err(), Kind::ReadOnly);
    }
}
