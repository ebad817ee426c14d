//! Volumes that do a part of a session's work themselves are asked: for access,
//! for locks, for news.

use crate::leases::{key, sink_of};
use crate::{Make, OTHER, cred, kind, root, volume_of};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use volary_core::{
    Access, Caps, Change, Create, Ctx, Fs, Kind, Layer, Lock, Mode, NodeId, OpenId, Result,
    SetAttr, Time,
};
use volary_mem::{Mem, MemOptions};
use volary_session::{
    EventQueue, Follow, LeaseBits, LeaseBreak, LockKind, News, OpenHow, Range, Session, Wait,
};
use volary_testkit::Telling;

fn memory() -> Fs {
    Mem::attach(MemOptions::default(), Time::EPOCH).unwrap()
}

/// Grants what it is told to, to everybody, and notes what it was asked.
struct Asks {
    below: Fs,
    grants: Mutex<Access>,
    asked: Mutex<Vec<(u32, Access)>>,
}

impl Layer for Asks {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn caps(&self) -> Caps {
        self.below.caps().with(Caps::CHECKS_ACCESS)
    }
    fn access(&self, cx: &Ctx<'_>, _: NodeId, want: Access) -> Result<Access> {
        self.asked.lock().push((cx.cred.uid, want));
        Ok(Access(want.0 & self.grants.lock().0))
    }
}

#[test]
fn the_volume_is_asked_whatever_the_modes_say() {
    let options = MemOptions {
        dir_mode: 0,
        ..MemOptions::default()
    };
    let asks = Arc::new(Asks {
        below: Mem::attach(options, Time::EPOCH).unwrap(),
        grants: Mutex::new(Access(7)),
        asked: Mutex::default(),
    });
    let volume = volume_of(asks.clone(), false);
    let s = volume.session(cred(OTHER));
    let (top, set) = (s.root(), SetAttr::mode(0));
    let (entry, open) = s.create(top, b"f", Create::New, Mode::Write, &set).unwrap();
    s.close(open).unwrap();
    s.walk(b"/f", Follow::Yes).unwrap();
    s.open(entry.node, Mode::ReadWrite).unwrap();
    s.access(entry.node, Access::READ).unwrap();
    assert_eq!(
        *asks.asked.lock(),
        [
            (OTHER, Access::EXEC),
            (OTHER, Access::WRITE),
            (OTHER, Access::EXEC),
            (OTHER, Access::READ.and(Access::WRITE)),
            (OTHER, Access::READ),
        ]
    );

    *asks.grants.lock() = Access::READ;
    assert_eq!(kind(s.lookup(top, b"f")), Some(Kind::Access));
    let opened = s.open(entry.node, Mode::ReadWrite);
    assert_eq!(kind(opened), Some(Kind::Access));
    // What it does not ask for here, the volume refuses or does on its own.
    s.setattr(entry.node, &SetAttr::mode(0o4777)).unwrap();
}

/// Keeps locks with others: refuses those of owner 13, and notes the rest.
struct SharesLocks {
    below: Fs,
    told: Mutex<Vec<(u64, bool)>>,
}

impl Layer for SharesLocks {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn caps(&self) -> Caps {
        self.below.caps().with(Caps::SHARED_LOCKS)
    }
    fn lock(&self, _: &Ctx<'_>, _: OpenId, lock: Lock) -> Result<()> {
        if lock.owner == 13 {
            return Err(Kind::Locked.into());
        }
        self.told.lock().push((lock.owner, lock.unlock));
        Ok(())
    }
}

#[test]
fn a_lock_that_others_hold_elsewhere_is_not_had_here() {
    let shares = Arc::new(SharesLocks {
        below: memory(),
        told: Mutex::default(),
    });
    let volume = volume_of(shares.clone(), false);
    let s = root(&volume);
    let (_, open) = s.open_file(s.root(), "f");
    let lock = |owner| s.lock(open, owner, Range::new(0, 5), LockKind::Exclusive, Wait::No);
    assert_eq!(kind(lock(13)), Some(Kind::Locked));
    assert_eq!(s.locks(open).unwrap(), []);
    lock(1).unwrap();
    // Refused here, it is not asked for there.
    assert_eq!(kind(lock(2)), Some(Kind::Locked));
    s.unlock(open, 1, Range::ALL).unwrap();
    lock(2).unwrap();
    s.unlock_owner(open, 2).unwrap();
    let told = [(1, false), (1, true), (2, false), (2, true)];
    assert_eq!(*shares.told.lock(), told);
}

