//! Locks of NFS clients, beside those of others on the same volume.

use crate::client::{How, Set};
use crate::served::{PATIENCE, Served, export, mem, options, until};
use crate::wire::{Args, Caller, Reply, call};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use volary_core::Mode;
use volary_session::{LockKind, OpenHow, Range, Rights, Share, Wait};
use volary_testkit::nfs::locks::{BLOCKED, DENIED, GRANTED, Locker, NLM, STALE};

pub(crate) fn locker(served: &Served, fh: &[u8], machine: &'static [u8], process: u32) -> Locker {
    Locker::new(served.client(), fh, machine, process)
}

fn started() -> (Served, Vec<u8>) {
    with(mem(), 111)
}

fn with(volume: std::sync::Arc<volary_session::Volume>, portmap: u16) -> (Served, Vec<u8>) {
    let mut how = options(1);
    how.client_portmap = portmap;
    let served = Served::of(volume, &export(), &how);
    let mut c = served.client();
    let root = c.root();
    let (fh, _) = c
        .create(&root, b"file", How::Guarded(Set::mode(0o644)))
        .unwrap();
    (served, fh)
}

#[test]
fn locks_are_kept_apart_by_owner_and_range() {
    let (served, fh) = started();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"one", 2);
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    assert_eq!(b.lock((5, 1), false, false), DENIED);
    assert_eq!(b.lock((10, 0), true, false), GRANTED);
    assert_eq!(b.test((0, 0), true), Some((true, 1, 0, 10)));
    assert_eq!(a.test((20, 5), false), Some((true, 2, 10, 0)));
    assert_eq!(a.test((3, 2), true), None);
    assert_eq!(a.unlock((3, 2)), GRANTED);
    assert_eq!(b.lock((3, 2), true, false), GRANTED);
    assert_eq!(b.lock((0, 3), true, false), DENIED);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    assert_eq!(b.unlock((0, 0)), GRANTED);
    assert_eq!(served.server.programs().kept().1, 0, "files with locks");
    assert_eq!(served.volume.waiting_count(), 0);
}

#[test]
fn locks_of_other_servers_clients_are_seen_and_seen_by_them() {
    let (served, fh) = started();
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let open = other.open(node, Mode::ReadWrite).unwrap();
    let mut a = locker(&served, &fh, b"one", 1);
    let first = Range::new(0, 10);
    other
        .lock(open, 7, first, LockKind::Exclusive, Wait::No)
        .unwrap();
    assert_eq!(a.lock((0, 1), false, false), DENIED);
    assert_eq!(a.test((9, 5), false), Some((true, 0, 0, 10)));
    assert_eq!(a.lock((10, 10), true, false), GRANTED);
    let taken = other.lock(open, 7, Range::new(15, 1), LockKind::Shared, Wait::No);
    assert_eq!(taken.unwrap_err().kind(), volary_core::Kind::Locked);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    let all = Range::ALL;
    other
        .lock(open, 7, all, LockKind::Exclusive, Wait::No)
        .unwrap();
    other.close(open).unwrap();
}

#[test]
fn who_asks_for_a_lock_and_gets_no_answer_leaves_nothing() {
    let (served, fh) = started();
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let alone = Share {
        wants: Rights::READ,
        allows: Rights::NONE,
    };
    let open = other.open(node, OpenHow::from(Mode::Read).with_share(alone));
    let mut a = locker(&served, &fh, b"one", 1);
    assert_ne!(a.test_status((0, 1)), GRANTED);
    assert_ne!(a.lock((0, 1), true, true), GRANTED);
    assert_eq!(served.server.programs().kept().1, 0, "files with locks");
    other.close(open.unwrap()).unwrap();
    assert_eq!(a.test((0, 1), true), None);
    assert_eq!(served.server.programs().kept().1, 0, "files with locks");
}

