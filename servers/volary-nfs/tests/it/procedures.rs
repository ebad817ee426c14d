//! Each procedure, by a client of our own.

use crate::client::{Client, Fattr, How, MOUNT, NFS, Set, post};
use crate::served::{Served, export, mem, options};
use crate::wire::{Args, Caller};
use std::net::SocketAddr;
use volary_core::{Access, Mode, SetAttr};
use volary_nfs::{ExportOptions, Squash};

const NOENT: u32 = 2;
const ACCES: u32 = 13;
const EXIST: u32 = 17;
const NOTDIR: u32 = 20;
const ISDIR: u32 = 21;
const INVAL: u32 = 22;
const FBIG: u32 = 27;
const ROFS: u32 = 30;
const NAMETOOLONG: u32 = 63;
const NOTEMPTY: u32 = 66;
const STALE: u32 = 70;
const NOT_SYNC: u32 = 10002;
const BAD_COOKIE: u32 = 10003;
const TOOSMALL: u32 = 10005;
const BADTYPE: u32 = 10007;

fn started() -> (Served, Client, Vec<u8>) {
    let served = Served::mem();
    let mut client = served.client();
    let root = client.root();
    (served, client, root)
}

fn file(client: &mut Client, dir: &[u8], name: &[u8], data: &[u8]) -> (Vec<u8>, Fattr) {
    let how = How::Guarded(Set::mode(0o644));
    let (fh, _) = client.create(dir, name, how).unwrap();
    client.write(&fh, 0, data, 2).unwrap();
    let attr = client.getattr(&fh).unwrap();
    (fh, attr)
}

#[test]
fn null_is_answered_by_every_program() {
    let served = Served::mem();
    let mut client = served.client();
    for (program, version) in [
        (NFS, 3),
        (MOUNT, 3),
        (100_000, 2),
        (100_000, 4),
        (100_021, 4),
        (100_024, 1),
    ] {
        client
            .wire
            .call((program, version, 0), &Caller::Nobody, &Args::new())
            .end();
    }
}

#[test]
fn what_is_written_is_read_back() {
    let (_served, mut c, root) = started();
    let data: Vec<u8> = (0..300_001u32).map(|n| (n % 251) as u8).collect();
    let (fh, attr) = file(&mut c, &root, b"file", &data);
    assert_eq!((attr.kind, attr.mode, attr.size), (1, 0o644, 300_001));
    assert!(attr.used >= attr.size);
    assert_eq!(c.read(&fh, 0, 1 << 20).unwrap(), (data.clone(), true));
    let (part, eof) = c.read(&fh, 100_000, 7).unwrap();
    assert_eq!((&part[..], eof), (&data[100_000..100_007], false));
    assert_eq!(c.read(&fh, 300_001, 10).unwrap(), (vec![], true));
    assert_eq!(c.read(&fh, u64::MAX, 10).unwrap(), (vec![], true));
    // More than the server gives at once is cut, not refused.
    assert_eq!(c.read(&fh, 0, u32::MAX).unwrap().0.len(), 300_001);
    assert_eq!(c.read(&root, 0, 10).unwrap_err(), ISDIR);
    assert_eq!(c.write(&root, 0, b"x", 0).unwrap_err(), ISDIR);
    assert_eq!(c.write(&fh, u64::MAX - 2, b"abc", 0).unwrap_err(), FBIG);
    c.write(&fh, 400_000, b"", 0).unwrap();
    assert_eq!(c.getattr(&fh).unwrap().size, 300_001);
}

#[test]
fn every_stability_is_answered_with_the_same_verifier() {
    let (_served, mut c, root) = started();
    let (fh, _) = file(&mut c, &root, b"file", b"");
    let verifiers: Vec<u64> = (0..3)
        .map(|stable| {
            let (committed, verifier, wcc) = c.write(&fh, 0, b"abc", stable).unwrap();
            assert_eq!(committed, stable);
            assert!(wcc.0.is_some() && wcc.1.is_some());
            verifier
        })
        .collect();
    let committed = c.commit(&fh).unwrap();
    assert!(verifiers.iter().all(|v| *v == committed));
}

