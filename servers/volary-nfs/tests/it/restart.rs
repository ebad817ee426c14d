//! What outlives the server.

use crate::client::{How, Set};
use crate::served::{Served, export, fat, fat_device, options};

const STALE: u32 = 70;

#[test]
fn handles_outlive_a_restart_on_a_volume_with_stable_ids() {
    let dev = fat_device(64 << 20);
    let served = Served::of(fat(dev.clone()), &export(), &options(1));
    let mut c = served.client();
    let root = c.root();
    let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o755)).unwrap();
    let make = |c: &mut crate::client::Client, name: &[u8]| {
        let how = How::Guarded(Set::mode(0o644));
        let (fh, _) = c.create(&dir, name, how).unwrap();
        c.write(&fh, 0, name, 0).unwrap();
        fh
    };
    let (kept, gone) = (make(&mut c, b"kept"), make(&mut c, b"gone"));
    let before = c.getattr(&root).unwrap();
    drop(c);
    let volume = served.volume.clone();
    drop(served);
    volume.detach().unwrap();
    let served = Served::of(fat(dev), &export(), &options(2));
    let mut c = served.client();
    assert_eq!(c.root(), root);
    assert_eq!(c.read(&kept, 0, 9).unwrap().0, b"kept");
    let other = served.other();
    let node = other.lookup(other.root(), b"dir").unwrap().node;
    let dir_before = c.getattr(&dir).unwrap();
    other.unlink(node, b"gone").unwrap();
    assert_eq!(c.getattr(&gone).unwrap_err(), STALE);
    assert_eq!(c.read(&gone, 0, 9).unwrap_err(), STALE);
    assert_ne!(c.getattr(&dir).unwrap().ctime, dir_before.ctime);
    let (_, new) = c.mkdir(&root, b"new", &Set::mode(0o755)).unwrap();
    assert_eq!(new.kind, 2);
    assert_ne!(c.getattr(&root).unwrap().ctime, before.ctime);
}

#[test]
fn handles_of_a_volume_without_stable_ids_are_stale_after_a_restart() {
    let served = Served::mem();
    let mut c = served.client();
    let root = c.root();
    let volume = served.volume.clone();
    drop((c, served));
    let served = Served::of(volume, &export(), &options(2));
    let mut c = served.client();
    assert_eq!(c.getattr(&root).unwrap_err(), STALE);
    let root = c.root();
    assert!(c.getattr(&root).is_ok());
}

#[test]
fn handles_are_stale_to_a_server_with_another_key() {
    let dev = fat_device(64 << 20);
    let served = Served::of(fat(dev.clone()), &export(), &options(1));
    let root = served.client().root();
    let volume = served.volume.clone();
    drop(served);
    volume.detach().unwrap();
    let mut other = options(1);
    other.key = [8; 16];
    let served = Served::of(fat(dev), &export(), &other);
    assert_eq!(served.client().getattr(&root).unwrap_err(), STALE);
}

#[test]
fn writes_that_were_not_committed_are_told_by_their_verifier() {
    let dev = fat_device(64 << 20);
    let served = Served::of(fat(dev.clone()), &export(), &options(1));
    let mut c = served.client();
    let root = c.root();
    let how = How::Guarded(Set::mode(0o644));
    let (fh, _) = c.create(&root, b"file", how).unwrap();
    let (_, before, _) = c.write(&fh, 0, b"abc", 0).unwrap();
    let volume = served.volume.clone();
    drop((c, served));
    volume.detach().unwrap();
    let served = Served::of(fat(dev), &export(), &options(2));
    assert_ne!(served.client().commit(&fh).unwrap(), before);
}

#[test]
fn a_server_stops_whatever_was_started_meanwhile() {
    let served = Served::mem();
    let mut c = served.client();
    c.root();
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .spawn()
        .unwrap();
    drop(served);
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ended.is_none(), "it waited for the child");
    assert!(c.wire.receive().is_none());
}
