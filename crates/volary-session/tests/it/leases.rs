//! Leases: what is granted, what breaks them, and who waits for whom.

use crate::lease_waits::meanwhile;
use crate::{Make, NOW, kind, root, volume};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use volary_core::{Kind, Mode, NodeId, OpenId, RenameFlags, Result, SetAttr};
use volary_mem::{Mem, MemOptions};
use volary_session::{
    Lease, LeaseBits, LeaseBreak, LeaseKey, LeaseSink, Limits, LockKind, OpenHow, Range, Rights,
    Session, Share, Volume, VolumeOptions, Wait,
};

pub(crate) const NONE: LeaseBits = LeaseBits::NONE;
pub(crate) const R: LeaseBits = LeaseBits::READ;
const H: LeaseBits = LeaseBits::HANDLE;
const W: LeaseBits = LeaseBits::WRITE;
pub(crate) const RH: LeaseBits = LeaseBits(3);
pub(crate) const RW: LeaseBits = LeaseBits(5);
pub(crate) const RHW: LeaseBits = LeaseBits::ALL;
pub(crate) const ALL: Rights = Rights::ALL;

pub(crate) fn key(client: u8, number: u8) -> LeaseKey {
    LeaseKey {
        client: [client; 16],
        key: [number; 16],
    }
}

/// Notes what is broken, and does then what it is told to.
pub(crate) struct Told {
    sender: Mutex<Sender<LeaseBreak>>,
    oplock: bool,
}

impl LeaseSink for Told {
    fn broken(&self, broken: &LeaseBreak) {
        let _ = self.sender.lock().unwrap().send(*broken);
    }
    fn is_oplock(&self) -> bool {
        self.oplock
    }
}

pub(crate) fn sink_of(oplock: bool) -> (Arc<Told>, Receiver<LeaseBreak>) {
    let (sender, breaks) = channel();
    let sender = Mutex::new(sender);
    (Arc::new(Told { sender, oplock }), breaks)
}

/// Gives up at once all that it is asked for.
pub(crate) struct Obedient {
    volume: std::sync::Weak<Volume>,
    seen: Mutex<Vec<LeaseBreak>>,
}

impl LeaseSink for Obedient {
    fn broken(&self, broken: &LeaseBreak) {
        self.seen.lock().unwrap().push(*broken);
        let volume = self.volume.upgrade().filter(|_| broken.must_ack);
        if let Some(volume) = volume {
            root(&volume).acknowledge(broken.key, broken.to).unwrap();
        }
    }
}

pub(crate) fn obedient(volume: &Arc<Volume>) -> Arc<Obedient> {
    Arc::new(Obedient {
        volume: Arc::downgrade(volume),
        seen: Mutex::default(),
    })
}

impl Obedient {
    pub(crate) fn take(&self) -> Vec<(LeaseBits, LeaseBits)> {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.iter().map(|broken| (broken.from, broken.to)).collect()
    }
}

pub(crate) fn shared(wants: Rights, allows: Rights) -> OpenHow {
    OpenHow::from(Mode::ReadWrite).with_share(Share { wants, allows })
}

/// Returns an open of `/f` under the key.
pub(crate) fn open(s: &Session, node: NodeId, key: LeaseKey) -> OpenId {
    let how = shared(ALL, ALL).with_lease_key(key);
    s.open_entry_of(node, Some((s.root(), b"f")), how).unwrap()
}

pub(crate) fn setup() -> (Arc<Volume>, Session, NodeId) {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o666);
    (volume, s, node)
}

pub(crate) fn held(s: &Session, key: LeaseKey) -> LeaseBits {
    s.lease_state(key).unwrap().granted
}

#[test]
fn without_reading_nothing_is_granted() {
    let (_volume, s, node) = setup();
    let rows = [
        (NONE, NONE),
        (R, R),
        (H, NONE),
        (W, NONE),
        (RH, RH),
        (RW, RW),
        (H | W, NONE),
        (RHW, RHW),
    ];
    for (want, granted) in rows {
        let id = open(&s, node, key(1, 1));
        let (sink, _breaks) = sink_of(false);
        let lease = s.lease(id, key(1, 1), want, sink).unwrap();
        let expected = Lease {
            granted,
            epoch: 1,
            breaking: false,
        };
        assert_eq!(lease, expected, "{want:?}");
        s.close(id).unwrap();
        assert_eq!(kind(s.lease_state(key(1, 1))), Some(Kind::Invalid));
    }
    let dir = s.dir(s.root(), "d", 0o777);
    let how = OpenHow::from(Mode::Read).with_lease_key(key(1, 2));
    let id = s.open(dir, how).unwrap();
    let (sink, _breaks) = sink_of(false);
    assert_eq!(s.lease(id, key(1, 2), RHW, sink).unwrap().granted, RH);
}

