//! Putting entries into directories and taking them out.

use crate::attached::attrs::Attrs;
use crate::attached::node::{Place, dir_ino, key_of};
use crate::base::epoch::{Epoch, Step};
use crate::base::store::Store;
use crate::directory::dir::Dir;
use crate::directory::index::{Index, SLOTS_MAX, Span, span_of};
use crate::directory::slots::{Event, Scanner, entry_at};
use crate::names::hash::hash_bytes;
use crate::names::keys::Scratch;
use crate::names::record::LongStyle;
use crate::names::short::{Basis, TAIL_MAX, checksum};
use crate::names::style::{Names, Stored};
use crate::unix::paper;
use crate::unix::which::Unix;
use crate::volume::ondisk::{DOT, DirEntry, ENTRY_LEN, Short};
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_block::Stage;
use volary_core::{Error, Kind, Name, Result};
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

    /// Returns how many.
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

/// An entry and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    /// The short entry.
    pub(crate) entry: DirEntry,
    /// Its slots.
    pub(crate) span: Span,
    /// The place of these.
    pub(crate) place: Place,
}

impl Located {
    /// Returns an entry of `dir`.
    ///
    /// # Errors
    /// `Corrupt` for a slot that there is not.
    pub(crate) fn new(store: &Store, dir: &Dir, entry: DirEntry, span: Span) -> Result<Self> {
        let place = Place {
            dir: dir.first,
            first_slot: span.first,
            slot: span.slot,
            last_slot: span.last,
            offset: dir.offset(store, span.slot)?,
        };
        Ok(Self { entry, span, place })
    }
}

/// The entries of directories, by their names.
pub(crate) struct Entries {
    store: Arc<Store>,
    pub(crate) names: Names,
}

impl Entries {
    /// Returns the entries of the directories in `store`, with names as the mount shows them.
    pub(crate) fn new(store: Arc<Store>, names: Names) -> Self {
        Self { store, names }
    }

    /// Returns a name in its folded form.
    pub(crate) fn folded(&self, name: Name<'_>) -> Vec<u8> {
        let mut folded = Vec::with_capacity(name.as_bytes().len());
        self.names.fold(name.as_bytes(), &mut folded);
        folded
    }

