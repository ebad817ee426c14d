//! Threads that open, lease, lock, rename, remove and let go what they find,
//! with share modes of every kind: only the answers that there may be come, it
//! ends, and nothing is left behind.

use crate::leases::key;
use crate::{Make, root, volume};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use volary_core::{Create, Kind, Mode, OpenId, RenameFlags, Result, SetAttr};
use volary_session::{
    LeaseBits, LeaseBreak, LeaseSink, LockKind, OpenHow, Range, Rights, Session, Share, Volume,
    Wait,
};
use volary_testkit::rng::Rng;
use volary_testkit::suite::replay_command;

const THREADS: u64 = 6;
const OPS: u64 = 2500;
const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
const STUCK: Duration = Duration::from_secs(120);

/// Gives up at once what it is told to, or goes with its open.
struct Yields(Weak<Volume>);

impl LeaseSink for Yields {
    fn broken(&self, broken: &LeaseBreak) {
        if let (true, Some(volume)) = (broken.must_ack, self.0.upgrade()) {
            // The lease may have ended with its open.
            let _ = root(&volume).acknowledge(broken.key, broken.to);
        }
    }
}

struct Caller {
    s: Session,
    number: u8,
    rng: Rng,
    /// With the number of the lease's key.
    opens: Vec<(OpenId, u8)>,
    keys: u8,
}

impl Caller {
    fn open(&mut self, name: &[u8]) -> Result<()> {
        let node = self.s.lookup(self.s.root(), name)?.node;
        let wants = Rights(self.rng.below(8) as u8);
        let allows = Rights(*self.rng.pick(&[7, 7, 7, 3, 1]));
        let mode = match wants.has(Rights::WRITE) {
            true => Mode::ReadWrite,
            false => Mode::Read,
        };
        self.keys = self.keys.wrapping_add(1);
        let how = OpenHow::from(mode).with_share(Share { wants, allows });
        let how = how.with_lease_key(key(self.number, self.keys));
        let open = self
            .s
            .open_entry_of(node, Some((self.s.root(), name)), how)?;
        self.opens.push((open, self.keys));
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        let (s, top) = (self.s.clone(), self.s.root());
        let name = *self.rng.pick(&NAMES);
        let to = *self.rng.pick(&NAMES);
        let what = self.rng.below(16);
        if what < 4 && self.opens.len() < 6 {
            return self.open(name);
        }
        let index = self.rng.index(self.opens.len().max(1));
        let Some(&(open, number)) = self.opens.get(index) else {
            let made = s.create(top, name, Create::Open, Mode::Write, &SetAttr::default())?;
            return s.close(made.1);
        };
        match what {
            4 | 5 => {
                self.opens.swap_remove(index);
                s.close(open)
            }
            6 | 7 => {
                let sink = Arc::new(Yields(Arc::downgrade(s.volume())));
                s.lease(open, key(self.number, number), LeaseBits::ALL, sink)
                    .map(drop)
            }
            8 => s.write(open, None, b"x").map(drop),
            9 => s.read(open, 0, &mut [0; 8]).map(drop),
            10 => s.lock_exact(open, Range::ALL, LockKind::Exclusive, Wait::No),
            11 => s.set_delete(open, self.rng.one_in(2)),
            12 => s.delete_on_close(open),
            13 => s.unlink(top, name),
            14 => s.rename(top, name, top, to, RenameFlags::REPLACE),
            _ => s.rename_open(open, top, to, RenameFlags::REPLACE),
        }
    }

    /// Returns all that was answered.
    fn run(mut self) -> BTreeSet<String> {
        let mut answers = BTreeSet::new();
        for _ in 0..OPS {
            if let Err(e) = self.step() {
                answers.insert(format!("{:?}", e.kind()));
            }
        }
        for (open, _) in std::mem::take(&mut self.opens) {
            self.s.close(open).unwrap();
        }
        answers
    }
}

#[test]
fn whatever_callers_do_at_once_nothing_is_left_behind() {
    let given = std::env::var("VOLARY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = given.unwrap_or(1);
    let again = replay_command("VOLARY_SEED", &seed.to_string());
    let volume = volume();
    let (done, answers) = channel();
    for number in 0..THREADS {
        let caller = Caller {
            s: root(&volume),
            number: number as u8,
            rng: Rng::new(seed.wrapping_mul(THREADS) + number),
            opens: Vec::new(),
            keys: 0,
        };
        let done = done.clone();
        thread::spawn(move || done.send(caller.run()));
    }
    drop(done);
    let mut all = BTreeSet::new();
    for _ in 0..THREADS {
        let words = |e| panic!("{e}: {} wait; {again}", volume.waiting_count());
        all.append(&mut answers.recv_timeout(STUCK).unwrap_or_else(words));
    }
    let allowed = [
        Kind::Access,
        Kind::DeletePending,
        Kind::Locked,
        Kind::NotFound,
        Kind::Sharing,
        Kind::Stale,
    ];
    let allowed: BTreeSet<String> = allowed.iter().map(|kind| format!("{kind:?}")).collect();
    assert!(all.is_subset(&allowed), "{all:?}; {again}");
    let left = (
        volume.open_count(),
        volume.lease_count(),
        volume.waiting_count(),
    );
    assert_eq!(left, (0, 0, 0), "{again}");
    // No name goes with an open that is no more, and no share mode is left.
    let s = root(&volume);
    for name in ["a", "b", "c"] {
        let (node, open) = s.open_file(s.root(), name);
        assert_eq!(s.open_count_of(node), 1, "{again}");
        has_no_locks(&s, open);
        s.close(open).unwrap();
        s.unlink(s.root(), name.as_bytes()).unwrap();
    }
}

/// The file has no locks: all of it is to be had at once.
fn has_no_locks(s: &Session, open: OpenId) {
    s.lock_exact(open, Range::ALL, LockKind::Exclusive, Wait::No)
        .unwrap();
}
