//! A device that fails on demand.

use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Geometry, Result};

/// The unit of bad areas and of torn writes, in bytes.
const SECTOR: u64 = 512;

/// A kind of request that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum On {
    Read,
    Write,
    Flush,
}

/// Which requests of a kind fail. They are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only this one.
    Nth(u64),
    /// This one and all after it.
    From(u64),
}

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With `Io`. Nothing was done.
    Io,
    /// With `Io`, as if the host's disk were full. Nothing was done.
    Full,
    /// A torn write: this many of its first sectors reach the device, and then it fails with `Io`.
    Torn(u64),
}

/// A device that passes requests on to the device below, and fails those selected by
/// [`fail`](Self::fail). Requests of each kind are counted from 0, over all threads. A gathered
/// write is one request.
pub struct Faulty {
    dev: Arc<dyn BlockDevice>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    seen: [u64; 3],
    faults: Vec<(On, When, How)>,
    bad_reads: Vec<Range<u64>>,
    bad_writes: Vec<Range<u64>>,
    space: Option<Space>,
}

/// Room for sectors that were never written before, as on the host's nearly full file system.
struct Space {
    left: u64,
    taken: BTreeSet<u64>,
}

impl Faulty {
    /// Returns a device that does not fail yet.
    pub fn new(dev: Arc<dyn BlockDevice>) -> Self {
        Self {
            dev,
            state: Mutex::default(),
        }
    }

    /// Fails these requests from now on. The counts restart at 0.
    pub fn fail(&self, on: On, when: When, how: How) {
        let mut state = self.state.lock();
        state.seen = [0; 3];
        state.faults.push((on, when, how));
    }

    /// Makes reads fail that touch these bytes.
    pub fn bad_reads(&self, bytes: Range<u64>) {
        self.state.lock().bad_reads.push(bytes);
    }

    /// Makes writes fail that touch these bytes. Sectors before them are still written.
    pub fn bad_writes(&self, bytes: Range<u64>) {
        self.state.lock().bad_writes.push(bytes);
    }

    /// Limits the room to `bytes` more, counted in sectors not yet written through this device.
    /// Writes that need more fail as if the host's disk were full.
    pub fn short_space(&self, bytes: u64) {
        self.state.lock().space = Some(Space {
            left: bytes / SECTOR,
            taken: BTreeSet::new(),
        });
    }

    /// Removes all faults.
    pub fn heal(&self) {
        *self.state.lock() = State::default();
    }

    /// Returns how many requests of a kind came since the last [`fail`](Self::fail).
    pub fn seen(&self, on: On) -> u64 {
        self.state
            .lock()
            .seen
            .get(on as usize)
            .copied()
            .unwrap_or(0)
    }
}

impl State {
    /// Counts a request. Returns how it must fail, if it must.
    fn next(&mut self, on: On) -> Option<How> {
        let seen = self.seen.get_mut(on as usize)?;
        let now = *seen;
        *seen += 1;
        let hit = |when: When| match when {
            When::Nth(n) => now == n,
            When::From(n) => now >= n,
        };
        let mut faults = self.faults.iter();
        faults
            .find(|(o, when, _)| *o == on && hit(*when))
            .map(|f| f.2)
    }

    /// Returns how a write to this range must fail, if it must.
    fn next_write(&mut self, offset: u64, len: u64) -> Option<How> {
        let told = self.next(On::Write);
        let bad = first_bad(&self.bad_writes, offset, len);
        let torn = bad.map(|at| How::Torn((at.max(offset) - offset) / SECTOR));
        told.or(torn)
            .or_else(|| self.space.as_mut()?.take(offset, len))
    }
}

impl Space {
    fn take(&mut self, offset: u64, len: u64) -> Option<How> {
        let sectors = offset / SECTOR..(offset + len).div_ceil(SECTOR);
        let new: Vec<u64> = sectors.filter(|s| !self.taken.contains(s)).collect();
        let Some(left) = self.left.checked_sub(new.len() as u64) else {
            return Some(How::Full);
        };
        self.left = left;
        self.taken.extend(new);
        None
    }
}

