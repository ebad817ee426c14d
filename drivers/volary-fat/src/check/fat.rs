//! One copy of the FAT as a check needs it: read in large pieces, a bounded
//! number of them kept, changes in memory until they are written in order.

use super::bits::Bits;
use super::disk::Disk;
use crate::table::copies;
use crate::volume::layout::{FatKind, Layout};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Result};

/// Bytes in a piece. FAT12 has less than one, so that no entry stands across
/// two.
const PIECE: usize = 64 << 10;
/// Most pieces kept.
const PIECES_MAX: usize = 64;
/// Changed units that are closer than this are written in one request.
const REQUEST: usize = 64 << 10;

/// Steps along chains that a round of a check may take, and how many more for
/// each cluster. Sound volumes take some five a cluster.
const FUEL: u64 = 1 << 20;
const FUEL_PER_CLUSTER: u64 = 256;

/// What an entry of the FAT says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// The cluster is free.
    Free,
    /// The chain goes on there: a cluster that exists.
    Next(u32),
    /// The chain ends here.
    End,
    /// The cluster must not be used.
    Bad,
    /// A value without a meaning: 1, or past the last cluster.
    Wrong(u32),
}

/// Which changes to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Clusters that were free.
    Take,
    /// Clusters in use before and after, and the first reserved entry.
    Turn,
    /// Clusters that become free.
    Free,
    /// The second reserved entry, with the marks.
    Marks,
}

/// Clusters by what they are used for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) free: u32,
    pub(super) bad: u32,
}

#[derive(Clone, Copy)]
struct Change {
    old: u32,
    new: u32,
}

/// One copy of the FAT.
pub(super) struct Fat {
    dev: Arc<dyn BlockDevice>,
    pub(super) kind: FatKind,
    /// The highest cluster number.
    pub(super) last: u32,
    offset: u64,
    /// Where all copies are, for what cannot be read of this one.
    copies: Vec<u64>,
    len: u64,
    pieces: Vec<Option<Box<[u8]>>>,
    loaded: VecDeque<usize>,
    changes: BTreeMap<u32, Change>,
    /// Entries of which another copy is right: what the disk is taken to have.
    adopted: BTreeMap<u32, u32>,
    /// Where the next free cluster is looked for.
    hint: u32,
    /// Clusters that something on the disk leads to, once it is known.
    led_to: Option<Bits>,
    /// How many more free clusters there are to be found, once it is known.
    room: Option<u32>,
    /// Steps along chains that may still be taken.
    fuel: u64,
    /// What cannot be read is to be written again.
    pub(super) to_restore: bool,
}

impl Fat {
    /// Returns a copy of a volume's FAT; nothing is read.
    pub(super) fn new(dev: Arc<dyn BlockDevice>, layout: &Layout, copy: u8) -> Self {
        let need = layout.kind.fat_len(layout.cluster_count);
        let sector = u64::from(layout.sector_len);
        let len = need.next_multiple_of(sector).min(layout.fat_len());
        let count = len.div_ceil(PIECE as u64) as usize;
        Self {
            dev,
            kind: layout.kind,
            last: layout.last_cluster(),
            offset: layout.fat_offset(copy),
            copies: layout.copies(),
            len,
            pieces: std::iter::repeat_with(|| None).take(count).collect(),
            loaded: VecDeque::new(),
            changes: BTreeMap::new(),
            adopted: BTreeMap::new(),
            hint: 2,
            led_to: None,
            room: None,
            fuel: fuel_for(layout.cluster_count),
            to_restore: false,
        }
    }

    /// Allows as many steps along chains as a round of a check needs.
    pub(super) fn refuel(&mut self) {
        self.fuel = fuel_for(self.last);
    }

    /// Returns what marks the end of a chain.
    pub(super) fn end(&self) -> u32 {
        self.kind.mask()
    }

    /// Returns bytes of the FAT that have a meaning, in whole sectors.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Another copy of the same volume's FAT.
    pub(super) fn other(&self, layout: &Layout, copy: u8) -> Self {
        Self::new(self.dev.clone(), layout, copy)
    }

    /// Returns the byte in which an entry begins.
    pub(super) fn place(&self, n: u32) -> u64 {
        let n = u64::from(n);
        match self.kind {
            FatKind::Fat12 => n + n / 2,
            FatKind::Fat16 => n * 2,
            FatKind::Fat32 => n * 4,
        }
    }