#[test]
fn owners_that_two_clients_number_alike_are_two_below() {
    let shares = Arc::new(SharesLocks {
        below: memory(),
        told: Mutex::default(),
    });
    let volume = volume_of(shares.clone(), false);
    let sessions = [(); 2].map(|()| root(&volume).with_client(volume.client()));
    for (at, s) in (0..).zip(&sessions) {
        let (_, open) = s.open_file(s.root(), "f");
        let range = Range::new(at * 10, 5);
        s.lock(open, 7, range, LockKind::Exclusive, Wait::No)
            .unwrap();
        s.unlock(open, 7, range).unwrap();
        s.lock_exact(open, range, LockKind::Shared, Wait::No)
            .unwrap();
        s.unlock_exact(open, range).unwrap();
    }
    let told = shares.told.lock();
    let owners: Vec<u64> = told.iter().map(|(owner, _)| *owner).collect();
    assert_eq!(owners.len(), 8);
    for (at, pair) in owners.chunks(2).enumerate() {
        assert_eq!(pair[0], pair[1], "what is taken is given back");
        let others = owners.iter().filter(|other| **other == pair[0]);
        assert_eq!(others.count(), 2, "{at}");
    }
}

#[test]
fn changes_made_elsewhere_are_passed_on_without_a_client() {
    let telling = Arc::new(Telling::new(memory()));
    let volume = volume_of(telling.clone(), false);
    let queue = Arc::new(EventQueue::new(10));
    let _kept = volume.subscribe(queue.clone());
    let node = volume.fs().root();
    for (change, news) in [
        (Change::Data(node), News::Data(node)),
        (Change::Attr(node), News::Attr(node)),
        (Change::Entries(node), News::Entries(node)),
        (Change::Gone(node), News::Gone(node)),
        (Change::Everything, News::Everything),
    ] {
        telling.tell(change);
        let event = queue.try_take().unwrap();
        assert_eq!((event.origin, event.news), (None, news));
    }
    drop(volume);
    telling.tell(Change::Everything);
    assert_eq!(queue.try_take(), None);
}

/// Refuses changes to what another session may have made.
struct Closed(Fs);

impl Layer for Closed {
    fn below(&self) -> &Fs {
        &self.0
    }
    fn caps(&self) -> Caps {
        self.0.caps().without(Caps::WRITE)
    }
}

#[test]
fn create_opens_what_is_there_on_a_volume_that_takes_no_changes() {
    let below = memory();
    let open = volume_of(below.clone(), false);
    let node = root(&open).file(below.root(), "f", 0o644);
    let closed = volume_of(Arc::new(Closed(below)), false);
    let s = root(&closed);
    let create = |name, how, mode| s.create(s.root(), name, how, mode, &SetAttr::default());
    let (entry, _) = create(b"f", Create::Open, Mode::Read).unwrap();
    assert_eq!(entry.node, node);
    assert_eq!(
        kind(create(b"f", Create::New, Mode::Read)),
        Some(Kind::Exists)
    );
    for (name, how) in [
        (b"f", Create::Open),
        (b"f", Create::Truncate),
        (b"g", Create::Open),
    ] {
        assert_eq!(kind(create(name, how, Mode::Write)), Some(Kind::ReadOnly));
    }
    assert_eq!(closed.open_count(), 1);
}

/// Returns a lease on a file of the volume: what is granted, and the breaks.
fn leased(fs: Fs) -> (Session, NodeId, LeaseBits, Receiver<LeaseBreak>) {
    let s = root(&volume_of(fs, true));
    let node = s.file(s.root(), "f", 0o666);
    let (sink, breaks) = sink_of(false);
    let how = OpenHow::from(Mode::ReadWrite).with_lease_key(key(1, 1));
    let open = s.open(node, how).unwrap();
    let lease = s.lease(open, key(1, 1), LeaseBits::ALL, sink).unwrap();
    (s, node, lease.granted, breaks)
}

#[test]
fn where_others_change_nodes_unheard_nothing_is_granted() {
    let asks = Asks {
        below: memory(),
        grants: Mutex::new(Access(7)),
        asked: Mutex::default(),
    };
    assert_eq!(leased(Arc::new(asks)).2, LeaseBits::NONE);
    let shares = SharesLocks {
        below: memory(),
        told: Mutex::default(),
    };
    assert_eq!(leased(Arc::new(shares)).2, LeaseBits::NONE);
    assert_eq!(leased(memory()).2, LeaseBits::ALL);
}

#[test]
fn changes_made_elsewhere_break_leases() {
    let changes: [fn(NodeId) -> Change; 4] = [Change::Data, Change::Entries, Change::Gone, |_| {
        Change::Everything
    }];
    for change in changes {
        let telling = Arc::new(Telling::new(memory()));
        let (s, node, granted, breaks) = leased(telling.clone());
        assert_eq!(granted, LeaseBits::READ | LeaseBits::HANDLE);
        telling.tell(Change::Attr(node));
        assert!(breaks.try_recv().is_err());
        telling.tell(change(node));
        let broken = breaks.try_recv().unwrap();
        assert_eq!((broken.to, broken.must_ack), (LeaseBits::NONE, true));
        assert!(s.lease_state(key(1, 1)).unwrap().breaking);
    }
}
