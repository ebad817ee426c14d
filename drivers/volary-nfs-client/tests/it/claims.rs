//! Locks at a server that is restarted.

use crate::served::{NAME, Served, attach_fat, clock, fat};
use crate::side::Side;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{BlockDevice, Cred, Kind, Lock, Mode, OpenId};
use volary_nfs_client::NfsOptions;
use volary_session::{LockKind, OpenHow, Range, Session, Volume, VolumeOptions, Wait};

const HOUR: Duration = Duration::from_secs(3600);

fn side(served: &Served) -> Side {
    let options = NfsOptions {
        timeout: Duration::from_secs(60),
        ..NfsOptions::default()
    };
    Side(served.attach(&options).expect("the export"))
}

fn lock(a: &Side, open: OpenId, offset: u64, unlock: bool) -> volary_core::Result<()> {
    let lock = Lock {
        owner: 7,
        offset,
        len: 10,
        exclusive: true,
        unlock,
        test: false,
    };
    a.0.lock(&a.cx(), open, lock)
}

/// A server that keeps who has locks, and a client that has some: bytes 0 to 4 and 15 to 19.
struct Scene {
    image: Arc<dyn BlockDevice>,
    client: Side,
    open: OpenId,
    served: Served,
}

impl Scene {
    fn new(state: &Path) -> Self {
        let image = fat();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let served = Served::keeping_locks(volume(&image), any, 1, (state, HOUR));
        let client = side(&served);
        let open = client.create("f");
        for (offset, unlock) in [(0, false), (10, false), (5, true)] {
            lock(&client, open, offset, unlock).expect("a lock");
        }
        Self {
            image,
            client,
            open,
            served,
        }
    }
}

fn volume(image: &Arc<dyn BlockDevice>) -> Arc<Volume> {
    Volume::new(attach_fat(image), VolumeOptions::new(NAME, clock))
}

/// Another client, past the server, with the file open.
fn other(volume: &Arc<Volume>) -> (Session, OpenId) {
    let other = volume.session(Cred::root()).with_client(volume.client());
    let node = other.lookup(other.root(), b"f").expect("f").node;
    let open = other.open(node, OpenHow::from(Mode::ReadWrite));
    (other, open.expect("open"))
}

/// First and last bytes.
fn held(volume: &Arc<Volume>) -> Vec<(u64, u64)> {
    let (other, open) = other(volume);
    let held = other.locks(open).expect("locks");
    other.close(open).expect("close");
    held.iter().map(|l| (l.range.first, l.range.last)).collect()
}

#[expect(clippy::disallowed_methods, reason = "the other side gives no sign")]
fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("in vain waited until {what}");
}

#[test]
fn locks_are_claimed_again_in_the_time_of_grace() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = dir.path().join("locks");
    let Scene {
        image,
        client,
        open,
        served,
    } = Scene::new(&state);
    let address = served.address();
    served.stop();
    let volume = volume(&image);
    let second = Served::keeping_locks(Arc::clone(&volume), address, 2, (&state, HOUR));
    // Nothing is asked of it meanwhile.
    until("they are claimed", || held(&volume) == [(0, 4), (15, 19)]);
    client
        .0
        .write(&client.cx(), open, Some(0), b"mine")
        .expect("write");
    lock(&client, open, 0, true).expect("unlock");
    assert_eq!(held(&volume), [(15, 19)]);
    client.0.close(&client.cx(), open).expect("close");
    assert_eq!(held(&volume), []);
    drop(second);
}

#[test]
fn a_lock_that_another_has_after_a_restart_is_told_as_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let Scene {
        image,
        client,
        open,
        served,
    } = Scene::new(&dir.path().join("locks"));
    let address = served.address();
    served.stop();
    // A server that knows nothing of them, and another who is quicker.
    let volume = volume(&image);
    let (other, of_other) = other(&volume);
    let taken = other.lock(of_other, 1, Range::new(17, 1), LockKind::Shared, Wait::No);
    taken.expect("a lock");
    let second = Served::of_volume(Arc::clone(&volume), address, 2);
    let write = || client.0.write(&client.cx(), open, Some(0), b"mine");
    until("it is told", || write().is_err());
    let e = write().expect_err("lost");
    assert_eq!(e.kind(), Kind::Io);
    assert!(e.to_string().contains("the server was restarted"), "{e}");
    assert_eq!(
        held(&volume),
        [(0, 4), (17, 17)],
        "what was free is had again"
    );
    // Who gives it up knows.
    lock(&client, open, 15, true).expect("unlock");
    write().expect("write");
    client.0.close(&client.cx(), open).expect("close");
    assert_eq!(held(&volume), [(17, 17)]);
    drop(second);
}