#[test]
fn shares_are_share_modes_of_the_session() {
    const R: u32 = 1;
    const W: u32 = 2;
    let (served, fh) = started();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.share(W, R | W), GRANTED);
    assert_eq!(b.share(0, W), DENIED);
    assert_eq!(b.share(W, R), DENIED, "a writes");
    assert_eq!(b.share(0, R), GRANTED);
    assert_eq!(a.share(R | W, R), DENIED, "b reads");
    assert_eq!(b.share(0, W), DENIED, "a's former share is still there");
    // An open of another server's client is in its way, and it in that one's.
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let refused = other.open(node, Mode::Write).unwrap_err();
    assert_eq!(refused.kind(), volary_core::Kind::Sharing);
    let open = other.open(node, Mode::Read).unwrap();
    // What a client reads and writes is in no share's way.
    a.client.write(&fh, 0, b"data", 0).unwrap();
    b.client.write(&fh, 0, b"tada", 0).unwrap();
    assert_eq!((a.unshare(), a.unshare()), (GRANTED, GRANTED));
    assert_eq!(b.share(R, W), DENIED, "the other reads");
    other.close(open).unwrap();
    let open = other.open(node, Mode::Write).unwrap();
    other.close(open).unwrap();
    assert_eq!(b.share(R | W, R | W), GRANTED);
    assert_eq!(a.share(0, R), DENIED);
}

#[test]
fn a_share_that_is_refused_does_not_give_up_the_former_one_even_for_a_moment() {
    const R: u32 = 1;
    const W: u32 = 2;
    let (served, fh) = started();
    let kept = served.volume.open_count();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.share(W, R), GRANTED);
    assert_eq!(b.share(0, R), GRANTED);
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let intruder = scope.spawn(|| {
            let mut tries = 0;
            while !done.load(Ordering::Relaxed) || tries == 0 {
                let refused = other.open(node, Mode::Write).map_err(|e| e.kind());
                assert_eq!(refused, Err(volary_core::Kind::Sharing), "try {tries}");
                tries += 1;
            }
        });
        for _ in 0..200 {
            assert_eq!(a.share(W | R, R), DENIED, "b reads");
        }
        // Nor does one that is had.
        for denies in [W, W | R].into_iter().cycle().take(200) {
            assert_eq!(b.unshare(), GRANTED);
            assert_eq!(a.share(denies, R | W), GRANTED);
        }
        done.store(true, Ordering::Relaxed);
        intruder.join().unwrap();
    });
    assert_eq!(a.unshare(), GRANTED);
    assert!(served.volume.open_count() <= kept);
}

#[test]
fn locks_and_shares_of_nfs_clients_are_not_in_each_others_way() {
    const RW: u32 = 3;
    let (served, fh) = started();
    let kept = served.volume.open_count();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    assert_eq!(a.share(RW, RW), GRANTED);
    assert_eq!(a.lock((0, 10), true, false), GRANTED, "its own share");
    assert_eq!(a.lock((10, 10), false, false), GRANTED);
    assert_eq!(b.lock((5, 1), true, false), DENIED, "the lock");
    assert_eq!(b.lock((30, 1), true, false), GRANTED);
    assert_eq!(a.unshare(), GRANTED);
    assert_eq!(a.share(RW, RW), GRANTED, "its own lock, and b's");
    assert_eq!((a.unshare(), b.unlock((0, 0))), (GRANTED, GRANTED));
    // What has a lock counts to others as open for that.
    let how = OpenHow::from(Mode::Read).with_share(Share {
        wants: Rights::READ,
        allows: Rights::READ,
    });
    let refused = other.open(node, how).unwrap_err();
    assert_eq!(refused.kind(), volary_core::Kind::Sharing);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    let open = other.open(node, how).unwrap();
    assert_eq!(a.lock((0, 10), true, false), DENIED, "the other's share");
    assert_eq!(a.lock((0, 10), false, false), GRANTED);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    other.close(open).unwrap();
    assert!(served.volume.open_count() <= kept);
}

