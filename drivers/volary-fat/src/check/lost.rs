//! Chains that no path leads to.
//!
//! They are freed, or saved in `/lost+found`: a directory as `FSCK0000`, with
//! all that it holds, any other chain as `FSCK0000.REC`.

use super::bits::Bits;
use super::disk::Rank;
use super::fat::Link;
use super::findings::{self as code, Where};
use super::insert::Entries;
use super::mend::Mender;
use super::volume::{Dir, NONE};
use crate::names::long::LongName;
use crate::names::short::checksum;
use crate::volume::judge;
use crate::volume::ondisk::{DirEntry, FREE, Raw, attr};
use volary_core::Result;
use zerocopy::{FromBytes, IntoBytes, transmute, transmute_ref};

/// Where lost chains go.
const PLACE: &[u8] = b"lost+found";

/// A lost chain.
#[derive(Clone, Copy, Debug)]
struct Lost {
    head: u32,
    clusters: u32,
    /// Its last cluster.
    last: u32,
    /// It looks like a directory that once was.
    dir: bool,
    /// It looks like a later part of one, without `.` and `..`.
    part: bool,
}

/// Frees or saves chains that no path leads to.
pub(super) struct LostChains<'m, 'a, 'r> {
    entries: Entries<'m, 'a, 'r>,
    /// Whether they are saved.
    saves: bool,
    /// Where the next one goes, once there was one.
    place: Option<Place>,
}

