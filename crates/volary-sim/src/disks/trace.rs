//! Recorded runs.

use crate::disks::disk::{Disk, SECTOR, Sector};
use parking_lot::Mutex;
use std::ops::Range;
use volary_core::{BlockDevice, Geometry, Kind, Result};

/// An event on a device, or of the operations above it.
#[derive(Clone, Debug)]
pub enum Event {
    /// A read: byte offset and length.
    Read(u64, u64),
    /// A write, in one request: sectors by number, with their new content.
    Write(Vec<(u64, Sector)>),
    /// All earlier writes are durable.
    Flush,
    /// An operation, by its number in the script, began.
    Began(usize),
    /// The operation ended: its promise holds from here on.
    Ended(usize),
}

/// A recorded run: the disk at its beginning, and the events since.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The disk at the beginning.
    pub disk: Disk,
    /// The events in order.
    pub events: Vec<Event>,
}

impl Trace {
    /// Removes the reads from the trace, and returns the sectors of each.
    pub(crate) fn take_reads(&mut self) -> Vec<Range<u64>> {
        let mut reads = Vec::new();
        self.events.retain(|event| match event {
            Event::Read(offset, len) => {
                reads.push(sectors(*offset, *len));
                false
            }
            _ => true,
        });
        reads
    }
}

/// How far a script had come when the power failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moment {
    /// Operations that had begun: all before this one.
    pub began: usize,
    /// Operations that had ended, and been acknowledged: all before this one.
    pub ended: usize,
}

impl Moment {
    /// Updates the moment for an event.
    pub(crate) fn pass(&mut self, event: &Event) {
        match event {
            Event::Began(op) => self.began = self.began.max(op + 1),
            Event::Ended(op) => self.ended = self.ended.max(op + 1),
            _ => {}
        }
    }
}

/// A device that records a run. All requests succeed.
pub struct Traced {
    state: Mutex<State>,
    cached: bool,
}

struct State {
    now: Disk,
    trace: Trace,
    reads: bool,
}

impl Traced {
    /// Returns a device with this content, with a new trace. Reads are not recorded.
    pub fn new(disk: Disk) -> Self {
        let trace = Trace {
            disk: disk.clone(),
            events: Vec::new(),
        };
        Self {
            state: Mutex::new(State {
                now: disk,
                trace,
                reads: false,
            }),
            cached: false,
        }
    }

    /// Records reads as well.
    #[must_use]
    pub fn with_reads(self) -> Self {
        self.state.lock().reads = true;
        self
    }

    /// Makes the device claim to keep written data in memory ([`BlockDevice::is_cached`]).
    #[must_use]
    pub fn keeping(mut self) -> Self {
        self.cached = true;
        self
    }

    /// Notes that an operation begins.
    pub fn begin(&self, op: usize) {
        self.state.lock().trace.events.push(Event::Began(op));
    }

    /// Notes that an operation has ended, so that its promise holds.
    pub fn end(&self, op: usize) {
        self.state.lock().trace.events.push(Event::Ended(op));
    }

    /// Returns the trace so far; recording continues with a new one.
    pub fn take(&self) -> Trace {
        let mut state = self.state.lock();
        let disk = state.now.clone();
        let new = Trace {
            disk,
            events: Vec::new(),
        };
        std::mem::replace(&mut state.trace, new)
    }

    /// Returns the disk as it is now, with all writes.
    pub fn disk(&self) -> Disk {
        self.state.lock().now.clone()
    }
}

/// # Errors
/// `Invalid` past the end.
pub(crate) fn in_range(disk: &Disk, offset: u64, len: u64) -> Result<()> {
    match offset.checked_add(len) {
        Some(end) if end <= disk.size() => Ok(()),
        _ => Err(Kind::Invalid.into()),
    }
}

/// Returns the sectors that a request touches.
pub(crate) fn sectors(offset: u64, len: u64) -> Range<u64> {
    let sector = SECTOR as u64;
    offset / sector..(offset + len).div_ceil(sector)
}

pub(crate) fn geometry(disk: &Disk) -> Geometry {
    Geometry {
        size: disk.size(),
        sector: SECTOR as u32,
        read_only: false,
    }
}

impl BlockDevice for Traced {
    fn geometry(&self) -> Geometry {
        geometry(&self.state.lock().now)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = self.state.lock();
        in_range(&state.now, offset, buf.len() as u64)?;
        state.now.read(offset, buf);
        if state.reads {
            let event = Event::Read(offset, buf.len() as u64);
            state.trace.events.push(event);
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_gather(offset, &[data])
    }

    fn write_gather(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        let mut state = self.state.lock();
        let len: usize = parts.iter().map(|p| p.len()).sum();
        in_range(&state.now, offset, len as u64)?;
        let written = state.now.written(offset, parts);
        for (number, content) in &written {
            state.now.put(*number, content.clone());
        }
        state.trace.events.push(Event::Write(written));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.state.lock().trace.events.push(Event::Flush);
        Ok(())
    }

    fn is_cached(&self) -> bool {
        self.cached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_flushes_and_operations_are_on_the_trace_in_order() {
        let dev = Traced::new(Disk::new(vec![0; 4 * SECTOR]));
        dev.begin(0);
        dev.write_at(700, &[1; 400]).unwrap();
        dev.flush().unwrap();
        dev.end(0);
        assert!(dev.write_at(2000, &[1; 49]).is_err());
        let trace = dev.take();
        let words: Vec<String> = trace.events.iter().map(|e| format!("{e:.0?}")).collect();
        assert_eq!(words.len(), 4);
        assert!(matches!(&trace.events[1], Event::Write(w) if w.len() == 2));
        assert!(trace.disk.to_vec() == vec![0; 4 * SECTOR]);
        let mut at = Moment::default();
        trace.events.iter().for_each(|e| at.pass(e));
        assert_eq!((at.began, at.ended), (1, 1));
        assert!(dev.take().events.is_empty());
        assert_eq!(dev.disk().to_vec()[1099], 1);
    }
}