    /// Makes a directory's index, unless there is one. Returns how many bytes of memory a new one
    /// takes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn load(&self, dir: &mut Dir) -> Result<Option<u64>> {
        dir.load(&self.store, &self.names)
    }

    /// Finds a name, in its folded form, in a directory with an index. What is
    /// hidden is found too.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn locate(&self, dir: &Dir, folded: &[u8]) -> Result<Option<Located>> {
        let found = dir.find(&self.store, &self.names, folded, |r| (r.short, span_of(r)))?;
        found
            .map(|(entry, span)| Located::new(&self.store, dir, entry, span))
            .transpose()
    }

    /// Returns what is to be stored for `name`, with `entry` for all but the name. The
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

    /// Returns a short name for a long one, and the hash by which it is found.
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

    /// Returns the hash of a short name, if the directory does not have it.
    fn free_short(&self, dir: &Dir, short: &Short, scratch: &mut Scratch) -> Result<Option<u32>> {
        let folded = self.names.folded_short(short, scratch);
        let is_taken = dir
            .find(&self.store, &self.names, folded, |_| ())?
            .is_some();
        Ok((!is_taken).then(|| hash_bytes(folded) as u32))
    }

    /// Writes a planned entry into a directory. Its generation is made to
    /// differ from that of what was there before, unless it is to be kept.
    ///
    /// # Errors
    /// `Commit`; `NoSpace`, `Io`; nothing is changed then.
    pub(crate) fn insert(
        &self,
        attrs: &Attrs,
        dir: &mut Dir,
        epoch: &Epoch,
        slots: &mut Slots,
        keep_stamp: bool,
    ) -> Step<Located> {
        let first = dir.room(&self.store, epoch, slots.count())?;
        self.insert_at(attrs, dir, epoch, slots, first, keep_stamp)
    }

    /// As [`insert`](Self::insert), in slots that are free.
    pub(crate) fn insert_at(
        &self,
        attrs: &Attrs,
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
        dir.read(&self.store, first, room.as_flattened_mut())?;
        let old = old.get(slots.short).and_then(|raw| entry_at(raw));
        renew_at(attrs, key_of(dir.first, span.slot), slots, old, keep_stamp);
        dir.write(&self.store, first, slots.as_slice(), epoch.stage(dir.first))?;
        self.enter(dir, slots, first);
        let entry = slots.short_entry();
        Ok(Located::new(&self.store, dir, entry, span)?)
    }

    /// Inserts an entry without a long name.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub(crate) fn insert_short(
        &self,
        attrs: &Attrs,
        dir: &mut Dir,
        epoch: &Epoch,
        entry: &DirEntry,
    ) -> Step<Located> {
        let mut slots = Slots::new();
        slots.push_short(entry);
        self.insert(attrs, dir, epoch, &mut slots, false)
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
                index.enter(&self.names, &r, &mut scratch);
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
        dir.touch(&self.store, span.first, span.len())?;
        self.leave(dir, span)?;
        dir.erase(&self.store, span, stage)
    }

    /// Takes an entry out of the index alone.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn leave(&self, dir: &mut Dir, span: Span) -> Result<()> {
        let mut index = dir.index.take();
        let left = dir.record(&self.store, span, |r| {
            if let Some(index) = &mut index {
                index.leave(&self.names, r, &mut Scratch::default());
            }
        });
        dir.index = index;
        left.map(|_| ())
    }

    /// Takes the names of an entry out of the index, but not its slots.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn hide(&self, dir: &mut Dir, span: Span) -> Result<()> {
        self.leave(dir, span)?;
        if let Some(index) = &mut dir.index {
            index.take(span.first, span.len());
        }
        Ok(())
    }

    /// Undoes [`hide`](Self::hide). Drops the index if the entry cannot be read.
    pub(crate) fn unhide(&self, dir: &mut Dir, span: Span) {
        let mut index = dir.index.take();
        let entered = dir.record(&self.store, span, |r| {
            if let Some(index) = &mut index {
                index.enter(&self.names, r, &mut Scratch::default());
            }
        });
        dir.index = index.filter(|_| entered.is_ok());
    }

    /// Gives a new directory, which begins at `first`, a stamp that no earlier
    /// one that began there had: both in the planned entry and in `like`, which
    /// its dot entries are made from.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn renew_dir(
        &self,
        attrs: &Attrs,
        first: u32,
        slots: &mut Slots,
        like: &mut DirEntry,
    ) -> Result<()> {
        let place = dir_ino(first);
        let old = match attrs.births.last(place) {
            Some(old) => Some(old),
            None if attrs.unix == Unix::Today => self.old_dot(first)?,
            None => None,
        };
        if let Some(old) = old {
            slots.renew(attrs, &old);
            attrs.renew_stamp(like, &old);
        }
        attrs.births.note(place, like);
        Ok(())
    }

    /// Returns the dot entry of the directory that the cluster was before. Times tell
    /// directories of different attachments apart; only generations need it.
    fn old_dot(&self, first: u32) -> Result<Option<DirEntry>> {
        let layout = &self.store.layout;
        let mut raw = [0; ENTRY_LEN];
        self.store
            .cache
            .read(layout.cluster_offset(first), &mut raw)?;
        let itself =
            |e: &DirEntry| e.DIR_Name == DOT && e.first_cluster(layout.is_fat32()) == first;
        Ok(entry_at(&raw).filter(itself))
    }
}

/// Gives the planned entry a stamp that no earlier one at the place `key` had,
/// the one that is `there` and about to be overwritten included; where the
/// stamp is to be kept, only remembers the earlier one.
fn renew_at(attrs: &Attrs, key: u64, slots: &mut Slots, there: Option<DirEntry>, keep: bool) {
    let known = attrs.births.last(key);
    if keep {
        let there = there.filter(|e| known.is_none() && e.DIR_Name != [0; 11]);
        if let Some(old) = there {
            attrs.births.note(key, &old);
        }
        return;
    }
    if let Some(old) = known.or(there) {
        slots.renew(attrs, &old);
    }
    attrs.births.note(key, &slots.short_entry());
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
    fn renew(&mut self, attrs: &Attrs, old: &DirEntry) {
        let mut entry = self.short_entry();
        attrs.renew_stamp(&mut entry, old);
        self.set_short(&entry);
    }
}
