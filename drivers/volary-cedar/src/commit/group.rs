//! Committing: data first, then one log record; and entering a third of the log
//! (paper, sections 5.3 and 5.4).

use crate::commit::batch::Logged;
use crate::commit::core::{Core, Takes};
use crate::commit::log_state::third_of;
use crate::commit::map_pages::{read_map_back, write_map};
use crate::disk::ondisk::stamp;
use crate::log;
use crate::mistakes::{Mistake, made};
use crate::name_table::page::Image;
use crate::name_table::table::{read_back, write_home};
use volary_block::Stage;
use volary_core::{Kind, Result, Time};

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
        self.log.next_epoch(&self.layout)?;
        let (map, at) = self.map_at();
        map.go_home(&at)?;
        self.log.start(&self.layout, &self.cache)
    }

    fn commit_batch(&mut self, now: Time) -> Result<()> {
        self.write_data()?;
        if self.batch.logs_nothing() {
            return Ok(());
        }
        self.map.outdate();
        let (epoch, seq) = (self.log.epoch(), self.log.seq());
        let logged = self.batch.images(&self.table, &self.layout, epoch, seq);
        let position = self.log.position();
        let len = log::record_len(logged.len());
        let begins_in = third_of(&self.layout, position);
        let ends_in = third_of(&self.layout, position + len - 1);
        for third in [begins_in, ends_in] {
            if third != self.log.third() {
                self.enter(third)?;
            }
        }
        let told = self.map.tell(&self.layout, &self.batch);
        let built = log::build(&self.layout, self.log.next(now), &logged, told.as_ref());
        let dev = self.cache.device();
        dev.write_at(self.layout.offset(self.layout.log + position), &built.bytes)?;
        if !made(Mistake::RecordNotFlushed) {
            self.cache.flush()?;
        }
        self.log.append(&self.layout, len, built.head_crc);
        let third = match made(Mistake::TagByEnd) {
            true => ends_in,
            false => begins_in,
        };
        self.committed(logged, third);
        let (map, at) = self.map_at();
        map.told(&at, told.as_ref(), third)
    }

    /// Writes what must be durable before the record, and has it so.
    fn write_data(&mut self) -> Result<()> {
        let (epoch, seq) = (self.log.epoch(), self.log.seq());
        for (page, leader) in self.batch.take_fresh() {
            if made(Mistake::NewLeaderForgotten) {
                continue;
            }
            let image = leader.encode(&self.layout, page, epoch, seq);
            self.cache
                .write(self.layout.offset(page), &image, Stage::DATA)?;
        }
        match made(Mistake::RecordBeforeData) {
            true => self.cache.write_stage(Stage::DATA),
            false => self.cache.commit(),
        }
    }

    /// A record is durable: what it freed is free, what it logged is pending.
    fn committed(&mut self, logged: Logged, third: u8) {
        let batch = std::mem::take(&mut self.batch);
        for run in batch.freed().iter() {
            self.map.give(run);
            self.leaders.forget(run);
        }
        for (target, image) in logged {
            match target.checked_sub(self.layout.table_a) {
                Some(index) if index < self.layout.table_len => {
                    self.table.logged(index, image, third);
                }
                _ => self.leaders.logged(target, image, third),
            }
        }
    }

    /// Enters a third: whatever has its newest image only there goes home, and
    /// the log begins behind it. Only then may it be overwritten.
    fn enter(&mut self, third: u8) -> Result<()> {
        if !made(Mistake::AnchorBeforeHome) {
            self.go_home(third)?;
        }
        if !self.log.enter(&self.layout, third) {
            return Ok(());
        }
        self.log.write_anchor(&self.layout, &self.cache)?;
        self.go_home(third)
    }

    /// Writes what is due of a third to both its homes, durably.
    fn go_home(&mut self, third: u8) -> Result<()> {
        let mut due = self.table.due(third);
        if made(Mistake::SkipChangedAgain) {
            due.retain(|(index, _)| !self.batch.has_page(*index));
        }
        if made(Mistake::HomeFromCache) {
            for (index, image) in &mut due {
                *image = self.uncommitted(*index, image);
            }
        }
        let leaders = self.leaders.due(third);
        let (map, at) = self.map_at();
        let map_due = match made(Mistake::MapStaysAway) {
            true => Vec::new(),
            false => map.due(&at, third),
        };
        if due.is_empty() && leaders.is_empty() && map_due.is_empty() {
            return Ok(());
        }
        write_map(&self.layout, &self.cache, 0, &map_due)?;
        if made(Mistake::MapCopiesAtOnce) {
            write_map(&self.layout, &self.cache, 1, &map_due)?;
        }
        write_home(&self.cache, &self.layout, &due)?;
        for (page, image) in leaders.iter().filter(|_| !made(Mistake::LeaderStaysAway)) {
            self.cache.write_direct(self.layout.offset(*page), image)?;
        }
        if !made(Mistake::HomeNotFlushed) {
            self.cache.flush()?;
        }
        if !map_due.is_empty() {
            write_map(&self.layout, &self.cache, 1, &map_due)?;
            self.cache.flush()?;
        }
        read_back(&**self.cache.device(), &self.layout, &due)?;
        read_map_back(&self.layout, &self.cache, &map_due)?;
        self.map.came_home(third);
        self.table.came_home(third);
        self.leaders.came_home(third);
        Ok(())
    }

    /// Returns the image that operations see, sealed: what must not go home.
    fn uncommitted(&self, index: u32, committed: &Image) -> Image {
        let now = self.table.get(index).unwrap_or_else(|| committed.clone());
        let mut image = now.to_vec();
        stamp(&mut image, self.log.epoch(), self.log.seq());
        image.into()
    }

    /// Saves the allocation map, if it was not since the last commit, and is not
    /// logged. The batch must be empty.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn save_map(&mut self) -> Result<()> {
        if !self.map.is_unsaved(&self.layout) || self.takes != Takes::Changes {
            return Ok(());
        }
        let (map, at) = self.map_at();
        let result = map.save(&at);
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
        self.map.left();
        self.save_map()?;
        if self.log.is_empty() {
            return Ok(());
        }
        let result = self.log.empty(&self.layout, &self.cache);
        self.or_fail(result)
    }
}
