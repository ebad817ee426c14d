//! Committing: data first, then one log record; and entering a third of the log
//! (paper, sections 5.3 and 5.4).

use crate::commit::core::{Core, Pending, Takes};
use crate::disk::ondisk::stamp;
use crate::log::{self, Anchor, Place};
use crate::mistakes::{Mistake, made};
use crate::name_table::page::Image;
use crate::name_table::table::{read_back, write_home};
use std::collections::BTreeMap;
use volary_block::Stage;
use volary_core::{Error, Kind, Result, Time};

/// Pages of a record: what belongs where.
type Logged = Vec<(u32, Image)>;

impl Core {
    /// Makes all changes so far durable.
    ///
    /// # Errors
    /// `Io`, `NoSpace` of the device; the volume then takes no more changes,
    /// and no later commit succeeds.
    pub(crate) fn commit(&mut self, now: Time) -> Result<()> {
        match self.takes {
            Takes::Nothing | Takes::Unopened => return Ok(()),
            Takes::Failed | Takes::CutOff => return Err(Kind::Io.into()),
            Takes::Changes => {}
        }
        self.whole(|core| {
            let result = core.commit_batch(now);
            core.or_fail(result)
        })
    }

    /// Passes a result on, and takes no more changes if it is an error.
    fn or_fail<T>(&mut self, result: Result<T>) -> Result<T> {
        if result.is_err() {
            self.takes = Takes::Failed;
        }
        result
    }

