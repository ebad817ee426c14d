//! Share modes, deletions and leases of another server's clients, seen through
//! the mount.

use crate::mount::{Mount, until};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use volary_core::{Kind, Mode, OpenId, RenameFlags, SetAttr};
use volary_fuse::MountOptions;
use volary_session::{LeaseBits, LeaseBreak, LeaseKey, LeaseSink, OpenHow, Rights, Session, Share};

const KEY: LeaseKey = LeaseKey {
    client: [1; 16],
    key: [1; 16],
};
const R: LeaseBits = LeaseBits::READ;
pub(crate) const RH: LeaseBits = LeaseBits(3);
const RHW: LeaseBits = LeaseBits::ALL;

/// Takes the kernel some milliseconds to be told of.
const NEWS: usize = 3000;

fn mount() -> Option<Mount> {
    Mount::new(&MountOptions::default())
}

/// Returns an open by a client of another server.
fn open(s: &Session, name: &str, allows: Rights) -> volary_core::Result<OpenId> {
    let node = s.lookup(s.root(), name.as_bytes())?.node;
    let wants = Rights::ALL;
    let how = OpenHow::from(Mode::ReadWrite).with_share(Share { wants, allows });
    s.open_entry_of(
        node,
        Some((s.root(), name.as_bytes())),
        how.with_lease_key(KEY),
    )
}

struct Told(Mutex<Sender<LeaseBreak>>);

impl LeaseSink for Told {
    fn broken(&self, broken: &LeaseBreak) {
        let _ = self.0.lock().unwrap().send(*broken);
    }
}

/// Returns an open of `name` with a lease, and its breaks.
pub(crate) fn leased(s: &Session, name: &str, want: LeaseBits) -> (OpenId, Receiver<LeaseBreak>) {
    let (sender, breaks) = channel();
    let open = open(s, name, Rights::ALL).unwrap();
    let lease = s.lease(open, KEY, want, Arc::new(Told(Mutex::new(sender))));
    assert_eq!(lease.unwrap().granted, want);
    (open, breaks)
}

fn errno<T>(answer: io::Result<T>) -> Option<i32> {
    answer.err().and_then(|e| e.raw_os_error())
}

#[test]
fn what_another_does_not_share_is_busy() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    fs::write(mount.at("f"), "text").unwrap();
    fs::write(mount.at("g"), "text").unwrap();
    let alone = open(&other, "f", Rights::NONE).unwrap();
    let busy = Some(Errno::BUSY.raw_os_error());
    let answers = [
        errno(File::open(mount.at("f"))),
        errno(fs::write(mount.at("f"), "x")),
        errno(OpenOptions::new().write(true).open(mount.at("f"))),
        errno(fs::remove_file(mount.at("f"))),
        errno(fs::rename(mount.at("f"), mount.at("h"))),
        errno(fs::rename(mount.at("g"), mount.at("f"))),
    ];
    assert_eq!(answers, [busy; 6]);
    assert_eq!(fs::metadata(mount.at("f")).unwrap().len(), 4);
    other.close(alone).unwrap();
    let held = File::open(mount.at("f")).unwrap();
    let refused = open(&other, "f", Rights::NONE).unwrap_err();
    assert_eq!(refused, Kind::Sharing);
    drop(held);
    // The kernel tells of a close when it has the time.
    until("it is closed", || open(&other, "f", Rights::NONE).is_ok());
}

#[test]
fn what_is_to_go_is_not_opened_and_then_gone() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    fs::write(mount.at("f"), "text").unwrap();
    until("it is closed", || mount.volume.open_count() == 0);
    let last = open(&other, "f", Rights::ALL).unwrap();
    other.set_delete(last, true).unwrap();
    let absent = Some(Errno::NOENT.raw_os_error());
    assert_eq!(errno(File::open(mount.at("f"))), absent);
    assert_eq!(fs::metadata(mount.at("f")).unwrap().len(), 4);
    other.close(last).unwrap();
    until("the name is gone", || !mount.at("f").exists());
    assert_eq!(fs::read_dir(mount.mounted.path()).unwrap().count(), 0);
}

#[test]
fn what_another_has_gathered_is_read_at_once() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    // On a busy host the kernel may not be told of the size in the time that an open waits:
    // then it shows as much of the new text as there was of the old.
    let mut whole = 0;
    for round in 0..200 {
        if round >= 8 && whole > 0 {
            break;
        }
        let (old, new) = (format!("old {round}"), format!("new and longer {round}"));
        fs::write(mount.at("f"), &old).unwrap();
        // The kernel keeps this, if it is not told otherwise.
        assert_eq!(fs::read_to_string(mount.at("f")).unwrap(), old);
        until("it is closed", || mount.volume.open_count() == 0);
        let (open, breaks) = leased(&other, "f", RHW);
        let path = mount.at("f");
        let reader = thread::spawn(move || fs::read_to_string(path));
        let broken = breaks.recv().unwrap();
        assert_eq!((broken.from, broken.to), (RHW, RH));
        // News of other things keeps the one who tells the kernel busy.
        for _ in 0..NEWS {
            other.setattr(other.root(), &SetAttr::mode(0o755)).unwrap();
        }
        other.write(open, Some(0), new.as_bytes()).unwrap();
        other.acknowledge(KEY, RH).unwrap();
        let read = reader.join().unwrap().unwrap();
        assert!(read == new || read == new[..old.len()], "{read}");
        whole += usize::from(read == new);
        other.close(open).unwrap();
    }
    assert!(whole > 0);
}

