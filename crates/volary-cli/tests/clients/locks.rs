//! Locks of Linux's cifs client, in a guest, and those of an NFS client: in each other's way.

use crate::served::Served;
use std::net::SocketAddr;
use std::thread;
use volary_testkit::nfs::client::{Client, How, Set};
use volary_testkit::nfs::locks::{GRANTED, Locker};
use volary_testkit::oracle::vm::{self, CIFS};

/// Locks bytes of a file by cifs: those that an NFS client has, some beside them, and the
/// former when they are free; and holds them until it is told to end.
const LOCKS: &str = r#"
mounted fat "vers=3.1.1,cache=none,actimeo=0" || { echo "cannot mount"; exit 9; }
mount --bind /mnt /host/mnt
chroot /host python3 - <<'END'
import fcntl, os, time
file = open('/mnt/locked', 'r+b')
def lock(at):
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, at)
        return 'had'
    except OSError:
        return 'refused'
print('theirs', lock(0))
print('beside', lock(20))
while lock(0) == 'refused':
    time.sleep(0.1)
print('theirs at last')
while not os.path.exists('/mnt/end'):
    time.sleep(0.1)
file.close()
END
umount /host/mnt
umount /mnt
"#;

#[expect(clippy::disallowed_methods, reason = "the guest gives no sign")]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if is_so() {
            return;
        }
        thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("in vain waited until {what}");
}

#[test]
fn linux_s_cifs_and_an_nfs_client_keep_each_other_from_bytes() {
    let Some(vmrun) = vm::find() else { return };
    let served = Served::start(1);
    let mut client = Client::new(SocketAddr::from(([127, 0, 0, 1], served.port("nfs"))));
    let root = client.mnt("/fat").unwrap();
    let make = |client: &mut Client, name: &[u8]| {
        let how = How::Guarded(Set::mode(0o666));
        client.create(&root, name, how).unwrap().0
    };
    let fh = make(&mut client, b"locked");
    let mut nfs = Locker::new(client, &fh, b"machine", 1);
    assert_eq!(nfs.lock((0, 10), true, false), GRANTED);
    let script = format!("PORT={}\n{CIFS}{LOCKS}", served.port("smb"));
    let guest = thread::spawn(move || {
        let options = ["--hostroot", "--timeout", "600"];
        vm::with_network(&vmrun, &options, &script)
    });
    // It ends at once if it fails: then what it printed is told below.
    let over = || guest.is_finished();
    until("cifs has bytes", || {
        over() || nfs.test((20, 10), true).is_some()
    });
    assert_eq!(nfs.unlock((0, 10)), GRANTED);
    until("cifs has them all", || {
        over() || nfs.test((0, 10), true).is_some()
    });
    make(&mut nfs.client, b"end");
    let printed = guest
        .join()
        .unwrap()
        .unwrap_or_else(|words| panic!("{words}"));
    assert_eq!(printed, "theirs refused\nbeside had\ntheirs at last\n");
    assert_eq!(nfs.lock((0, 30), true, false), GRANTED, "given back");
    assert_eq!(nfs.unlock((0, 0)), GRANTED);
    served.stop();
}
