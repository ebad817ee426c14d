//! The FAT of an attached volume where its copies differ.
//!
//! A sector of the first copy that holds something else than a FAT is taken from
//! another. Where single entries differ, the first is gone by as long as it leads
//! on; where it does not, or not to what the file's size says, the chain is looked
//! for in all copies (see [`recover`](crate::table::recover)). A volume of which anything
//! could be read only so takes no changes: a check is to mend it first.

use crate::table::copies::{self, Nonsense, entries_of, nonsense};
use crate::table::fat::{Link, Table, entry};
use crate::table::recover::{Copies, Goal, Way, best_way};
use crate::table::segments::{SEGMENT, UNIT};
use crate::volume::judge::{self, Judge};
use crate::volume::layout::FatKind;
use std::sync::atomic::Ordering;
use volary_core::{Error, Kind, Result};

/// What a chain is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Of {
    /// It is not known.
    #[default]
    Unknown,
    /// A directory.
    Dir,
    /// A file whose size takes so many clusters.
    File(u32),
}

impl Table {
    /// Returns whether the volume was cleanly left, so that all copies are of one time.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn is_clean(&self) -> Result<bool> {
        if let Some(clean) = self.clean.get() {
            return Ok(*clean);
        }
        let mut head = [0; UNIT];
        copies::read(&*self.dev, self.offset, &self.copies, 0, &mut head)?;
        let (first, second) = (entry(self.kind, &head, 0), entry(self.kind, &head, 1));
        let bits = crate::table::marks::clean_bits(self.kind);
        // A head that is none says nothing.
        let is_head = first >= self.kind.mask() & !0xff && second | 0xffff >= self.kind.end_min();
        // FAT12 has no bits for it in its FAT, and without the signature none in its boot sector.
        let is_told = bits != 0 || self.layout.serial.is_some();
        let clean = is_told && self.layout.state == 0 && (!is_head || second & bits == bits);
        Ok(*self.clean.get_or_init(|| clean))
    }

    /// Returns what the other copies have of a segment, if any differs from `bytes`, which
    /// is the first one's and gets from them what makes no sense in it.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn others(&self, index: usize, bytes: &mut [u8]) -> Result<Vec<Vec<u8>>> {
        let (at, _) = self.extent_of(index);
        let mut all = Vec::new();
        for base in &self.copies {
            let mut copy = vec![0; bytes.len()];
            if copies::read(&*self.dev, *base, &[self.offset], at, &mut copy).is_err() {
                copy.copy_from_slice(bytes);
            }
            all.push(copy);
        }
        if all.iter().all(|copy| copy == bytes) {
            return Ok(Vec::new());
        }
        let clean = self.is_clean()?;
        for copy in &mut all {
            self.settle(index, bytes, copy, clean);
        }
        if all.iter().all(|copy| copy == bytes) {
            return Ok(Vec::new());
        }
        if clean {
            self.forked.store(true, Ordering::Release);
        }
        Ok(all)
    }

    /// Sees to it that neither copy has sectors that make no sense beside the
    /// other's, and that what one has in use is not taken for free.
    fn settle(&self, index: usize, bytes: &mut [u8], copy: &mut [u8], clean: bool) {
        let base = index as u64 * (SEGMENT / UNIT) as u64;
        for (number, at) in (base..).zip((0..bytes.len()).step_by(UNIT)) {
            let end = (at + UNIT).min(bytes.len());
            let (Some(a), Some(b)) = (bytes.get(at..end), copy.get(at..end)) else {
                return;
            };
            if a == b {
                continue;
            }
            let (first, other, differ) = self.compare(index, number, bytes, copy);
            if first.is_garbage_beside(other, differ, clean) {
                put(bytes, copy, at..end);
                self.damaged.store(true, Ordering::Release);
            } else if other.is_garbage_beside(first, differ, clean) {
                put(copy, bytes, at..end);
            }
        }
        if clean {
            self.keep_used(index, bytes, copy);
        }
    }

    /// Returns how much sense one sector of a segment makes in two copies, and how many
    /// entries differ.
    fn compare(
        &self,
        index: usize,
        sector: u64,
        bytes: &[u8],
        copy: &[u8],
    ) -> (Nonsense, Nonsense, u32) {
        let range = entries_of(self.kind, sector);
        let of = |bytes: &[u8]| {
            let get = |n| Ok(self.value_in(index, bytes, n));
            nonsense(self.kind, self.last, range.clone(), get).unwrap_or_default()
        };
        let value = |bytes, n| self.value_in(index, bytes, n);
        let differ = range.clone().filter(|&n| value(bytes, n) != value(copy, n));
        (of(bytes), of(copy), differ.count() as u32)
    }

    /// Returns the value of a cluster's entry, if it is in this segment.
    fn value_in(&self, index: usize, bytes: &[u8], cluster: u32) -> Option<u32> {
        let (segment, within) = self.place(cluster);
        (segment == index).then(|| entry(self.kind, bytes, within))
    }

    /// Takes what is free in one copy and in use in the other as in use: nothing
    /// is to be written there.
    fn keep_used(&self, index: usize, bytes: &mut [u8], copy: &[u8]) {
        let (start, end) = self.entries().indices(index);
        for i in start..end {
            let (own, other) = (entry(self.kind, bytes, i), entry(self.kind, copy, i));
            if own == 0 && matches!(self.meaning(other), Link::Next(_) | Link::End | Link::Bad) {
                crate::table::fat::set_entry(self.kind, bytes, i, other);
            }
        }
    }

    /// Returns whether the copies differ in the entry of a cluster of a volume that was
    /// cleanly left.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn is_fork(&self, cluster: u32) -> Result<bool> {
        if !self.forked.load(Ordering::Acquire) {
            return Ok(false);
        }
        let (segment, index) = self.place(cluster);
        let inner = self.lock(segment)?;
        Ok(inner.is_fork(self.kind, segment, index))
    }

    /// Returns the best chain from a cluster on, by all copies; `None` if that is the
    /// first one's.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn best_way(&self, start: u32, of: Of) -> Result<Option<Way>> {
        if self.copies.is_empty() || !(2..=self.last).contains(&start) {
            return Ok(None);
        }
        let goal = Goal {
            need: match of {
                Of::File(need) => Some(need),
                Of::Dir | Of::Unknown => None,
            },
            last: self.last,
            clean: of != Of::Unknown && self.is_clean()?,
        };
        let way = best_way(
            &mut Both {
                table: self,
                of,
                start,
            },
            start,
            goal,
        )?;
        if way.first {
            return Ok(None);
        }
        self.damaged.store(true, Ordering::Release);
        Ok(Some(way))
    }

    /// Refuses changes to a volume of which something could be read from another
    /// copy of the FAT only.
    ///
    /// # Errors
    /// `ReadOnly`.
    pub(crate) fn check_sound(&self) -> Result<()> {
        match self.damaged.load(Ordering::Acquire) {
            false => Ok(()),
            true => Err(Error::note(
                Kind::ReadOnly,
                "the first FAT is damaged and the volume is read by its copy: fsck -y first",
            )),
        }
    }

    /// The same if the copies differ at all, of a volume that was cleanly left.
    ///
    /// # Errors
    /// `ReadOnly`.
    pub(crate) fn check_alike(&self) -> Result<()> {
        match self.forked.load(Ordering::Acquire) {
            false => self.check_sound(),
            true => Err(Error::note(
                Kind::ReadOnly,
                "the copies of the FAT differ: fsck -y first",
            )),
        }
    }
}

