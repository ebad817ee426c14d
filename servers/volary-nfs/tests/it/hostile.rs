//! What no honest client sends.

use crate::client::{Client, How, Listed, MOUNT, NFS, Set};
use crate::served::{Served, export, fat, fat_device, mem, options, until};
use crate::wire::{Args, Caller, Reply, Wire, call};
use std::io::Write;
use std::time::Duration;
use volary_nfs::{ExportOptions, Limits};
use volary_testkit::rng::Rng;

const ACCES: u32 = 13;
const STALE: u32 = 70;
const BADHANDLE: u32 = 10001;

/// Returns what comes after the xid and the word "reply" where a call is refused.
fn refusal(mut reply: Reply) -> Vec<u32> {
    let mut words = Vec::new();
    while reply.left() > 0 {
        words.push(reply.u32());
    }
    words
}

#[test]
fn what_is_not_there_is_refused_in_the_words_of_the_protocol() {
    let served = Served::mem();
    let mut wire = Wire::new(served.address());
    let who = Caller::Nobody;
    let mut ask = |what, args: &Args| refusal(wire.ask(what, &who, args));
    let none = Args::new();
    assert_eq!(ask((99, 1, 0), &none), [0, 0, 0, 1]);
    assert_eq!(ask((NFS, 2, 0), &none), [0, 0, 0, 2, 3, 3]);
    assert_eq!(ask((NFS, 4, 1), &none), [0, 0, 0, 2, 3, 3]);
    assert_eq!(ask((MOUNT, 1, 0), &none), [0, 0, 0, 2, 3, 3]);
    assert_eq!(ask((100_000, 5, 0), &none), [0, 0, 0, 2, 2, 4]);
    assert_eq!(ask((NFS, 3, 22), &none), [0, 0, 0, 3]);
    assert_eq!(ask((MOUNT, 3, 6), &none), [0, 0, 0, 3]);
    assert_eq!(ask((100_021, 4, 24), &none), [0, 0, 0, 3]);
    for procedure in 1..=21 {
        assert_eq!(ask((NFS, 3, procedure), &none), [0, 0, 0, 4], "{procedure}");
        let long = Args::new().u32(65).raw(&[0; 68]);
        assert_eq!(ask((NFS, 3, procedure), &long), [0, 0, 0, 4], "{procedure}");
    }
}

#[test]
fn credentials_that_are_none_are_refused() {
    let served = Served::mem();
    let mut wire = Wire::new(served.address());
    let mut ask = |flavor: u32, body: &[u8], procedure: u32| {
        let head = [7, 0, 2, NFS, 3, procedure, flavor];
        let args = head.into_iter().fold(Args::new(), Args::u32);
        wire.send(&args.opaque(body).u32(0).u32(0).0);
        let mut reply = Reply::new(wire.receive().unwrap());
        assert_eq!((reply.u32(), reply.u32()), (7, 1));
        refusal(reply)
    };
    assert_eq!(ask(1, b"abcd", 1), [1, 1, 1]);
    assert_eq!(ask(6, b"", 1), [1, 1, 5]);
    assert_eq!(ask(6, b"", 0), [0, 0, 0, 0]);
    // Another version of RPC itself.
    let head = [8, 0, 3, NFS, 3, 0, 0, 0, 0, 0];
    wire.send(&head.into_iter().fold(Args::new(), Args::u32).0);
    let mut reply = Reply::new(wire.receive().unwrap());
    assert_eq!((reply.u32(), reply.u32()), (8, 1));
    assert_eq!(refusal(reply), [1, 0, 2, 2]);
}

#[test]
fn no_forged_handle_is_taken() {
    let served = Served::mem();
    let mut c = served.client();
    let root = c.root();
    for bit in 0..root.len() * 8 {
        let mut forged = root.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        let refused = c.getattr(&forged).unwrap_err();
        assert!(refused == STALE || refused == BADHANDLE, "bit {bit}");
    }
    let mut rng = Rng::new(1);
    for n in 0..2000 {
        let mut forged = root.clone();
        // What comes before the seal stays plausible in half of them.
        let from = if n % 2 == 0 { 20 } else { 0 };
        for byte in &mut forged[from..] {
            *byte = rng.below(256) as u8;
        }
        assert!(c.getattr(&forged).is_err(), "{n}");
    }
    for len in 0..64 {
        assert_eq!(c.getattr(&vec![0; len]).unwrap_err(), BADHANDLE);
    }
    assert!(c.getattr(&root).is_ok());
}

#[test]
fn a_handle_of_one_export_is_none_of_another() {
    let (one, two) = (mem(), mem());
    let named = |name: &str| ExportOptions {
        name: name.into(),
        ..export()
    };
    let exports = vec![(one, named("one")), (two, named("two"))];
    let server = volary_nfs::serve(exports, &options(1)).unwrap();
    let mut c = crate::client::Client::new(server.addresses()[0]);
    let (a, b) = (c.mnt("/one").unwrap(), c.mnt("/two").unwrap());
    assert!(c.mnt("/").is_err(), "which one?");
    let mut crossed = a.clone();
    crossed[4..8].copy_from_slice(&b[4..8]);
    assert_eq!(c.getattr(&crossed).unwrap_err(), STALE);
    let (fh, _) = c.create(&a, b"f", How::Guarded(Set::default())).unwrap();
    assert_eq!(c.rename((&a, b"f"), (&b, b"f")).unwrap_err(), 18);
    assert_eq!(c.link(&fh, &b, b"f").unwrap_err(), 18);
    let fsids = (c.getattr(&a).unwrap().fsid, c.getattr(&b).unwrap().fsid);
    assert_ne!(fsids.0, fsids.1);
}