#[test]
fn lookup_finds_names_and_dots() {
    let (_served, mut c, root) = started();
    let (dir, dir_attr) = c.mkdir(&root, b"dir", &Set::mode(0o755)).unwrap();
    let (inner, _) = c.mkdir(&dir, b"inner", &Set::mode(0o755)).unwrap();
    let (fh, attr) = file(&mut c, &dir, b"file", b"x");
    assert_eq!(c.lookup(&dir, b"file").unwrap(), (fh.clone(), attr));
    assert_eq!(c.lookup(&dir, b".").unwrap().0, dir);
    assert_eq!(c.lookup(&inner, b"..").unwrap().0, dir);
    assert_eq!(c.lookup(&root, b"..").unwrap().0, root);
    assert_eq!(c.lookup(&root, b"dir").unwrap().1.fileid, dir_attr.fileid);
    assert_eq!(c.lookup(&dir, b"none").unwrap_err(), NOENT);
    assert_eq!(c.lookup(&fh, b"x").unwrap_err(), NOTDIR);
    assert_eq!(c.lookup(&dir, &[b'n'; 300]).unwrap_err(), NAMETOOLONG);
    for bad in [&b"a/b"[..], b"a\0", b"/"] {
        assert_eq!(c.lookup(&dir, bad).unwrap_err(), INVAL, "{bad:?}");
    }
    assert_eq!(c.lookup(&dir, b"").unwrap_err(), NOENT);
}

#[test]
fn create_has_three_ways() {
    let (_served, mut c, root) = started();
    let (fh, attr) = c
        .create(&root, b"a", How::Unchecked(Set::mode(0o640)))
        .unwrap();
    assert_eq!((attr.mode, attr.size), (0o640, 0));
    c.write(&fh, 0, b"abc", 2).unwrap();
    let (same, attr) = c
        .create(&root, b"a", How::Unchecked(Set::mode(0o600)))
        .unwrap();
    assert_eq!((same, attr.mode, attr.size), (fh.clone(), 0o640, 3));
    let cut = c.create(&root, b"a", How::Unchecked(Set::size(1))).unwrap();
    assert_eq!(cut.1.size, 1);
    let guarded = c.create(&root, b"a", How::Guarded(Set::default()));
    assert_eq!(guarded.unwrap_err(), EXIST);
    let (_, sized) = c
        .create(&root, b"sized", How::Guarded(Set::size(9)))
        .unwrap();
    assert_eq!(sized.size, 9);
    let (dir, _) = c.mkdir(&root, b"dir", &Set::default()).unwrap();
    for name in [&b"dir"[..], b".", b".."] {
        let made = c.create(&root, name, How::Unchecked(Set::default()));
        assert_eq!(made.unwrap_err(), EXIST, "{name:?}");
    }
    let made = c.create(&fh, b"x", How::Unchecked(Set::default()));
    assert_eq!(made.unwrap_err(), NOTDIR);
    assert_eq!(c.mkdir(&root, b"a", &Set::default()).unwrap_err(), EXIST);
    assert_eq!(c.getattr(&dir).unwrap().kind, 2);
}

#[test]
fn an_exclusive_create_is_the_same_when_it_comes_again() {
    let (served, mut c, root) = started();
    let (fh, attr) = c.create(&root, b"x", How::Exclusive(*b"verifier")).unwrap();
    // As a client that sends no SETATTR leaves it: the times are true.
    assert!(attr.mtime.0 > 1_700_000_000);
    let again = c.create(&root, b"x", How::Exclusive(*b"verifier"));
    assert_eq!(again.unwrap().0, fh);
    // Also from another connection, and after a write.
    c.write(&fh, 0, b"abc", 0).unwrap();
    let again = served
        .client()
        .create(&root, b"x", How::Exclusive(*b"verifier"));
    assert_eq!(again.unwrap().0, fh);
    let other = c.create(&root, b"x", How::Exclusive(*b"anothers"));
    assert_eq!(other.unwrap_err(), EXIST);
    c.remove(&root, b"x").unwrap();
    let (new, _) = c.create(&root, b"x", How::Exclusive(*b"anothers")).unwrap();
    assert_ne!(new, fh);
}

