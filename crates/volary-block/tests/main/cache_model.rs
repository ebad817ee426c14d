//! The cache against plain vectors: what is read, what is on the device, and
//! what a crash could leave at every moment.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions, MemDevice, Recorder, Request, Stage};

const SECTOR: usize = 512;

/// Not whole sectors, so that the end is met as well.
const SIZE: usize = 200 * SECTOR + 77;

#[derive(Clone, Debug)]
enum Op {
    Write { at: usize, len: usize, stage: u8 },
    Update { at: usize, len: usize, stage: u8 },
    Direct { at: usize, len: usize },
    Read { at: usize, len: usize },
    View { at: usize, len: usize },
    Drop { at: usize, len: usize },
    Prefetch { at: usize, len: usize },
    WriteData,
    Commit,
}

/// Places and lengths, half of them of whole sectors.
fn range() -> impl Strategy<Value = (usize, usize)> {
    let any = (0..SIZE, 0..20_000_usize);
    let sectors = (0..200_usize, 1..12_usize).prop_map(|(a, n)| (a * SECTOR, n * SECTOR));
    prop_oneof![any, sectors].prop_map(|(at, len)| (at, len.min(SIZE - at)))
}

fn op() -> impl Strategy<Value = Op> {
    let within = |(at, len): (usize, usize)| (at, len.min(4096 - at % 4096));
    prop_oneof![
        6 => (range(), 0..4_u8).prop_map(|((at, len), stage)| Op::Write { at, len, stage }),
        3 => (range(), 0..4_u8).prop_map(move |(r, stage)| {
            let (at, len) = within(r);
            Op::Update { at, len, stage }
        }),
        2 => range().prop_map(|(at, len)| Op::Direct { at, len }),
        3 => range().prop_map(|(at, len)| Op::Read { at, len }),
        2 => range().prop_map(move |r| {
            let (at, len) = within(r);
            Op::View { at, len }
        }),
        1 => range().prop_map(|(at, len)| Op::Drop { at, len }),
        1 => range().prop_map(|(at, len)| Op::Prefetch { at, len }),
        1 => Just(Op::WriteData),
        1 => Just(Op::Commit),
    ]
}

/// The cache and what it should be.
struct Run {
    cache: Cache,
    recorder: Arc<Recorder>,
    mem: Arc<MemDevice>,
    /// What a read shall give; where `dropped`, anything.
    model: Vec<u8>,
    dropped: Vec<bool>,
    /// Stage of every sector written since the last commit.
    pending: BTreeMap<usize, u8>,
    /// What the device holds, by its requests, and what of it a crash cannot
    /// take away.
    seen: Vec<u8>,
    durable: Vec<u8>,
    fill: u8,
    /// Whether the cache may hold more than its bound until it next lets go.
    loose: bool,
}

/// Returns the sectors that a range touches: none, if it is empty.
fn sectors(at: usize, len: usize) -> std::ops::Range<usize> {
    let first = at / SECTOR;
    first..if len == 0 {
        first
    } else {
        (at + len).div_ceil(SECTOR)
    }
}

/// Returns the sectors that lie whole in a range.
fn whole(at: usize, len: usize) -> std::ops::Range<usize> {
    let end = at + len;
    let end = if end == SIZE {
        end.div_ceil(SECTOR)
    } else {
        end / SECTOR
    };
    at.div_ceil(SECTOR)..end
}

fn bytes_of(sector: usize) -> std::ops::Range<usize> {
    sector * SECTOR..((sector + 1) * SECTOR).min(SIZE)
}

impl Run {
    fn new() -> Self {
        let model: Vec<u8> = (0..SIZE).map(|i| (i / 100) as u8).collect();
        let mem = Arc::new(MemDevice::from_vec(model.clone()));
        let recorder = Arc::new(Recorder::new(mem.clone()));
        let options = CacheOptions {
            memory: 1,
            io_size: 4096,
        };
        Self {
            cache: Cache::new(recorder.clone(), options),
            recorder,
            mem,
            seen: model.clone(),
            durable: model.clone(),
            dropped: vec![false; SIZE.div_ceil(SECTOR)],
            model,
            pending: BTreeMap::new(),
            fill: 0,
            loose: false,
        }
    }

    /// Returns bytes that differ from those before.
    fn data(&mut self, len: usize) -> Vec<u8> {
        self.fill = self.fill.wrapping_add(41);
        (0..len)
            .map(|i| self.fill.wrapping_add((i / 64) as u8))
            .collect()
    }

    fn check_read(&self, at: usize, got: &[u8]) {
        for s in sectors(at, got.len()).filter(|s| !self.dropped[*s]) {
            let r = bytes_of(s);
            let (from, to) = (r.start.max(at), r.end.min(at + got.len()));
            assert!(
                got[from - at..to - at] == self.model[from..to],
                "sector {s} reads wrong"
            );
        }
    }

