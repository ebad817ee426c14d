//! Clients that cache under leases, clients that lock and one that renames, all
//! at once: nothing is lost, nobody waits for ever, nothing is left behind.

use crate::leases::{ALL, key};
use crate::{Make, NOW, root};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use volary_core::{Cancel, Kind, Mode, NodeId, OpenId, RenameFlags};
use volary_mem::{Mem, MemOptions};
use volary_session::{
    LeaseBits, LeaseBreak, LeaseKey, LeaseSink, LockKind, OpenHow, Range, Rights, Session, Share,
    Volume, VolumeOptions, Wait,
};

const ROUNDS: u64 = 1000;
const CACHING: u8 = 4;
const LOCKING: u64 = 2;
/// Longer than any of it takes, shorter than patience.
const STUCK: Duration = Duration::from_secs(120);

/// A client that adds to the number in the file, in its cache if it may.
struct Client {
    s: Session,
    key: LeaseKey,
    cache: Mutex<Cache>,
    breaks: Mutex<Sender<(Arc<Client>, LeaseBreak)>>,
}

#[derive(Default)]
struct Cache {
    open: Option<OpenId>,
    /// What the file will hold, while writes are gathered.
    number: Option<u64>,
}

struct Sink(Arc<Client>);

impl LeaseSink for Sink {
    fn broken(&self, broken: &LeaseBreak) {
        let breaks = self.0.breaks.lock().unwrap();
        // Nobody listens when all is done.
        let _ = breaks.send((Arc::clone(&self.0), *broken));
    }
}

impl Cache {
    fn flush(&mut self, s: &Session) {
        if let (Some(open), Some(number)) = (self.open, self.number.take()) {
            s.write(open, Some(0), &number.to_le_bytes()).unwrap();
        }
    }
}

