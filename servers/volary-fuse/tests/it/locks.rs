//! Locks between processes, and between a process and another client.

use crate::mount::{Mount, until};
use rustix::fs::{FlockOperation, fcntl_lock, flock};
use std::fs::{File, OpenOptions};
use std::process::{Child, Command, Stdio};
use volary_core::{Mode, OpenId};
use volary_fuse::{Locks, MountOptions, RequestKind};
use volary_session::{LockKind, Range, Session, Wait};

fn with(locks: Locks) -> Option<Mount> {
    let options = MountOptions {
        locks,
        ..MountOptions::default()
    };
    Mount::new(&options)
}

fn open(mount: &Mount) -> File {
    let mut how = OpenOptions::new();
    how.read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(mount.at("file"))
        .unwrap()
}

/// The file that the process is to lock that [`waiting_process`] starts.
const TO_LOCK: &str = "VOLARY_TEST_LOCK";

/// Another process that waits for a lock on the whole file and then ends.
fn waiting_process(mount: &Mount) -> Child {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "locks::what_the_other_process_does"]);
    test.env(TO_LOCK, mount.at("file"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn what_the_other_process_does() {
    if let Some(path) = std::env::var_os(TO_LOCK) {
        let file = File::options().read(true).write(true).open(path).unwrap();
        fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    }
}

/// Starts it and waits until it waits.
fn one_that_waits(mount: &Mount, locks: Locks) -> Child {
    let asked = mount.mounted.counts().of(RequestKind::SetLk);
    let opened = mount.volume.open_count();
    let mut child = waiting_process(mount);
    until("the other process waits", || match locks {
        Locks::Session => mount.mounted.counts().of(RequestKind::SetLk) > asked,
        Locks::Kernel => mount.volume.open_count() > opened,
    });
    assert!(child.try_wait().unwrap().is_none());
    child
}

fn open_by_other(mount: &Mount) -> (Session, OpenId) {
    let other = mount.other();
    let node = other.lookup(other.root(), b"file").unwrap().node;
    let open = other.open(node, Mode::ReadWrite).unwrap();
    (other, open)
}

#[test]
fn a_lock_of_another_process_is_waited_for() {
    for locks in [Locks::Kernel, Locks::Session] {
        let Some(mount) = with(locks) else { return };
        let file = open(&mount);
        fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
        let mut child = one_that_waits(&mount, locks);
        fcntl_lock(&file, FlockOperation::Unlock).unwrap();
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn who_waits_for_a_lock_can_be_killed() {
    for locks in [Locks::Kernel, Locks::Session] {
        let Some(mount) = with(locks) else { return };
        let file = open(&mount);
        fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
        let mut child = one_that_waits(&mount, locks);
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success());
        drop(file);
        fcntl_lock(open(&mount), FlockOperation::NonBlockingLockExclusive).unwrap();
    }
}

#[test]
fn whole_file_locks_of_two_opens_are_in_each_others_way() {
    for locks in [Locks::Kernel, Locks::Session] {
        let Some(mount) = with(locks) else { return };
        let (one, two) = (open(&mount), open(&mount));
        flock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
        let refused = flock(&two, FlockOperation::NonBlockingLockShared).unwrap_err();
        assert_eq!(refused, rustix::io::Errno::AGAIN);
        // They have nothing to do with ranges.
        fcntl_lock(&two, FlockOperation::NonBlockingLockExclusive).unwrap();
        drop(one);
        flock(&two, FlockOperation::NonBlockingLockShared).unwrap();
    }
}

#[test]
fn a_range_lock_of_another_client_is_in_the_way_and_the_other_way_round() {
    let Some(mount) = with(Locks::Session) else {
        return;
    };
    let file = open(&mount);
    let (other, opened) = open_by_other(&mount);
    other
        .lock(opened, 1, Range::ALL, LockKind::Shared, Wait::No)
        .unwrap();
    let refused = fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap_err();
    assert_eq!(refused, rustix::io::Errno::AGAIN);
    fcntl_lock(&file, FlockOperation::NonBlockingLockShared).unwrap();
    let refused = other
        .lock(opened, 1, Range::ALL, LockKind::Exclusive, Wait::No)
        .unwrap_err();
    assert_eq!(refused, volary_core::Kind::Locked);
    fcntl_lock(&file, FlockOperation::NonBlockingUnlock).unwrap();
    other
        .lock(opened, 1, Range::ALL, LockKind::Exclusive, Wait::No)
        .unwrap();
}

#[test]
fn closing_any_descriptor_of_a_file_gives_its_range_locks_back() {
    let Some(mount) = with(Locks::Session) else {
        return;
    };
    let file = open(&mount);
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let (other, opened) = open_by_other(&mount);
    assert_eq!(other.locks(opened).unwrap().len(), 1);
    drop(open(&mount));
    assert!(other.locks(opened).unwrap().is_empty());
}

#[test]
fn locks_that_the_kernel_keeps_are_not_seen_by_other_clients() {
    let Some(mount) = with(Locks::Kernel) else {
        return;
    };
    let file = open(&mount);
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let (other, opened) = open_by_other(&mount);
    assert!(other.locks(opened).unwrap().is_empty());
}