#[test]
fn attributes_are_changed_and_guarded() {
    let (_served, mut c, root) = started();
    let (fh, before) = file(&mut c, &root, b"file", b"0123456789");
    let set = Set {
        mode: Some(0o600),
        uid: Some(5),
        gid: Some(6),
        size: Some(4),
        atime: Some(Some((100, 200))),
        mtime: Some(Some((300, 400))),
    };
    let (pre, after) = c.setattr(&fh, &set, Some(before.ctime)).unwrap();
    assert_eq!(pre, Some((10, before.mtime, before.ctime)));
    let after = after.unwrap();
    assert_eq!((after.mode, after.uid, after.gid), (0o600, 5, 6));
    assert_eq!(after.size, 4);
    assert_eq!((after.atime, after.mtime), ((100, 200), (300, 400)));
    let guarded = c.setattr(&fh, &Set::mode(0o644), Some((1, 1)));
    assert_eq!(guarded.unwrap_err(), NOT_SYNC);
    let now = Set {
        mtime: Some(None),
        ..Set::default()
    };
    let (_, after) = c.setattr(&fh, &now, None).unwrap();
    assert!(after.unwrap().mtime.0 > 1_700_000_000);
    assert_eq!(c.setattr(&root, &Set::size(1), None).unwrap_err(), ISDIR);
    assert_eq!(
        c.setattr(&fh, &Set::size(u64::MAX), None).unwrap_err(),
        FBIG
    );
}

#[test]
fn links_symlinks_and_special_nodes() {
    let (_served, mut c, root) = started();
    let (fh, attr) = file(&mut c, &root, b"file", b"x");
    assert_eq!(c.link(&fh, &root, b"link").unwrap().nlink, 2);
    assert_eq!(c.lookup(&root, b"link").unwrap().1.fileid, attr.fileid);
    assert_eq!(c.link(&fh, &root, b"link").unwrap_err(), EXIST);
    let (symlink, attr) = c.symlink(&root, b"sym", b"../some/where").unwrap();
    assert_eq!(attr.kind, 5);
    assert_eq!(c.readlink(&symlink).unwrap(), b"../some/where");
    assert_eq!(c.readlink(&fh).unwrap_err(), INVAL);
    let (_, fifo) = c.mknod(&root, b"fifo", 7, &Set::mode(0o600), 0).unwrap();
    let (_, socket) = c.mknod(&root, b"sock", 6, &Set::mode(0o600), 0).unwrap();
    assert_eq!((fifo.kind, socket.kind), (7, 6));
    let file = c.mknod(&root, b"f", 1, &Set::default(), 0);
    assert_eq!(file.unwrap_err(), BADTYPE);
}

