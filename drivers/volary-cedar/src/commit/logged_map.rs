//! The allocation map as the log keeps it: each record tells what it took and
//! freed, and a page of the map goes home, to two copies, before the log loses
//! what was told of it. So after a crash the map is what is home and what the
//! records say since; the name table is not walked.
//!
//! What is home is the map as it was *committed*, and each page has the number of
//! the last record that it holds: of later ones only is it changed. The first
//! copy is durable before the second is begun, so that a cut leaves one whole.

use crate::commit::core::Core;
use crate::disk::ondisk::{Header, PageType};
use crate::disk::runs::Run;
use crate::disk::volume::Layout;
use crate::log::Record;
use crate::mistakes::{Mistake, made};
use crate::name_table::table::read_pages;
use crate::space::delta::Delta;
use crate::space::map_home::{ALL, MapHome, pages_of_map};
use crate::space::vam::Vam;
use volary_core::{Error, Result};

/// A page of the map to be written: which one, and as it is in each copy.
type MapPage = (u32, [Vec<u8>; 2]);

/// Pieces of a run, each with the page of the map that has it.
fn pieces(layout: &Layout, run: Run) -> impl Iterator<Item = (u32, Run)> + '_ {
    let end = run.start.saturating_add(run.len);
    pages_of_map(layout, run).map(move |index| {
        let first = index * layout.map_bits();
        let start = run.start.max(first);
        let len = end.min(first.saturating_add(layout.map_bits())) - start;
        (index, Run { start, len })
    })
}

impl Core {
    /// Returns what the record that is about to be written tells; None if it is too much.
    pub(crate) fn tell(&self) -> Option<Delta> {
        if !self.layout.logs_map {
            return Some(Delta::default());
        }
        let mut delta = self.batch.delta(&self.layout);
        if made(Mistake::TakenNotTold) {
            delta.taken = crate::space::delta::RunSet::default();
        }
        if made(Mistake::FreedNotTold) {
            delta.freed = crate::space::delta::RunSet::default();
        }
        let fits = delta.len() <= Delta::most(self.layout.page_len());
        (self.map_home.tells && fits).then_some(delta)
    }

    /// Notes what a durable record told of the map. Of what was too much to be
    /// told, the whole map goes home at once.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn told(&mut self, told: Option<&Delta>, third: u8) -> Result<()> {
        if !self.layout.logs_map {
            return Ok(());
        }
        match told {
            Some(delta) => {
                for run in delta.taken.iter().chain(delta.freed.iter()) {
                    self.map_home.changed(&self.layout, run, 1 << third);
                }
                Ok(())
            }
            None if self.map_home.tells && !made(Mistake::UntoldStaysAway) => {
                self.map_home.all_due();
                self.map_goes_home()
            }
            None => Ok(()),
        }
    }

    /// Leaves the map out of records until the log is left, and writes all of it
    /// home then, as it is not known to be right before. The log must be empty.
    pub(crate) fn distrust_map(&mut self) {
        self.map_home.tells = false;
        self.map_home.all_due();
    }

    /// Returns what is due of a third, as it was committed.
    pub(crate) fn map_due(&self, third: u8) -> Vec<MapPage> {
        self.map_due_of(1 << third)
    }

    fn map_due_of(&self, thirds: u8) -> Vec<MapPage> {
        let due = self.map_home.due.iter().zip(0..);
        let due = due.filter(|(due, _)| self.layout.logs_map && **due & thirds != 0);
        due.map(|(_, index)| (index, self.committed_map_page(index)))
            .collect()
    }

    /// Returns a page of the map as of the last commit: without what was taken since.
    fn committed_map_page(&self, index: u32) -> [Vec<u8>; 2] {
        let words = self.layout.map_bits() as usize / 64;
        let first = index * self.layout.map_bits();
        let all = self.vam.words().iter().skip(index as usize * words);
        let mut part: Vec<u64> = all.take(words).copied().collect();
        let mut set = |run: Run, used: bool| {
            for (_, piece) in pieces(&self.layout, run).filter(|(at, _)| *at == index) {
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
            self.taken_since().for_each(|run| set(run, false));
            self.table_before().for_each(|(page, was)| set(page, was));
        }
        if made(Mistake::FreedInMapTooSoon) {
            self.batch.freed.iter().for_each(|run| set(run, false));
        }
        let seq = self.log.seq.saturating_sub(1);
        self.layout.maps().map(|start| {
            let number = start + index;
            crate::space::vam::page(&self.layout, number, &part, self.log.epoch, seq)
        })
    }

    /// Writes one copy of pages of the map. Not flushed.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn write_map(&self, copy: usize, pages: &[MapPage]) -> Result<()> {
        let dev = self.cache.device();
        let start = self.layout.maps().get(copy).copied().unwrap_or_default();
        for run in pages.chunk_by(|a, b| a.0 + 1 == b.0) {
            let Some((first, _)) = run.first() else {
                continue;
            };
            let parts: Vec<&[u8]> = run
                .iter()
                .filter_map(|(_, copies)| copies.get(copy).map(Vec::as_slice))
                .collect();
            dev.write_gather(self.layout.offset(start + first), &parts)?;
        }
        Ok(())
    }

    /// Reads pages of the map back from both copies.
    ///
    /// # Errors
    /// `Io` if any is not what was written.
    pub(crate) fn read_map_back(&self, pages: &[MapPage]) -> Result<()> {
        let mut bytes = vec![0; self.layout.page_len()];
        for (index, copies) in pages {
            for (start, image) in self.layout.maps().into_iter().zip(copies) {
                let offset = self.layout.offset(start + index);
                self.cache.device().read_at(offset, &mut bytes)?;
                if bytes != *image {
                    let len = bytes.len() as u64;
                    return Err(Error::io("write", offset, len, "it is not there"));
                }
            }
        }
        Ok(())
    }

    /// Takes all that is due of the map home, durably.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn map_goes_home(&mut self) -> Result<()> {
        let due = self.map_due_of(ALL);
        if due.is_empty() {
            return Ok(());
        }
        for copy in 0..2 {
            self.write_map(copy, &due)?;
            self.cache.flush()?;
        }
        self.read_map_back(&due)?;
        self.map_home.came_home(ALL);
        Ok(())
    }

    /// Returns the map of what is home and of what the records up to `last` tell since.
    /// What of it is not home in both copies is due. None if it cannot be known:
    /// a page is lost in both copies, or contradicts the records.
    pub(crate) fn load_logged_map(&mut self, records: &[Record], last: u64) -> Option<Vam> {
        let layout = &self.layout;
        let copies = layout
            .maps()
            .map(|first| read_pages(&**self.cache.device(), layout, first, layout.map_len));
        let mut home = MapHome::new(layout);
        let (mut pages, mut seqs) = (Vec::new(), Vec::new());
        let [a, b] = copies.each_ref().map(|c| c.chunks(layout.page_len()));
        for (i, pair) in a.zip(b).enumerate() {
            let (bytes, seq, alike) = newer(layout, i as u32, pair)?;
            if seq > last {
                return None;
            }
            if !alike && let Some(due) = home.due.get_mut(i) {
                *due = ALL;
            }
            pages.push(bytes);
            seqs.push(seq);
        }
        let mut vam = Vam::of_pages(layout, &pages);
        for record in records {
            let Some(delta) = &record.told else {
                if seqs.iter().any(|seq| *seq < record.seq) {
                    return None;
                }
                continue;
            };
            replay(layout, &mut vam, &seqs, record.seq, delta)?;
            for run in delta.taken.iter().chain(delta.freed.iter()) {
                home.changed(layout, run, ALL);
            }
        }
        self.map_home = home;
        Some(vam)
    }
}

