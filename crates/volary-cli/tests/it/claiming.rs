//! Locks of NFS clients when their server is killed: nobody has them before they are
//! claimed again.

use crate::sandbox::Sandbox;
use crate::serving::{Serving, can_mount};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;
use std::fs::{self, File};
use volary_testkit::nfs::client::{Client, How, Set};
use volary_testkit::nfs::locks::{DENIED, GRACE, GRANTED, Locker};

/// Serves a directory with a mount beside, at an address that no other test has: this
/// process's own part of 127/8.
fn serve(sandbox: &Sandbox) -> Serving {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let words = format!(
        "serve --json --key key --nfs 127.77.{high}.{low}:2049 --squash none --mount mnt \
         --grace 3600 host:top"
    );
    Serving::of(sandbox.command(&words.split(' ').collect::<Vec<_>>()))
}

fn client(serving: &Serving) -> Client {
    Client::new(serving.said["nfs"].as_str().unwrap().parse().unwrap())
}

#[test]
fn a_mount_waits_until_nfs_clients_have_claimed_their_locks_again() {
    if !can_mount() {
        return;
    }
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("top")).unwrap();
    let serving = serve(&sandbox);
    let mut c = client(&serving);
    let root = c.mnt("/top").unwrap();
    let made = c.create(&root, b"file", How::Guarded(Set::mode(0o666)));
    let fh = made.unwrap().0;
    let mut a = Locker::new(c, &fh, b"one", 1);
    assert_eq!(a.lock((0, 10), true, false), GRANTED);
    // Killed by a signal that it does not see.
    drop((a, serving));

    let serving = serve(&sandbox);
    let path = sandbox.path("mnt/file");
    let file = File::options().read(true).write(true).open(path).unwrap();
    let lock = || fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive);
    let [mut a, mut b] =
        [&b"one"[..], b"two"].map(|machine| Locker::new(client(&serving), &fh, machine, 1));
    assert_eq!(lock(), Err(Errno::AGAIN));
    assert_eq!(b.lock((20, 1), true, false), GRACE);
    assert_eq!(a.reclaim((0, 10), true), GRANTED);
    assert_eq!(b.reclaim((0, 10), true), DENIED);
    assert_eq!(a.unlock((0, 10)), GRANTED);
    assert_eq!(lock(), Err(Errno::AGAIN), "others may claim");
    drop(file);
    let ended = serving.end("-TERM");
    // It says that the mount was a killed server's, too.
    assert_eq!(ended.code, 0, "{}", ended.err);
}