fn read(s: &Session, open: OpenId) -> u64 {
    let mut bytes = [0; 8];
    s.read(open, 0, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

/// Adds one under an exclusive lock.
fn add_locked(s: &Session, open: OpenId, lock: impl Fn(OpenId), unlock: impl Fn(OpenId)) {
    lock(open);
    let number = read(s, open) + 1;
    s.write(open, Some(0), &number.to_le_bytes()).unwrap();
    unlock(open);
}

impl Client {
    /// Adds some: all that can be gathered, or one.
    fn add(self: &Arc<Self>, node: NodeId, denies: bool) -> u64 {
        let allows = if denies { Rights::NONE } else { ALL };
        let share = Share { wants: ALL, allows };
        let how = OpenHow::from(Mode::ReadWrite)
            .with_share(share)
            .with_lease_key(self.key);
        let open = match self.s.open(node, how) {
            Err(e) if e == Kind::Sharing => {
                thread::yield_now();
                return 0;
            }
            open => open.unwrap(),
        };
        self.cache.lock().unwrap().open = Some(open);
        let sink = Arc::new(Sink(Arc::clone(self)));
        let lease = self.s.lease(open, self.key, LeaseBits::ALL, sink).unwrap();
        let added = if lease.granted.has(LeaseBits::WRITE) {
            self.gather(open)
        } else {
            let never = Cancel::new();
            let lock = |open| {
                let wait = Wait::Yes(&never);
                self.s
                    .lock_exact(open, Range::ALL, LockKind::Exclusive, wait)
                    .unwrap();
            };
            add_locked(&self.s, open, lock, |open| {
                self.s.unlock_exact(open, Range::ALL).unwrap();
            });
            1
        };
        let mut cache = self.cache.lock().unwrap();
        cache.flush(&self.s);
        cache.open = None;
        drop(cache);
        self.s.close(open).unwrap();
        added
    }

    /// Adds in the cache until that is taken away, or for some rounds.
    fn gather(&self, open: OpenId) -> u64 {
        let start = read(&self.s, open);
        let held = |client: &Self| {
            let lease = client.s.lease_state(client.key);
            lease.is_ok_and(|lease| lease.granted.has(LeaseBits::WRITE))
        };
        for added in 0..10 {
            let mut cache = self.cache.lock().unwrap();
            // Acknowledged under this mutex: what is held now is held until it is let go.
            if !held(self) {
                return added;
            }
            cache.number = Some(start + added + 1);
            drop(cache);
            thread::yield_now();
        }
        10
    }
}

/// Answers breaks, as a client's other thread does.
fn answer(breaks: &Receiver<(Arc<Client>, LeaseBreak)>) {
    while let Ok((client, broken)) = breaks.recv() {
        let mut cache = client.cache.lock().unwrap();
        cache.flush(&client.s);
        if broken.must_ack {
            // The lease may have ended with its open.
            let _ = client.s.acknowledge(broken.key, broken.to);
        }
    }
}

fn cache(client: &Arc<Client>, node: NodeId) -> u64 {
    (0..ROUNDS)
        .map(|round| client.add(node, round % 7 == 0))
        .sum()
}

fn lock(s: &Session, node: NodeId, owner: u64) -> u64 {
    let never = Cancel::new();
    for _ in 0..ROUNDS {
        let open = loop {
            match s.open(node, Mode::ReadWrite) {
                Err(e) if e == Kind::Sharing => thread::yield_now(),
                open => break open.unwrap(),
            }
        };
        let lock = |open| {
            let wait = Wait::Yes(&never);
            s.lock(open, owner, Range::ALL, LockKind::Exclusive, wait)
                .unwrap();
        };
        add_locked(s, open, lock, |open| {
            s.unlock(open, owner, Range::ALL).unwrap();
        });
        s.close(open).unwrap();
    }
    ROUNDS
}

fn rename(s: &Session) -> u64 {
    let (mut from, mut to): (&[u8], &[u8]) = (b"f", b"g");
    for _ in 0..ROUNDS {
        match s.rename(s.root(), from, s.root(), to, RenameFlags::REPLACE) {
            Err(e) if e == Kind::Sharing => thread::yield_now(),
            done => {
                done.unwrap();
                (from, to) = (to, from);
            }
        }
    }
    0
}

#[test]
fn nothing_is_lost_and_nobody_waits_for_ever() {
    let fs = Mem::attach(MemOptions::default(), NOW).unwrap();
    let options = VolumeOptions {
        lease_timeout: STUCK,
        ..VolumeOptions::new("stress", || NOW)
    };
    let volume = Volume::new(fs, options);
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o666);
    let (sender, breaks) = channel();
    let (done, all_done) = channel();
    let start = |work: Box<dyn FnOnce() -> u64 + Send>| {
        let done = done.clone();
        thread::spawn(move || done.send(work()));
    };
    thread::spawn(move || answer(&breaks));
    for number in 0..CACHING {
        let client = Arc::new(Client {
            s: s.clone(),
            key: key(number, 1),
            cache: Mutex::default(),
            breaks: Mutex::new(sender.clone()),
        });
        start(Box::new(move || cache(&client, node)));
    }
    for owner in 0..LOCKING {
        let s = s.clone();
        start(Box::new(move || lock(&s, node, owner)));
    }
    let renamer = s.clone();
    start(Box::new(move || rename(&renamer)));
    let mut added = 0;
    let mut ended = 0;
    while ended < u64::from(CACHING) + LOCKING + 1 {
        let all = all_done.recv_timeout(STUCK);
        added += all.unwrap_or_else(|e| panic!("{e}: {} wait, {volume:?}", volume.waiting_count()));
        ended += 1;
    }
    let open = s.open(node, Mode::Read).unwrap();
    assert_eq!(read(&s, open), added);
    s.close(open).unwrap();
    let left = (
        volume.open_count(),
        volume.lease_count(),
        volume.waiting_count(),
    );
    assert_eq!((left, s.open_count_of(node)), ((0, 0, 0), 0));
}