#[test]
fn entries_are_removed_and_renamed() {
    let (_served, mut c, root) = started();
    let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o755)).unwrap();
    let (fh, _) = file(&mut c, &root, b"file", b"x");
    let (old, _) = file(&mut c, &dir, b"old", b"y");
    let before = c.getattr(&root).unwrap();
    let (from, to) = c.rename((&root, b"file"), (&dir, b"old")).unwrap();
    assert_eq!(from.0.unwrap().2, before.ctime);
    assert_eq!(to.1.unwrap().kind, 2);
    assert_eq!(c.lookup(&dir, b"old").unwrap().0, fh);
    assert_eq!(c.getattr(&old).unwrap_err(), STALE);
    assert_eq!(c.remove(&root, b"dir").unwrap_err(), ISDIR);
    assert_eq!(c.rmdir(&root, b"dir").unwrap_err(), NOTEMPTY);
    assert_eq!(c.rmdir(&dir, b"old").unwrap_err(), NOTDIR);
    assert_eq!(c.rmdir(&root, b".").unwrap_err(), INVAL);
    let into_itself = c.rename((&root, b"dir"), (&dir, b"in"));
    assert_eq!(into_itself.unwrap_err(), INVAL);
    // Open for reading in the server, it goes all the same.
    assert_eq!(c.read(&fh, 0, 10).unwrap().0, b"x");
    c.remove(&dir, b"old").unwrap();
    assert_eq!(c.getattr(&fh).unwrap_err(), STALE);
    assert_eq!(c.read(&fh, 0, 10).unwrap_err(), STALE);
    c.rmdir(&root, b"dir").unwrap();
    assert_eq!(c.lookup(&root, b"dir").unwrap_err(), NOENT);
}

#[test]
fn listings_come_in_pages_of_any_size() {
    let (_served, mut c, root) = started();
    let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o755)).unwrap();
    let mut names = vec![b".".to_vec(), b"..".to_vec()];
    for n in 0..500 {
        let name = format!("{n:0width$}", width = 1 + n % 60).into_bytes();
        if c.create(&dir, &name, How::Guarded(Set::default())).is_ok() {
            names.push(name);
        }
    }
    names.sort();
    for max in [250, 1000, 4096, 1 << 17, u32::MAX] {
        let listed = c.list(&dir, max).unwrap();
        let mut found: Vec<_> = listed.into_iter().map(|e| e.name).collect();
        found.sort();
        assert_eq!(found, names, "{max}");
    }
    let dots = c.readdir(&dir, (0, 0), 4096).unwrap().entries;
    assert_eq!(dots[0].fileid, c.getattr(&dir).unwrap().fileid);
    assert_eq!(dots[1].fileid, c.getattr(&root).unwrap().fileid);
    assert_eq!(c.readdir(&dir, (0, 0), 10).unwrap_err(), TOOSMALL);
    assert_eq!(
        c.readdir(&dir, (u64::MAX, 0), 4096).unwrap_err(),
        BAD_COOKIE
    );
    let (fh, _) = file(&mut c, &root, b"file", b"");
    assert_eq!(c.readdir(&fh, (0, 0), 4096).unwrap_err(), NOTDIR);
}

#[test]
fn listings_bring_attributes_and_handles_within_their_bounds() {
    let (_served, mut c, root) = started();
    for n in 0..100 {
        file(&mut c, &root, format!("file{n}").as_bytes(), &vec![0; n]);
    }
    let (mut from, mut seen) = ((0, 0), 0);
    loop {
        let page = c.readdirplus(&root, from, (600, 3000)).unwrap();
        assert!(page.len <= 3000, "{}", page.len);
        let names: usize = page.entries.iter().map(|e| 24 + e.name.len()).sum();
        assert!(names <= 600, "{names}");
        for entry in &page.entries {
            let fh = entry.fh.as_ref().unwrap();
            let attr = c.getattr(fh).unwrap();
            assert_eq!(entry.attr, Some(attr));
            assert_eq!(entry.fileid, attr.fileid);
            seen += 1;
        }
        if page.eof {
            break;
        }
        from = (page.entries.last().unwrap().cookie, page.verifier);
    }
    assert_eq!(seen, 102);
}

#[test]
fn access_says_what_may_be_done() {
    let (served, mut c, root) = started();
    let (fh, _) = file(&mut c, &root, b"file", b"x");
    c.setattr(&fh, &Set::mode(0o641), None).unwrap();
    let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o705)).unwrap();
    let mut user = served.client().of_user(1000, 100);
    assert_eq!(c.access(&fh, 0x3f).unwrap(), 0x01 | 0x0c | 0x20);
    assert_eq!(user.access(&fh, 0x3f).unwrap(), 0x20);
    assert_eq!(c.access(&dir, 0x3f).unwrap(), 0x1f);
    assert_eq!(user.access(&dir, 0x3f).unwrap(), 0x03);
    assert_eq!(user.access(&dir, 0x01).unwrap(), 0x01);
    user.who = Caller::Nobody;
    assert_eq!(user.access(&dir, 0x3f).unwrap(), 0x03);
}

