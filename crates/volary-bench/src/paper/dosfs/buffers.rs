//! A buffer cache: ranges of the volume, the least recently used of which goes first.

use super::volume::Stretch;
use std::collections::{HashMap, VecDeque};

/// A buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Buffer {
    pub(super) len: u64,
    pub(super) is_dirty: bool,
    /// When its request is done.
    pub(super) ready: f64,
    /// Whether its data still has to be copied by the processor.
    pub(super) is_new: bool,
    used: u64,
}

/// All of them, by the first byte.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers {
    all: HashMap<u64, Buffer>,
    /// Uses in order: number, buffer. Only the last one of each buffer counts.
    order: VecDeque<(u64, u64)>,
    bytes: u64,
    uses: u64,
}

impl Buffers {
    /// Returns bytes in all.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a buffer, which is now the last one used.
    pub(super) fn get(&mut self, at: u64) -> Option<&mut Buffer> {
        let buffer = self.all.get_mut(&at)?;
        if buffer.used != self.uses {
            self.uses += 1;
            buffer.used = self.uses;
            self.order.push_back((self.uses, at));
        }
        Some(buffer)
    }

    /// Returns whether there is one.
    pub(super) fn has(&self, at: u64) -> bool {
        self.all.contains_key(&at)
    }

    /// Puts one in, in the place of any that begins there.
    pub(super) fn put(&mut self, (at, len): Stretch, is_dirty: bool, ready: f64, is_new: bool) {
        self.take(at);
        self.forget();
        self.uses += 1;
        let used = self.uses;
        let buffer = Buffer {
            len,
            is_dirty,
            ready,
            is_new,
            used,
        };
        self.order.push_back((used, at));
        self.all.insert(at, buffer);
        self.bytes += len;
    }

    /// Drops uses that do not count, when there are many.
    fn forget(&mut self) {
        if self.order.len() > 4096 + 2 * self.all.len() {
            let all = &self.all;
            self.order
                .retain(|(used, at)| all.get(at).is_some_and(|buffer| buffer.used == *used));
        }
    }

    /// Takes one out.
    pub(super) fn take(&mut self, at: u64) -> Option<Buffer> {
        let buffer = self.all.remove(&at)?;
        self.bytes -= buffer.len;
        Some(buffer)
    }

    /// Takes out the one that was not used for the longest time.
    pub(super) fn take_oldest(&mut self) -> Option<(u64, Buffer)> {
        loop {
            let (used, at) = self.order.pop_front()?;
            if self.all.get(&at).is_some_and(|buffer| buffer.used == used) {
                return Some((at, self.take(at)?));
            }
        }
    }

    /// Marks all as clean. Returns those that were not, in the order of places.
    pub(super) fn clean(&mut self) -> Vec<Stretch> {
        let mut dirty = Vec::new();
        for (at, buffer) in self.all.iter_mut().filter(|(_, buffer)| buffer.is_dirty) {
            buffer.is_dirty = false;
            dirty.push((*at, buffer.len));
        }
        dirty.sort_unstable();
        dirty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_bytes_are_counted() {
        let mut buffers = Buffers::default();
        for at in [0, 10, 20] {
            buffers.put((at, 10), at == 10, 0.0, false);
        }
        buffers.put((20, 5), true, 1.0, true);
        assert_eq!(buffers.bytes(), 25);
        assert!(buffers.get(0).is_some() && buffers.get(5).is_none());
        assert_eq!(buffers.clean(), [(10, 10), (20, 5)]);
        assert_eq!(buffers.clean(), []);
        let order = std::iter::from_fn(|| buffers.take_oldest()).map(|(at, _)| at);
        assert_eq!(order.collect::<Vec<_>>(), [10, 20, 0]);
        assert_eq!(buffers.bytes(), 0);
        assert!(!buffers.has(0));
        buffers.put((0, 1), false, 0.0, false);
        for _ in 0..5000 {
            buffers.put((10, 1), false, 0.0, false);
        }
        assert!(buffers.order.len() < 4200);
        assert_eq!(buffers.take_oldest().map(|(at, _)| at), Some(0));
    }
}
