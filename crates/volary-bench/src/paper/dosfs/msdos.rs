//! MS-DOS in virtual time: no cache but a few sectors of directories and FATs; content goes to the disk with each call, and is
//! waited for.

use super::buffers::Buffers;
use super::machine::Machine;
use super::volume::{Made, Real, Stretch, Wrote, split};
use crate::workload::Files;
use anyhow::Result;
use std::collections::HashMap;
use volary_sim::Timed;

/// The machine with a FAT volume at the beginning of the disk.
pub(super) struct Dos {
    machine: Machine,
    real: Real,
    disk: Box<dyn Timed>,
    /// The sectors in memory.
    buffers: Buffers,
    /// Sectors of directories in which entries were made, in this order; sectors of a file's chain.
    entries: HashMap<String, Vec<u64>>,
    chains: HashMap<String, Vec<u64>>,
}

const SECTOR: u64 = 512;
/// `BUFFERS=15`, as MS-DOS 5.0 has it unless it is told otherwise.
const BUFFERS: u64 = 15 * SECTOR;

impl Dos {
    /// An open, and each component of a path, in microseconds.
    pub(super) const OPEN: f64 = 340.0;
    pub(super) const COMPONENT: f64 = 160.0;

    /// Makes the volume.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn new(machine: Machine, made: &Made) -> Result<Self> {
        Ok(Self {
            machine,
            real: Real::make(made)?,
            disk: machine.disk.disk(),
            buffers: Buffers::default(),
            entries: HashMap::new(),
            chains: HashMap::new(),
        })
    }

    /// Returns microseconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.disk.now()
    }

    fn request(&mut self, (at, len): Stretch, is_write: bool) {
        self.disk
            .wait(self.machine.request + len as f64 / self.machine.memory);
        match is_write {
            true => self.disk.write(at, len),
            false => self.disk.read(at, len),
        }
    }

    /// Puts a sector into a buffer; reads it, if it is not new.
    fn buffer(&mut self, at: u64, is_new: bool) {
        if self.buffers.get(at).is_some() {
            return;
        }
        while self.buffers.bytes() >= BUFFERS {
            self.buffers.take_oldest();
        }
        if !is_new {
            self.request((at, SECTOR), false);
        }
        self.buffers.put((at, SECTOR), false, 0.0, false);
    }

    /// Writes FATs and directories.
    fn write_all(&mut self, wrote: &Wrote) {
        for stretch in wrote.maps.iter().chain(&wrote.copies).chain(&wrote.rest) {
            self.request(*stretch, true);
            sectors(stretch).for_each(|at| self.buffer(at, true));
        }
    }

    /// Writes what came with a new node, and notes where its entry is.
    fn born(&mut self, path: &str, mut wrote: Wrote) {
        let known = self.entries.entry(split(path).0.to_owned()).or_default();
        wrote.rest.drain(..wrote.rest.len().saturating_sub(1));
        let new = wrote.rest.iter().flat_map(sectors);
        let new: Vec<u64> = new.filter(|at| !known.contains(at)).collect();
        known.extend(new);
        self.write_all(&wrote);
    }

    /// Writes what went with a node: its entry, and the FATs. MS-DOS keeps no times of directories, which volary writes.
    fn gone(&mut self, path: &str, mut wrote: Wrote) {
        let known = self.entries.get(split(path).0);
        wrote
            .rest
            .retain(|(at, _)| known.is_some_and(|known| known.contains(at)));
        self.write_all(&wrote);
    }

    fn content(&mut self, path: &str, (at, len): Stretch, is_write: bool) -> Result<()> {
        for (offset, place, long) in self.real.node(path)?.pieces.clone() {
            let (from, to) = (offset.max(at), (offset + long).min(at + len));
            if from < to {
                self.request((place + from - offset, to - from), is_write);
            }
        }
        Ok(())
    }

    /// Goes through the directory up to the entry.
    fn find(&mut self, path: &str) -> Result<()> {
        let components = path.split('/').count() as f64;
        self.disk.wait(Self::OPEN + Self::COMPONENT * components);
        let entry = self.real.node(path)?.entry.last().map(|(at, _)| *at);
        let sectors = self.entries.get(split(path).0).cloned().unwrap_or_default();
        for at in sectors {
            self.buffer(at, false);
            if Some(at) == entry {
                break;
            }
        }
        Ok(())
    }
}

/// Returns the sectors of a range.
fn sectors((at, len): &Stretch) -> impl Iterator<Item = u64> + use<> {
    (*at..at + len).step_by(SECTOR as usize)
}

impl Files for Dos {
    fn mkdir(&mut self, path: &str) -> Result<()> {
        let wrote = self.real.mkdir(path)?;
        self.born(path, wrote);
        Ok(())
    }

    fn create(&mut self, path: &str) -> Result<()> {
        let wrote = self.real.create(path)?;
        self.born(path, wrote);
        self.find(path)
    }

    fn open(&mut self, path: &str) -> Result<()> {
        self.find(path)?;
        let chain = self.chains.get(path).cloned().unwrap_or_default();
        chain.into_iter().for_each(|at| self.buffer(at, false));
        Ok(())
    }

    /// Writes the entry and the FATs of a file that has grown.
    fn close(&mut self, path: &str) -> Result<()> {
        if self.real.node(path)?.has_grown {
            let mut wrote = self.real.settle(path)?;
            wrote.rest = self
                .real
                .node(path)?
                .entry
                .last()
                .copied()
                .into_iter()
                .collect();
            // Chains are read from the first FAT.
            let chain = wrote.maps.iter().flat_map(sectors).collect();
            self.chains.insert(path.to_owned(), chain);
            self.write_all(&wrote);
        }
        self.real.close(path)
    }

    fn write(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
        self.real.grow(path, at + len)?;
        self.content(path, (at, len), true)
    }

    fn read(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
        self.content(path, (at, len), false)
    }

    fn stat(&mut self, path: &str) -> Result<()> {
        self.find(path)
    }

    fn unlink(&mut self, path: &str) -> Result<()> {
        self.find(path)?;
        let (_, wrote) = self.real.remove(path, false)?;
        self.gone(path, wrote);
        Ok(())
    }

    fn rmdir(&mut self, path: &str) -> Result<()> {
        self.find(path)?;
        let (_, wrote) = self.real.remove(path, true)?;
        self.gone(path, wrote);
        Ok(())
    }

    fn compute(&mut self, micros: f64) -> Result<()> {
        self.disk.wait(micros);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}
