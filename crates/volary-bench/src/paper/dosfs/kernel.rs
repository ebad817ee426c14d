//! The paper's UNIX in virtual time: a buffer cache, read-ahead, delayed writes, a name cache, and the two file systems'
//! rules of what is written when. Where things lie is up to volary's drivers.

use super::buffers::Buffers;
use super::machine::Machine;
use super::volume::{Made, Real, Stretch, Wrote, split};
use crate::workload::Files;
use anyhow::Result;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::rc::Rc;
use volary_sim::Timed;

/// How often all that waits is written.
const SYNC: f64 = 30e6;

/// A file system, and what it does with the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct System {
    pub(super) made: Made,
    /// Bytes of the disk before the volume.
    pub(super) base: u64,
    /// Bytes of a block of metadata, and of a cluster or fragment.
    pub(super) block: u64,
    pub(super) unit: u64,
    /// Most bytes of a request for content.
    pub(super) io: u64,
    /// Whether the FAT is in memory, and written by a sync only.
    pub(super) holds_fat: bool,
    /// Whether the kernel reads ahead.
    pub(super) reads_ahead: bool,
    /// Whether the name cache is on.
    pub(super) caches_names: bool,
    /// Whether a block of content that is full, and not the first, is written at once.
    pub(super) starts_full: bool,
    /// Writes that are waited for, when a file that has grown is closed, and when one with content is removed.
    pub(super) waits: [usize; 2],
}

/// The machine with a volume of a file system.
pub(super) struct Kernel {
    machine: Machine,
    system: System,
    real: Real,
    disk: Box<dyn Timed>,
    now: f64,
    buffers: Buffers,
    /// Buffers that were given away and are still to be written: when that is done, bytes.
    leaving: VecDeque<(f64, u64)>,
    /// Paths in the name cache, whose inodes are in memory too: all that were looked up.
    names: HashSet<String>,
    /// Parts of the FAT that the next sync writes.
    fats: BTreeMap<u64, u64>,
    /// Where the next read of a file in sequence begins.
    next: HashMap<String, u64>,
    /// Chunks of files, as long as these do not grow.
    chunks: HashMap<String, Rc<[Chunk]>>,
    synced: f64,
}

/// A part of a file that one buffer holds: offset in the file, place, length.
type Chunk = (u64, u64, u64);

impl Kernel {
    /// Makes the volume.
    ///
    /// # Errors
    /// Of the driver.
    pub(super) fn new(machine: Machine, system: System) -> Result<Self> {
        Ok(Self {
            machine,
            system,
            real: Real::make(&system.made)?,
            disk: machine.disk.disk(),
            now: 0.0,
            buffers: Buffers::default(),
            leaving: VecDeque::new(),
            names: HashSet::new(),
            fats: BTreeMap::new(),
            next: HashMap::new(),
            chunks: HashMap::new(),
            synced: 0.0,
        })
    }

    /// Returns microseconds since the beginning.
    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// Forgets all that is in memory, as unmounting and mounting again does.
    ///
    /// # Errors
    /// Of the volume.
    pub(super) fn remount(&mut self) -> Result<()> {
        self.sync()?;
        self.buffers = Buffers::default();
        self.names.clear();
        self.next.clear();
        Ok(())
    }

    /// Lets the processor work.
    fn work(&mut self, time: f64) {
        self.now += time;
        if self.now - self.synced > SYNC {
            self.synced = self.now;
            self.flush();
        }
    }

    fn wait_until(&mut self, time: f64) {
        self.now = self.now.max(time);
    }

    /// Starts a request. Returns when it is done.
    fn start(&mut self, (at, len): Stretch, is_write: bool) -> f64 {
        // What is written is moved to the driver first.
        let moved = if is_write {
            len as f64 / self.machine.memory
        } else {
            0.0
        };
        if self.disk.now() <= self.now {
            self.now += self.machine.request + moved;
            self.disk.wait(self.now - self.disk.now());
        } else {
            self.now += moved;
            self.disk.wait(self.machine.request);
        }
        let place = self.system.base + at;
        match is_write {
            true => self.disk.write(place, len),
            false => self.disk.read(place, len),
        }
        self.disk.now()
    }

    /// Starts to write the dirty buffers, and then the FAT, each in the order of their places.
    fn flush(&mut self) {
        for stretch in self.buffers.clean() {
            let ready = self.start(stretch, true);
            if let Some(buffer) = self.buffers.get(stretch.0) {
                buffer.ready = ready;
            }
        }
        for stretch in std::mem::take(&mut self.fats) {
            self.start(stretch, true);
        }
    }

