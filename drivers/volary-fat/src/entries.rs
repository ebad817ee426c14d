//! Putting entries into directories and taking them out.

use crate::attached::Attached;
use crate::commit::{Epoch, Step};
use crate::dir::{Dir, Scratch};
use crate::index::{Index, SLOTS_MAX, Span, hash_bytes};
use crate::locate::Located;
use crate::names::Stored;
use crate::node::key_of;
use crate::ondisk::{DirEntry, ENTRY_LEN};
use crate::paper;
use crate::short::{Basis, Short, TAIL_MAX, checksum};
use crate::slots::{Event, LongStyle, Scanner, entry_at};
use std::ops::ControlFlow;
use volary_block::Stage;
use volary_core::{Error, Kind, Result};
use zerocopy::IntoBytes;

/// What is to be written for an entry: its slots in order.
pub(crate) struct Slots {
    slots: [[u8; ENTRY_LEN]; SLOTS_MAX],
    count: usize,
    /// The index of the short entry.
    short: usize,
    /// Hashes of the names that lead to it, if they are known: the one shown
    /// and the alias.
    hashes: Option<[u32; 2]>,
}

impl Slots {
    fn new() -> Self {
        Self {
            slots: [[0; ENTRY_LEN]; SLOTS_MAX],
            count: 0,
            short: 0,
            hashes: None,
        }
    }

    fn push(&mut self, slot: &[u8]) {
        if let Some(room) = self.slots.get_mut(self.count)
            && let Ok(raw) = slot.try_into()
        {
            *room = raw;
            self.count += 1;
        }
    }

    fn push_short(&mut self, entry: &DirEntry) {
        self.short = self.count;
        self.push(entry.as_bytes());
    }

    /// How many.
    pub(crate) fn count(&self) -> u32 {
        self.count as u32
    }

    fn as_slice(&self) -> &[[u8; ENTRY_LEN]] {
        self.slots.get(..self.count).unwrap_or_default()
    }

    fn span_at(&self, first: u32) -> Span {
        Span {
            first,
            slot: first + self.short as u32,
            last: first + self.count().saturating_sub(1),
        }
    }
}

impl Attached {
    /// What is to be stored for `name`, with `entry` for all but the name. The
    /// short name is one that the directory does not have yet.
    ///
    /// # Errors
    /// `Invalid`, `NameTooLong`; `NoSpace` if there is no short name left.
    pub(crate) fn plan(&self, dir: &mut Dir, name: &[u8], entry: &DirEntry) -> Result<Slots> {
        if name.len() > usize::from(self.names.name_max()) {
            return Err(Kind::NameTooLong.into());
        }
        let mut entry = *entry;
        let mut slots = Slots::new();
        match self.names.store(name)? {
            Stored::Short(short, flags) => {
                entry.DIR_Name = short;
                if self.names.long == LongStyle::Vfat {
                    entry.DIR_NTRes = flags;
                } else {
                    entry.DIR_Attr &= !paper::LONG;
                }
                slots.push_short(&entry);
            }
            Stored::Long(long, basis) => {
                let (alias, hash) = self.alias(dir, &basis)?;
                entry.DIR_Name = alias;
                let mut folded = Vec::with_capacity(name.len());
                self.names.fold(name, &mut folded);
                slots.hashes = Some([hash_bytes(&folded) as u32, hash]);
                entry.DIR_NTRes = 0;
                for part in long.entries(checksum(&entry.DIR_Name)) {
                    slots.push(part.as_bytes());
                }
                slots.push_short(&entry);
            }
            Stored::Paper(short, tail) => {
                entry.DIR_Name = short;
                entry.DIR_Attr |= paper::LONG;
                slots.push_short(&entry);
                slots.push(paper::tail_entry(&tail).as_bytes());
            }
        }
        Ok(slots)
    }

    /// A short name for a long one, and the hash by which it is found.
    fn alias(&self, dir: &mut Dir, basis: &Basis) -> Result<(Short, u32)> {
        let mut scratch = Scratch::default();
        if let Some(short) = basis.plain()
            && let Some(hash) = self.free_short(dir, &short, &mut scratch)?
        {
            return Ok((short, hash));
        }
        for _ in 0..2 {
            let mut least = 1;
            for digits in 1..=6 {
                let end = least * 10;
                let key = hash_bytes(&basis.key(digits)) ^ digits as u64;
                let tried = |index: &Index| index.tail(key).unwrap_or(least);
                let mut number = dir.index.as_deref().map_or(least, tried);
                while number < end.min(TAIL_MAX + 1) {
                    let short = basis.numbered(number);
                    number += 1;
                    if let Some(hash) = self.free_short(dir, &short, &mut scratch)? {
                        if let Some(index) = &mut dir.index {
                            index.set_tail(key, number);
                        }
                        return Ok((short, hash));
                    }
                }
                if let Some(index) = &mut dir.index {
                    index.set_tail(key, end);
                }
                least = end;
            }
            // Numbers of names that are gone can be used again.
            if let Some(index) = &mut dir.index {
                index.clear_tails();
            }
        }
        Err(Error::note(Kind::NoSpace, "no short name is left for it"))
    }

    /// The hash of a short name, if the directory does not have it.
    fn free_short(&self, dir: &Dir, short: &Short, scratch: &mut Scratch) -> Result<Option<u32>> {
        let Scratch { name, folded } = scratch;
        self.names.fold_short(short, name, folded);
        let is_taken = self.find(dir, folded, |_| ())?.is_some();
        Ok((!is_taken).then(|| hash_bytes(folded) as u32))
    }