#[test]
fn a_client_that_restarts_loses_its_shares() {
    let (served, fh) = started();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.share(3, 3), GRANTED);
    let notify = Args::new().opaque(b"two").u32(3);
    a.client
        .wire
        .call((100_024, 1, 6), &Caller::Nobody, &notify);
    assert_eq!(b.share(0, 1), DENIED);
    let notify = Args::new().opaque(b"one").u32(3);
    a.client
        .wire
        .call((100_024, 1, 6), &Caller::Nobody, &notify);
    assert_eq!(b.share(0, 1), GRANTED);
}

#[test]
fn a_client_that_waits_is_called_back() {
    let (portmap, calls) = lock_manager(0);
    let (served, fh) = with(mem(), portmap);
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
    assert_eq!(b.lock((5, 5), true, true), BLOCKED);
    assert_eq!(b.lock((5, 5), true, true), BLOCKED);
    until("it waits", || served.volume.waiting_count() == 1);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    let (mut granted, _) = calls.recv_timeout(PATIENCE).unwrap();
    granted.opaque();
    assert!(granted.bool(), "exclusively");
    assert_eq!(granted.opaque(), b"two");
    assert_eq!(granted.opaque(), fh);
    until("the wait is over", || served.volume.waiting_count() == 0);
    assert_eq!(a.lock((7, 1), false, false), DENIED);
    assert_eq!(b.unlock((0, 0)), GRANTED);
    assert_eq!(a.lock((7, 1), false, false), GRANTED);
}

#[test]
fn calls_back_come_from_the_address_that_the_client_came_to() {
    let mut how = options(1);
    how.listen = vec![SocketAddr::from(([127, 0, 0, 2], 0))];
    let (portmap, calls) = lock_manager(0);
    how.client_portmap = portmap;
    let served = Served::of(mem(), &export(), &how);
    let mut c = served.client();
    let root = c.root();
    let made = c.create(&root, b"file", How::Guarded(Set::mode(0o644)));
    let fh = made.unwrap().0;
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
    assert_eq!(b.lock((5, 5), true, true), BLOCKED);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    let (_, from) = calls.recv_timeout(PATIENCE).unwrap();
    assert_eq!(from, served.address().ip());
}

#[test]
fn a_lock_that_the_client_does_not_want_any_more_goes_back() {
    let (portmap, calls) = lock_manager(1);
    let (served, fh) = with(mem(), portmap);
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
    assert_eq!(b.lock((0, 0), true, true), BLOCKED);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    calls.recv_timeout(PATIENCE).unwrap();
    until("the file is free", || {
        served.server.programs().kept().1 == 0
    });
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
}

#[test]
fn a_client_that_cannot_be_called_asks_again() {
    // Nobody answers there.
    let (served, fh) = with(mem(), 1);
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
    assert_eq!(b.lock((0, 0), true, true), BLOCKED);
    assert_eq!(a.unlock((0, 0)), GRANTED);
    until("it is granted", || b.lock((0, 0), true, true) == GRANTED);
    until("nobody waits", || served.volume.waiting_count() == 0);
    crate::served::rest(50);
    assert_eq!(a.lock((0, 1), false, false), DENIED, "it is b's");
}

#[test]
fn waiting_is_cancelled() {
    let (served, fh) = started();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
    assert_eq!(b.lock((0, 0), true, true), BLOCKED);
    assert_eq!(b.cancel((0, 0)), GRANTED);
    until("nobody waits", || served.volume.waiting_count() == 0);
    // What was waited for is forgotten a moment later.
    while b.cancel((0, 0)) == GRANTED {
        crate::served::rest(1);
    }
    assert_eq!(a.unlock((0, 0)), GRANTED);
    until("the file is free", || {
        served.server.programs().kept().1 == 0
    });
}

#[test]
fn a_machine_that_restarts_has_no_locks() {
    let (served, fh) = started();
    for program in [NLM, 100_024] {
        let mut a = locker(&served, &fh, b"one", 1);
        let mut b = locker(&served, &fh, b"two", 2);
        assert_eq!(a.lock((0, 10), true, false), GRANTED);
        assert_eq!(b.lock((10, 10), true, false), GRANTED);
        let args = Args::new().opaque(b"one").u32(3);
        let what = match program {
            NLM => (NLM, 4, 23),
            _ => (program, 1, 6),
        };
        a.client.wire.call(what, &Caller::Nobody, &args).end();
        assert_eq!(b.lock((0, 10), true, false), GRANTED);
        assert_eq!(b.unlock((0, 0)), GRANTED);
    }
    assert_eq!(served.server.programs().kept().1, 0);
}