    /// Makes room for a buffer.
    fn make_room(&mut self, len: u64) {
        while self
            .leaving
            .front()
            .is_some_and(|(ready, _)| *ready <= self.now)
        {
            self.leaving.pop_front();
        }
        let leaving = |all: &VecDeque<(f64, u64)>| all.iter().map(|(_, len)| len).sum::<u64>();
        while self.buffers.bytes() + leaving(&self.leaving) + len > self.machine.cache {
            if let Some((at, old)) = self.buffers.take_oldest() {
                if old.is_dirty {
                    let ready = self.start((at, old.len), true);
                    match self.machine.is_server {
                        true => self.wait_until(ready),
                        false => self.leaving.push_back((ready, old.len)),
                    }
                } else if old.ready > self.now {
                    self.leaving.push_back((old.ready, old.len));
                }
            } else if let Some((ready, _)) = self.leaving.pop_front() {
                self.wait_until(ready);
            } else {
                return;
            }
        }
    }

    /// Starts to read a buffer that is not there.
    fn ask(&mut self, stretch: Stretch) {
        self.make_room(stretch.1);
        let ready = self.start(stretch, false);
        self.buffers.put(stretch, false, ready, true);
    }

    /// Waits for a buffer that is there or was asked for.
    fn wait_for(&mut self, at: u64) {
        let Some(buffer) = self.buffers.get(at) else {
            return;
        };
        let (ready, len) = (buffer.ready, buffer.len);
        let is_new = std::mem::take(&mut buffer.is_new);
        self.wait_until(ready);
        if is_new {
            self.work(len as f64 / self.machine.memory);
        }
    }

    /// Reads a buffer, and starts to read the next one.
    fn read_buffer(&mut self, stretch: Stretch, next: Option<Stretch>) {
        if !self.buffers.has(stretch.0) {
            self.ask(stretch);
        }
        if let Some(next) = next.filter(|next| !self.buffers.has(next.0)) {
            self.ask(next);
        }
        self.wait_for(stretch.0);
    }

    /// Changes a buffer: waits as long as it is being written, puts it in if it is not there.
    fn dirty(&mut self, stretch: Stretch) {
        self.wait_for(stretch.0);
        let held = self.buffers.get(stretch.0).map_or(0, |buffer| buffer.len);
        self.make_room(stretch.1.saturating_sub(held));
        self.buffers.put(stretch, true, 0.0, false);
    }

    /// Writes a buffer and waits for it.
    fn write_through(&mut self, at: u64) {
        let Some(buffer) = self.buffers.get(at).filter(|buffer| buffer.is_dirty) else {
            return;
        };
        buffer.is_dirty = false;
        let len = buffer.len;
        let ready = self.start((at, len), true);
        self.wait_until(ready);
    }

