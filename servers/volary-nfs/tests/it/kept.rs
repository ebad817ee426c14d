//! Devices, and what the server keeps open, beside clients of other servers.

use crate::client::{How, Set};
use crate::served::{Served, export, fat, fat_device, mem, options};
use crate::wire::Caller;
use volary_core::Mode;
use volary_nfs::{ExportOptions, Squash};
use volary_session::{OpenHow, Rights, Share};

const PERM: u32 = 1;
const ACCES: u32 = 13;
const EXIST: u32 = 17;

#[test]
fn devices_are_made_by_a_root_who_is_not_squashed() {
    const RDEV: u64 = 7 << 32 | 3;
    let mode = Set::mode(0o640);
    for volume in [mem(), fat(fat_device(64 << 20))] {
        let served = Served::of(volume, &export(), &options(1));
        let mut c = served.client();
        let root = c.root();
        for (name, kind) in [(b"block", 3), (b"chars", 4)] {
            let (fh, attr) = c.mknod(&root, name, kind, &mode, RDEV).unwrap();
            assert_eq!((attr.kind, attr.mode, attr.rdev), (kind, 0o640, RDEV));
            assert_eq!(c.getattr(&fh).unwrap().rdev, RDEV);
            let again = c.mknod(&root, name, kind, &mode, RDEV);
            assert_eq!(again.unwrap_err(), EXIST);
        }
        c.setattr(&root, &Set::mode(0o777), None).unwrap();
        let mut user = served.client();
        user.who = Caller::Sys(1000, 1000, Vec::new());
        let device = user.mknod(&root, b"dev", 4, &mode, RDEV);
        assert_eq!(device.unwrap_err(), PERM);
        assert_eq!(user.mknod(&root, b"pipe", 7, &mode, 0).unwrap().1.kind, 7);
        let squashed = ExportOptions {
            squash: Squash::Root,
            ..export()
        };
        let volume = served.volume.clone();
        drop((c, user, served));
        let served = Served::of(volume, &squashed, &options(2));
        let mut c = served.client();
        let root = c.root();
        let device = c.mknod(&root, b"dev", 3, &mode, RDEV);
        assert_eq!(device.unwrap_err(), PERM);
    }
}

/// As an SMB client opens who lets nobody else in.
fn alone() -> OpenHow {
    let wants = Rights::READ | Rights::WRITE;
    let allows = Rights::NONE;
    OpenHow::from(Mode::ReadWrite).with_share(Share { wants, allows })
}

#[test]
fn what_is_kept_open_for_nfs_is_in_nobodys_way() {
    let served = Served::mem();
    let mut c = served.client();
    let root = c.root();
    let how = || How::Guarded(Set::mode(0o644));
    let (fh, _) = c.create(&root, b"file", how()).unwrap();
    c.write(&fh, 0, b"old", 2).unwrap();
    assert_eq!(c.read(&fh, 0, 9).unwrap().0, b"old");
    assert_eq!(
        served.server.programs().kept().0,
        2,
        "for reading, for writing"
    );
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let open = other.open(node, alone()).unwrap();
    assert_eq!(served.server.programs().kept().0, 2);
    for _ in 0..2 {
        assert_eq!(c.read(&fh, 0, 9).unwrap_err(), ACCES);
        assert_eq!(c.write(&fh, 0, b"new", 0).unwrap_err(), ACCES);
        assert_eq!(c.setattr(&fh, &Set::size(1), None).unwrap_err(), ACCES);
    }
    other.write(open, Some(0), b"his").unwrap();
    other.close(open).unwrap();
    assert_eq!(c.read(&fh, 0, 9).unwrap().0, b"his");
    c.write(&fh, 0, b"new", 0).unwrap();
    c.setattr(&fh, &Set::size(2), None).unwrap();
    // What is new is kept open too.
    let (made, _) = c
        .create(&root, b"made", How::Guarded(Set::mode(0o644)))
        .unwrap();
    let node = other.lookup(other.root(), b"made").unwrap().node;
    let open = other.open(node, alone()).unwrap();
    assert_eq!(c.write(&made, 0, b"x", 0).unwrap_err(), ACCES);
    other.close(open).unwrap();
    c.write(&made, 0, b"x", 0).unwrap();
}
