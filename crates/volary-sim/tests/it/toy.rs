//! A toy that keeps eight cells over power cuts: a redo log before their homes,
//! and mistakes that can be planted in it.
//!
//! Sectors 0 and 2: the anchor, twice: from which record on the log is needed.
//! Sectors 8 to 8 + [`LOG`]: the log, records of a head, cells, and an end.
//! Sectors 32 to 40: the cells' homes.

use std::fmt;
use std::sync::Arc;
use volary_core::BlockDevice;
use volary_sim::{Disk, Moment, Recovered, SECTOR, Subject, Traced};

pub(crate) const CELLS: usize = 8;
const LOG: u64 = 12;
const LOG_AT: u64 = 8;
const HOME_AT: u64 = 32;
const HEAD: u32 = 0x4845_4144;
const CELL: u32 = 0x4345_4c4c;
const END: u32 = 0x454e_4420;
const ANCHOR: u32 = 0x414e_4348;
const HOME: u32 = 0x484f_4d45;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    None,
    /// A commit is acknowledged before it is durable.
    AckEarly,
    /// Homes are not durable before the anchor says that the log is not needed.
    AnchorBeforeHomes,
    /// The same, in recovery.
    AnchorBeforeHomesInRecovery,
    /// The log begins anew before the homes are written.
    WrapWithoutHomes,
    /// Recovery looks neither at checksums of cells nor for a record's end.
    CellsUnchecked,
    /// Recovery takes records of an earlier round of the log.
    OldRecords,
    /// What is not committed is written home.
    UncommittedHome,
    /// A record lacks its last cell.
    CellForgotten,
    /// The home of one cell is not written.
    HomeForgotten,
    /// The same, in recovery.
    HomeForgottenInRecovery,
    /// Recovery begins a new log without the anchor.
    AnchorNotMoved,
}

impl Mistake {
    pub(crate) const ALL: [Self; 11] = [
        Self::AckEarly,
        Self::AnchorBeforeHomes,
        Self::AnchorBeforeHomesInRecovery,
        Self::WrapWithoutHomes,
        Self::CellsUnchecked,
        Self::OldRecords,
        Self::UncommittedHome,
        Self::CellForgotten,
        Self::HomeForgotten,
        Self::HomeForgottenInRecovery,
        Self::AnchorNotMoved,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Put(usize, u64),
    Commit,
}

pub(crate) struct Script(pub(crate) Vec<Op>);

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// The cells after each operation.
pub(crate) struct History {
    script: Vec<Op>,
    after: Vec<[u64; CELLS]>,
}

pub(crate) struct Toy(pub(crate) Mistake);

/// Returns a sector: magic, three numbers and a checksum.
fn pack(magic: u32, numbers: [u64; 3]) -> Vec<u8> {
    let mut bytes = magic.to_le_bytes().to_vec();
    numbers
        .iter()
        .for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
    let sum = sum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.resize(SECTOR, 0);
    bytes
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |h: u32, b| {
        (h ^ u32::from(*b)).wrapping_mul(0x0100_0193)
    })
}

/// Returns the numbers of a sector; with a wrong checksum only if it is not looked at.
fn unpack(bytes: &[u8], magic: u32, checked: bool) -> Option<[u64; 3]> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    if checked && (word(0) != magic || word(28) != sum(&bytes[..28])) {
        return None;
    }
    Some([4, 12, 20].map(|at| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())))
}

fn read(dev: &dyn BlockDevice, sector: u64) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR];
    dev.read_at(sector * SECTOR as u64, &mut bytes).unwrap();
    bytes
}

fn write(dev: &dyn BlockDevice, sector: u64, bytes: &[u8]) {
    dev.write_at(sector * SECTOR as u64, bytes).unwrap();
}

/// The running toy.
struct Running<'a> {
    dev: &'a dyn BlockDevice,
    mistake: Mistake,
    now: [u64; CELLS],
    committed: [u64; CELLS],
    /// What the homes have.
    homes: [u64; CELLS],
    seq: u64,
    at: u64,
}

impl Running<'_> {
    fn commit(&mut self, flush: bool) {
        let mut changed: Vec<usize> = (0..CELLS)
            .filter(|&i| self.now[i] != self.committed[i])
            .collect();
        if self.at + changed.len() as u64 + 2 > LOG {
            self.begin_anew();
        }
        if self.mistake == Mistake::CellForgotten && changed.len() > 1 {
            changed.pop();
        }
        let mut record = pack(HEAD, [self.seq, changed.len() as u64, 0]);
        for &i in &changed {
            record.extend(pack(CELL, [self.seq, i as u64, self.now[i]]));
        }
        record.extend(pack(END, [self.seq, changed.len() as u64, 0]));
        write(self.dev, LOG_AT + self.at, &record);
        if flush {
            self.dev.flush().unwrap();
        }
        self.at += changed.len() as u64 + 2;
        self.seq += 1;
        self.committed = self.now;
    }

    fn begin_anew(&mut self) {
        let homes = match self.mistake {
            Mistake::UncommittedHome => self.now,
            _ => self.committed,
        };
        self.at = 0;
        if self.mistake == Mistake::WrapWithoutHomes {
            return;
        }
        for (i, value) in homes.iter().enumerate() {
            let needed = *value != self.homes[i];
            if needed && (self.mistake != Mistake::HomeForgotten || i != 3) {
                let home = pack(HOME, [*value, 0, 0]);
                write(self.dev, HOME_AT + i as u64, &home);
            }
        }
        if self.mistake != Mistake::AnchorBeforeHomes {
            self.dev.flush().unwrap();
        }
        anchor(self.dev, self.seq);
        self.homes = homes;
    }
}