/// Of two copies of a page of the map the newer one that is whole, its record's
/// number, and whether the other is as new.
fn newer<'a>(
    layout: &Layout,
    index: u32,
    pair: (&'a [u8], &'a [u8]),
) -> Option<(&'a [u8], u64, bool)> {
    let [a, b] = layout.maps().map(|first| first + index);
    let age = |bytes: &[u8], number: u32| {
        let own =
            |h: &Header| h.kind == PageType::Map && h.nonce == layout.nonce && h.page == number;
        Header::read(bytes).filter(own).map(|h| (h.epoch, h.seq))
    };
    let ages = (age(pair.0, a), age(pair.1, b));
    let alike = ages.0 == ages.1;
    match ages {
        (None, None) => None,
        (a, b) if b > a => Some((pair.1, b?.1, alike)),
        (a, _) => Some((pair.0, a?.1, alike)),
    }
}

/// Changes the map as a record tells, but for pages that have the record already.
/// None if it takes what is in use, or frees what is not.
fn replay(layout: &Layout, vam: &mut Vam, seqs: &[u64], seq: u64, delta: &Delta) -> Option<()> {
    let taken = delta.taken.iter().map(|run| (run, true));
    for (run, used) in taken.chain(delta.freed.iter().map(|run| (run, false))) {
        if !layout.is_data_run(run.start, run.len) && !layout.is_table_run(run) {
            return None;
        }
        for (index, piece) in pieces(layout, run) {
            let has = seqs.get(index as usize).is_some_and(|s| *s >= seq);
            if has && !made(Mistake::ToldTwice) {
                continue;
            }
            if !vam.is_all(piece, !used) {
                return None;
            }
            vam.mark(piece.start, piece.len, used);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cedar::CEDAR;
    use crate::look::info::LOOK;
    use crate::recover::{How, open};
    use crate::space::delta::RunSet;
    use crate::space::vam::Want;
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
            core.core.vam == walked,
            "{} free, {}",
            core.core.vam.free(),
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
        assert_eq!(core.core.map_home.pages_due(), 0);
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
            c.core.free(odd.collect());
            Tree::of(&mut c.core).put(b"key", b"value")
        })
        .unwrap();
        core.core.commit(Time::EPOCH).unwrap();
        let free = core.core.vam.free();
        let (found, recovered) = open(dev, &LOOK).unwrap();
        assert!(recovered.records == 1 && recovered.map_loaded);
        assert_eq!(found.core.vam.free(), free);
    }

    #[test]
    fn records_that_contradict_the_map_are_not_believed() {
        let dev = make("");
        let layout = Layout::read(&*dev).unwrap();
        let tell = |taken: &[(u32, u32)], freed: &[(u32, u32)]| {
            let set = |runs: &[(u32, u32)]| {
                let mut set = RunSet::default();
                set.extend(runs.iter().map(|(start, len)| Run {
                    start: *start,
                    len: *len,
                }));
                set
            };
            let delta = Delta {
                taken: set(taken),
                freed: set(freed),
            };
            let mut vam = Vam::empty(&layout);
            replay(&layout, &mut vam, &[4, 4], 5, &delta).map(|()| vam.free())
        };
        let free = Vam::empty(&layout).free();
        assert_eq!(tell(&[(10, 5)], &[(12, 2)]), Some(free - 3));
        assert_eq!(tell(&[], &[(12, 2)]), None, "frees what is free");
        assert_eq!(tell(&[(layout.log, 1)], &[]), None, "takes of the log");
        assert_eq!(tell(&[(layout.pages - 2, 2)], &[]), None, "takes a root");
        assert_eq!(tell(&[(u32::MAX - 4, 9)], &[]), None, "past the end");
    }
}
