//! Users of this host, who all come from one address: none gets at another's locks and shares,
//! whatever names it gives.

use crate::client::{Client, How, NFS, Set};
use crate::locks::locker;
use crate::served::{Served, export, mem, options, until};
use crate::wire::{Args, Caller, Reply, call};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use volary_core::Cred;
use volary_nfs::{Answer, Database, LockState, Output, Owner, Way};
use volary_testkit::nfs::locks::{BLOCKED, DENIED, GRANTED, Locker, NLM};

const OWNER: u32 = 1000;
const OTHER: u32 = 1001;
const RW: u32 = 3;
const EXIST: u32 = 17;
const NSM: u32 = 100_024;

/// Returns a client whose connection is this user's of the host; `None` without the right to make one.
fn client_of(served: &Served, uid: u32) -> Option<Client> {
    let address = served.address();
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "this has to be run by root");
        println!("skipped: only root can act as two users");
        return None;
    }
    // Of this thread alone, which ends.
    let connect = move || {
        let uid = rustix::fs::Uid::from_raw(uid);
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        Client::new(address)
    };
    let client = std::thread::spawn(connect).join().unwrap();
    Some(client.of_user(uid, uid))
}

/// Returns a server with a file of [`OWNER`]'s with this mode.
fn with_file(mode: u32, options: &volary_nfs::ServeOptions) -> (Served, Vec<u8>) {
    let served = Served::of(mem(), &export(), options);
    let mut c = served.client();
    let root = c.root();
    let set = Set {
        mode: Some(mode),
        uid: Some(OWNER),
        ..Set::default()
    };
    let (fh, _) = c.create(&root, b"file", How::Guarded(set)).unwrap();
    (served, fh)
}

/// Returns the owner's process 1 and another user's that gives the same names; and the owner's process 2.
fn lockers(served: &Served, fh: &[u8]) -> Option<[Locker; 3]> {
    let of = |uid, process| {
        let client = client_of(served, uid)?;
        Some(Locker::new(client, fh, b"one", process))
    };
    Some([of(OWNER, 1)?, of(OTHER, 1)?, of(OWNER, 2)?])
}

/// Says by both protocols that the machine `one` has restarted.
fn restarts(client: &mut Client) {
    for what in [(NLM, 4, 23), (NSM, 1, 6)] {
        let args = Args::new().opaque(b"one").u32(3);
        client.wire.call(what, &Caller::Nobody, &args).end();
    }
}

#[test]
fn nobody_frees_another_users_locks_and_shares() {
    let (served, fh) = with_file(0o600, &options(1));
    let Some([mut a, mut b, mut c]) = lockers(&served, &fh) else {
        return;
    };
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    assert_eq!(a.share(RW, RW), GRANTED);
    restarts(&mut b.client);
    b.unlock((0, 0));
    b.unshare();
    assert_eq!(c.test((0, 0), true), Some((true, 1, 0, 10)));
    assert_eq!(c.share(0, 1), DENIED);
    restarts(&mut c.client);
    assert_eq!(c.test((0, 0), true), None);
    assert_eq!(c.share(0, 1), GRANTED);
}

#[test]
fn nobody_is_given_another_users_lock_or_ends_its_wait() {
    let (served, fh) = with_file(0o666, &options(1));
    let Some([mut a, mut b, mut c]) = lockers(&served, &fh) else {
        return;
    };
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    assert_eq!(b.lock((0, 10), true, false), DENIED);
    let holder = (true, 0, 0, 10);
    assert_eq!(b.test((0, 10), true), Some(holder), "its process is hidden");
    assert_eq!(c.lock((0, 10), true, true), BLOCKED);
    until("it waits", || served.volume.waiting_count() == 1);
    let client = client_of(&served, OTHER).unwrap();
    let mut same_name = Locker::new(client, &fh, b"one", 2);
    assert_eq!(same_name.cancel((0, 10)), DENIED);
    restarts(&mut same_name.client);
    assert_eq!(c.cancel((0, 10)), GRANTED, "it still waited");
    assert_eq!(a.unlock((0, 0)), GRANTED);
    assert_eq!(b.lock((0, 10), true, false), GRANTED);
    assert_eq!(a.lock((0, 10), true, false), DENIED);
}