#[test]
fn an_owner_reads_and_writes_what_it_has_opened_whatever_the_mode_says() {
    let (served, mut c, root) = started();
    c.setattr(&root, &Set::mode(0o777), None).unwrap();
    let mut user = served.client().of_user(1000, 100);
    let how = How::Guarded(Set::mode(0o000));
    let (fh, attr) = user.create(&root, b"mine", how).unwrap();
    assert_eq!((attr.uid, attr.gid, attr.mode), (1000, 100, 0));
    user.write(&fh, 0, b"abc", 0).unwrap();
    user.commit(&fh).unwrap();
    assert_eq!(user.read(&fh, 0, 10).unwrap().0, b"abc");
    user.setattr(&fh, &Set::size(1), None).unwrap();
    let mut other = served.client().of_user(1001, 100);
    assert_eq!(other.read(&fh, 0, 10).unwrap_err(), ACCES);
    assert_eq!(other.write(&fh, 0, b"x", 0).unwrap_err(), ACCES);
    assert_eq!(other.setattr(&fh, &Set::size(0), None).unwrap_err(), ACCES);
    // What may be run may be read: that is how a client runs it.
    user.setattr(&fh, &Set::mode(0o111), None).unwrap();
    assert_eq!(other.read(&fh, 0, 10).unwrap().0, b"a");
    // And what may no longer be read is no longer read, open as it was.
    user.setattr(&fh, &Set::mode(0o700), None).unwrap();
    assert_eq!(other.read(&fh, 0, 10).unwrap_err(), ACCES);
}

#[test]
fn callers_are_squashed_as_the_export_says() {
    for (squash, uid, owner) in [
        (Squash::Root, 0, 65534),
        (Squash::Root, 1000, 1000),
        (Squash::All, 1000, 65534),
        (Squash::None, 0, 0),
    ] {
        let how = ExportOptions { squash, ..export() };
        let served = Served::of(mem(), &how, &options(1));
        let other = served.other();
        let open = SetAttr::mode(0o777);
        other.setattr(other.root(), &open).unwrap();
        let mut c = served.client().of_user(uid, 100);
        let root = c.root();
        // A client names itself as the owner, by the number that it knows.
        let set = Set {
            uid: Some(uid),
            gid: Some(100),
            ..Set::mode(0o644)
        };
        let made = c.create(&root, b"f", How::Guarded(set));
        assert_eq!(made.unwrap().1.uid, owner, "{squash:?} {uid}");
        c.who = Caller::Nobody;
        let (_, attr) = c.mkdir(&root, b"d", &Set::default()).unwrap();
        assert_eq!(attr.uid, 65534);
    }
}