    /// Begins the epoch: from now on uids and records carry it.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.takes != Takes::Unopened {
            return Ok(());
        }
        self.takes = Takes::Changes;
        let result = self.start_epoch();
        self.or_fail(result)
    }

    /// Empties the log, whose pages are all home, in a new epoch.
    ///
    /// # Errors
    /// `Corrupt` if there is no epoch after this; `Io`.
    pub(crate) fn start_epoch(&mut self) -> Result<()> {
        if !made(Mistake::SameEpoch) {
            let none = || {
                let at = self.layout.offset(self.layout.anchor);
                let found = format!("epoch {}", self.log.epoch);
                Error::corrupt("anchor", at, found, "an epoch that another follows")
            };
            self.log.epoch = self.log.epoch.checked_add(1).ok_or_else(none)?;
        }
        self.map_goes_home()?;
        self.log.position = 0;
        self.log.third = 0;
        self.log.before = 0;
        self.log.records.clear();
        self.anchor_at(0, self.log.seq)
    }

    /// Writes to both anchors that the log begins at `position` with record `seq`.
    /// The copy that is older, or bad, is written first.
    fn anchor_at(&mut self, position: u32, seq: u64) -> Result<()> {
        let anchor = Anchor {
            stamp: self.log.anchor.stamp + 1,
            epoch: self.log.epoch,
            position,
            seq,
            durable: self.log.seq.saturating_sub(1),
        };
        let order = [1 - self.log.newer, self.log.newer];
        log::write_anchors(&**self.cache.device(), &self.layout, &anchor, order)?;
        self.log.anchor = anchor;
        Ok(())
    }

    fn commit_batch(&mut self, now: Time) -> Result<()> {
        let seq = self.log.seq;
        for (page, leader) in std::mem::take(&mut self.batch.fresh) {
            if made(Mistake::NewLeaderForgotten) {
                continue;
            }
            let image = leader.encode(&self.layout, page, self.log.epoch, seq);
            self.cache
                .write(self.layout.offset(page), &image, Stage::DATA)?;
        }
        match made(Mistake::RecordBeforeData) {
            true => self.cache.write_stage(Stage::DATA)?,
            false => self.cache.commit()?,
        }
        if self.batch.pages.is_empty() && self.batch.leaders.is_empty() {
            return Ok(());
        }
        self.map_saved = false;
        let logged = self.freeze();
        let position = self.log.position;
        let len = log::record_len(logged.len());
        for third in [self.third_of(position), self.third_of(position + len - 1)] {
            if third != self.log.third {
                self.enter(third, position, seq)?;
            }
        }
        let place = Place {
            epoch: self.log.epoch,
            seq,
            position,
            before: self.log.before,
            time: now.secs,
        };
        let told = self.tell();
        let built = log::build(&self.layout, place, &logged, told.as_ref());
        let dev = self.cache.device();
        dev.write_at(self.layout.offset(self.layout.log + position), &built.bytes)?;
        if !made(Mistake::RecordNotFlushed) {
            self.cache.flush()?;
        }
        self.log.before = built.head_crc;
        self.log.records.push_back((position, len, seq));
        self.log.position = log::next_place(&self.layout, position + len);
        self.log.seq += 1;
        let third = match made(Mistake::TagByEnd) {
            true => self.third_of(position + len - 1),
            false => self.third_of(position),
        };
        self.committed(logged, third);
        self.told(told.as_ref(), third)
    }

    fn third_of(&self, position: u32) -> u8 {
        (position / self.layout.third.max(1)) as u8
    }

    /// Returns the images that the record logs: those of the name table first.
    fn freeze(&self) -> Logged {
        let (epoch, seq) = (self.log.epoch, self.log.seq);
        let tables = self.batch.pages.iter().filter_map(|index| {
            let mut image = self.table.get(*index)?.to_vec();
            stamp(&mut image, epoch, seq);
            Some((self.layout.table_a + index, image.into()))
        });
        let leaders = self.batch.leaders.iter().map(|(page, leader)| {
            let image = leader.encode(&self.layout, *page, epoch, seq);
            (*page, image.into())
        });
        match made(Mistake::LeaderNotLogged) {
            true => tables.collect(),
            false => tables.chain(leaders).collect(),
        }
    }

    /// A record is durable: what it freed is free, what it logged is pending.
    fn committed(&mut self, logged: Logged, third: u8) {
        let batch = std::mem::take(&mut self.batch);
        for run in batch.freed.iter() {
            self.vam.mark(run.start, run.len, false);
            let gone: Vec<u32> = self
                .leaders
                .range(run.start..run.start.saturating_add(run.len))
                .map(|(page, _)| *page)
                .collect();
            for page in gone {
                self.leaders.remove(&page);
            }
        }
        for (target, image) in logged {
            match target.checked_sub(self.layout.table_a) {
                Some(index) if index < self.layout.table_len => {
                    self.table.logged(index, image, third);
                }
                _ => drop(self.leaders.insert(target, Pending { image, third })),
            }
        }
    }

    /// Enters a third: whatever has its newest image only there goes home, and
    /// the log begins behind it. Only then may it be overwritten.
    fn enter(&mut self, third: u8, position: u32, seq: u64) -> Result<()> {
        if !made(Mistake::AnchorBeforeHome) {
            self.go_home(third)?;
        }
        let mut moved = false;
        while let Some((start, _, _)) = self.log.records.front().copied() {
            if self.third_of(start) != third {
                break;
            }
            self.log.records.pop_front();
            moved = true;
        }
        self.log.third = third;
        if !moved {
            return Ok(());
        }
        let (position, seq) = match self.log.records.front() {
            Some((start, _, seq)) => (*start, *seq),
            None => (position, seq),
        };
        self.anchor_at(position, seq)?;
        self.go_home(third)
    }

    /// Writes what is due of a third to both its homes, durably.
    fn go_home(&mut self, third: u8) -> Result<()> {
        let mut due = self.table.due(third);
        if made(Mistake::SkipChangedAgain) {
            due.retain(|(index, _)| !self.batch.pages.contains(index));
        }
        if made(Mistake::HomeFromCache) {
            for (index, image) in &mut due {
                *image = self.uncommitted(*index, image);
            }
        }
        let leaders: BTreeMap<u32, Image> = self
            .leaders
            .iter()
            .filter(|(_, pending)| pending.third == third)
            .map(|(page, pending)| (*page, pending.image.clone()))
            .collect();
        let map = match made(Mistake::MapStaysAway) {
            true => Vec::new(),
            false => self.map_due(third),
        };
        if due.is_empty() && leaders.is_empty() && map.is_empty() {
            return Ok(());
        }
        self.write_map(0, &map)?;
        if made(Mistake::MapCopiesAtOnce) {
            self.write_map(1, &map)?;
        }
        write_home(&self.cache, &self.layout, &due)?;
        for (page, image) in leaders.iter().filter(|_| !made(Mistake::LeaderStaysAway)) {
            self.cache.write_direct(self.layout.offset(*page), image)?;
        }
        if !made(Mistake::HomeNotFlushed) {
            self.cache.flush()?;
        }
        if !map.is_empty() {
            self.write_map(1, &map)?;
            self.cache.flush()?;
        }
        read_back(&**self.cache.device(), &self.layout, &due)?;
        self.read_map_back(&map)?;
        self.map_home.came_home(1 << third);
        self.table.came_home(third);
        self.leaders.retain(|_, pending| pending.third != third);
        Ok(())
    }

    /// Returns the image that operations see, sealed: what must not go home.
    fn uncommitted(&self, index: u32, committed: &Image) -> Image {
        let now = self.table.get(index).unwrap_or_else(|| committed.clone());
        let mut image = now.to_vec();
        stamp(&mut image, self.log.epoch, self.log.seq);
        image.into()
    }

    /// Saves the allocation map, if it was not since the last commit, and is not
    /// logged. The batch must be empty.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn save_map(&mut self) -> Result<()> {
        if self.layout.logs_map || self.map_saved || self.takes != Takes::Changes {
            return Ok(());
        }
        let first = {
            let [first, second] = self.layout.maps();
            if self.map_slot == 0 { first } else { second }
        };
        let seq = match made(Mistake::MapOfNextCommit) {
            true => self.log.seq,
            false => self.log.seq.saturating_sub(1),
        };
        let bytes = self.vam.encode(&self.layout, first, self.log.epoch, seq);
        let written = self
            .cache
            .device()
            .write_at(self.layout.offset(first), &bytes);
        let result = written.and_then(|()| self.cache.flush());
        self.map_slot = 1 - self.map_slot;
        self.map_saved = result.is_ok();
        self.or_fail(result)
    }

    /// Leaves the volume with an empty log: all pages home, the map saved.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) fn leave(&mut self, now: Time) -> Result<()> {
        self.commit(now)?;
        if self.takes != Takes::Changes {
            return Ok(());
        }
        let result = (0..3).try_for_each(|third| self.go_home(third));
        self.or_fail(result)?;
        self.map_home.left();
        self.save_map()?;
        if self.log.records.is_empty() {
            return Ok(());
        }
        self.log.records.clear();
        let result = self.anchor_at(self.log.position, self.log.seq);
        self.or_fail(result)
    }
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
