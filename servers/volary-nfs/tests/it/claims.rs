//! Locks that are claimed again after a restart of the server.

use crate::client::{How, Set};
use crate::locks::{lock_manager, locker};
use crate::served::{PATIENCE, Served, export, fat, fat_device, mem, options, until};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Cancel, Kind, Mode};
use volary_nfs::LockState;
use volary_session::{LockKind, OpenHow, Range, Rights, Share, Wait};
use volary_testkit::nfs::locks::{DENIED, GRACE, GRANTED};

static NEVER: Cancel = Cancel::new();

/// Returns a server that begins with a time of grace: a client had locks.
fn in_grace(path: &Path, grace: Duration) -> (Served, Vec<u8>) {
    let run = || {
        let mut how = options(1);
        // Nobody is there to be told.
        how.client_portmap = 1;
        how.locks = Some(Arc::new(LockState::open(path, grace).unwrap()));
        let served = Served::of(mem(), &export(), &how);
        let mut c = served.client();
        let root = c.root();
        let made = c.create(&root, b"file", How::Guarded(Set::mode(0o644)));
        let fh = made.unwrap().0;
        (served, fh)
    };
    let (served, fh) = run();
    assert_eq!(
        locker(&served, &fh, b"one", 1).lock((0, 10), true, false),
        GRANTED
    );
    drop(served);
    run()
}

#[test]
fn locks_are_claimed_again_after_a_restart_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("locks");
    let dev = fat_device(64 << 20);
    let (portmap, calls) = lock_manager(0);
    let run = |instance, grace| {
        let mut how = options(instance);
        how.client_portmap = portmap;
        how.locks = Some(Arc::new(LockState::open(&path, grace).unwrap()));
        Served::of(fat(dev.clone()), &export(), &how)
    };
    let stop = |served: Served| {
        let volume = served.volume.clone();
        drop(served);
        volume.detach().unwrap();
    };
    let hour = Duration::from_secs(3600);
    let served = run(1, hour);
    let mut c = served.client();
    let root = c.root();
    let how = How::Guarded(Set::mode(0o644));
    let (fh, _) = c.create(&root, b"file", how).unwrap();
    let mut a = locker(&served, &fh, b"one", 1);
    // Nobody had locks before: there is no time of grace.
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    stop(served);

    let served = run(2, hour);
    let (mut told, _) = calls.recv_timeout(PATIENCE).unwrap();
    assert_eq!((told.opaque(), told.u32()), (b"127.0.0.1".to_vec(), 5));
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(b.lock((0, 10), true, false), GRACE);
    assert_eq!(b.lock((20, 1), false, true), GRACE, "nor any other");
    assert_eq!(b.share(0, 1), GRACE);
    assert_eq!(a.reclaim((0, 10), true), GRANTED);
    assert_eq!(b.reclaim((5, 1), true), DENIED, "it was not b's");
    assert_eq!(a.unlock((0, 10)), GRANTED);
    stop(served);

    let served = run(3, Duration::ZERO);
    let mut a = locker(&served, &fh, b"one", 1);
    let mut b = locker(&served, &fh, b"two", 2);
    assert_eq!(a.reclaim((0, 10), true), GRACE, "others may have had it");
    assert_eq!(b.lock((0, 10), true, false), GRANTED);
    assert_eq!(a.lock((0, 10), true, false), DENIED);
}

#[test]
fn without_a_place_to_keep_who_has_locks_none_are_given() {
    let dir = tempfile::tempdir().unwrap();
    let below = dir.path().join("below");
    std::fs::create_dir(&below).unwrap();
    let mut how = options(1);
    let state = LockState::open(&below.join("locks"), Duration::ZERO);
    how.locks = Some(Arc::new(state.unwrap()));
    let served = Served::of(mem(), &export(), &how);
    let mut c = served.client();
    let root = c.root();
    let made = c.create(&root, b"file", How::Guarded(Set::mode(0o644)));
    std::fs::remove_dir_all(&below).unwrap();
    let mut a = locker(&served, &made.unwrap().0, b"one", 1);
    const NO_LOCKS: u32 = 2;
    assert_eq!(a.lock((0, 10), true, false), NO_LOCKS);
    std::fs::create_dir(&below).unwrap();
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
}

#[test]
fn clients_of_other_servers_are_kept_out_while_locks_are_claimed() {
    let dir = tempfile::tempdir().unwrap();
    let (served, fh) = in_grace(&dir.path().join("locks"), Duration::from_secs(3600));
    let volume = Arc::clone(&served.volume);
    let mut a = locker(&served, &fh, b"one", 1);
    let other = served.other().with_client(volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    // It shares with nobody, and yet did not come first.
    let alone = OpenHow::from(Mode::ReadWrite).with_share(Share {
        wants: Rights::ALL,
        allows: Rights::NONE,
    });
    let open = other.open(node, alone).unwrap();
    let (near, far) = (Range::new(9, 1), Range::new(50, 1));
    for range in [near, far] {
        let taken = other.lock(open, 1, range, LockKind::Exclusive, Wait::No);
        assert_eq!(taken.unwrap_err().kind(), Kind::Locked);
    }
    assert_eq!(a.reclaim((0, 10), true), GRANTED);
    std::thread::scope(|scope| {
        let wait = || other.lock(open, 1, far, LockKind::Exclusive, Wait::Yes(&NEVER));
        let waiting = scope.spawn(wait);
        until("it waits", || volume.waiting_count() == 1);
        // The claimed lock and the time of grace end with the server.
        drop(served);
        waiting.join().unwrap().unwrap();
    });
    let taken = other.lock(open, 1, near, LockKind::Exclusive, Wait::No);
    taken.unwrap();
    other.close(open).unwrap();
}

#[test]
fn a_time_of_grace_is_over_for_all_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (served, fh) = in_grace(&dir.path().join("locks"), Duration::from_secs(1));
    let mut b = locker(&served, &fh, b"two", 2);
    let other = served.other().with_client(served.volume.client());
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let open = other.open(node, Mode::ReadWrite).unwrap();
    // Whoever waits needs no NFS client to ask.
    let all = Range::new(0, 10);
    other
        .lock(open, 1, all, LockKind::Exclusive, Wait::Yes(&NEVER))
        .unwrap();
    assert_eq!(b.lock((0, 10), true, false), DENIED);
    assert_eq!(b.reclaim((20, 1), true), GRACE, "it is over");
    assert_eq!(b.lock((20, 1), true, false), GRANTED);
    other.close(open).unwrap();
}
