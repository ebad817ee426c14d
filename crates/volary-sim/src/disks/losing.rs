//! A device that loses unflushed data when its process is killed.

use crate::disks::disk::{SECTOR, Sector};
use crate::rng::Rng;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{BlockDevice, Geometry, Result};

/// At each write, one in this many waiting sectors is written by itself.
const ON_ITS_OWN: u64 = 16;

/// A device over another that outlives the process, such as a file. Written sectors wait in memory
/// until a flush, which writes them one by one in random order. Some are written earlier, as a disk
/// may do from its cache. A process that is killed leaves the same states as a power cut: any of
/// the waiting sectors may be written or not.
pub struct Losing {
    below: Arc<dyn BlockDevice>,
    state: Mutex<State>,
}

struct State {
    waiting: BTreeMap<u64, Sector>,
    rng: Rng,
}

impl Losing {
    /// Returns a device over `below`; the seed decides the order in which sectors are written.
    pub fn new(below: Arc<dyn BlockDevice>, seed: u64) -> Self {
        Self {
            below,
            state: Mutex::new(State {
                waiting: BTreeMap::new(),
                rng: Rng::new(seed),
            }),
        }
    }

    fn put_down(&self, number: u64, sector: &Sector) -> Result<()> {
        self.below.write_at(number * SECTOR as u64, sector.bytes())
    }

    /// Writes one in `each` of the waiting sectors, in random order.
    fn put_some_down(&self, state: &mut State, each: u64) -> Result<()> {
        let State { waiting, rng } = state;
        let mut some: Vec<u64> = waiting.keys().copied().collect();
        some.retain(|_| rng.one_in(each));
        while !some.is_empty() {
            let number = some.swap_remove(rng.index(some.len()));
            if let Some(sector) = waiting.get(&number) {
                self.put_down(number, sector)?;
            }
            waiting.remove(&number);
        }
        Ok(())
    }

    /// Reads from `offset` on, including waiting sectors.
    fn read(&self, state: &State, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.below.read_at(offset, buf)?;
        let sector = SECTOR as u64;
        let end = offset + buf.len() as u64;
        for (number, content) in state.waiting.range(offset / sector..end.div_ceil(sector)) {
            content.lay_over(*number, offset, buf);
        }
        Ok(())
    }
}

impl BlockDevice for Losing {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read(&self.state.lock(), offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        let sector = SECTOR as u64;
        let (first, end) = (
            offset / sector,
            (offset + data.len() as u64).div_ceil(sector),
        );
        let mut whole = vec![0; (end - first) as usize * SECTOR];
        self.read(&state, first * sector, &mut whole)?;
        let at = (offset - first * sector) as usize;
        for (to, byte) in whole.iter_mut().skip(at).zip(data) {
            *to = *byte;
        }
        for (number, bytes) in (first..end).zip(whole.chunks(SECTOR)) {
            state.waiting.insert(number, Sector::new(bytes));
        }
        self.put_some_down(&mut state, ON_ITS_OWN)
    }

    fn flush(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.put_some_down(&mut state, 1)?;
        self.below.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::cow::Cow;
    use crate::disks::disk::Disk;

    #[test]
    fn what_waits_is_read_and_what_was_flushed_is_below() {
        let below = Arc::new(Cow::new(Disk::new(vec![0; 64 * SECTOR])));
        let dev = Losing::new(below.clone(), 1);
        dev.write_at(500, &[7; 20_000]).unwrap();
        let mut buf = [1; 4];
        dev.read_at(498, &mut buf).unwrap();
        assert_eq!(buf, [0, 0, 7, 7]);
        let there = || {
            let bytes = below.disk().to_vec();
            bytes.iter().filter(|b| **b == 7).count()
        };
        // Some sectors were written by themselves, most were not.
        assert!((1..10_000).contains(&there()), "{}", there());
        assert!(dev.write_at(64 * 512 - 1, &[1, 1]).is_err());
        dev.flush().unwrap();
        assert_eq!(there(), 20_000);
    }
}