/// Returns the start of the first bad area that the range touches.
fn first_bad(bad: &[Range<u64>], offset: u64, len: u64) -> Option<u64> {
    let touched = bad
        .iter()
        .filter(|b| b.start < offset + len && offset < b.end);
    touched.map(|b| b.start).min()
}

impl BlockDevice for Faulty {
    fn geometry(&self) -> Geometry {
        self.dev.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let len = buf.len() as u64;
        let (told, bad) = {
            let mut state = self.state.lock();
            let told = state.next(On::Read);
            (told, first_bad(&state.bad_reads, offset, len))
        };
        match told.is_some() || bad.is_some() {
            true => Err(Error::io(
                "read",
                bad.unwrap_or(offset),
                len,
                "told to fail",
            )),
            false => self.dev.read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_gather(offset, &[data])
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let len = parts.iter().map(|p| p.len() as u64).sum();
        let told = self.state.lock().next_write(offset, len);
        match told {
            None => return self.dev.write_gather(offset, parts),
            Some(How::Full) => return Err(Error::host_full("write", offset, len)),
            Some(How::Io) => {}
            Some(How::Torn(sectors)) => {
                let mut all = parts.concat();
                all.truncate(usize::try_from(sectors.saturating_mul(SECTOR)).unwrap_or(usize::MAX));
                self.dev.write_at(offset, &all)?;
            }
        }
        Err(Error::io("write", offset, len, "told to fail"))
    }

    fn flush(&self) -> Result<()> {
        let told = self.state.lock().next(On::Flush);
        match told {
            None => self.dev.flush(),
            Some(_) => Err(Error::io("flush", 0, self.geometry().size, "told to fail")),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.dev.discard(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemDevice;
    use volary_core::Kind;

    fn faulty() -> (Arc<MemDevice>, Faulty) {
        let mem = Arc::new(MemDevice::new(1 << 20));
        (mem.clone(), Faulty::new(mem))
    }

    #[test]
    fn the_nth_fails_once_and_from_n_on_all_fail() {
        let (_, dev) = faulty();
        dev.fail(On::Write, When::Nth(1), How::Full);
        dev.fail(On::Flush, When::From(1), How::Io);
        let writes = [0, 1, 2].map(|_| dev.write_at(0, &[1]).is_ok());
        assert_eq!(writes, [true, false, true]);
        let flushes = [0, 1, 2].map(|_| dev.flush().is_ok());
        assert_eq!(flushes, [true, false, false]);
        assert_eq!(dev.seen(On::Flush), 3);
        dev.heal();
        dev.flush().unwrap();
    }

    #[test]
    fn a_torn_write_leaves_whole_sectors_from_the_start() {
        let (mem, dev) = faulty();
        dev.fail(On::Write, When::Nth(0), How::Torn(2));
        assert_eq!(dev.write_at(512, &[1; 2048]).unwrap_err(), Kind::Io);
        let bytes = mem.to_vec();
        assert!(bytes[512..1536].iter().all(|&b| b == 1));
        assert!(bytes[1536..].iter().all(|&b| b == 0));
    }

    #[test]
    fn bad_sectors_fail_whoever_touches_them() {
        let (mem, dev) = faulty();
        dev.bad_reads(1024..1536);
        dev.bad_writes(1024..1536);
        dev.read_at(0, &mut [0; 1024]).unwrap();
        let e = dev.read_at(0, &mut [0; 1025]).unwrap_err();
        assert_eq!(e.as_io().unwrap().offset, 1024);
        dev.write_at(0, &[1; 2048]).unwrap_err();
        assert!(mem.to_vec()[..1024].iter().all(|&b| b == 1));
        assert!(mem.to_vec()[1024..].iter().all(|&b| b == 0));
    }

    #[test]
    fn short_space_lets_old_places_be_written_again() {
        let (_, dev) = faulty();
        dev.short_space(1024);
        dev.write_at(0, &[1; 1024]).unwrap();
        assert_eq!(dev.write_at(1024, &[1]).unwrap_err(), Kind::Io);
        dev.write_at(512, &[1; 512]).unwrap();
    }
}