#[test]
fn a_read_only_export_refuses_all_changes() {
    let how = ExportOptions {
        read_only: true,
        ..export()
    };
    let served = Served::of(mem(), &how, &options(1));
    let other = served.other();
    let set = SetAttr::owned(0o666, 0, 0);
    let new = volary_core::Create::New;
    let (entry, open) = other
        .create(other.root(), b"file", new, Mode::Write, &set)
        .unwrap();
    other.write(open, Some(0), b"abc").unwrap();
    other.close(open).unwrap();
    let mut c = served.client();
    let root = c.root();
    let (fh, attr) = c.lookup(&root, b"file").unwrap();
    assert_eq!(attr.fileid, entry.node.ino.get());
    assert_eq!(c.read(&fh, 0, 9).unwrap().0, b"abc");
    assert_eq!(c.access(&fh, 0x3f).unwrap(), 0x01);
    assert_eq!(c.write(&fh, 0, b"x", 0).unwrap_err(), ROFS);
    assert_eq!(c.commit(&fh).unwrap_err(), ROFS);
    assert_eq!(c.setattr(&fh, &Set::mode(0), None).unwrap_err(), ROFS);
    let how = How::Guarded(Set::default());
    assert_eq!(c.create(&root, b"n", how).unwrap_err(), ROFS);
    assert_eq!(c.mkdir(&root, b"n", &Set::default()).unwrap_err(), ROFS);
    assert_eq!(c.symlink(&root, b"n", b"t").unwrap_err(), ROFS);
    assert_eq!(c.remove(&root, b"file").unwrap_err(), ROFS);
    assert_eq!(c.rmdir(&root, b"file").unwrap_err(), ROFS);
    let renamed = c.rename((&root, b"file"), (&root, b"new"));
    assert_eq!(renamed.unwrap_err(), ROFS);
    assert_eq!(c.link(&fh, &root, b"new").unwrap_err(), ROFS);
    assert!(other.access(entry.node, Access::WRITE).is_ok());
}

#[test]
fn the_volume_says_what_it_is() {
    let (served, mut c, root) = started();
    let mut stat = c.nfs(18, &Args::new().opaque(&root));
    assert_eq!(stat.u32(), 0);
    post(&mut stat).unwrap();
    let sizes: Vec<u64> = (0..6).map(|_| stat.u64()).collect();
    assert_eq!(stat.u32(), 0);
    stat.end();
    let real = served.other().statfs().unwrap();
    assert_eq!(sizes[0], real.size);
    assert!(sizes[1] <= sizes[0] && sizes[2] <= sizes[1] && sizes[4] <= sizes[3]);
    let mut info = c.nfs(19, &Args::new().opaque(&root));
    assert_eq!(info.u32(), 0);
    post(&mut info).unwrap();
    let sizes: Vec<u32> = (0..7).map(|_| info.u32()).collect();
    assert_eq!(sizes[0], 1 << 20);
    assert_eq!(info.u64(), served.volume.caps().size_max);
    assert_eq!((info.u32(), info.u32()), (0, 1));
    assert_eq!(info.u32(), 0x1b);
    info.end();
    let mut conf = c.nfs(20, &Args::new().opaque(&root));
    assert_eq!(conf.u32(), 0);
    post(&mut conf).unwrap();
    assert!(conf.u32() > 1);
    assert_eq!(conf.u32(), u32::from(served.volume.caps().name_max));
    let flags = [conf.bool(), conf.bool(), conf.bool(), conf.bool()];
    assert_eq!(flags, [true, true, false, true]);
    conf.end();
}

#[test]
fn what_others_change_is_seen_and_told_apart() {
    let (served, mut c, root) = started();
    let (fh, before) = file(&mut c, &root, b"file", b"abc");
    let other = served.other();
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let open = other.open(node, Mode::Write).unwrap();
    other.write(open, Some(3), b"def").unwrap();
    other.close(open).unwrap();
    let (_, _, (pre, after)) = c.write(&fh, 0, b"ABC", 0).unwrap();
    let pre = pre.unwrap();
    assert_ne!((pre.0, pre.1), (3, before.mtime));
    assert_eq!(after.unwrap().size, 6);
    other.unlink(other.root(), b"file").unwrap();
    assert_eq!(c.getattr(&fh).unwrap_err(), STALE);
    assert_eq!(c.read(&fh, 0, 6).unwrap_err(), STALE);
}

