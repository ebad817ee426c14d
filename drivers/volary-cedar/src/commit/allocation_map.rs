//! The allocation map: in memory, with what is kept behind open files, and at home.
//!
//! If it is logged, each record tells what it took and
//! freed, and a page of the map goes home, to two copies, before the log loses
//! what was told of it. So after a crash the map is what is home and what the
//! records say since; the name table is not walked. Otherwise it is saved whole, in one of two
//! slots, once nothing else is left to do.
//!
//! What is home is the map as it was *committed*, and each page has the number of
//! the last record that it holds: of later ones only is it changed. The first
//! copy is durable before the second is begun, so that a cut leaves one whole.

use crate::commit::batch::{Batch, Txn};
use crate::commit::log_state::LogState;
use crate::commit::map_pages::{MapPage, logged_map, pieces, read_map_back, write_map};
use crate::disk::runs::Run;
use crate::disk::volume::Layout;
use crate::log::Record;
use crate::mistakes::{Mistake, made};
use crate::name_table::table::read_pages;
use crate::space::delta::{Delta, RunSet};
use crate::space::map_home::{ALL, MapHome};
use crate::space::reserve::Reservations;
use crate::space::vam::{Vam, Want};
use volary_block::Cache;
use volary_core::Result;

/// The last commit, and what has changed since: what is home is the map as of that.
pub(crate) struct Committed<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) cache: &'a Cache,
    pub(crate) log: &'a LogState,
    pub(crate) batch: &'a Batch,
    pub(crate) txn: &'a Txn,
}

/// The allocation map.
pub(crate) struct AllocationMap {
    vam: Vam,
    /// Room that is kept behind open files.
    reserved: Reservations,
    /// What of a logged map has yet to go home.
    home: MapHome,
    /// Whether it was saved since the last commit.
    saved: bool,
    /// The slot that it is saved in next.
    slot: usize,
}

impl AllocationMap {
    pub(crate) fn new(layout: &Layout, vam: Vam) -> Self {
        Self {
            vam,
            reserved: Reservations::default(),
            home: MapHome::new(layout),
            saved: false,
            slot: 0,
        }
    }

    // ---- In memory ----

    /// Returns what is in use.
    pub(crate) fn vam(&self) -> &Vam {
        &self.vam
    }

    /// Replaces it by what a walk of the name table found.
    pub(crate) fn replace(&mut self, vam: Vam) {
        self.saved &= vam == self.vam;
        self.vam = vam;
    }

    /// Takes pages for a file, if there are as many.
    pub(crate) fn take(&mut self, want: &Want) -> Option<Vec<Run>> {
        self.vam.take(want, &mut self.reserved)
    }

    /// Makes pages free.
    pub(crate) fn give(&mut self, run: Run) {
        self.vam.mark(run.start, run.len, false);
    }

    /// Takes a page of the name table, if one is free.
    pub(crate) fn take_table(&mut self) -> Option<u32> {
        self.vam.take_table()
    }

    /// Makes a page of the name table free.
    pub(crate) fn give_table(&mut self, index: u32) {
        self.vam.mark_table(index, false);
    }

    /// Gives back what is kept behind a file.
    pub(crate) fn give_back_kept(&mut self, uid: u64) {
        self.reserved.give_back(uid);
    }

    /// Gives back what is kept behind all files.
    pub(crate) fn give_all_kept_back(&mut self) {
        self.reserved.give_all_back();
    }

    // ---- Saved ----

    /// Notes that there is a commit: what was saved is of the one before.
    pub(crate) fn outdate(&mut self) {
        self.saved = false;
    }

    /// Has the map saved in place of what was saved last.
    pub(crate) fn discard_saved(&mut self) {
        self.saved = false;
        self.slot = 1 - self.slot;
    }

    /// Returns whether it is to be saved: it was not since the last commit, and is not logged.
    pub(crate) fn is_unsaved(&self, layout: &Layout) -> bool {
        !layout.logs_map && !self.saved
    }

