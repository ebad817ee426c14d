//! The device as it will be when the check is done: what is on it, and edits
//! in memory over it.
//!
//! Edits are made in two ranks. Early ones are on the disk before any late one
//! is: an entry is first put in its new place, then taken from the old.

use crate::volume::ondisk::{ENTRY_LEN, FREE};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use volary_core::{BlockDevice, Kind, Result};

/// The unit in which edits are kept and a device writes whole or not at all.
pub(super) const UNIT: usize = 512;

/// Longest request.
const REQUEST: usize = 256 << 10;

type Units = BTreeMap<u64, Box<[u8; UNIT]>>;

/// When an edit of directories or reserved sectors reaches the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// Before the FAT is changed, but for clusters newly taken.
    Early,
    /// After that, before clusters are freed.
    Late,
    /// After all else.
    Last,
}

/// A device and the edits over it.
pub(super) struct Disk {
    dev: Arc<dyn BlockDevice>,
    /// Units with their early edits alone, where there are any.
    early: Units,
    /// Units with their early and late edits.
    late: Units,
    /// Units with all edits, where there are any that come last.
    last: Units,
    /// Bytes written to the device.
    pub(super) written: u64,
    /// Free clusters are filled in memory as well.
    pub(super) hold: bool,
    /// Units of directories that cannot be read.
    lost: RefCell<BTreeSet<u64>>,
}

impl Disk {
    pub(super) fn new(dev: Arc<dyn BlockDevice>) -> Self {
        Self {
            dev,
            early: Units::new(),
            late: Units::new(),
            last: Units::new(),
            written: 0,
            hold: false,
            lost: RefCell::default(),
        }
    }

    /// Reads directories, with all edits applied. What cannot be read is free
    /// slots, and is known to [`first_lost`](Self::first_lost) then.
    ///
    /// # Errors
    /// `Io` for anything else than single sectors; `Invalid`.
    pub(super) fn read_dir(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.read(offset, buf) {
            Err(e) if e.kind() == Kind::Io => {}
            done => return done,
        }
        let mut at = offset;
        let mut rest = &mut *buf;
        while !rest.is_empty() {
            let unit = at - at % UNIT as u64;
            let within = (at - unit) as usize;
            let (part, more) = rest.split_at_mut(rest.len().min(UNIT - within));
            let whole = self.unit(unit)?;
            for (to, from) in part.iter_mut().zip(whole.iter().skip(within)) {
                *to = *from;
            }
            at += part.len() as u64;
            rest = more;
        }
        for units in [&self.early, &self.late, &self.last] {
            overlay(units, offset, buf);
        }
        Ok(())
    }

    /// Returns a unit of a directory as it is on the device, or free slots.
    fn unit(&self, at: u64) -> Result<Box<[u8; UNIT]>> {
        let mut unit = Box::new([0; UNIT]);
        match self.dev.read_at(at, unit.as_mut_slice()) {
            Err(e) if e.kind() == Kind::Io => {
                self.lost.borrow_mut().insert(at);
                unit.fill(0);
                for slot in unit.chunks_mut(ENTRY_LEN) {
                    slot.iter_mut().take(1).for_each(|b| *b = FREE);
                }
                Ok(unit)
            }
            done => done.map(|()| unit),
        }
    }

    /// Returns the first unit in a range that could not be read and has no edits.
    pub(super) fn first_lost(&self, offset: u64, len: u64) -> Option<u64> {
        let lost = self.lost.borrow();
        let mut all = lost.range(offset..offset.saturating_add(len));
        let edited = |at: &&u64| !(self.late.contains_key(at) || self.early.contains_key(at));
        all.find(edited).copied()
    }

    /// Returns whether a unit could not be read.
    fn is_lost(&self, unit: u64) -> bool {
        self.lost.borrow().contains(&unit)
    }