#[test]
fn who_is_believed_is_one_party_whoever_it_speaks_for() {
    let (served, fh) = with_file(0o666, &options(1));
    let mut a = locker(&served, &fh, b"one", 1);
    a.client.who = Caller::Sys(OWNER, OWNER, Vec::new());
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    // A kernel unlocks with the rights of whoever comes along, by any of its connections.
    let mut b = locker(&served, &fh, b"one", 1);
    b.client.who = Caller::Sys(OTHER, OTHER, Vec::new());
    assert_eq!(b.unlock((0, 5)), GRANTED);
    let mut c = locker(&served, &fh, b"two", 3);
    assert_eq!(c.test((0, 0), true), Some((true, 1, 5, 5)));
    restarts(&mut c.client);
    assert_eq!(c.test((0, 0), true), None);
}

#[test]
fn who_may_not_touch_a_file_shares_it_with_nobody() {
    let (served, fh) = with_file(0o600, &options(1));
    let mut b = locker(&served, &fh, b"one", 1);
    b.client.who = Caller::Sys(OTHER, OTHER, Vec::new());
    let kept = served.volume.open_count();
    for wants in [0, RW] {
        assert_eq!(b.share(RW, wants), DENIED);
    }
    assert_eq!(served.volume.open_count(), kept);
}

#[test]
fn who_may_not_lock_makes_no_name_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("locks");
    let mut how = options(1);
    how.locks = Some(Arc::new(LockState::open(&path, Duration::ZERO).unwrap()));
    let (served, fh) = with_file(0o600, &how);
    let before = std::fs::read(&path).unwrap();
    let mut b = locker(&served, &fh, b"one", 1);
    b.client.who = Caller::Sys(OTHER, OTHER, Vec::new());
    assert_eq!(b.lock((0, 0), true, false), DENIED);
    assert_eq!(b.share(0, 0), DENIED);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Nor is there one that is longer than a machine's can be.
    assert_eq!(lock_status(&served, &fh, &[b'x'; 256]), None);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(names_had(&served, &fh), 64, "names of one party");
    assert_eq!(lines(&path), 64);
}

/// Returns how many of a hundred machines of one party are given a lock.
fn names_had(served: &Served, fh: &[u8]) -> usize {
    let names = (0..100_u8).map(|n| [n; 255]);
    names
        .filter(|name| lock_status(served, fh, name) == Some(GRANTED))
        .count()
}

/// Returns what root is answered that locks the file, shared, as this machine; `None` if it is no call.
fn lock_status(served: &Served, fh: &[u8], machine: &[u8]) -> Option<u32> {
    let args = Args::new().opaque(b"").u32(0).u32(0).opaque(machine);
    let args = args.opaque(fh).opaque(b"").u32(1).u64(0).u64(0);
    let mut c = served.client();
    let who = c.who.clone();
    let mut reply = c.wire.ask((NLM, 4, 2), &who, &args.u32(0).u32(1));
    let head = [reply.u32(), reply.u32(), reply.u32(), reply.u32()];
    (head == [0; 4]).then(|| {
        reply.opaque();
        reply.u32()
    })
}

fn lines(path: &Path) -> usize {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter(|line| line.starts_with("client "))
        .count()
}

#[test]
fn a_user_is_not_given_what_another_was_answered_at_the_same_port() {
    let (served, _) = with_file(0o600, &options(1));
    let mut c = served.client();
    let root = c.root();
    c.setattr(&root, &Set::mode(0o1777), None).unwrap();
    let set = Args::new().u32(0).u32(0).u32(0).u32(0).u32(0).u32(0);
    let args = Args::new().opaque(&root).opaque(b"dir").raw(&set.0);
    let who = Caller::Sys(OWNER, OWNER, Vec::new());
    let record = call(7, (NFS, 3, 9), &who).raw(&args.0).0;
    let status_of = |uid| {
        let database = Database::new(|uid| Cred::new(uid, uid));
        let way = Way {
            peer: SocketAddr::from(([127, 0, 0, 1], 1023)),
            local: served.address(),
            only_portmap: false,
            owner: Arc::new(Owner::User(uid, OnceLock::new(), database)),
        };
        let mut out = Output::new();
        let answer = served.server.programs().answer(&way, &record, &mut out);
        assert_eq!(answer, Answer::Accepted);
        let mut reply = Reply::new(out.bytes().to_vec());
        reply.take(24);
        reply.u32()
    };
    assert_eq!(status_of(OWNER), 0);
    assert_eq!(status_of(OWNER), 0, "it is not done twice");
    assert_eq!(status_of(OTHER), EXIST);
}