    /// Saves it. The batch must be empty.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn save(&mut self, at: &Committed<'_>) -> Result<()> {
        let first = {
            let [first, second] = at.layout.maps();
            if self.slot == 0 { first } else { second }
        };
        let seq = match made(Mistake::MapOfNextCommit) {
            true => at.log.seq(),
            false => at.log.last(),
        };
        let bytes = self.vam.encode(at.layout, first, at.log.epoch(), seq);
        let written = at.cache.device().write_at(at.layout.offset(first), &bytes);
        let result = written.and_then(|()| at.cache.flush());
        self.slot = 1 - self.slot;
        self.saved = result.is_ok();
        result
    }

    /// Takes the map as it was saved with record `last`. Returns whether it was.
    pub(crate) fn load_saved(&mut self, layout: &Layout, cache: &Cache, last: u64) -> bool {
        for (slot, first) in layout.maps().into_iter().enumerate() {
            let bytes = read_pages(&**cache.device(), layout, first, layout.map_len);
            if let Some(vam) = Vam::decode(layout, first, &bytes, last) {
                self.vam = vam;
                self.slot = 1 - slot;
                self.saved = true;
                return true;
            }
        }
        false
    }

    // ---- Logged ----

    /// Returns what the record of a batch tells; None if it is too much.
    pub(crate) fn tell(&self, layout: &Layout, batch: &Batch) -> Option<Delta> {
        if !layout.logs_map {
            return Some(Delta::default());
        }
        let mut delta = batch.delta(layout);
        if made(Mistake::TakenNotTold) {
            delta.taken = RunSet::default();
        }
        if made(Mistake::FreedNotTold) {
            delta.freed = RunSet::default();
        }
        let fits = delta.len() <= Delta::most(layout.page_len());
        (self.home.tells && fits).then_some(delta)
    }

    /// Notes what a durable record told of the map. Of what was too much to be
    /// told, the whole map goes home at once.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn told(
        &mut self,
        at: &Committed<'_>,
        told: Option<&Delta>,
        third: u8,
    ) -> Result<()> {
        if !at.layout.logs_map {
            return Ok(());
        }
        match told {
            Some(delta) => {
                for run in delta.taken.iter().chain(delta.freed.iter()) {
                    self.home.changed(at.layout, run, 1 << third);
                }
                Ok(())
            }
            None if self.home.tells && !made(Mistake::UntoldStaysAway) => {
                self.home.all_due();
                self.go_home(at)
            }
            None => Ok(()),
        }
    }

    /// Leaves the map out of records until the log is left, and writes all of it
    /// home then, as it is not known to be right before. The log must be empty.
    pub(crate) fn distrust(&mut self) {
        self.home.tells = false;
        self.home.all_due();
    }

    /// Schedules all of it to be written home.
    pub(crate) fn all_due(&mut self) {
        self.home.all_due();
    }

    /// Returns how many pages of it are not home in both copies.
    pub(crate) fn pages_due(&self) -> usize {
        self.home.pages_due()
    }

    /// Notes that all is home, and that the log is about to be left.
    pub(crate) fn left(&mut self) {
        self.home.left();
    }

    /// Notes that what was due of a third is home.
    pub(crate) fn came_home(&mut self, third: u8) {
        self.home.came_home(1 << third);
    }

    /// Returns what is due of a third, as it was committed.
    pub(crate) fn due(&self, at: &Committed<'_>, third: u8) -> Vec<MapPage> {
        self.due_of(at, 1 << third)
    }

    fn due_of(&self, at: &Committed<'_>, thirds: u8) -> Vec<MapPage> {
        let due = self.home.due.iter().zip(0..);
        let due = due.filter(|(due, _)| at.layout.logs_map && **due & thirds != 0);
        due.map(|(_, index)| (index, self.committed_page(at, index)))
            .collect()
    }

    /// Returns a page of the map as of the last commit: without what was taken since.
    fn committed_page(&self, at: &Committed<'_>, index: u32) -> [Vec<u8>; 2] {
        let layout = at.layout;
        let words = layout.map_bits() as usize / 64;
        let first = index * layout.map_bits();
        let all = self.vam.words().iter().skip(index as usize * words);
        let mut part: Vec<u64> = all.take(words).copied().collect();
        let mut set = |run: Run, used: bool| {
            for (_, piece) in pieces(layout, run).filter(|(at, _)| *at == index) {
                for bit in piece.start - first..piece.start - first + piece.len {
                    if let Some(word) = part.get_mut(bit as usize / 64) {
                        let mask = 1 << (bit % 64);
                        *word = if used { *word | mask } else { *word & !mask };
                    }
                }
            }
        };
        if made(Mistake::ReservedInMap) {
            self.reserved.iter().for_each(|kept| set(kept.run, true));
        }
        if !made(Mistake::MapHomeAsInMemory) {
            let taken = at.batch.taken_with(at.txn, layout);
            taken.for_each(|run| set(run, false));
            let table = at.batch.table_before(layout);
            table.for_each(|(page, was)| set(page, was));
        }
        if made(Mistake::FreedInMapTooSoon) {
            at.batch.freed().iter().for_each(|run| set(run, false));
        }
        let (epoch, seq) = (at.log.epoch(), at.log.last());
        layout.maps().map(|start| {
            let number = start + index;
            crate::space::vam::page(layout, number, &part, epoch, seq)
        })
    }

    /// Takes all that is due of the map home, durably.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn go_home(&mut self, at: &Committed<'_>) -> Result<()> {
        let due = self.due_of(at, ALL);
        if due.is_empty() {
            return Ok(());
        }
        for copy in 0..2 {
            write_map(at.layout, at.cache, copy, &due)?;
            at.cache.flush()?;
        }
        read_map_back(at.layout, at.cache, &due)?;
        self.home.came_home(ALL);
        Ok(())
    }

    /// Restores the map from its pages at home and the log's records up to `last`. Pages that are not home in both
    /// copies become due. Returns false if the map cannot be restored: both copies of a page are lost, or contradict
    /// the records.
    pub(crate) fn load_logged(
        &mut self,
        layout: &Layout,
        cache: &Cache,
        records: &[Record],
        last: u64,
    ) -> bool {
        match logged_map(layout, cache, records, last) {
            Some((vam, home)) => {
                (self.vam, self.home) = (vam, home);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cedar::CEDAR;
    use crate::look::info::LOOK;
    use crate::recover::{How, open};
    use crate::torture::script::{Player, as_root, script};
    use crate::tree::btree::Tree;
    use std::sync::Arc;
    use volary_block::MemDevice;
    use volary_core::{Attach, BlockDevice, Format, Make, Options, Time};

    /// Returns a volume of two pages of a map.
    fn make(options: &str) -> Arc<MemDevice> {
        let dev = Arc::new(MemDevice::new(2 << 20));
        let make = Make {
            options: Options::parse(&format!("page=512,log=186k,{options}")),
            ..Make::default()
        };
        CEDAR.make(dev.clone(), "cedar", &make).unwrap();
        dev
    }

    /// Returns a volume that was not left, after some laps of the log; `each` is told of it
    /// after each operation.
    fn play(seed: u64, each: &mut dyn FnMut(&Arc<MemDevice>)) -> Arc<MemDevice> {
        let dev = make("");
        let how = Attach {
            options: Options::parse("commit=0"),
            ..Attach::default()
        };
        let fs = CEDAR.attach(dev.clone(), &how).unwrap();
        let mut player = Player {
            fs: &fs,
            held: Vec::new(),
            count: 0,
        };
        for op in script(seed, 150, true).0 {
            player.play(&op, &mut |_| {}).unwrap();
            each(&dev);
        }
        as_root(|cx| fs.sync(cx)).unwrap();
        dev
    }

    /// Holds if the map is as a walk finds it; whether no walk was needed.
    fn is_right(dev: &Arc<MemDevice>) -> bool {
        let (mut core, recovered) = open(dev.clone(), &LOOK).unwrap();
        let walked = Tree::of(&mut core.core).rebuild_map().unwrap();
        assert!(
            *core.core.map.vam() == walked,
            "{} free, {}",
            core.core.map.vam().free(),
            walked.free()
        );
        recovered.map_loaded
    }

    #[test]
    fn the_log_says_what_a_walk_finds() {
        for seed in 0..4 {
            play(seed, &mut |dev| assert!(is_right(dev), "seed {seed}"));
        }
    }

    #[test]
    fn of_a_map_one_copy_is_enough_and_without_both_the_table_is_walked() {
        let dev = play(9, &mut |_| {});
        let layout = Layout::read(&*dev).unwrap();
        let [a, b] = layout.maps();
        assert!(layout.map_len == 2 && b == a + 2);
        for (lost, is_known) in [
            (vec![a], true),
            (vec![b + 1], true),
            (vec![a, b + 1], true),
            (vec![a + 1, b], true),
            (vec![a + 1, b + 1], false),
        ] {
            let dev = Arc::new(MemDevice::from_vec(dev.to_vec()));
            for page in &lost {
                dev.write_at(layout.offset(*page), &[0xee; 512]).unwrap();
            }
            assert_eq!(is_right(&dev), is_known, "without {lost:?}");
            // The next attaching writes what is lost.
            let fs = CEDAR.attach(dev.clone(), &Attach::default()).unwrap();
            as_root(|cx| fs.detach(cx)).unwrap();
            for page in lost.iter().filter(|_| is_known) {
                let other = if *page < b { page + 2 } else { page - 2 };
                dev.write_at(layout.offset(other), &[0xee; 512]).unwrap();
            }
            assert!(is_right(&dev), "{lost:?} came back");
        }
    }

    #[test]
    fn of_a_volume_that_was_left_the_map_is_home_in_both_copies() {
        let dev = play(10, &mut |_| {});
        let fs = CEDAR.attach(dev.clone(), &Attach::default()).unwrap();
        as_root(|cx| fs.detach(cx)).unwrap();
        let (core, recovered) = open(dev, &LOOK).unwrap();
        assert!(recovered.map_loaded && recovered.records == 0);
        assert_eq!(core.core.map.pages_due(), 0);
    }

    /// What one change takes may be more than a record's end holds.
    #[test]
    fn what_cannot_be_told_is_home_before_the_next_record() {
        let dev = make("");
        let how = How {
            read_only: false,
            ..LOOK
        };
        let (mut core, _) = open(dev.clone(), &how).unwrap();
        let most = Delta::most(512) as u32;
        core.change(Time::EPOCH, |c| {
            let all = c.core.take(&Want {
                len: 4 * most,
                near: None,
                total: 1,
                grows: None,
            })?;
            let first = all.first().map_or(0, |run| run.start);
            let odd = (0..2 * most).map(|i| Run {
                start: first + i * 2,
                len: 1,
            });
            c.core.txn.free(odd.collect());
            Tree::of(&mut c.core).put(b"key", b"value")
        })
        .unwrap();
        core.core.commit(Time::EPOCH).unwrap();
        let free = core.core.map.vam().free();
        let (found, recovered) = open(dev, &LOOK).unwrap();
        assert!(recovered.records == 1 && recovered.map_loaded);
        assert_eq!(found.core.map.vam().free(), free);
    }
}
