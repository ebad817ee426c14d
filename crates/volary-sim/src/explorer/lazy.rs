//! Choices that are made on demand.
//!
//! Recovery does not read each sector that was in flight, and a sector that is never read need not
//! be decided. So the fate of a sector is chosen when it is first read. The next run makes another
//! choice at the last place where there is one. In the end, all choices that matter were made, and
//! no others.

use crate::disks::disk::{Disk, Sector};
use crate::disks::trace::{geometry, in_range};
use crate::explorer::cut::{Choice, CrashPoint, Fate};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use volary_core::{BlockDevice, Geometry, Result};

/// The choices that runs have made, and which to make next.
#[derive(Clone, Debug, Default)]
pub struct Odometer {
    /// The chosen number at each decision, and how many there are.
    wheels: Vec<(usize, usize)>,
}

impl Odometer {
    /// Moves to the next combination of choices; false if there is none.
    pub fn turn(&mut self) -> bool {
        while let Some((chosen, of)) = self.wheels.pop() {
            if chosen + 1 < of {
                self.wheels.push((chosen + 1, of));
                return true;
            }
        }
        false
    }

    fn choose(&mut self, nth: usize, of: usize) -> usize {
        if let Some(wheel) = self.wheels.get(nth) {
            return wheel.0;
        }
        self.wheels.push((0, of));
        0
    }
}

/// A device as a power cut left it. The fate of sectors in flight is decided when they are read.
pub struct Lazy {
    state: Mutex<State>,
}

struct State {
    disk: Disk,
    /// The possible contents of each undecided sector, besides its durable one: the writes, with
    /// their index in the crash point.
    open: BTreeMap<u64, Vec<(usize, Sector)>>,
    odometer: Odometer,
    decided: usize,
    choice: Choice,
}

impl Lazy {
    /// Returns the device for the next combination of choices.
    pub fn new(point: &CrashPoint, odometer: Odometer) -> Self {
        let mut open: BTreeMap<u64, Vec<(usize, Sector)>> = BTreeMap::new();
        for (i, (number, content)) in point.in_flight.iter().enumerate() {
            open.entry(*number).or_default().push((i, content.clone()));
        }
        Self {
            state: Mutex::new(State {
                disk: point.durable.clone(),
                choice: Choice(vec![Fate::Lost; point.in_flight.len()]),
                open,
                odometer,
                decided: 0,
            }),
        }
    }

    /// Returns the choices for [`Odometer::turn`], and the same choices for the crash point. In
    /// those, sectors that nobody read are lost.
    pub fn chosen(&self) -> (Odometer, Choice) {
        let state = self.state.lock();
        (state.odometer.clone(), state.choice.clone())
    }
}

impl State {
    /// Decides the fate of a range of sectors.
    fn decide(&mut self, offset: u64, len: u64) {
        let sector = crate::disks::disk::SECTOR as u64;
        let range = offset / sector..(offset + len).div_ceil(sector);
        let numbers: Vec<u64> = self.open.range(range).map(|(n, _)| *n).collect();
        for number in numbers {
            let Some(versions) = self.open.remove(&number) else {
                continue;
            };
            let pick = self.odometer.choose(self.decided, versions.len() + 1);
            self.decided += 1;
            let Some((i, content)) = pick.checked_sub(1).and_then(|v| versions.get(v)) else {
                continue;
            };
            if let Some(fate) = self.choice.0.get_mut(*i) {
                *fate = Fate::Kept;
            }
            self.disk.put(number, content.clone());
        }
    }
}

impl BlockDevice for Lazy {
    fn geometry(&self) -> Geometry {
        geometry(&self.state.lock().disk)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock();
        in_range(&state.disk, offset, buf.len() as u64)?;
        state.decide(offset, buf.len() as u64);
        state.disk.read(offset, buf);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.state.lock();
        in_range(&state.disk, offset, data.len() as u64)?;
        let sector = crate::disks::disk::SECTOR as u64;
        let end = offset + data.len() as u64;
        // A sector that is overwritten as a whole need not be decided.
        if !offset.is_multiple_of(sector) {
            state.decide(offset, 1);
        }
        if !end.is_multiple_of(sector) {
            state.decide(end - 1, 1);
        }
        let written = state.disk.written(offset, &[data]);
        for (number, content) in written {
            state.open.remove(&number);
            state.disk.put(number, content);
        }
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disks::disk::SECTOR;
    use crate::disks::trace::Moment;
    use std::collections::BTreeSet;

    #[test]
    fn only_what_is_read_makes_runs() {
        let in_flight = [3, 5, 5, 6].map(|n| (n, Sector::new(&[n as u8; SECTOR])));
        let mut in_flight = in_flight.to_vec();
        in_flight[2].1 = Sector::new(&[9; SECTOR]);
        let point = CrashPoint {
            event: 0,
            moment: Moment::default(),
            durable: Disk::new(vec![0; 8 * SECTOR]),
            in_flight,
        };
        let mut seen = BTreeSet::new();
        let mut odometer = Odometer::default();
        loop {
            let dev = Lazy::new(&point, odometer);
            let mut two = [0; 2];
            dev.read_at(3 * 512, &mut two[..1]).unwrap();
            dev.write_at(6 * 512, &[1; SECTOR]).unwrap();
            if two[0] == 3 {
                dev.read_at(5 * 512, &mut two[1..]).unwrap();
            }
            let (next, choice) = dev.chosen();
            let mut same = [0; 2];
            let disk = point.disk_after(&choice);
            disk.read(3 * 512, &mut same[..1]);
            if two[0] == 3 {
                disk.read(5 * 512, &mut same[1..]);
            }
            assert_eq!(two, same);
            assert!(seen.insert(two));
            odometer = next;
            if !odometer.turn() {
                break;
            }
        }
        assert_eq!(seen, BTreeSet::from([[0, 0], [3, 0], [3, 5], [3, 9]]));
    }
}
