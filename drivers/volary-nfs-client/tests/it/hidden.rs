//! Open files that have lost their names.

use crate::served::Served;
use crate::side::Side;
use std::sync::Barrier;
use std::thread;
use tempfile::TempDir;
use volary_core::{Cookie, Create, DirBuf, Mode, Name, OpenId, SetAttr};
use volary_nfs_client::NfsOptions;

/// Returns a directory of the root's whose files are open and have no names.
fn left_by_names(a: &Side, dir: Name<'_>, count: usize) -> Vec<OpenId> {
    let cx = a.cx();
    let made = a.0.mkdir(&cx, a.0.root(), dir, &SetAttr::mode(0o755));
    let node = made.expect("mkdir").node;
    let opens = (0..count).map(|i| {
        let name = format!("file {i}");
        let name = Name::new(name.as_bytes()).expect("a name");
        let set = SetAttr::mode(0o644);
        let (_, open) =
            a.0.create(&cx, node, name, Create::New, &set)
                .expect("create");
        a.0.unlink(&cx, node, name).expect("unlink");
        open
    });
    opens.collect()
}

/// As a mount does, which tells of the last close when it likes.
#[test]
fn a_directory_goes_while_the_last_opens_of_its_files_end() {
    let host = TempDir::new().expect("a directory");
    let served = Served::host(host.path());
    let a = Side(served.attach(&NfsOptions::default()).expect("the export"));
    let dir = Name::new(b"dir").expect("a name");
    for round in 0..200 {
        let opens = left_by_names(&a, dir, 4);
        let meeting = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                for (at, open) in opens.into_iter().enumerate() {
                    if at == round % 4 {
                        meeting.wait();
                    }
                    a.0.close(&a.cx(), open).expect("close");
                }
            });
            meeting.wait();
            a.0.rmdir(&a.cx(), a.0.root(), dir).expect("rmdir");
        });
    }
    let left = std::fs::read_dir(host.path()).expect("the directory");
    assert_eq!(left.count(), 0, "nothing stays behind");
}

/// The server's page has the name, and is read to the end after the name is gone.
#[test]
fn a_listing_that_is_older_than_the_last_close_does_not_tell() {
    let host = TempDir::new().expect("a directory");
    let served = Served::host(host.path());
    let a = Side(served.attach(&NfsOptions::default()).expect("the export"));
    let dir = Name::new(b"dir").expect("a name");
    let opens = left_by_names(&a, dir, 16);
    let node = a.find("dir");
    let names: Vec<String> = (10..26).map(|i| format!("name {i}")).collect();
    for name in &names {
        let name = Name::new(name.as_bytes()).expect("a name");
        let set = SetAttr::mode(0o644);
        let made = a.0.create(&a.cx(), node, name, Create::New, &set);
        a.0.close(&a.cx(), made.expect("create").1).expect("close");
    }
    let all = std::fs::read_dir(host.path().join("dir")).expect("the directory");
    assert_eq!(all.count(), 32, "the server lists them");
    let list = a.0.open(&a.cx(), node, Mode::Read).expect("open");
    let mut seen = Vec::new();
    let mut from = Cookie::START;
    let mut opens = Some(opens);
    loop {
        // Room for one entry: whatever comes after it is of the same page of the server's.
        let mut room = DirBuf::new(1, 255, false);
        let is_end =
            a.0.readdir(&a.cx(), list, from, &mut room)
                .expect("readdir");
        for entry in room.iter() {
            seen.push(String::from_utf8_lossy(entry.name).into_owned());
            from = entry.next;
        }
        for open in opens.take().into_iter().flatten() {
            a.0.close(&a.cx(), open).expect("close");
        }
        if is_end {
            break;
        }
    }
    seen.sort();
    assert_eq!(seen, names);
}