    /// Notes a write that the cache has taken. Where a part of a dropped
    /// sector was written, what the rest is now is what it shall stay.
    fn wrote(&mut self, at: usize, data: &[u8], stage: u8, direct: bool) {
        self.model[at..at + data.len()].copy_from_slice(data);
        for s in sectors(at, data.len()) {
            let covered = whole(at, data.len()).contains(&s);
            let old = self.pending.get(&s).copied().unwrap_or(0);
            let stage = if direct && covered { 0 } else { stage.max(old) };
            self.pending.insert(s, stage);
            if std::mem::take(&mut self.dropped[s]) && !covered {
                let mut now = vec![0; bytes_of(s).len()];
                self.cache.read((s * SECTOR) as u64, &mut now).unwrap();
                let part = bytes_of(s).start.max(at)..bytes_of(s).end.min(at + data.len());
                let from = part.start - s * SECTOR;
                assert!(now[from..from + part.len()] == self.model[part]);
                self.model[bytes_of(s)].copy_from_slice(&now);
            }
        }
    }

    fn step(&mut self, op: &Op) {
        let before = self.pending.clone();
        match *op {
            Op::Write { at, len, stage } => {
                let data = self.data(len);
                self.cache.write(at as u64, &data, Stage(stage)).unwrap();
                self.wrote(at, &data, stage, false);
            }
            Op::Update { at, len, stage } => {
                let data = self.data(len);
                let put = |b: &mut [u8]| b.copy_from_slice(&data);
                self.cache
                    .update(at as u64, len, Stage(stage), put)
                    .unwrap();
                self.wrote(at, &data, stage, false);
            }
            Op::Direct { at, len } => {
                let data = self.data(len);
                self.cache.write_direct(at as u64, &data).unwrap();
                self.wrote(at, &data, 0, true);
            }
            Op::Read { at, len } => {
                let mut b = vec![0; len];
                self.cache.read(at as u64, &mut b).unwrap();
                self.check_read(at, &b);
            }
            Op::View { at, len } => {
                let b = self.cache.view(at as u64, len, <[u8]>::to_vec).unwrap();
                self.check_read(at, &b);
            }
            Op::Drop { at, len } => {
                self.cache.drop_range(at as u64, len as u64);
                for s in whole(at, len) {
                    self.pending.remove(&s);
                    self.dropped[s] = true;
                }
            }
            Op::Prefetch { at, len } => self.cache.prefetch(at as u64, len as u64),
            Op::WriteData => self.cache.write_stage(Stage::DATA).unwrap(),
            Op::Commit => self.cache.commit().unwrap(),
        }
        self.check_requests(matches!(op, Op::Commit), &before);
        // A page whose held sectors were dropped counts again, and may be dirty:
        // the next that needs room sees to it.
        self.loose = match op {
            Op::Drop { .. } => true,
            Op::Commit => false,
            _ => self.loose,
        };
        let (used, held) = (self.cache.used(), self.cache.held());
        let bound = 4 * 4096 + held * 8;
        assert!(
            self.loose || used <= bound,
            "{used} bytes used, {held} held"
        );
    }

    /// Follows the requests, and looks at each moment at what a crash could
    /// leave.
    fn check_requests(&mut self, commit: bool, before: &BTreeMap<usize, u8>) {
        for request in self.recorder.take() {
            match request {
                Request::Flush => self.durable.clone_from(&self.seen),
                Request::Write { offset, data } => {
                    self.check_write(offset as usize, &data, commit, before);
                }
                Request::Read { .. } | Request::Discard { .. } => {}
            }
        }
        if commit {
            for s in (0..self.dropped.len()).filter(|s| !self.dropped[*s]) {
                let r = bytes_of(s);
                assert!(
                    self.durable[r.clone()] == self.model[r],
                    "sector {s} is not durable"
                );
            }
            assert_eq!((self.cache.dirty(), self.cache.held()), (0, 0));
            assert!(self.mem.to_vec() == self.seen);
            self.pending.clear();
        }
    }

    /// A sector of a later stage may be written only in a commit, when all
    /// pending sectors of earlier stages are durable. One that this operation
    /// took from stage 0 to a later one may have left before that.
    fn check_write(&mut self, at: usize, data: &[u8], commit: bool, before: &BTreeMap<usize, u8>) {
        assert!(at.is_multiple_of(SECTOR) && data.len() <= 4096);
        for s in sectors(at, data.len()) {
            let stage = match before.get(&s) {
                Some(0) if !commit => 0,
                _ => *self
                    .pending
                    .get(&s)
                    .expect("only what was written is written"),
            };
            assert!(
                commit || stage == 0,
                "sector {s} of stage {stage} left early"
            );
            for (earlier, _) in self.pending.iter().filter(|(_, st)| **st < stage) {
                let r = bytes_of(*earlier);
                let safe = self.durable[r.clone()] == self.model[r];
                assert!(safe, "sector {s} of stage {stage} before {earlier}");
            }
        }
        self.seen[at..at + data.len()].copy_from_slice(data);
    }
}

#[test]
fn the_cache_equals_a_plain_vector_and_keeps_its_order() {
    let ops = proptest::collection::vec(op(), 1..120);
    crate::seeded::check(100, ops, |ops| {
        let mut run = Run::new();
        for op in ops.iter().chain([&Op::Commit]) {
            run.step(op);
        }
    });
}