/// Writes both anchors, one after the other.
fn anchor(dev: &dyn BlockDevice, seq: u64) {
    for sector in [0, 2] {
        write(dev, sector, &pack(ANCHOR, [seq, 0, 0]));
        dev.flush().unwrap();
    }
}

fn homes(dev: &dyn BlockDevice) -> Result<[u64; CELLS], String> {
    let mut cells = [0; CELLS];
    for (i, cell) in cells.iter_mut().enumerate() {
        let bytes = read(dev, HOME_AT + i as u64);
        let home = unpack(&bytes, HOME, true).ok_or(format!("home {i} is damaged"))?;
        *cell = home[0];
    }
    Ok(cells)
}

/// Returns the cells that a record at a place of the log has, and where the next one is.
fn record(dev: &dyn BlockDevice, at: u64, mistake: Mistake) -> Option<(u64, Vec<(usize, u64)>)> {
    let [seq, count, _] = unpack(&read(dev, LOG_AT + at), HEAD, true)?;
    if at + count + 2 > LOG {
        return None;
    }
    let mut cells = Vec::new();
    for i in 1..=count {
        let bytes = read(dev, LOG_AT + at + i);
        let [of, cell, value] = unpack(&bytes, CELL, mistake != Mistake::CellsUnchecked)?;
        if mistake != Mistake::CellsUnchecked && of != seq {
            return None;
        }
        cells.push((cell as usize % CELLS, value));
    }
    let end = unpack(&read(dev, LOG_AT + at + count + 1), END, true);
    let ended = end.is_some_and(|[of, n, _]| of == seq && n == count);
    let good = ended || mistake == Mistake::CellsUnchecked;
    good.then_some((seq, cells))
}

impl Subject for Toy {
    type Script = Script;
    type History = History;
    type Found = [u64; CELLS];

    fn name(&self) -> &str {
        "toy"
    }

    fn make(&self) -> Result<Disk, String> {
        let dev = Traced::new(Disk::new(vec![0; 64 * SECTOR]));
        for i in 0..CELLS as u64 {
            write(&dev, HOME_AT + i, &pack(HOME, [0; 3]));
        }
        anchor(&dev, 1);
        Ok(dev.disk().rebased())
    }

    fn play(&self, script: &Script, dev: &Arc<Traced>) -> Result<History, String> {
        let mut toy = Running {
            dev: &**dev,
            mistake: self.0,
            now: [0; CELLS],
            committed: [0; CELLS],
            homes: [0; CELLS],
            seq: 1,
            at: 0,
        };
        let mut after = Vec::new();
        for (i, op) in script.0.iter().enumerate() {
            dev.begin(i);
            match op {
                Op::Put(cell, value) => toy.now[*cell] = *value,
                Op::Commit => toy.commit(self.0 != Mistake::AckEarly),
            }
            dev.end(i);
            after.push(toy.now);
        }
        let script = script.0.clone();
        Ok(History { script, after })
    }

    fn recover(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<&'static str>, String> {
        let anchors = [0, 2].map(|s| unpack(&read(&*dev, s), ANCHOR, true));
        let from = anchors.iter().flatten().map(|a| a[0]).max();
        let from = from.ok_or("both anchors are damaged")?;
        let (mut next, mut at, mut cells) = (from, 0, [None; CELLS]);
        while at < LOG {
            let Some((seq, changed)) = record(&*dev, at, self.0) else {
                break;
            };
            if seq != next && self.0 != Mistake::OldRecords {
                break;
            }
            at += changed.len() as u64 + 2;
            changed
                .iter()
                .for_each(|(i, value)| cells[*i] = Some(*value));
            next += 1;
        }
        if next == from {
            return Ok(Vec::new());
        }
        for (i, cell) in cells.iter().enumerate() {
            if let Some(value) = cell
                && (self.0 != Mistake::HomeForgottenInRecovery || i != 3)
            {
                write(&*dev, HOME_AT + i as u64, &pack(HOME, [*value, 0, 0]));
            }
        }
        if self.0 != Mistake::AnchorBeforeHomesInRecovery {
            dev.flush().unwrap();
        }
        if self.0 != Mistake::AnchorNotMoved {
            anchor(&*dev, next);
        }
        Ok(Vec::new())
    }

    fn look(&self, dev: Arc<dyn BlockDevice>) -> Result<[u64; CELLS], String> {
        homes(&*dev)
    }

    fn judge(
        &self,
        found: &Recovered<[u64; CELLS]>,
        history: &History,
        at: Moment,
    ) -> Result<(), String> {
        let found = &*found.found;
        let commits = |end: usize| {
            let ops = history.script.iter().take(end).enumerate();
            ops.filter(|(_, op)| **op == Op::Commit).map(|(i, _)| i)
        };
        let first = commits(at.ended).next_back();
        let states = commits(at.began).filter(|i| first.is_none_or(|f| *i >= f));
        let fresh = first.is_none() && *found == [0; CELLS];
        if fresh || states.map(|i| history.after[i]).any(|s| s == *found) {
            return Ok(());
        }
        Err(format!(
            "{found:?} was never committed, or is older than {first:?}"
        ))
    }
}