    /// Writes a planned entry into a directory. Its generation is made to
    /// differ from that of what was there before, unless it is to be kept.
    ///
    /// # Errors
    /// `Commit`; `NoSpace`, `Io`; nothing is changed then.
    pub(crate) fn insert(
        &self,
        dir: &mut Dir,
        epoch: &Epoch,
        slots: &mut Slots,
        keep_stamp: bool,
    ) -> Step<Located> {
        let first = dir.room(self, epoch, slots.count())?;
        self.insert_at(dir, epoch, slots, first, keep_stamp)
    }

    /// As [`insert`](Self::insert), in slots that are free.
    pub(crate) fn insert_at(
        &self,
        dir: &mut Dir,
        epoch: &Epoch,
        slots: &mut Slots,
        first: u32,
        keep_stamp: bool,
    ) -> Step<Located> {
        let span = slots.span_at(first);
        // Changing the slots needs no device after this.
        let mut old = [[0; ENTRY_LEN]; SLOTS_MAX];
        let room = old.get_mut(..slots.count).unwrap_or_default();
        dir.read(self, first, room.as_flattened_mut())?;
        let old = old.get(slots.short).and_then(|raw| entry_at(raw));
        self.renew_at(dir, span.slot, slots, old, keep_stamp);
        dir.write(self, first, slots.as_slice(), dir.stage(epoch))?;
        self.enter(dir, slots, first);
        let entry = slots.short_entry();
        Ok(Located::new(self, dir, entry, span)?)
    }

    /// Gives the planned entry a stamp that no earlier one in that slot had,
    /// the one that is `there` and about to be overwritten included; where the
    /// stamp is to be kept, only remembers the earlier one.
    fn renew_at(
        &self,
        dir: &Dir,
        slot: u32,
        slots: &mut Slots,
        there: Option<DirEntry>,
        keep: bool,
    ) {
        let key = key_of(dir.first, slot);
        let known = self.births.last(key);
        if keep {
            let there = there.filter(|e| known.is_none() && e.DIR_Name != [0; 11]);
            if let Some(old) = there {
                self.births.note(key, &old);
            }
            return;
        }
        if let Some(old) = known.or(there) {
            slots.renew(self, &old);
        }
        self.births.note(key, &slots.short_entry());
    }

    /// Inserts an entry without a long name.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub(crate) fn insert_short(
        &self,
        dir: &mut Dir,
        epoch: &Epoch,
        entry: &DirEntry,
    ) -> Step<Located> {
        let mut slots = Slots::new();
        slots.push_short(entry);
        self.insert(dir, epoch, &mut slots, false)
    }

    fn enter(&self, dir: &mut Dir, slots: &Slots, first: u32) {
        let Some(index) = &mut dir.index else {
            return;
        };
        index.end = index.end.max(first + slots.count());
        if let Some([name, alias]) = slots.hashes {
            index.enter_hashed(slots.span_at(first), name, alias);
            return;
        }
        let mut scratch = Scratch::default();
        let mut scanner = Scanner::new(self.names.long);
        let mut each = |event: Event<'_>| {
            if let Event::Record(mut r) = event {
                r.first_slot += first;
                r.slot += first;
                r.last_slot += first;
                index.enter(self, &r, &mut scratch);
            }
            ControlFlow::<()>::Continue(())
        };
        let _ = scanner.feed(slots.as_slice().as_flattened(), &mut each);
        let _ = scanner.finish(&mut each);
    }

    /// Takes an entry out of a directory.
    ///
    /// # Errors
    /// `Io`; nothing is changed then.
    pub(crate) fn erase(&self, dir: &mut Dir, span: Span, stage: Stage) -> Result<()> {
        dir.touch(self, span.first, span.len())?;
        self.leave(dir, span)?;
        dir.erase(self, span, stage)
    }

    /// Takes an entry out of the index alone.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn leave(&self, dir: &mut Dir, span: Span) -> Result<()> {
        let mut index = dir.index.take();
        let left = dir.record(self, span, |r| {
            if let Some(index) = &mut index {
                index.leave(self, r, &mut Scratch::default());
            }
        });
        dir.index = index;
        left.map(|_| ())
    }
}

impl Slots {
    fn short_entry(&self) -> DirEntry {
        let raw = self.slots.get(self.short).and_then(|s| entry_at(s));
        raw.unwrap_or_else(zerocopy::FromZeros::new_zeroed)
    }

    /// Sets the first cluster of the entry.
    pub(crate) fn set_first_cluster(&mut self, first: u32, fat32: bool) {
        let mut entry = self.short_entry();
        entry.set_first_cluster(first, fat32);
        self.set_short(&entry);
    }

    /// Sets the bytes of the birth to those of another entry.
    pub(crate) fn set_birth(&mut self, like: &DirEntry) {
        let mut entry = self.short_entry();
        entry.DIR_CrtTimeTenth = like.DIR_CrtTimeTenth;
        entry.DIR_CrtTime = like.DIR_CrtTime;
        entry.DIR_CrtDate = like.DIR_CrtDate;
        self.set_short(&entry);
    }

    fn set_short(&mut self, entry: &DirEntry) {
        if let Some(raw) = self.slots.get_mut(self.short) {
            raw.copy_from_slice(entry.as_bytes());
        }
    }

    /// Makes the stamp differ from that of `old`.
    pub(crate) fn renew(&mut self, fs: &Attached, old: &DirEntry) {
        let mut entry = self.short_entry();
        fs.renew_stamp(&mut entry, old);
        self.set_short(&entry);
    }
}
