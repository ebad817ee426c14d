//! Random operations of several callers on opens, share modes, leases, locks,
//! renames and deletions, beside a reference model; what differs is shrunk.

mod reference;

use crate::leases::{held, key};
use crate::{kind, root, volume};
use reference::{Broken, Reference};
use std::sync::{Arc, Mutex, Weak};
use volary_core::{Create, Mode, NodeId, OpenId, RenameFlags, Result, SetAttr};
use volary_session::{
    LeaseBits, LeaseBreak, LeaseSink, LockKind, OpenHow, Range, Rights, Session, Share, Volume,
    Wait,
};
use volary_testkit::replay;
use volary_testkit::rng::Rng;

pub(crate) const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];
const CALLERS: u64 = 3;
const OPS: usize = 60;

/// One step. Opens are counted among those that there are, names and callers
/// from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Create(usize),
    OpenPlain(usize, Mode),
    Open {
        caller: u8,
        name: usize,
        share: Share,
        keyed: bool,
    },
    Close(usize),
    Lease(usize, LeaseBits),
    GiveUp(usize),
    Read(usize),
    Write(usize),
    Resize(usize),
    Lock(usize, u64, u64, bool),
    Unlock(usize, u64, u64),
    CheckIo(usize, u64, bool),
    SetDelete(usize, bool),
    DeleteOnClose(usize),
    Unlink(usize),
    Rename(usize, usize),
    RenameOpen(usize, usize),
}

fn random_op(rng: &mut Rng) -> Op {
    let name = rng.index(NAMES.len());
    let open = rng.index(8);
    let (at, len) = (rng.below(4), 1 + rng.below(3));
    match rng.below(24) {
        0 | 1 => Op::Create(name),
        2 => Op::OpenPlain(name, *rng.pick(&[Mode::Read, Mode::Write, Mode::ReadWrite])),
        3..=7 => Op::Open {
            caller: 1 + rng.below(CALLERS) as u8,
            name,
            share: Share {
                wants: Rights(rng.below(8) as u8),
                // Mostly all, or little would be open at once.
                allows: Rights(*rng.pick(&[7, 7, 7, 7, 3, 1, 0, 5])),
            },
            keyed: !rng.one_in(4),
        },
        8..=10 => Op::Close(open),
        11..=13 => Op::Lease(open, LeaseBits(*rng.pick(&[1, 3, 5, 7, 7, 7, 2, 0]))),
        14 => Op::Read(open),
        15 => Op::Write(open),
        16 => Op::Resize(name),
        17 => Op::Lock(open, at, len, rng.one_in(2)),
        18 => Op::Unlock(open, at, len),
        19 => Op::CheckIo(open, at, rng.one_in(2)),
        20 => match rng.below(3) {
            0 => Op::DeleteOnClose(open),
            on => Op::SetDelete(open, on == 1),
        },
        21 => Op::Unlink(name),
        22 => Op::Rename(name, rng.index(NAMES.len())),
        _ if rng.one_in(3) => Op::GiveUp(open),
        _ => Op::RenameOpen(open, name),
    }
}

/// Gives up at once what it is told to, and notes it.
struct Obedient {
    volume: Weak<Volume>,
    broken: Mutex<Vec<Broken>>,
}

impl LeaseSink for Obedient {
    fn broken(&self, broken: &LeaseBreak) {
        let whose = (broken.key.client[0], broken.key.key[0]);
        self.broken
            .lock()
            .unwrap()
            .push((whose, broken.from, broken.to));
        if broken.must_ack {
            let volume = self.volume.upgrade().unwrap();
            root(&volume).acknowledge(broken.key, broken.to).unwrap();
        }
    }
}

/// The session and the reference, side by side.
struct Pair {
    s: Session,
    sink: Arc<Obedient>,
    reference: Reference,
    /// Of each open of the reference, in its order.
    opens: Vec<OpenId>,
    /// The node of each of the reference's files.
    nodes: Vec<NodeId>,
}

