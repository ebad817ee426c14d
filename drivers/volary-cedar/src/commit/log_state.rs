//! Where the log stands: what is needed of it for recovery, and where it goes on.

use crate::disk::volume::Layout;
use crate::log::{self, Anchor, Place};
use crate::mistakes::{Mistake, made};
use std::collections::VecDeque;
use volary_block::Cache;
use volary_core::{Error, Result, Time};

/// Where the log stands.
#[derive(Debug)]
pub(crate) struct LogState {
    epoch: u32,
    /// The number of the next record.
    seq: u64,
    /// Where it begins.
    position: u32,
    /// The third that the last one ended in.
    third: u8,
    /// The checksum of the last one's header.
    before: u32,
    /// The records that are needed for recovery: place, length, number.
    records: VecDeque<(u32, u32, u64)>,
    /// The anchor as it was last written.
    anchor: Anchor,
    /// Which copy of it was written last, or is the good one.
    newer: usize,
}

impl LogState {
    /// Returns a log whose records are all home, and which goes on at `position` with record `seq`.
    pub(crate) fn new(anchor: Anchor, newer: usize, position: u32, seq: u64) -> Self {
        Self {
            epoch: anchor.epoch,
            seq,
            position,
            third: 0,
            before: 0,
            records: VecDeque::new(),
            anchor,
            newer,
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns the number of the next record.
    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the number of the last record.
    pub(crate) fn last(&self) -> u64 {
        self.seq.saturating_sub(1)
    }

    /// Returns the anchor as it was last written.
    #[cfg(test)]
    pub(crate) fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    /// Returns where the next record begins.
    pub(crate) fn position(&self) -> u32 {
        self.position
    }

    /// Returns the third that the last record ended in.
    pub(crate) fn third(&self) -> u8 {
        self.third
    }

    /// Returns whether no record is needed for recovery.
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Returns what the next record says of itself.
    pub(crate) fn next(&self, now: Time) -> Place {
        Place {
            epoch: self.epoch,
            seq: self.seq,
            position: self.position,
            before: self.before,
            time: now.secs,
        }
    }

    /// Counts the epoch on.
    ///
    /// # Errors
    /// `Corrupt` if there is no epoch after this.
    pub(crate) fn next_epoch(&mut self, layout: &Layout) -> Result<()> {
        if !made(Mistake::SameEpoch) {
            let none = || {
                let at = layout.offset(layout.anchor);
                let found = format!("epoch {}", self.epoch);
                Error::corrupt("anchor", at, found, "an epoch that another follows")
            };
            self.epoch = self.epoch.checked_add(1).ok_or_else(none)?;
        }
        Ok(())
    }

    /// Begins the log anew, at its start.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn start(&mut self, layout: &Layout, cache: &Cache) -> Result<()> {
        self.position = 0;
        self.third = 0;
        self.before = 0;
        self.records.clear();
        self.write_anchor(layout, cache)
    }

    /// Forgets all records, which are home.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn empty(&mut self, layout: &Layout, cache: &Cache) -> Result<()> {
        self.records.clear();
        self.write_anchor(layout, cache)
    }

    /// Writes to both anchors where the log begins: with the oldest record that is needed, or
    /// the next. The copy that is older, or bad, is written first.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_anchor(&mut self, layout: &Layout, cache: &Cache) -> Result<()> {
        let (position, seq) = match self.records.front() {
            Some((start, _, seq)) => (*start, *seq),
            None => (self.position, self.seq),
        };
        let anchor = Anchor {
            stamp: self.anchor.stamp + 1,
            epoch: self.epoch,
            position,
            seq,
            durable: self.last(),
        };
        let order = [1 - self.newer, self.newer];
        log::write_anchors(&**cache.device(), layout, &anchor, order)?;
        self.anchor = anchor;
        Ok(())
    }

    /// Notes that the next record, of `len` pages, is durable.
    pub(crate) fn append(&mut self, layout: &Layout, len: u32, head_crc: u32) {
        self.before = head_crc;
        self.records.push_back((self.position, len, self.seq));
        self.position = log::next_place(layout, self.position + len);
        self.seq += 1;
    }

    /// Enters a third: the oldest records, those that begin there, are needed no more.
    /// Returns whether there were any.
    pub(crate) fn enter(&mut self, layout: &Layout, third: u8) -> bool {
        let mut moved = false;
        while let Some((start, _, _)) = self.records.front().copied() {
            if third_of(layout, start) != third {
                break;
            }
            self.records.pop_front();
            moved = true;
        }
        self.third = third;
        moved
    }
}

/// Returns the third of the log that a page of it is in.
pub(crate) fn third_of(layout: &Layout, position: u32) -> u8 {
    (position / layout.third.max(1)) as u8
}

#[cfg(test)]
mod tests {
    use crate::cedar::CEDAR;
    use crate::look::info::LOOK;
    use crate::recover::{How, open};
    use crate::tree::btree::Tree;
    use std::sync::Arc;
    use volary_block::MemDevice;
    use volary_core::{Format, Make, Options, Time};

    /// Paper, section 5.3: "this simple algorithm averages 5/6ths of the log in use".
    #[test]
    fn five_sixths_of_the_log_are_in_use() {
        let dev = Arc::new(MemDevice::new(4 << 20));
        let make = Make {
            options: Options::parse("page=512,log=642k"),
            ..Make::default()
        };
        CEDAR.make(dev.clone(), "cedar", &make).unwrap();
        let how = How {
            read_only: false,
            ..LOOK
        };
        let (mut core, _) = open(dev, &how).unwrap();
        let (mut used, mut samples, mut end) = (0, 0, 0);
        for i in 0..3000_u32 {
            let key = (i % 50).to_be_bytes();
            core.change(Time::EPOCH, |c| Tree::of(&mut c.core).put(&key, &[7; 100]))
                .unwrap();
            core.core.commit(Time::EPOCH).unwrap();
            end = end.max(core.core.log.position);
            if i > 500 {
                used += core
                    .core
                    .log
                    .records
                    .iter()
                    .map(|r| u64::from(r.1))
                    .sum::<u64>();
                samples += 1;
            }
        }
        // Behind the last place where the longest record fits none begins.
        let share = used as f64 / (samples * u64::from(end)) as f64;
        let whole = used as f64 / (samples * u64::from(core.core.layout.log_len())) as f64;
        println!("{share:.3} of what records fill is in use, {whole:.3} of the log");
        assert!((share - 5.0 / 6.0).abs() < 0.03, "{share}");
    }
}