/// Held, asked for by another, left of the first, granted to the other.
const CONTENDED: [[LeaseBits; 4]; 16] = [
    [R, R, R, R],
    [R, RH, R, RH],
    [R, RW, R, R],
    [R, RHW, R, RH],
    [RH, R, RH, R],
    [RH, RH, RH, RH],
    [RH, RW, RH, R],
    [RH, RHW, RH, RH],
    [RW, R, R, R],
    [RW, RH, R, RH],
    [RW, RW, R, R],
    [RW, RHW, R, RH],
    [RHW, R, RH, R],
    [RHW, RH, RH, RH],
    [RHW, RW, RH, R],
    [RHW, RHW, RH, RH],
];

#[test]
fn a_second_open_breaks_gathered_writes_and_gets_what_is_left() {
    for [first, asked, left, granted] in CONTENDED {
        let (volume, s, node) = setup();
        let sink = obedient(&volume);
        let one = open(&s, node, key(1, 1));
        assert_eq!(
            s.lease(one, key(1, 1), first, sink.clone())
                .unwrap()
                .granted,
            first
        );
        let two = open(&s, node, key(2, 1));
        let lease = s.lease(two, key(2, 1), asked, sink.clone()).unwrap();
        assert_eq!(lease.granted, granted, "{first:?} {asked:?}");
        assert_eq!(held(&s, key(1, 1)), left, "{first:?} {asked:?}");
        let breaks = if first == left {
            vec![]
        } else {
            vec![(first, left)]
        };
        assert_eq!(sink.take(), breaks);
    }
}

/// What one without a lease does to the file, and what that takes away.
type Does = fn(&Session, NodeId, OpenId) -> Result<()>;

const ROWS: [(&str, Does, LeaseBits); 15] = [
    ("look", |s, node, _| s.getattr(node).map(drop), NONE),
    (
        "mode",
        |s, node, _| s.setattr(node, &SetAttr::mode(0o600)).map(drop),
        NONE,
    ),
    (
        "read",
        |s, _, open| s.read(open, 0, &mut [0; 4]).map(drop),
        W,
    ),
    ("open", |s, node, _| s.open(node, Mode::Read).map(drop), W),
    (
        "write",
        |s, _, open| s.write(open, Some(0), b"x").map(drop),
        RHW,
    ),
    (
        "append",
        |s, _, open| s.write(open, None, b"x").map(drop),
        RHW,
    ),
    (
        "size of open",
        |s, _, open| s.setattr_open(open, &SetAttr::size(9)).map(drop),
        RHW,
    ),
    (
        "lock",
        |s, _, open| s.lock(open, 1, Range::ALL, LockKind::Shared, Wait::No),
        RHW,
    ),
    (
        "exact lock",
        |s, _, open| s.lock_exact(open, Range::ALL, LockKind::Shared, Wait::No),
        RHW,
    ),
    (
        "size",
        |s, node, _| s.setattr(node, &SetAttr::size(9)).map(drop),
        RHW,
    ),
    (
        "cut",
        |s, node, _| {
            let cut = OpenHow {
                truncate: true,
                ..Mode::Write.into()
            };
            s.open(node, cut).map(drop)
        },
        RHW,
    ),
    ("unlink", |s, _, _| s.unlink(s.root(), b"f"), H),
    (
        "rename",
        |s, _, _| s.rename(s.root(), b"f", s.root(), b"h", RenameFlags::REPLACE),
        H,
    ),
    (
        "replace",
        |s, _, _| s.rename(s.root(), b"g", s.root(), b"f", RenameFlags::REPLACE),
        H,
    ),
    (
        "link",
        |s, node, _| s.link(node, s.root(), b"l").map(drop),
        H,
    ),
];
/// Those that are done through an open, whose key is spared.
const THROUGH_OPEN: [&str; 6] = [
    "read",
    "write",
    "append",
    "size of open",
    "lock",
    "exact lock",
];

#[test]
fn each_operation_breaks_what_it_has_to() {
    for (what, does, strips) in ROWS {
        for (first, mine) in [R, RH, RW, RHW]
            .into_iter()
            .flat_map(|b| [(b, true), (b, false)])
        {
            let (volume, s, node) = setup();
            s.file(s.root(), "g", 0o666);
            let sink = obedient(&volume);
            let one = open(&s, node, key(1, 1));
            // An open that says it wants nothing leaves the lease alone.
            let idle = shared(Rights::NONE, ALL);
            let idle = if mine {
                idle.with_lease_key(key(1, 1))
            } else {
                idle
            };
            let two = s.open(node, idle).unwrap();
            let lease = s.lease(one, key(1, 1), first, sink.clone()).unwrap();
            assert_eq!(lease.granted, first);
            does(&s, node, two).unwrap();
            let taken = first & strips;
            let spared = taken == NONE || (mine && THROUGH_OPEN.contains(&what));
            let left = match taken.has(R) {
                true => NONE,
                false => first.without(taken),
            };
            let breaks = if spared { vec![] } else { vec![(first, left)] };
            assert_eq!(sink.take(), breaks, "{what}, {first:?}, {mine}");
        }
    }
}

#[test]
fn without_a_handle_lease_a_share_mode_answers_at_once() {
    let (_volume, s, node) = setup();
    let (sink, breaks) = sink_of(false);
    let how = shared(ALL, Rights::NONE).with_lease_key(key(1, 1));
    let one = s.open(node, how).unwrap();
    s.lease(one, key(1, 1), RW, sink).unwrap();
    assert_eq!(kind(s.open(node, Mode::Read)), Some(Kind::Sharing));
    assert!(breaks.try_recv().is_err());
}