    /// Returns the blocks of metadata that hold these ranges.
    fn blocks(&self, ranges: &[Stretch]) -> Vec<Stretch> {
        let block = self.system.block;
        let mut all: Vec<Stretch> = ranges
            .iter()
            .flat_map(|(at, len)| {
                (at / block..(at + len).div_ceil(block)).map(|n| (n * block, block))
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Takes over what an operation wrote: reads blocks that are not there, unless they may be new, and changes them. As many
    /// of them as it says are written and waited for.
    fn take_over(&mut self, wrote: &Wrote, are_new: bool, waited: usize) {
        if self.system.holds_fat {
            for (at, len) in &wrote.maps {
                let known = self.fats.entry(*at).or_default();
                *known = (*known).max(*len);
            }
        }
        let maps = if self.system.holds_fat {
            &[][..]
        } else {
            &wrote.maps
        };
        let (inodes, rest) = (self.blocks(&wrote.inodes), self.blocks(&wrote.rest));
        for block in self.blocks(maps).iter().chain(&inodes).chain(&rest) {
            if !are_new && !self.buffers.has(block.0) {
                self.read_buffer(*block, None);
            }
            self.dirty(*block);
        }
        // The inode first, and then the directory.
        for block in inodes.iter().take(1).chain(&rest).take(waited) {
            self.write_through(block.0);
        }
    }

    /// Finds a node by its path.
    fn look_up(&mut self, path: &str) -> Result<()> {
        let components = path.split('/').count() as f64;
        let mut cost = self.machine.component;
        if !self.system.caches_names {
            cost += self.machine.search;
        }
        self.work(components * cost);
        let mut left = path;
        while !left.is_empty() && !self.names.contains(left) {
            self.names.insert(left.to_owned());
            let node = self.real.node(left)?;
            let blocks = [self.blocks(&node.entry), self.blocks(&node.inode)].concat();
            blocks
                .into_iter()
                .for_each(|block| self.read_buffer(block, None));
            left = split(left).0;
        }
        Ok(())
    }

    /// Returns the parts of a file, cut where requests end.
    fn chunks(&mut self, path: &str) -> Result<Rc<[Chunk]>> {
        if let Some(chunks) = self.chunks.get(path) {
            return Ok(chunks.clone());
        }
        let (io, unit) = (self.system.io, self.system.unit);
        let mut chunks = Vec::new();
        for &(offset, place, len) in &self.real.node(path)?.pieces {
            let mut at = offset;
            while at < offset + len {
                let end = (at / io * io + io).min(offset + len);
                chunks.push((at, place + at - offset, (end - at).next_multiple_of(unit)));
                at = end;
            }
        }
        let chunks: Rc<[Chunk]> = chunks.into();
        self.chunks.insert(path.to_owned(), chunks.clone());
        Ok(chunks)
    }

    /// Returns the number of the first chunk that ends behind this byte.
    fn first(chunks: &[Chunk], at: u64) -> usize {
        chunks.partition_point(|(offset, _, len)| offset + len <= at)
    }

    /// Drops what is in memory of a file that is gone; waits for what is being written.
    fn drop_all(&mut self, pieces: &[(u64, u64, u64)]) {
        for &(_, place, len) in pieces {
            for at in (place..place + len).step_by(self.system.unit as usize) {
                if let Some(buffer) = self.buffers.take(at) {
                    self.wait_until(buffer.ready);
                }
            }
        }
    }
}

impl Files for Kernel {
    fn mkdir(&mut self, path: &str) -> Result<()> {
        self.look_up(split(path).0)?;
        self.work(self.machine.make);
        let wrote = self.real.mkdir(path)?;
        self.take_over(&wrote, true, 0);
        self.names.insert(path.to_owned());
        Ok(())
    }

    fn create(&mut self, path: &str) -> Result<()> {
        self.look_up(split(path).0)?;
        self.work(self.machine.make);
        let wrote = self.real.create(path)?;
        self.take_over(&wrote, false, 0);
        self.names.insert(path.to_owned());
        Ok(())
    }

    fn open(&mut self, path: &str) -> Result<()> {
        self.work(self.machine.open);
        self.look_up(path)
    }

    fn close(&mut self, path: &str) -> Result<()> {
        if self.real.node(path)?.has_grown {
            let wrote = self.real.settle(path)?;
            self.chunks.remove(path);
            self.take_over(&wrote, false, self.system.waits[0]);
        }
        if !self.next.is_empty() {
            self.next.remove(path);
        }
        if self.real.node(path)?.is_open() {
            self.real.close(path)?;
        }
        Ok(())
    }

    fn write(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
        let grown = self.real.grow(path, at + len)?;
        if grown > 0 {
            self.chunks.remove(path);
        }
        self.work(self.machine.call[1] + self.machine.kib[1] * len as f64 / 1024.0);
        let taken = self.system.unit.max(self.system.block.min(self.system.io));
        self.work(self.machine.taken * grown.div_ceil(taken) as f64);
        let chunks = self.chunks(path)?;
        for &(offset, place, long) in chunks.get(Self::first(&chunks, at)..).unwrap_or_default() {
            if offset >= at + len {
                break;
            }
            self.work(self.machine.buffer);
            let is_whole = at <= offset && at + len >= offset + long;
            if !is_whole && grown == 0 && !self.buffers.has(place) {
                self.read_buffer((place, long), None);
            }
            self.dirty((place, long));
            let is_full =
                (offset + long).is_multiple_of(self.system.io) && at + len >= offset + long;
            if self.system.starts_full && offset > 0 && is_full {
                let ready = self.start((place, long), true);
                self.buffers.put((place, long), false, ready, false);
            }
        }
        Ok(())
    }

    fn read(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
        self.work(self.machine.call[0]);
        let chunks = self.chunks(path)?;
        let is_large = self.system.io > self.system.block;
        let ahead = self.system.reads_ahead && !(self.machine.is_server && is_large);
        let is_next = at == 0 || self.next.get(path) == Some(&at);
        for number in Self::first(&chunks, at)..chunks.len() {
            let Some(&(offset, place, long)) =
                chunks.get(number).filter(|chunk| chunk.0 < at + len)
            else {
                break;
            };
            let next = chunks.get(number + 1).map(|next| (next.1, next.2));
            self.read_buffer((place, long), next.filter(|_| ahead && is_next));
            let bytes = (offset + long).min(at + len) - offset.max(at);
            self.work(self.machine.buffer + self.machine.kib[0] * bytes as f64 / 1024.0);
        }
        let end = chunks.last().map_or(0, |(offset, _, long)| offset + long);
        if ahead && at + len < end {
            self.next.insert(path.to_owned(), at + len);
        }
        Ok(())
    }

    fn stat(&mut self, path: &str) -> Result<()> {
        self.work(self.machine.open);
        self.look_up(path)
    }

    fn unlink(&mut self, path: &str) -> Result<()> {
        self.look_up(path)?;
        self.work(self.machine.remove);
        let (node, wrote) = self.real.remove(path, false)?;
        self.drop_all(&node.pieces);
        self.chunks.remove(path);
        let waits = if node.len > 0 {
            self.system.waits[1]
        } else {
            0
        };
        self.take_over(&wrote, false, waits);
        self.names.remove(path);
        Ok(())
    }

    fn rmdir(&mut self, path: &str) -> Result<()> {
        self.look_up(path)?;
        self.work(self.machine.remove);
        let (_, wrote) = self.real.remove(path, true)?;
        self.take_over(&wrote, false, self.system.waits[1]);
        self.names.remove(path);
        Ok(())
    }

    fn compute(&mut self, micros: f64) -> Result<()> {
        self.work(micros);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.flush();
        self.wait_until(self.disk.now());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