    /// Returns the value of an entry, of 12, 16 or 28 bits. 0 past the last.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    pub(super) fn get(&mut self, n: u32) -> Result<u32> {
        let at = self.place(n);
        let piece = (at / PIECE as u64) as usize;
        let within = (at % PIECE as u64) as usize;
        if let Some(Some(bytes)) = self.pieces.get(piece) {
            return Ok(decode(self.kind, bytes, within, n));
        }
        self.load(piece)?;
        let bytes = self.pieces.get(piece).and_then(Option::as_deref);
        Ok(bytes.map_or(0, |b| decode(self.kind, b, within, n)))
    }

    /// Returns what the entry of a cluster says: a step along a chain.
    ///
    /// # Errors
    /// `Corrupt` if a round takes far more steps than there are clusters; `Io`.
    #[inline]
    pub(super) fn link(&mut self, n: u32) -> Result<Link> {
        self.fuel = self.fuel.checked_sub(1).ok_or_else(too_much)?;
        let value = self.get(n)?;
        Ok(self.meaning(value))
    }

    /// Returns what a value says.
    #[inline]
    pub(super) fn meaning(&self, value: u32) -> Link {
        match value {
            0 => Link::Free,
            n if (2..=self.last).contains(&n) => Link::Next(n),
            n if n >= self.kind.end_min() => Link::End,
            n if n == self.kind.bad() => Link::Bad,
            n => Link::Wrong(n),
        }
    }

    fn load(&mut self, piece: usize) -> Result<()> {
        let start = piece as u64 * PIECE as u64;
        if start >= self.len {
            return Ok(());
        }
        let mut bytes = vec![0; (self.len - start).min(PIECE as u64) as usize];
        self.read(start, &mut bytes)?;
        let bits = u64::from(self.kind.bits());
        let first = (start * 8 / bits) as u32;
        let end = ((start + PIECE as u64) * 8 / bits) as u32;
        for (&n, change) in self.changes.range(first..end) {
            let within = (self.place(n) - start) as usize;
            encode(self.kind, &mut bytes, within, n, change.new);
        }
        if self.loaded.len() >= PIECES_MAX
            && let Some(old) = self.loaded.pop_front()
            && let Some(place) = self.pieces.get_mut(old)
        {
            *place = None;
        }
        if let Some(place) = self.pieces.get_mut(piece) {
            *place = Some(bytes.into_boxed_slice());
            self.loaded.push_back(piece);
        }
        Ok(())
    }

    /// Takes an entry to be what another copy says. Before anything is changed.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn adopt(&mut self, n: u32, value: u32) -> Result<()> {
        self.get(n)?;
        let at = self.place(n);
        let piece = (at / PIECE as u64) as usize;
        if let Some(Some(bytes)) = self.pieces.get_mut(piece) {
            encode(self.kind, bytes, (at % PIECE as u64) as usize, n, value);
        }
        self.adopted.insert(n, value);
        Ok(())
    }

    /// Puts what was adopted over bytes of the disk.
    fn put_adopted(&self, start: u64, buf: &mut [u8]) {
        let bits = u64::from(self.kind.bits());
        let end = ((start + buf.len() as u64) * 8).div_ceil(bits) as u32;
        for (&n, &value) in self.adopted.range((start * 8).div_ceil(bits) as u32..end) {
            encode(self.kind, buf, (self.place(n) - start) as usize, n, value);
        }
    }

    /// Reads bytes as they are on the disk, from another copy where this one
    /// cannot be read or was not right; which sectors of 512 bytes these are, by their bytes.
    ///
    /// # Errors
    /// `Io` where no copy can be read.
    pub(super) fn read(&self, start: u64, buf: &mut [u8]) -> Result<Vec<u64>> {
        self.read_copy(self.offset, start, buf)
    }

    /// Reads bytes of the copy that begins at `base`.
    ///
    /// # Errors
    /// `Io` where no copy can be read.
    pub(super) fn read_copy(&self, base: u64, start: u64, buf: &mut [u8]) -> Result<Vec<u64>> {
        let lost = copies::read(&*self.dev, base, &self.copies, start, buf)?;
        if base == self.offset {
            self.put_adopted(start, buf);
        }
        Ok(lost)
    }

    /// Writes what cannot be read again, from another copy, and what another copy is
    /// right about.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn restore(&mut self, disk: &mut Disk) -> Result<()> {
        let ends = |n: u32| [self.place(n), self.place(n) + 1].map(|at| at / 512 * 512);
        let adopted: BTreeSet<u64> = self.adopted.keys().flat_map(|&n| ends(n)).collect();
        if adopted.is_empty() && !self.to_restore {
            return Ok(());
        }
        let mut piece = vec![0; PIECE];
        for start in (0..self.len).step_by(PIECE) {
            piece.truncate((self.len - start).min(PIECE as u64) as usize);
            let end = start + piece.len() as u64;
            let mut sectors: BTreeSet<u64> = adopted.range(start..end).copied().collect();
            let lost = self.read(start, &mut piece)?;
            sectors.extend(lost.iter().filter(|_| self.to_restore));
            for at in sectors {
                let from = (at - start) as usize;
                let sector = piece.get(from..(from + 512).min(piece.len()));
                disk.write(self.offset + at, sector.unwrap_or_default())?;
            }
        }
        // From now on the disk has it.
        self.adopted.clear();
        disk.flush()
    }

    /// Changes an entry, in memory. The upper four bits of FAT32 stay.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn set(&mut self, n: u32, new: u32) -> Result<()> {
        let was = self.get(n)?;
        let at = self.place(n);
        let piece = (at / PIECE as u64) as usize;
        if let Some(Some(bytes)) = self.pieces.get_mut(piece) {
            encode(self.kind, bytes, (at % PIECE as u64) as usize, n, new);
        }
        let change = self.changes.entry(n).or_insert(Change { old: was, new });
        change.new = new;
        if change.old == new {
            self.changes.remove(&n);
        }
        Ok(())
    }

    /// Returns a cluster that is free on the disk as well and that no chain leads to, if
    /// there is one; the next call gives another. (A damaged chain that leads to
    /// a free cluster is cut only after clusters are taken.)
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn find_free(&mut self) -> Result<Option<u32>> {
        let led_to = match self.led_to.take() {
            Some(known) => known,
            None => self.find_led_to()?,
        };
        let mut found = None;
        while found.is_none() && self.hint <= self.last {
            let n = self.hint;
            self.hint += 1;
            if !led_to.has(n) && self.get(n)? == 0 && !self.changes.contains_key(&n) {
                found = Some(n);
            }
        }
        self.led_to = Some(led_to);
        if found.is_some() {
            self.room = self.room.map(|room| room.saturating_sub(1));
        }
        Ok(found)
    }

    /// Returns how many free clusters [`find_free`](Self::find_free) will give.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn room(&mut self) -> Result<u32> {
        if let Some(room) = self.room {
            return Ok(room);
        }
        let from = self.hint;
        let mut room = 0;
        while self.find_free()?.is_some() {
            room += 1;
        }
        self.hint = from;
        self.room = Some(room);
        Ok(room)
    }

    /// So many free clusters; `None`, and nothing is taken, if there are fewer.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn find_many_free(&mut self, count: u32) -> Result<Option<Vec<u32>>> {
        if count > self.room()? {
            return Ok(None);
        }
        let mut found = Vec::new();
        for _ in 0..count {
            found.extend(self.find_free()?);
        }
        Ok(Some(found))
    }

    fn find_led_to(&mut self) -> Result<Bits> {
        let mut led_to = Bits::new(self.last);
        for n in 2..=self.last {
            let now = self.get(n)?;
            let old = self.changes.get(&n).map_or(now, |c| c.old);
            if let Link::Next(next) = self.meaning(old) {
                led_to.add(next);
            }
        }
        Ok(led_to)
    }

    /// Lets a cluster alone that an entry leads to.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn avoid(&mut self, n: u32) -> Result<()> {
        let mut led_to = match self.led_to.take() {
            Some(known) => known,
            None => self.find_led_to()?,
        };
        led_to.add(n);
        self.led_to = Some(led_to);
        Ok(())
    }

    /// Lets the next search start at the first cluster again.
    pub(super) fn rewind(&mut self) {
        self.hint = 2;
        self.room = None;
    }

    /// Calls `each` with all clusters that are in use but not in `used`, and
    /// their values, and counts what is free and bad.
    ///
    /// # Errors
    /// `Io`, or what `each` gives.
    pub(super) fn sweep(
        &mut self,
        used: &Bits,
        mut each: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<Counts> {
        let mut counts = Counts::default();
        for i in 0..used.word_count() {
            let word = used.word(i);
            if word == u64::MAX {
                continue;
            }
            let first = i as u32 * 64;
            if word == 0 && first > 0 && self.all_free(first)? {
                counts.free += 64.min(self.last + 1 - first);
                continue;
            }
            for n in first.max(2)..=(first + 63).min(self.last) {
                if word >> (n - first) & 1 == 1 {
                    continue;
                }
                match self.get(n)? {
                    0 => counts.free += 1,
                    v if v == self.kind.bad() => counts.bad += 1,
                    v => each(n, v)?,
                }
            }
        }
        Ok(counts)
    }

    /// Returns whether the 64 entries from `first`, a multiple of 64, are all zero.
    fn all_free(&mut self, first: u32) -> Result<bool> {
        if self.kind == FatKind::Fat12 || first + 63 > self.last {
            return Ok(false);
        }
        self.get(first)?;
        let at = self.place(first);
        let len = 8 * self.kind.bits() as usize;
        let within = (at % PIECE as u64) as usize;
        let piece = self.pieces.get((at / PIECE as u64) as usize);
        let bytes = piece.and_then(|p| p.as_deref()?.get(within..within + len));
        Ok(bytes.is_some_and(|b| b.iter().fold(0, |a, x| a | x) == 0))
    }

    /// Returns whether there are changes.
    pub(super) fn is_changed(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Writes the changes of one class.
    ///
    /// # Errors
    /// As [`BlockDevice::write_at`].
    pub(super) fn write(&self, class: Class, disk: &mut Disk) -> Result<()> {
        let chosen = |n: u32, c: &Change| match class {
            Class::Marks => n == 1,
            _ if n == 1 => false,
            Class::Take => c.old == 0 && n != 0,
            Class::Turn => c.old != 0 && c.new != 0 || n == 0,
            Class::Free => c.old != 0 && c.new == 0 && n != 0,
        };
        let mut buf: Vec<u8> = Vec::new();
        let mut start = 0;
        for (&n, change) in self.changes.iter().filter(|(n, c)| chosen(**n, c)) {
            let at = self.place(n);
            // An entry of FAT12 can stand in two units.
            let end = (at + 4).next_multiple_of(512).min(self.len);
            if buf.is_empty() || end > start + REQUEST as u64 || at > start + buf.len() as u64 {
                disk.write(self.offset + start, &buf)?;
                buf.clear();
                start = at - at % 512;
            }
            let have = start + buf.len() as u64;
            if have < end {
                let old = buf.len();
                buf.resize((end - start) as usize, 0);
                self.read(have, buf.get_mut(old..).unwrap_or_default())?;
            }
            encode(self.kind, &mut buf, (at - start) as usize, n, change.new);
        }
        disk.write(self.offset + start, &buf)
    }
}

fn fuel_for(clusters: u32) -> u64 {
    FUEL + FUEL_PER_CLUSTER * u64::from(clusters)
}

#[cold]
fn too_much() -> Error {
    Error::corrupt(
        "FAT",
        0,
        "chains so entangled that they cannot be told apart in time",
        "chains of their own",
    )
}

#[inline]
fn decode(kind: FatKind, bytes: &[u8], at: usize, n: u32) -> u32 {
    match kind {
        FatKind::Fat32 => match bytes.get(at..at + 4) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]) & kind.mask(),
            _ => 0,
        },
        FatKind::Fat12 | FatKind::Fat16 => match bytes.get(at..at + 2) {
            Some(&[a, b]) => {
                let word = u32::from(u16::from_le_bytes([a, b]));
                match kind {
                    FatKind::Fat16 => word,
                    _ if n % 2 == 1 => word >> 4,
                    _ => word & 0xfff,
                }
            }
            _ => 0,
        },
    }
}

fn encode(kind: FatKind, bytes: &mut [u8], at: usize, n: u32, value: u32) {
    let (mask, value) = match kind {
        FatKind::Fat12 if n % 2 == 1 => (0xfff0, value << 4),
        FatKind::Fat12 | FatKind::Fat16 | FatKind::Fat32 => (kind.mask(), value),
    };
    let len = if kind == FatKind::Fat32 { 4 } else { 2 };
    let Some(room) = bytes.get_mut(at..at + len) else {
        return;
    };
    for ((byte, mask), value) in room
        .iter_mut()
        .zip(mask.to_le_bytes())
        .zip(value.to_le_bytes())
    {
        *byte = *byte & !mask | value & mask;
    }
}