fn put(to: &mut [u8], from: &[u8], range: std::ops::Range<usize>) {
    if let (Some(to), Some(from)) = (to.get_mut(range.clone()), from.get(range)) {
        to.copy_from_slice(from);
    }
}

/// All copies of an attached volume's FAT.
struct Both<'a> {
    table: &'a Table,
    of: Of,
    start: u32,
}

impl Copies for Both<'_> {
    fn words(&mut self, cluster: u32, out: &mut Vec<Link>) -> Result<()> {
        let table = self.table;
        let (segment, index) = table.place(cluster);
        let inner = table.lock(segment)?;
        out.clear();
        out.push(inner.link(table, segment, index));
        for value in inner.other_values(table.kind, segment, index) {
            let word = table.meaning(value);
            if !out.contains(&word) {
                out.push(word);
            }
        }
        Ok(())
    }

    fn may_come(&mut self, cluster: u32) -> Result<bool> {
        if self.of != Of::Dir || cluster == self.start {
            return Ok(true);
        }
        let layout = &self.table.layout;
        let mut bytes = vec![0; layout.cluster_len as usize];
        let read = self
            .table
            .dev
            .read_at(layout.cluster_offset(cluster), &mut bytes);
        // Not being readable is no sign that it is another's.
        Ok(read.is_err()
            || [false, true]
                .iter()
                .any(|&paper| judge::is_part(&bytes, Judge { layout, paper })))
    }
}

impl crate::table::fat::Inner {
    /// Returns whether other copies of a loaded segment differ in an entry.
    pub(crate) fn is_fork(&self, kind: FatKind, segment: usize, index: u32) -> bool {
        let own = entry(kind, self.bytes(segment), index);
        let others = self.other_values(kind, segment, index);
        others.iter().any(|&other| other != own)
    }
}