#[test]
fn a_key_is_for_one_node_at_a_time() {
    let (volume, s, node) = setup();
    let g = s.file(s.root(), "g", 0o666);
    let (sink, _breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    let plain = s.open(node, Mode::Read).unwrap();
    let wrong = [
        kind(s.lease(one, key(1, 2), R, sink.clone())),
        kind(s.lease(plain, key(1, 1), R, sink.clone())),
    ];
    assert_eq!(wrong, [Some(Kind::Invalid); 2]);
    s.lease(one, key(1, 1), R, sink.clone()).unwrap();
    assert_eq!(s.leased_node(key(1, 1)), Some(node));
    let how = shared(ALL, ALL).with_lease_key(key(1, 1));
    assert_eq!(kind(s.open(g, how)), Some(Kind::Invalid));
    // The same number of another client is another key.
    let id = s
        .open(g, shared(ALL, ALL).with_lease_key(key(2, 1)))
        .unwrap();
    s.lease(id, key(2, 1), R, sink.clone()).unwrap();
    assert_eq!(volume.lease_count(), 2);
    s.close(one).unwrap();
    assert_eq!(volume.lease_count(), 1);
    s.open(g, how).unwrap();
}

#[test]
fn a_client_has_no_more_leases_than_it_may() {
    let fs = Mem::attach(MemOptions::default(), NOW).unwrap();
    let options = VolumeOptions {
        limits: Limits {
            client_leases: 2,
            ..Limits::default()
        },
        ..VolumeOptions::new("few", || NOW)
    };
    let volume = Volume::new(fs, options);
    let s = root(&volume);
    let (sink, _breaks) = sink_of(false);
    let lease = |client: u8, number: u8| {
        let node = s.file(s.root(), &format!("{client}.{number}"), 0o666);
        let how = shared(ALL, ALL).with_lease_key(key(client, number));
        let id = s.open(node, how).unwrap();
        (
            id,
            s.lease(id, key(client, number), RHW, sink.clone())
                .unwrap()
                .granted,
        )
    };
    let (first, _) = lease(1, 1);
    lease(1, 2);
    assert_eq!(lease(1, 3).1, NONE);
    assert_eq!(lease(2, 1).1, RHW);
    s.close(first).unwrap();
    assert_eq!(lease(1, 4).1, RHW);
}

#[test]
fn locks_keep_leases_from_being_granted() {
    let (_volume, s, node) = setup();
    let one = open(&s, node, key(1, 1));
    s.lock(one, 1, Range::new(5, 5), LockKind::Shared, Wait::No)
        .unwrap();
    let (sink, _breaks) = sink_of(false);
    assert_eq!(
        s.lease(one, key(1, 1), RHW, sink.clone()).unwrap().granted,
        NONE
    );
    s.unlock(one, 1, Range::ALL).unwrap();
    let lease = s.lease(one, key(1, 1), RHW, sink).unwrap();
    assert_eq!((lease.granted, lease.epoch), (RHW, 2));
    // The holder's own locks leave it alone.
    s.lock(one, 1, Range::ALL, LockKind::Exclusive, Wait::No)
        .unwrap();
    assert_eq!(held(&s, key(1, 1)), RHW);
}

#[test]
fn oplocks_and_handle_leases_are_not_granted_together() {
    let (_volume, s, node) = setup();
    let (lease, _) = sink_of(false);
    let (oplock, breaks) = sink_of(true);
    let one = open(&s, node, key(1, 1));
    let two = open(&s, node, key(2, 1));
    s.lease(one, key(1, 1), RH, lease.clone()).unwrap();
    assert_eq!(
        s.lease(two, key(2, 1), R, oplock.clone()).unwrap().granted,
        NONE
    );
    s.close(one).unwrap();
    s.close(two).unwrap();
    let two = open(&s, node, key(2, 1));
    // A batch oplock, broken to level II by an open.
    s.lease(two, key(2, 1), RHW, oplock).unwrap();
    let (one, _) = meanwhile(
        &s,
        |s| open(s, node, key(1, 1)),
        || {
            assert_eq!(breaks.recv().unwrap().to, R);
            s.acknowledge(key(2, 1), R).unwrap();
        },
    );
    assert_eq!(s.lease(one, key(1, 1), RHW, lease).unwrap().granted, R);
}

#[test]
fn a_lease_is_given_up_unasked() {
    let (_volume, s, node) = setup();
    let (sink, breaks) = sink_of(false);
    let one = open(&s, node, key(1, 1));
    s.lease(one, key(1, 1), RHW, sink).unwrap();
    assert!(s.would_wait(node, false) && s.would_wait_for_name(node));
    s.give_up_lease(key(1, 1)).unwrap();
    assert!(!s.would_wait(node, true) && !s.would_wait_for_name(node));
    s.open(node, Mode::Write).unwrap();
    assert!(breaks.try_recv().is_err());
}