    /// Reads with all edits applied.
    ///
    /// # Errors
    /// `Io`, unless all that cannot be read was edited.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        match self.dev.read_at(offset, buf) {
            Err(e) if e.kind() == Kind::Io && self.is_all_edited(offset, buf.len()) => {}
            done => done?,
        }
        for units in [&self.early, &self.late, &self.last] {
            overlay(units, offset, buf);
        }
        Ok(())
    }

    /// Returns whether all units of a range have edits.
    fn is_all_edited(&self, offset: u64, len: usize) -> bool {
        let units = (offset - offset % UNIT as u64..offset + len as u64).step_by(UNIT);
        let layers = [&self.early, &self.late, &self.last];
        units
            .into_iter()
            .all(|at| layers.iter().any(|units| units.contains_key(&at)))
    }

    /// Reads what is on the device, without edits.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn read_raw(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.dev.read_at(offset, buf)
    }

    /// Changes bytes, in memory.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn edit(&mut self, offset: u64, bytes: &[u8], rank: Rank) -> Result<()> {
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let within = (at % UNIT as u64) as usize;
            let (part, more) = rest.split_at(rest.len().min(UNIT - within));
            self.edit_unit(at - within as u64, within, part, rank)?;
            at += part.len() as u64;
            rest = more;
        }
        Ok(())
    }

    fn edit_unit(&mut self, unit: u64, within: usize, part: &[u8], rank: Rank) -> Result<()> {
        let mut whole = match self.is_lost(unit) {
            true => self.unit(unit)?,
            false => Box::new([0; UNIT]),
        };
        // What is known need not be readable.
        let known = part.len() == UNIT
            || self.early.contains_key(&unit)
            || rank != Rank::Early && self.late.contains_key(&unit);
        if !known && !self.is_lost(unit) {
            self.dev.read_at(unit, whole.as_mut_slice())?;
        }
        // A layer that has the unit already holds all lower ones' edits; an
        // edit goes into its own layer and into those above that have it.
        let layers = [
            (&mut self.early, Rank::Early),
            (&mut self.late, Rank::Late),
            (&mut self.last, Rank::Last),
        ];
        for (layer, layer_rank) in layers {
            if (layer_rank as u8) < rank as u8 {
                if let Some(held) = layer.get(&unit) {
                    whole.clone_from(held);
                }
            } else if layer_rank == rank {
                let held = layer.entry(unit).or_insert_with(|| whole.clone());
                put(held, within, part);
            } else if let Some(held) = layer.get_mut(&unit) {
                put(held, within, part);
            }
        }
        Ok(())
    }

    /// Returns whether there are edits.
    pub(super) fn is_edited(&self) -> bool {
        !(self.early.is_empty() && self.late.is_empty() && self.last.is_empty())
    }

    /// Writes the edits of one rank, and of lower ones in the same units.
    ///
    /// # Errors
    /// As [`BlockDevice::write_at`].
    pub(super) fn write_edits(&mut self, rank: Rank) -> Result<()> {
        let units = match rank {
            Rank::Early => std::mem::take(&mut self.early),
            Rank::Late => std::mem::take(&mut self.late),
            Rank::Last => std::mem::take(&mut self.last),
        };
        let mut run: Vec<u8> = Vec::new();
        let mut start = 0;
        for (offset, unit) in units {
            if start + run.len() as u64 != offset || run.len() >= REQUEST {
                self.write(start, &run)?;
                run.clear();
                start = offset;
            }
            run.extend_from_slice(unit.as_slice());
        }
        self.write(start, &run)
    }

    /// Writes to the device at once.
    ///
    /// # Errors
    /// As [`BlockDevice::write_at`].
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.dev.write_at(offset, bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Fills a free cluster, to which nothing on the disk leads: at once, unless
    /// all is to be held back.
    ///
    /// # Errors
    /// As [`BlockDevice::write_at`].
    pub(super) fn fill(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.hold {
            self.edit(offset, bytes, Rank::Early)
        } else {
            self.write(offset, bytes)
        }
    }

    /// Makes what was written durable.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn flush(&self) -> Result<()> {
        self.dev.flush()
    }
}

fn put(unit: &mut [u8; UNIT], within: usize, part: &[u8]) {
    if let Some(room) = unit.get_mut(within..within + part.len()) {
        room.copy_from_slice(part);
    }
}

/// Puts the units that lie in a range over what was read from it.
fn overlay(units: &Units, offset: u64, buf: &mut [u8]) {
    if units.is_empty() {
        return;
    }
    let from = offset - offset % UNIT as u64;
    for (&at, unit) in units.range(from..offset + buf.len() as u64) {
        let skip = offset.saturating_sub(at) as usize;
        let to = at.saturating_sub(offset) as usize;
        let room = buf.iter_mut().skip(to);
        for (byte, new) in room.zip(unit.iter().skip(skip)) {
            *byte = *new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary_block::MemDevice;

    #[test]
    fn edits_are_seen_at_once_and_written_by_rank() {
        let mem = Arc::new(MemDevice::new(4096));
        let mut disk = Disk::new(mem.clone());
        disk.edit(510, &[1, 2, 3, 4], Rank::Late).unwrap();
        disk.edit(511, &[9], Rank::Early).unwrap();
        disk.edit(0, &[7], Rank::Last).unwrap();
        let mut buf = [0; 6];
        disk.read(509, &mut buf).unwrap();
        assert_eq!(buf, [0, 1, 9, 3, 4, 0]);
        disk.write_edits(Rank::Early).unwrap();
        assert_eq!(mem.to_vec()[509..515], [0, 0, 9, 0, 0, 0]);
        disk.write_edits(Rank::Late).unwrap();
        assert_eq!(mem.to_vec()[509..515], [0, 1, 9, 3, 4, 0]);
        assert_eq!(mem.to_vec()[0], 0);
        disk.write_edits(Rank::Last).unwrap();
        assert_eq!((mem.to_vec()[0], mem.to_vec()[511]), (7, 9));
        assert!(!disk.is_edited());
    }
}