#[test]
fn a_write_and_an_unlink_break_leases() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    fs::write(mount.at("f"), "text").unwrap();
    until("it is closed", || mount.volume.open_count() == 0);
    let (open, breaks) = leased(&other, "f", RH);
    let path = mount.at("f");
    let writer = thread::spawn(move || fs::write(path, "other text"));
    assert_eq!(breaks.recv().unwrap().to, LeaseBits::NONE);
    other.acknowledge(KEY, LeaseBits::NONE).unwrap();
    writer.join().unwrap().unwrap();
    other.close(open).unwrap();
    until("it is closed", || mount.volume.open_count() == 0);
    for again in [false, true] {
        let (open, breaks) = leased(&other, "f", RH);
        let (path, to) = (mount.at("f"), mount.at("g"));
        let changing = thread::spawn(move || match again {
            false => fs::rename(&path, &to).and_then(|()| fs::rename(to, path)),
            true => fs::remove_file(path),
        });
        assert_eq!(breaks.recv().unwrap().to, R);
        other.close(open).unwrap();
        changing.join().unwrap().unwrap();
    }
    assert!(!mount.at("f").exists());
}

#[test]
fn one_who_waits_for_a_lease_keeps_nobody_else() {
    let options = MountOptions {
        threads: Some(1),
        ..MountOptions::default()
    };
    let Some(mount) = Mount::new(&options) else {
        return;
    };
    let other = mount.other();
    fs::create_dir(mount.at("d")).unwrap();
    for name in ["f", "d/g"] {
        fs::write(mount.at(name), "text").unwrap();
    }
    until("all is closed", || mount.volume.open_count() == 0);
    let (open, breaks) = leased(&other, "f", RHW);
    let (path, to) = (mount.at("f"), mount.at("h"));
    let waiting = [
        thread::spawn({
            let path = path.clone();
            move || File::open(path).map(drop)
        }),
        thread::spawn(move || fs::rename(path, to)),
    ];
    breaks.recv().unwrap();
    until("both wait", || mount.volume.waiting_count() == 2);
    assert_eq!(fs::read_to_string(mount.at("d/g")).unwrap(), "text");
    fs::write(mount.at("d/new"), "x").unwrap();
    fs::remove_file(mount.at("d/g")).unwrap();
    other.close(open).unwrap();
    for waits in waiting {
        waits.join().unwrap().unwrap();
    }
    assert!(mount.at("h").exists());
}

#[test]
fn one_who_waits_for_a_lease_can_be_killed() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    fs::write(mount.at("f"), "text").unwrap();
    until("it is closed", || mount.volume.open_count() == 0);
    let (_open, breaks) = leased(&other, "f", RHW);
    let mut cat = Command::new("cat");
    let mut reader = cat
        .arg(mount.at("f"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    breaks.recv().unwrap();
    until("it waits", || mount.volume.waiting_count() == 1);
    reader.kill().unwrap();
    assert!(!reader.wait().unwrap().success());
    until("nobody waits", || mount.volume.waiting_count() == 0);
}

#[test]
fn the_mount_ends_while_one_waits_for_a_lease() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    fs::write(mount.at("f"), "text").unwrap();
    until("it is closed", || mount.volume.open_count() == 0);
    let (_open, breaks) = leased(&other, "f", RHW);
    let path = mount.at("f");
    let reader = thread::spawn(move || fs::read(path));
    breaks.recv().unwrap();
    until("it waits", || mount.volume.waiting_count() == 1);
    mount.volume.detach().unwrap();
    assert!(reader.join().unwrap().is_err());
}

/// Data, attributes, entries and a deletion by another, one after the other,
/// with everything in the kernel's caches before.
#[test]
fn what_another_changes_replaces_what_the_kernel_remembers() {
    let Some(mount) = mount() else { return };
    let other = mount.other();
    let top = other.root();
    fs::create_dir(mount.at("d")).unwrap();
    fs::write(mount.at("d/f"), "text").unwrap();
    let listed = || {
        let entries = fs::read_dir(mount.at("d")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(listed(), ["f"]);
    assert!(!mount.at("d/new").exists());
    let kept = File::open(mount.at("d/f")).unwrap();
    let dir = other.lookup(top, b"d").unwrap().node;
    let node = other.lookup(dir, b"f").unwrap().node;
    other.setattr(node, &SetAttr::size(2)).unwrap();
    until("the size is seen through an open", || {
        kept.metadata().unwrap().len() == 2
    });
    let reads = || fs::read_to_string(mount.at("d/f")).unwrap();
    assert_eq!(reads(), "te");
    other
        .rename(dir, b"f", dir, b"new", RenameFlags::REPLACE)
        .unwrap();
    until("the new name is seen, and the old one gone", || {
        listed() == ["new"] && mount.at("d/new").exists() && !mount.at("d/f").exists()
    });
    other.unlink(dir, b"new").unwrap();
    until("the deletion is seen", || {
        listed().is_empty() && !mount.at("d/new").exists()
    });
    until("the links are seen", || {
        use std::os::unix::fs::MetadataExt;
        kept.metadata().unwrap().nlink() == 0
    });
}