#[test]
fn who_may_not_touch_a_file_may_not_lock_it() {
    let (served, fh) = started();
    let mut c = served.client();
    c.setattr(&fh, &Set::mode(0o600), None).unwrap();
    let mut a = locker(&served, &fh, b"one", 1);
    a.client.who = Caller::Sys(1000, 100, vec![]);
    assert_eq!(a.lock((0, 0), false, false), DENIED);
    a.client.who = Caller::Sys(0, 0, vec![]);
    assert_eq!(a.lock((0, 0), false, false), GRANTED);
    a.fh = vec![0; 36];
    assert_eq!(a.lock((0, 0), false, false), STALE);
}

#[test]
fn locks_and_waits_end_with_the_server() {
    let (served, fh) = started();
    let volume = served.volume.clone();
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.lock((0, 0), true, false), GRANTED);
    assert_eq!(b.lock((0, 0), true, true), BLOCKED);
    drop(served);
    until("nobody waits", || volume.waiting_count() == 0);
    assert_eq!(volume.open_count(), 0);
}

/// Returns a client's portmapper, lock manager and status monitor in one, which answers each
/// GRANTED with `status`: its port, and the arguments of the calls with where they came
/// from.
pub(crate) fn lock_manager(status: u32) -> (u16, mpsc::Receiver<(Reply, IpAddr)>) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (calls, received) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let from = stream.peer_addr().unwrap().ip();
            let Some(granted) = answer(stream, port, status) else {
                continue;
            };
            if calls.send((granted, from)).is_err() {
                return;
            }
        }
    });
    (port, received)
}

/// Answers one call; gives the arguments of GRANTED and SM_NOTIFY.
fn answer(mut stream: TcpStream, port: u16, status: u32) -> Option<Reply> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).ok()?;
    let len = u32::from_be_bytes(mark) & !(1 << 31);
    let mut record = vec![0; len as usize];
    stream.read_exact(&mut record).ok()?;
    let mut head = Reply::new(record);
    let xid = head.u32();
    head.take(8);
    let what = (head.u32(), head.u32(), head.u32());
    head.take(16);
    let answer = Args::new().u32(xid).u32(1).u32(0).u32(0).u32(0).u32(0);
    let (answer, granted) = match what {
        (100_000, 2, 3) => {
            let asked = (head.u32(), head.u32(), head.u32());
            assert!([(NLM, 4, 6), (100_024, 1, 6)].contains(&asked), "{asked:?}");
            (answer.u32(port.into()), None)
        }
        (NLM, 4, 5) => (answer.opaque(b"").u32(status), Some(head)),
        (100_024, 1, 6) => (answer, Some(head)),
        other => panic!("{other:?}"),
    };
    let mark = (answer.0.len() as u32 | 1 << 31).to_be_bytes();
    stream.write_all(&[&mark, &answer.0[..]].concat()).ok()?;
    granted
}

#[test]
fn a_call_of_nlm_can_be_repeated_by_hand() {
    // What a client sends, byte by byte: TEST of all bytes of no file.
    let (served, _) = started();
    let mut wire = crate::wire::Wire::new(served.address());
    let args = Args::new().opaque(b"c").u32(1).opaque(b"m");
    let args = args.opaque(b"short").opaque(b"o").u32(1).u64(0).u64(0);
    wire.send(&call(3, (NLM, 4, 1), &Caller::Nobody).raw(&args.0).0);
    let mut reply = Reply::new(wire.receive().unwrap());
    reply.take(24);
    assert_eq!((reply.opaque(), reply.u32()), (b"c".to_vec(), STALE));
    reply.end();
}