impl<'m, 'a, 'r> LostChains<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>, saves: bool) -> Self {
        Self {
            entries: Entries::new(mender),
            saves,
            place: None,
        }
    }

    fn mender(&mut self) -> &mut Mender<'a, 'r> {
        self.entries.mender()
    }

    /// Finds all lost chains, tells of them and frees or saves them. Those that
    /// lost directories lead to are left for the next walk.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn mend(&mut self) -> Result<()> {
        let mut lost = Bits::new(self.mender().vol.layout.last_cluster());
        let mut any = false;
        let mender = self.mender();
        mender.walk.counts = mender.vol.fat.sweep(&mender.walk.used, |n, _| {
            any = true;
            lost.add(n);
            Ok(())
        })?;
        if !any {
            return Ok(());
        }
        let chains = self.chains(&lost)?;
        let chains = if self.saves {
            self.topmost(chains)?
        } else {
            chains
        };
        for chain in chains {
            self.one(chain)?;
        }
        Ok(())
    }

    /// Returns the lost clusters as chains that do not meet.
    fn chains(&mut self, lost: &Bits) -> Result<Vec<Lost>> {
        let last = self.mender().vol.layout.last_cluster();
        let mut led_to = Bits::new(last);
        for n in (2..=last).filter(|&n| lost.has(n)) {
            if let Link::Next(next) = self.mender().vol.fat.link(n)? {
                led_to.add(next);
            }
        }
        let mut taken = Bits::new(last);
        let mut chains = Vec::new();
        // First those with a beginning, then what is left: rings.
        for ring in [false, true] {
            for n in (2..=last).filter(|&n| lost.has(n)) {
                if !taken.has(n) && (ring || !led_to.has(n)) {
                    chains.push(self.chain_from(n, lost, &mut taken)?);
                }
            }
        }
        Ok(chains)
    }

    fn chain_from(&mut self, head: u32, lost: &Bits, taken: &mut Bits) -> Result<Lost> {
        // A file cannot be longer than 32 bits of bytes.
        let most = u32::MAX / self.mender().vol.layout.cluster_len;
        let (mut clusters, mut last) = (0, head);
        let mut next = head;
        while clusters < most && lost.has(next) && taken.add(next) {
            clusters += 1;
            last = next;
            match self.mender().vol.fat.link(next)? {
                Link::Next(n) => next = n,
                _ => break,
            }
        }
        let bytes = self.mender().peek(head)?;
        let tally = judge::tally(&bytes, self.mender().vol.judge());
        let whole = judge::has_dot(&bytes, head, &self.mender().vol.layout) && !tally.is_garbage();
        let part = !whole && tally.good > 2 && tally.bad == 0 && self.leads_on(&bytes)?;
        Ok(Lost {
            head,
            clusters,
            last,
            dir: whole || part,
            part,
        })
    }

    /// Returns whether all entries in a part of a directory lead to chains.
    fn leads_on(&mut self, bytes: &[u8]) -> Result<bool> {
        let mender = self.mender();
        let slots = bytes.as_chunks::<32>().0.iter();
        let live = slots.take_while(|raw| raw.first() != Some(&0));
        let mut entries = 0;
        for raw in live.filter(|raw| raw.first() != Some(&FREE)) {
            let entry: &DirEntry = transmute_ref!(raw);
            if entry.is_long() {
                continue;
            }
            let start = mender.vol.start(entry);
            let size = entry.DIR_FileSize.get();
            if start == 0 && size != 0 || start != 0 && mender.vol.fat.get(start)? == 0 {
                return Ok(false);
            }
            entries += u32::from(start != 0);
        }
        Ok(entries > 0)
    }

    /// If there are directories: those that no other one leads to, or if there
    /// is none, the first. Else all.
    fn topmost(&mut self, chains: Vec<Lost>) -> Result<Vec<Lost>> {
        if !chains.iter().any(|c| c.dir) {
            return Ok(chains);
        }
        let mut inside = Bits::new(self.mender().vol.layout.last_cluster());
        for chain in chains.iter().filter(|c| c.dir) {
            self.mark_inside(chain, &mut inside)?;
        }
        let top: Vec<Lost> = chains
            .iter()
            .filter(|c| !inside.has(c.head))
            .copied()
            .collect();
        if !self.mender().reporter.all.mends() {
            return Ok(top);
        }
        let dirs: Vec<Lost> = top.into_iter().filter(|c| c.dir).collect();
        if dirs.is_empty() {
            return Ok(chains.into_iter().filter(|c| c.dir).take(1).collect());
        }
        Ok(dirs)
    }

    fn mark_inside(&mut self, chain: &Lost, inside: &mut Bits) -> Result<()> {
        let mender = self.mender();
        let mut at = chain.head;
        for i in 0..chain.clusters {
            let bytes = mender.peek(at)?;
            let skip = if i == 0 && !chain.part { 2 } else { 0 };
            for raw in bytes.as_chunks::<32>().0.iter().skip(skip) {
                match raw.first() {
                    None | Some(&0) => break,
                    Some(&FREE) => continue,
                    Some(_) => {}
                }
                let entry: &DirEntry = transmute_ref!(raw);
                if !entry.is_long() {
                    inside.add(mender.vol.start(entry));
                }
            }
            match mender.vol.fat.link(at)? {
                Link::Next(n) => at = n,
                _ => break,
            }
        }
        Ok(())
    }

    /// Tells of one chain and frees or saves it.
    fn one(&mut self, chain: Lost) -> Result<()> {
        let code = if chain.dir {
            code::LOST_DIR
        } else {
            code::LOST_CHAIN
        };
        let key = u64::from(chain.head);
        if self.mender().reporter.is_left(code, key) {
            return Ok(());
        }
        let what = match (chain.dir, chain.part) {
            (_, true) => "a part of a directory",
            (true, _) => "a directory",
            _ => "a chain",
        };
        let words = format!(
            "{what} of {} clusters from cluster {} on, to which no path leads",
            chain.clusters, chain.head
        );
        let at = Where::offset(self.mender().vol.layout.cluster_offset(chain.head));
        if !self.saves {
            if self
                .mender()
                .reporter
                .tell(code, key, at, words, "frees it")
            {
                self.free_chain(chain)?;
            }
            return Ok(());
        }
        let ext = if chain.dir { "" } else { ".REC" };
        let mends = self.mender().reporter.all.mends();
        if mends && self.place.is_none() {
            self.place = self.find_place()?;
        }
        let repair = match self.place {
            Some(p) => format!("saves it as {}FSCK{:04}{ext}", p.shown, p.number),
            None if mends => String::new(),
            None => "saves it in /lost+found".into(),
        };
        if self.mender().reporter.tell(code, key, at, words, repair)
            && let Some(place) = self.place
            && !self.save(chain, place)?
        {
            self.mender().reporter.not_mended(code, key);
        }
        Ok(())
    }

    fn free_chain(&mut self, chain: Lost) -> Result<()> {
        let mender = self.mender();
        let mut at = chain.head;
        for _ in 0..chain.clusters {
            let next = mender.vol.fat.link(at)?;
            mender.vol.set_link(at, 0)?;
            match next {
                Link::Next(n) => at = n,
                _ => break,
            }
        }
        Ok(())
    }

    /// Saves a chain in a place; false if there is no room.
    fn save(&mut self, chain: Lost, place: Place) -> Result<bool> {
        let number = place.number;
        let head = match chain.part {
            false => Some(chain.head),
            true => self.mender().vol.fat.find_free()?,
        };
        let Some(head) = head else {
            return Ok(false);
        };
        let mut name = *b"FSCK0000   ";
        let digits = format!("{number:04}");
        for (to, from) in name.iter_mut().skip(4).zip(digits.bytes()) {
            *to = from;
        }
        let kind = if chain.dir {
            attr::DIRECTORY
        } else {
            attr::ARCHIVE
        };
        if !chain.dir {
            for (to, from) in name.iter_mut().skip(8).zip(*b"REC") {
                *to = from;
            }
        }
        let mut entry = self.mender().new_entry(name, kind, head);
        if !chain.dir {
            // At most 32 bits: see `chain_from`.
            entry
                .DIR_FileSize
                .set(chain.clusters * self.mender().vol.layout.cluster_len);
        }
        let raw: Raw = transmute!(entry);
        let Some(slot) = self
            .entries
            .insert(place.dir, &[raw], place.slot, Rank::Late)?
        else {
            return Ok(false);
        };
        self.place = Some(Place {
            slot: slot + 1,
            number: number + 1,
            ..place
        });
        self.mender().vol.cut(chain.last)?;
        let above = if place.dir == 0 {
            0
        } else {
            self.mender().dir(place.dir).cluster
        };
        if chain.part {
            self.mender().fresh_dir(head, above, true)?;
            self.mender().vol.set_link(head, chain.head)?;
        } else if chain.dir {
            self.set_parent(head, above)?;
        }
        Ok(true)
    }

    /// Lets a directory's `..` lead to its new parent.
    fn set_parent(&mut self, cluster: u32, above: u32) -> Result<()> {
        let mender = self.mender();
        let dir = Dir {
            cluster,
            clusters: 1,
            parent: 0,
            first: NONE,
            slot: NONE,
        };
        let mut entry = mender.vol.entry(&dir, 1)?;
        if entry.DIR_Name == crate::volume::ondisk::DOT_DOT && entry.is_dir() {
            entry.set_first_cluster(above, mender.vol.layout.is_fat32());
            mender.vol.put_entry(&dir, 1, &entry)?;
        }
        Ok(())
    }

    /// Finds or makes the directory for lost chains; the root directory where
    /// that is not possible.
    fn find_place(&mut self) -> Result<Option<Place>> {
        let mut taken = false;
        let root = self.mender().dir(0);
        for number in 1..self.mender().walk.dirs.len() as u32 {
            let dir = self.mender().dir(number);
            if dir.parent == 0 && self.is_place(&root, dir.slot)? {
                return self.place_in(number, "/lost+found/").map(Some);
            }
        }
        for slot in 0..self.mender().vol.slot_count(&root) {
            let raw = self.mender().vol.raw(&root, slot)?;
            match raw.first() {
                None | Some(&0) => break,
                Some(&FREE) => {}
                Some(_) => taken |= self.is_place(&root, slot)?,
            }
        }
        if !taken && let Some(number) = self.make_place()? {
            return self.place_in(number, "/lost+found/").map(Some);
        }
        let room = self.has_room(0)?;
        room.then(|| self.place_in(0, "/")).transpose()
    }

    fn is_place(&mut self, root: &Dir, slot: u32) -> Result<bool> {
        let name = self.mender().vol.name(root, slot)?;
        Ok(volary_core::same_name(&name, PLACE))
    }

    /// Returns whether a directory has a free slot or can get one.
    fn has_room(&mut self, number: u32) -> Result<bool> {
        let dir = self.mender().dir(number);
        if dir.cluster != 0 {
            let found = self.mender().vol.fat.find_free()?.is_some();
            self.mender().vol.fat.rewind();
            if found {
                return Ok(true);
            }
        }
        let mut free = false;
        self.mender().read_dir(number, |_, bytes| {
            let slots = bytes.as_chunks::<32>().0;
            free |= slots
                .iter()
                .any(|raw| matches!(raw.first(), Some(&(0 | FREE))));
        })?;
        Ok(free)
    }

    fn place_in(&mut self, dir: u32, shown: &'static str) -> Result<Place> {
        let names = self.mender().short_names(dir)?;
        let numbers = names.iter().filter_map(|name| {
            let digits = name.strip_prefix(b"FSCK")?.get(..4)?;
            std::str::from_utf8(digits)
                .ok()?
                .trim_end()
                .parse::<u32>()
                .ok()
        });
        Ok(Place {
            dir,
            slot: if dir == 0 { 0 } else { 2 },
            number: numbers.max().map_or(0, |n| n + 1),
            shown,
        })
    }

    fn make_place(&mut self) -> Result<Option<u32>> {
        let Some(cluster) = self.mender().vol.fat.find_free()? else {
            return Ok(None);
        };
        let names = self.mender().short_names(0)?;
        let short = (1..10).map(|n| {
            let mut short = *b"LOST_F~1   ";
            if let Some(digit) = short.get_mut(7) {
                *digit = b'0' + n;
            }
            short
        });
        let Some(short) = short.into_iter().find(|s| !names.contains(s)) else {
            return Ok(None);
        };
        let entry = self.mender().new_entry(short, attr::DIRECTORY, cluster);
        let mut raws: Vec<Raw> = Vec::new();
        for part in LongName::new(PLACE)?.entries(checksum(&short)) {
            raws.extend(Raw::read_from_bytes(part.as_bytes()));
        }
        if self.mender().vol.paper {
            raws.clear();
        }
        raws.push(transmute!(entry));
        let Some(first) = self.entries.insert(0, &raws, 0, Rank::Late)? else {
            return Ok(None);
        };
        self.mender().fresh_dir(cluster, 0, false)?;
        self.mender().vol.cut(cluster)?;
        self.mender().walk.dirs.push(Dir {
            cluster,
            clusters: 1,
            parent: 0,
            first,
            slot: first + raws.len() as u32 - 1,
        });
        Ok(Some(self.mender().walk.dirs.len() as u32 - 1))
    }
}

/// Where the next lost chain goes.
#[derive(Clone, Copy)]
struct Place {
    dir: u32,
    /// Slots before this one are taken.
    slot: u32,
    number: u32,
    shown: &'static str,
}