#[test]
fn records_that_are_none_end_the_connection() {
    let served = Served::mem();
    let ends = |bytes: &[u8]| {
        let mut wire = Wire::new(served.address());
        wire.stream.write_all(bytes).unwrap();
        wire.receive().is_none()
    };
    assert!(ends(&[0xff; 4]), "too long");
    assert!(
        ends(&0x8010_2000u32.to_be_bytes()),
        "longer than before a call"
    );
    assert!(ends(&0x8000_0000u32.to_be_bytes()), "empty");
    assert!(ends(&[0; 400]), "a hundred empty pieces");
    assert!(ends(&[0x80, 0, 0, 4, 0, 0, 0, 1]), "no call");
    let reply = Args::new().u32(0x8000_0018).u32(1).u32(1).raw(&[0; 16]);
    assert!(ends(&reply.0), "a reply");
    assert_eq!(served.client().root().len(), 36);
}

#[test]
fn a_client_that_says_nothing_is_sent_away() {
    let mut how = options(1);
    how.limits = Limits {
        first_call: Duration::from_millis(100),
        ..Limits::default()
    };
    let served = Served::of(mem(), &export(), &how);
    let mut silent = Wire::new(served.address());
    let mut half = Wire::new(served.address());
    half.stream.write_all(&[0x80, 0, 0, 40, 0]).unwrap();
    assert!(silent.receive().is_none() && half.receive().is_none());
}

#[test]
fn connections_are_bounded() {
    let mut how = options(1);
    how.limits = Limits {
        connections: 3,
        ..Limits::default()
    };
    let served = Served::of(mem(), &export(), &how);
    let mut clients: Vec<_> = (0..3).map(|_| served.client()).collect();
    clients.iter_mut().for_each(|c| drop(c.root()));
    assert!(Wire::new(served.address()).receive().is_none());
    clients.pop();
    until("the place is free again", || {
        served.server.connection_count() < 3
    });
    served.client().root();
    assert_eq!(clients[0].root().len(), 36);
}

#[test]
fn a_call_that_comes_twice_is_done_once() {
    let served = Served::mem();
    let mut c = served.client();
    let root = c.root();
    let args = Args::new().opaque(&root).opaque(b"dir");
    // No attributes but the mode.
    let args = args.u32(1).u32(0o755).raw(&[0; 20]);
    let record = call(500, (NFS, 3, 9), &c.who).raw(&args.0);
    c.wire.send(&record.0);
    let first = c.wire.receive().unwrap();
    c.wire.send(&record.0);
    assert_eq!(c.wire.receive().unwrap(), first);
    // It is another call with another number.
    let again = call(501, (NFS, 3, 9), &c.who).raw(&args.0);
    c.wire.send(&again.0);
    let mut reply = Reply::new(c.wire.receive().unwrap());
    reply.take(24);
    assert_eq!(reply.u32(), 17);
    // And from another connection.
    let mut other = Wire::new(served.address());
    other.send(&record.0);
    let mut reply = Reply::new(other.receive().unwrap());
    reply.take(24);
    assert_eq!(reply.u32(), 17);
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let served = Served::mem();
    let mut c = served.client();
    let root = c.root();
    let how = How::Guarded(Set::mode(0o644));
    let (fh, _) = c.create(&root, b"file", how).unwrap();
    let data = vec![3; 100_000];
    c.write(&fh, 0, &data, 0).unwrap();
    let mut expected = std::collections::BTreeSet::new();
    for n in 0..200u32 {
        let xid = 10_000 + n;
        let args = match n % 3 {
            0 => call(xid, (NFS, 3, 1), &c.who).opaque(&fh),
            1 => call(xid, (NFS, 3, 6), &c.who)
                .opaque(&fh)
                .u64(0)
                .u32(100_000),
            _ => call(xid, (NFS, 3, 7), &c.who)
                .opaque(&fh)
                .u64(0)
                .u32(50_000)
                .u32(0)
                .opaque(&data[..50_000]),
        };
        expected.insert(xid);
        c.wire.send(&args.0);
        // A client takes answers now and then.
        if n % 8 == 7 {
            for _ in 0..8 {
                let mut reply = Reply::new(c.wire.receive().unwrap());
                assert!(expected.remove(&reply.u32()));
                reply.take(20);
                assert_eq!(reply.u32(), 0);
            }
        }
    }
    assert!(expected.is_empty());
}

#[test]
fn who_may_list_a_directory_but_not_search_it_is_given_names_alone() {
    for volume in [mem(), fat(fat_device(64 << 20))] {
        let served = Served::of(volume, &export(), &options(1));
        let mut c = served.client();
        let root = c.root();
        let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o744)).unwrap();
        let how = How::Guarded(Set::mode(0o644));
        c.create(&dir, b"file", how).unwrap();
        let listed = |c: &mut Client| {
            let page = c.readdirplus(&dir, (0, 0), (4096, 65536)).unwrap();
            assert!(page.eof && page.len <= 65536);
            page.entries
        };
        let all = listed(&mut c);
        assert!(all.iter().all(|e| e.attr.is_some() && e.fh.is_some()));
        let mut user = served.client().of_user(1001, 1001);
        assert_eq!(user.lookup(&dir, b"file").unwrap_err(), ACCES);
        let names = listed(&mut user);
        assert!(names.iter().all(|e| e.attr.is_none() && e.fh.is_none()));
        let known = |all: &[Listed]| -> Vec<_> {
            let known = all.iter().map(|e| (e.name.clone(), e.fileid, e.cookie));
            known.collect()
        };
        assert_eq!(known(&names), known(&all));
    }
}