#[test]
fn mount_gives_directories_and_lists() {
    let (_served, mut c, root) = started();
    let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o755)).unwrap();
    file(&mut c, &root, b"file", b"");
    assert_eq!(c.mnt("/test/dir").unwrap(), dir);
    assert_eq!(c.mnt("/").unwrap(), root);
    assert_eq!(c.mnt("/test/").unwrap(), root);
    assert_eq!(c.mnt("/test/../..").unwrap(), root);
    assert_eq!(c.mnt("/none").unwrap_err(), NOENT);
    assert_eq!(c.mnt("/test/none").unwrap_err(), NOENT);
    assert_eq!(c.mnt("/test/file").unwrap_err(), NOTDIR);
    let who = Caller::Nobody;
    let mut exports = c.wire.call((MOUNT, 3, 5), &who, &Args::new());
    assert!(exports.bool());
    assert_eq!(exports.opaque(), b"/test");
    assert!(!exports.bool());
    assert!(!exports.bool());
    exports.end();
    let dump = |c: &mut Client| {
        let mut reply = c.wire.call((MOUNT, 3, 2), &who, &Args::new());
        let mut all = Vec::new();
        while reply.bool() {
            all.push((reply.opaque(), reply.opaque()));
        }
        reply.end();
        all
    };
    assert_eq!(dump(&mut c).len(), 5);
    let path = Args::new().opaque(b"/test/dir");
    c.wire.call((MOUNT, 3, 3), &who, &path).end();
    assert_eq!(dump(&mut c).len(), 4);
    c.wire.call((MOUNT, 3, 4), &who, &Args::new()).end();
    assert_eq!(dump(&mut c), []);
}

#[test]
fn the_portmapper_names_this_port() {
    let served = Served::mem();
    let mut c = served.client();
    let port = u32::from(served.address().port());
    let mut ask = |program: u32, version: u32, protocol: u32| {
        let args = Args::new().u32(program).u32(version).u32(protocol).u32(0);
        let mut reply = c.wire.call((100_000, 2, 3), &Caller::Nobody, &args);
        let port = reply.u32();
        reply.end();
        port
    };
    assert_eq!(ask(NFS, 3, 6), port);
    assert_eq!(ask(MOUNT, 3, 6), port);
    assert_eq!(ask(100_021, 4, 6), port);
    assert_eq!(ask(NFS, 3, 17), 0, "there is no UDP");
    assert_eq!(ask(NFS, 4, 6), 0);
    let args = Args::new().u32(NFS).u32(3).opaque(b"tcp");
    let args = args.opaque(b"").opaque(b"");
    let mut reply = c.wire.call((100_000, 4, 3), &Caller::Nobody, &args);
    let text = String::from_utf8(reply.opaque()).unwrap();
    reply.end();
    assert_eq!(text, format!("127.0.0.1.{}.{}", port >> 8, port & 0xff));
}

#[test]
fn the_portmappers_port_serves_nothing_else() {
    let mut options = options(1);
    options.portmap = vec![SocketAddr::from((PORTMAPPER, 0))];
    // Its own port is not told: it is 111 where it counts. No other test listens at its address.
    let served = Served::of(mem(), &export(), &options);
    let address = SocketAddr::from((PORTMAPPER, listening_port(PORTMAPPER)));
    let mut wire = crate::wire::Wire::new(address);
    let args = Args::new().u32(NFS).u32(3).u32(6).u32(0);
    let mut reply = wire.call((100_000, 2, 3), &Caller::Nobody, &args);
    assert_eq!(reply.u32(), u32::from(served.address().port()));
    let mut refused = wire.ask((NFS, 3, 0), &Caller::Nobody, &Args::new());
    let head = [refused.u32(), refused.u32(), refused.u32(), refused.u32()];
    assert_eq!(head, [0, 0, 0, 1], "no such program");
}

const PORTMAPPER: [u8; 4] = [127, 111, 0, 1];

/// Returns the port of this address that somebody listens on.
fn listening_port(address: [u8; 4]) -> u16 {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let [a, b, c, d] = address;
    // A number of the host's, which is taken for little-endian.
    let address = format!("{d:02X}{c:02X}{b:02X}{a:02X}:");
    let port = table.lines().skip(1).find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let port = fields[1].strip_prefix(&address)?;
        (fields[3] == "0A").then(|| u16::from_str_radix(port, 16).unwrap())
    });
    port.expect("a port that is listened on")
}