impl Pair {
    fn new() -> Self {
        let volume = volume();
        let sink = Arc::new(Obedient {
            volume: Arc::downgrade(&volume),
            broken: Mutex::default(),
        });
        Self {
            s: root(&volume),
            sink,
            reference: Reference::default(),
            opens: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Does it on both, and compares what they say and are then.
    fn step(&mut self, op: Op) {
        let index = |number: usize| number % self.opens.len().max(1);
        let op = match op {
            Op::Close(n) => Op::Close(index(n)),
            Op::Lease(n, want) => Op::Lease(index(n), want),
            Op::GiveUp(n) => Op::GiveUp(index(n)),
            Op::Read(n) => Op::Read(index(n)),
            Op::Write(n) => Op::Write(index(n)),
            Op::Lock(n, at, len, alone) => Op::Lock(index(n), at, len, alone),
            Op::Unlock(n, at, len) => Op::Unlock(index(n), at, len),
            Op::CheckIo(n, at, writes) => Op::CheckIo(index(n), at, writes),
            Op::SetDelete(n, on) => Op::SetDelete(index(n), on),
            Op::DeleteOnClose(n) => Op::DeleteOnClose(index(n)),
            Op::RenameOpen(n, to) => Op::RenameOpen(index(n), to),
            other => other,
        };
        let Some((expected, mut breaks)) = self.reference.step(op) else {
            return;
        };
        assert_eq!(kind(self.act(op)), expected, "the answer");
        let mut broken = std::mem::take(&mut *self.sink.broken.lock().unwrap());
        let order = |broken: &Broken| (broken.0, broken.1.0, broken.2.0);
        broken.sort_by_key(order);
        breaks.sort_by_key(order);
        assert_eq!(broken, breaks, "the breaks");
        self.compare();
    }

    fn compare(&self) {
        let s = &self.s;
        for (index, name) in NAMES.iter().enumerate() {
            let found = s.lookup(s.root(), name).ok().map(|entry| entry.node);
            let file = self.reference.names.get(&index);
            assert_eq!(found, file.map(|file| self.nodes[*file]), "name {index}");
        }
        for (open, id) in self.reference.opens.iter().zip(&self.opens) {
            let place = open.place.map(|name| (s.root(), NAMES[name].to_vec()));
            assert_eq!(s.place(*id), place, "place of {open:?}");
            let pending = self.reference.is_pending(open);
            assert_eq!(s.delete_pending(*id), pending, "deletion of {open:?}");
        }
        for (&(caller, file), bits) in &self.reference.leases {
            assert_eq!(
                held(s, lease_key(caller, file)),
                *bits,
                "lease of {caller} on {file}"
            );
        }
        assert_eq!(s.volume().lease_count(), self.reference.leases.len());
        assert_eq!(s.volume().open_count(), self.opens.len());
    }

    fn act(&mut self, op: Op) -> Result<()> {
        let s = self.s.clone();
        let top = s.root();
        match op {
            Op::Create(name) => {
                let made = s.create(
                    top,
                    NAMES[name],
                    Create::New,
                    Mode::Read,
                    &SetAttr::default(),
                )?;
                self.nodes.push(made.0.node);
                s.close(made.1)
            }
            Op::OpenPlain(name, mode) => {
                let node = s.lookup(top, NAMES[name])?.node;
                self.opens.push(s.open(node, mode)?);
                Ok(())
            }
            Op::Open {
                caller,
                name,
                share,
                keyed,
            } => {
                let node = s.lookup(top, NAMES[name])?.node;
                let mut how = OpenHow::from(reference::mode(share)).with_share(share);
                if keyed {
                    let file = self.reference.names[&name];
                    how = how.with_lease_key(lease_key(caller, file));
                }
                self.opens
                    .push(s.open_entry_of(node, Some((top, NAMES[name])), how)?);
                Ok(())
            }
            Op::Close(n) => s.close(self.opens.remove(n)),
            op => self.act_on_opens(op),
        }
    }

    fn act_on_opens(&self, op: Op) -> Result<()> {
        let s = &self.s;
        let top = s.root();
        let id = |n: usize| self.opens[n];
        match op {
            Op::Lease(n, want) => {
                let Some((caller, file)) = self.reference.whose(n) else {
                    return Ok(());
                };
                s.lease(id(n), lease_key(caller, file), want, self.sink.clone())
                    .map(drop)
            }
            Op::GiveUp(n) => match self.reference.whose(n) {
                Some((caller, file)) => s.give_up_lease(lease_key(caller, file)),
                None => Ok(()),
            },
            Op::Read(n) => s.read(id(n), 0, &mut [0; 4]).map(drop),
            Op::Write(n) => s.write(id(n), Some(0), b"x").map(drop),
            Op::Resize(name) => {
                let node = s.lookup(top, NAMES[name])?.node;
                s.setattr(node, &SetAttr::size(3)).map(drop)
            }
            Op::Lock(n, at, len, alone) => {
                let kind = if alone {
                    LockKind::Exclusive
                } else {
                    LockKind::Shared
                };
                s.lock_exact(id(n), Range::new(at, len), kind, Wait::No)
            }
            Op::Unlock(n, at, len) => s.unlock_exact(id(n), Range::new(at, len)),
            Op::CheckIo(n, at, writes) => s.check_io(id(n), Range::new(at, 1), writes, 0),
            Op::SetDelete(n, on) => s.set_delete(id(n), on),
            Op::DeleteOnClose(n) => s.delete_on_close(id(n)),
            Op::Unlink(name) => s.unlink(top, NAMES[name]),
            Op::Rename(from, to) => {
                s.rename(top, NAMES[from], top, NAMES[to], RenameFlags::REPLACE)
            }
            Op::RenameOpen(n, to) => s.rename_open(id(n), top, NAMES[to], RenameFlags::REPLACE),
            Op::Create(_) | Op::OpenPlain(..) | Op::Open { .. } | Op::Close(_) => {
                unreachable!("done above")
            }
        }
    }
}

fn lease_key(caller: u8, file: usize) -> volary_session::LeaseKey {
    key(caller, file as u8)
}

#[test]
fn callers_see_each_other_as_the_model_says() {
    replay::seeds(0..1500, |seed| {
        let mut rng = Rng::new(seed);
        let ops: Vec<Op> = (0..OPS).map(|_| random_op(&mut rng)).collect();
        replay::hold(
            seed,
            ops,
            || (),
            |ops| {
                let mut pair = Pair::new();
                ops.iter().for_each(|op| pair.step(*op));
            },
        );
    });
}
